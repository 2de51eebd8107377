import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from rag.citations.markers import cited_numbers
from rag.records import (
    Answer,
    Citation,
    ContextConfig,
    Message,
    MessageStatus,
    Session,
    SourceState,
    Unsourced,
    Verdict,
)
from rag.render.export import as_markdown, file_name
from tests.made import made_source

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def session(title="Weights"):
    return Session("s", "anna", title, NOW, NOW, 2, ContextConfig())


def message(role, content, *, status=MessageStatus.COMPLETE, answer=None, error=None):
    return Message(0, 0, role, content, status, NOW, answer=answer, error=error)


def source(number, state=SourceState.CURRENT):
    return made_source(number, "It weighs 120 g.", locator="§ 1", state=state)


class TestMarkdown:
    def test_reads_like_a_conversation(self):
        text = as_markdown(
            session(),
            [message("user", "How heavy?\nReally?"), message("assistant", "120 g [1].")],
            [source(1)],
        )

        assert text == (
            "# Weights\n\n"
            "> How heavy?\n> Really?\n\n"
            "120 g [^1].\n\n"
            "[^1]: [1] Manual, § 1 (manual.md)\n\n"
            "    > It weighs 120 g.\n"
        )

    def test_leaves_code_and_numbers_without_a_source_alone(self):
        text = as_markdown(
            session(), [message("assistant", "`a[1]` and `[1]` [7] [1]")], [source(1)]
        )

        assert "`a[1]` and `[1]` [7] [^1]" in text

    def test_opens_every_kind_of_marker(self):
        sources = [source(number) for number in (1, 2, 3)]

        text = as_markdown(session(), [message("assistant", "Yes [1-2]【3】.")], sources)

        assert "Yes [^1][^2][^3]." in text

    def test_says_what_became_of_a_source(self):
        sources = [
            source(1, state=SourceState.DELETED),
            source(2, state=SourceState.CHANGED),
        ]

        text = as_markdown(session(), [message("assistant", "Yes [1][2].")], sources)

        assert "(manual.md) (no longer in the library)" in text
        assert "(manual.md) (the document has changed since)" in text

    def test_says_what_no_source_supports_and_what_broke_off(self):
        content = "It flies. It is"
        answer = Answer(content, unsourced=(Unsourced(0, 9),))
        broken = message(
            "assistant",
            content,
            status=MessageStatus.INTERRUPTED,
            answer=answer,
            error="The model went away.",
        )

        text = as_markdown(session(), [broken], [])

        assert "*This answer is interrupted. The model went away.*" in text
        assert "It flies. *(no source)* It is" in text

    def test_says_behind_each_statement_what_is_wrong_with_it(self):
        content = "It weighs 2 kg [1]. It costs EUR 9 [1]."
        wrong = [Citation(1, at, at + 3, Verdict.CONTRADICTED, f"No {at}.") for at in (15, 35)]
        answer = Answer(content, citations=tuple(wrong))

        text = as_markdown(session(), [message("assistant", content, answer=answer)], [source(1)])

        assert "It weighs 2 kg [^1]. *(⚠ No 15.)* It costs EUR 9 [^1]. *(⚠ No 35.)*" in text

    def test_says_which_of_two_numbers_of_a_statement_is_wrong(self):
        content = "It weighs 2 kg [1][2]."
        wrong = Citation(2, 18, 21, Verdict.CONTRADICTED, "It says *9* | kg.")
        also = Citation(1, 15, 18, Verdict.OFF_SUBJECT)
        answer = Answer(content, citations=(also, wrong))

        text = as_markdown(session(), [message("assistant", content, answer=answer)], [source(1)])

        assert "does not speak of this. [2] It says \\*9\\* \\| kg.)*" in text

    def test_names_other_speakers(self):
        assert "> **system:** Be brief." in as_markdown(
            session(""), [message("system", "Be brief.")], []
        )

    @given(st.text(st.sampled_from("a [],-12【】`(:\n"), max_size=60))
    def test_keeps_every_citation(self, content):
        sources = [source(1), source(2), source(12)]
        wanted = {number for number in cited_numbers(content) if number in (1, 2, 12)}

        text = as_markdown(session(), [message("assistant", content)], sources)

        defined = {int(number) for number in re.findall(r"^\[\^(\d+)\]: ", text, re.MULTILINE)}
        assert defined >= wanted
        assert all(f"[^{number}]" in text for number in wanted)


def test_file_names_are_plain():
    assert file_name(session("../Ärger & Café?"), "md") == "rger-caf.md"
    assert file_name(session("価格"), "json") == "conversation.json"
