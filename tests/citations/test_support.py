from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.citations.markers import cited_numbers, find_markers, keep_markers
from rag.citations.support import SupportChecker
from rag.errors import ModelUnavailable
from rag.records import Source, Verdict
from rag.seams import Matrix
from tests.fakes import HashEmbedder

AERO = Source(
    number=1,
    chunk_id="c1",
    document_id="d1",
    document_name="aero.md",
    document_title="Aero 5 manual",
    locator="§ Data",
    heading_path=("Data",),
    text="The Aero 5 weighs 1.2 kg.",
    passage="The Aero 5 weighs 1.2 kg and has a range of 30 m indoors. It does not survive rain. "
    "The battery lasts ten hours.",
    content_hash="",
)
PRO = replace(
    AERO,
    number=2,
    chunk_id="c2",
    document_title="Refunds",
    passage="Customers may return a device within 14 days. Refunds are paid by bank transfer. "
    "The cover AC-12X fits.",
)
JAPANESE = replace(
    AERO,
    number=3,
    chunk_id="c3",
    document_title="説明書",
    passage="電源ボタンを三秒間押すと再起動します。",
)
SOURCES = {1: AERO, 2: PRO, 3: JAPANESE}
SUPPORTED, UNSUPPORTED, UNCHECKED = Verdict.SUPPORTED, Verdict.OFF_SUBJECT, Verdict.OPEN


class BrokenEmbedder(HashEmbedder):
    def embed(self, texts: object) -> Matrix:
        raise ModelUnavailable("The embedding server cannot be reached.")


class BlindEmbedder(HashEmbedder):
    """Finds nothing near anything else."""

    def embed(self, texts: list[str]) -> Matrix:
        return np.eye(len(texts), dtype=np.float32)


def verdicts(text: str) -> list[tuple[int, Verdict]]:
    return [(c.number, c.verdict) for c in SupportChecker().check(text, SOURCES).citations]


def unsupported(text: str) -> list[str]:
    checked = SupportChecker().check(text, SOURCES)
    return [text[statement.start : statement.end] for statement in checked.unsourced]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("It weighs 1.2 kg [1].", [(1, SUPPORTED)], id="carried"),
        pytest.param("It weighs 1.2 kg. [1]", [(1, SUPPORTED)], id="after-the-stop"),
        pytest.param("It weighs 1.2 kg.\n[1]", [(1, SUPPORTED)], id="marker-on-its-own-line"),
        pytest.param("It weighs 1.2 kg [2].", [(2, UNSUPPORTED)], id="other-source"),
        pytest.param("It weighs 1.4 kg [1].", [(1, UNSUPPORTED)], id="other-figure"),
        pytest.param("The cover AC-12X fits it [2].", [(2, SUPPORTED)], id="model-code"),
        pytest.param("The cover AC-13X fits it [2].", [(2, UNSUPPORTED)], id="other-model-code"),
        pytest.param("Unicorns sing opera loudly [1].", [(1, UNSUPPORTED)], id="not-in-the-source"),
        pytest.param("It weighs 1.2 kg [7].", [(7, UNSUPPORTED)], id="no-such-source"),
        pytest.param("電源ボタンを三秒間押す[3]。", [(3, SUPPORTED)], id="japanese"),
        pytest.param("電源ボタンを三秒間押す[2]。", [(2, UNSUPPORTED)], id="japanese-swapped"),
        pytest.param(
            "It weighs 1.2 kg [1] and may be returned within 14 days [2].",
            [(1, SUPPORTED), (2, SUPPORTED)],
            id="two-clauses",
        ),
        pytest.param(
            "It weighs 1.2 kg [2] and may be returned within 14 days by customers [1].",
            [(2, UNSUPPORTED), (1, UNSUPPORTED)],
            id="two-clauses-swapped",
        ),
        pytest.param(
            "[1] says that the battery lasts ten hours, [2] that refunds are paid by transfer.",
            [(1, SUPPORTED), (2, SUPPORTED)],
            id="markers-in-front",
        ),
        pytest.param(
            "The battery lasts ten hours and refunds are paid by bank transfer [1, 2].",
            [(1, SUPPORTED), (2, SUPPORTED)],
            id="carried-between-two",
        ),
        pytest.param("Sources: [1] and [2]", [(1, UNCHECKED), (2, UNCHECKED)], id="states-nothing"),
        pytest.param("Does it weigh 1.2 kg [1]?", [(1, UNCHECKED)], id="question"),
        pytest.param("", [], id="empty"),
    ],
)
def test_judges_each_citation(text: str, expected: list[tuple[int, Verdict]]) -> None:
    assert verdicts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "The battery lasts ten hours.", ["The battery lasts ten hours."], id="uncited"
        ),
        pytest.param("The battery lasts ten hours [1].", [], id="cited"),
        pytest.param("Refunds take ages [1].", ["Refunds take ages [1]."], id="wrongly-cited"),
        pytest.param("- It is cheap today\n- Fine", ["- It is cheap today"], id="entry"),
        pytest.param("| Part | Price |\n|---|---|\n", [], id="table-head"),
        pytest.param("Hello! I hope that this helps you.", [], id="manners"),
        pytest.param("# Battery and range", [], id="heading"),
        pytest.param("Follow these steps carefully:", [], id="lead-in"),
        pytest.param("Which model do you own?", [], id="question"),
        pytest.param("The documents do not mention the price.", [], id="declines"),
        pytest.param("I could not find anything about prices.", [], id="finds-nothing"),
        pytest.param("No information about prices is given.", [], id="no-information"),
        pytest.param("Dazu enthalten die Dokumente keine Angaben.", [], id="declines-in-german"),
        pytest.param(
            "The device does not read documents in PDF.",
            ["The device does not read documents in PDF."],
            id="negation-is-no-decline",
        ),
        pytest.param("```\nbattery = hours(10)\n```", [], id="code"),
    ],
)
def test_shows_statements_that_nothing_carries(text: str, expected: list[str]) -> None:
    assert unsupported(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("The battery lasts ten hours.", "The battery lasts ten hours [1].", id="stop"),
        pytest.param(
            "The battery lasts ten hours", "The battery lasts ten hours [1]", id="no-stop"
        ),
        pytest.param(
            "- The battery lasts ten hours\n- Refunds are paid by bank transfer!",
            "- The battery lasts ten hours [1]\n- Refunds are paid by bank transfer [2]!",
            id="entries",
        ),
        pytest.param(
            "| The battery lasts | ten hours |", "| The battery lasts | ten hours [1] |", id="row"
        ),
        pytest.param(
            "電源ボタンを三秒間押すと再起動します。",
            "電源ボタンを三秒間押すと再起動します[3]。",
            id="japanese",
        ),
    ],
)
def test_adds_the_citation_that_a_writer_forgot(text: str, expected: str) -> None:
    attributed = SupportChecker().attribute(text, SOURCES)

    assert attributed.text == expected
    assert [attributed.text[c.start : c.end] for c in attributed.citations] == [
        f"[{c.number}]" for c in attributed.citations
    ]
    assert all(c.attributed and c.verdict is SUPPORTED for c in attributed.citations)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("The battery lasts ten hours [2].", id="has-one-already"),
        pytest.param("Does the battery last ten hours?", id="question"),
        pytest.param("## The battery lasts ten hours", id="heading"),
        pytest.param("Hello, the battery lasts ten hours.", id="greeting"),
        pytest.param("The documents do not say how long the battery lasts.", id="declines"),
        pytest.param("The battery lasts twelve hours, or 12.5 on a good day.", id="other-figures"),
        pytest.param("Elephants are great swimmers.", id="no-source-fits"),
        pytest.param("```\nThe battery lasts ten hours\n```", id="code"),
        pytest.param("`The battery lasts ten hours. Elephants` swim.", id="inside-inline-code"),
    ],
)
def test_adds_nothing_where_nothing_is_certain(text: str) -> None:
    assert SupportChecker().attribute(text, SOURCES).text == text


def test_without_sources_nothing_is_supported() -> None:
    checked = SupportChecker().check("It weighs 1.2 kg [1].", {})

    assert [c.verdict for c in checked.citations] == [UNSUPPORTED]
    assert SupportChecker().attribute("It weighs 1.2 kg.", {}).citations == ()


def test_all_texts_are_embedded_in_one_call() -> None:
    class Counting(HashEmbedder):
        calls = 0

        def embed(self, texts: list[str]) -> Matrix:
            self.calls += 1
            return super().embed(texts)

    embedder = Counting()

    SupportChecker(embedder).check("It weighs 1.2 kg [1]. Refunds are paid [2].", SOURCES)

    assert embedder.calls == 1


def test_an_embedder_that_is_down_leaves_the_words_to_judge() -> None:
    text = "It weighs 1.2 kg [1]."

    assert SupportChecker(BrokenEmbedder()).check(text, SOURCES) == SupportChecker().check(
        text, SOURCES
    )


PIECES = [
    "The battery lasts ten hours",
    "Refunds are paid by bank transfer",
    "It weighs 9 kg",
    " [1]",
    "[2]",
    "[99]",
    ". ",
    "\n",
    "\n- ",
    "\n```\n",
    "`",
    "? ",
    " | ",
    "。",
    "[1](x)",
    "[",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@given(TEXTS)
@settings(max_examples=150, deadline=None)
def test_every_statement_is_cited_with_support_or_shown(text: str) -> None:
    checked = SupportChecker().check(text, SOURCES)

    numbers = [n for marker in find_markers(text) for n in marker.numbers]
    assert [c.number for c in checked.citations] == numbers
    for statement in checked.unsourced:
        inside = [c for c in checked.citations if statement.start <= c.start < statement.end]
        assert all(c.verdict is not SUPPORTED for c in inside)


@given(TEXTS)
@settings(max_examples=150, deadline=None)
def test_attribution_only_adds_markers_of_its_sources(text: str) -> None:
    attributed = SupportChecker().attribute(text, SOURCES)

    added = {(c.start, c.end) for c in attributed.citations}
    rest = attributed.text
    for start, end in sorted(added, reverse=True):
        start -= rest[start - 1] == " "
        rest = rest[:start] + rest[end:]
    assert rest == text
    assert added <= {(m.start, m.end) for m in find_markers(attributed.text)}
    assert set(cited_numbers(attributed.text)) <= set(cited_numbers(text)) | set(SOURCES)
    assert keep_markers(attributed.text, lambda n: n in (*SOURCES, 99)).removed == ()
