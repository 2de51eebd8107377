import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.language.sentences import Span, split_sentences


def sentences(text: str) -> list[str]:
    return [text[span.start : span.end] for span in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("One. Two! Three?", ["One.", "Two!", "Three?"], id="ends"),
        pytest.param("It uses 2.4 GHz. Yes.", ["It uses 2.4 GHz.", "Yes."], id="decimal"),
        pytest.param("Use v1.2.3 now. Yes.", ["Use v1.2.3 now.", "Yes."], id="version"),
        pytest.param(
            "See https://x.com/a.b?c. Yes.", ["See https://x.com/a.b?c.", "Yes."], id="address"
        ),
        pytest.param(
            "Dr. Smith of Foo Inc. agreed.", ["Dr. Smith of Foo Inc. agreed."], id="titles"
        ),
        pytest.param(
            "Use approx. 5 m of cable. Then stop.",
            ["Use approx. 5 m of cable.", "Then stop."],
            id="abbreviation-before-a-figure",
        ),
        pytest.param(
            "The temp. is 5 °C. See e.g. page 3.",
            ["The temp. is 5 °C.", "See e.g. page 3."],
            id="abbreviation-before-a-word",
        ),
        pytest.param(
            "Its range is 30 m. The battery lasts.",
            ["Its range is 30 m.", "The battery lasts."],
            id="unit-of-one-letter",
        ),
        pytest.param("你好。世界！再见", ["你好。", "世界！", "再见"], id="no-blanks-between"),
        pytest.param("a\ud800. B\x00.", ["a\ud800.", "B\x00."], id="surrogate-and-null"),
        pytest.param(" \n\t", [], id="blank"),
    ],
)
def test_splits_at_ends_of_sentences_only(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "Five days. [1][2] Next one. [3]",
            ["Five days. [1][2]", "Next one. [3]"],
            id="after-stop",
        ),
        pytest.param("Five days.[1] Next.", ["Five days.[1]", "Next."], id="right-after-stop"),
        pytest.param("Five days [1]. Next.", ["Five days [1].", "Next."], id="before-stop"),
        pytest.param('"Yes." [1] Next.', ['"Yes." [1]', "Next."], id="after-a-quote"),
        pytest.param("是的。[1]好。【2】", ["是的。[1]", "好。【2】"], id="after-ideographic-stop"),
        pytest.param("Yes. [1, 2–4] No.", ["Yes. [1, 2–4]", "No."], id="group"),
        pytest.param("[1] says so. No.", ["[1] says so.", "No."], id="at-the-beginning"),
    ],
)
def test_a_marker_belongs_to_the_sentence_before_it(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("- one\n- two\n* three", ["- one", "- two", "* three"], id="bullets"),
        pytest.param(
            "1. One thing. More.\n2) Two", ["1. One thing.", "More.", "2) Two"], id="numbers"
        ),
        pytest.param("| a. b | c |\n|---|---|", ["| a. b | c |", "|---|---|"], id="table-rows"),
        pytest.param("# The end. Now\ntext", ["# The end. Now", "text"], id="heading"),
        pytest.param("```\na. b\nc\n```\nd", ["```", "a. b", "c", "```", "d"], id="fence"),
        pytest.param("one\n\ntwo", ["one", "two"], id="paragraphs"),
        pytest.param("Line A [1]\nLine B", ["Line A [1]", "Line B"], id="line-after-a-marker"),
        pytest.param("Weight\nThe box weighs", ["Weight", "The box weighs"], id="short-line"),
        pytest.param("goes on\nin lower case", ["goes on\nin lower case"], id="wrapped-line"),
        pytest.param(
            "A line that was broken because the page was full at\nThis word",
            ["A line that was broken because the page was full at\nThis word"],
            id="full-line",
        ),
    ],
)
def test_no_sentence_leaves_its_line_unless_the_line_was_wrapped(
    text: str, expected: list[str]
) -> None:
    assert sentences(text) == expected


PIECES = [
    "a",
    "B",
    ".",
    "!",
    "。",
    " ",
    "\n",
    "[1]",
    "【2】",
    "- ",
    "1. ",
    "| ",
    "```",
    "# ",
    '"',
    "e.g.",
]


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=30).map("".join)))
@settings(max_examples=300, deadline=None)
def test_spans_are_in_order_trimmed_and_leave_nothing_out(text: str) -> None:
    spans = split_sentences(text)

    at = 0
    for span in spans:
        assert not text[at : span.start].strip()
        assert span.start < span.end
        assert text[span.start : span.end] == text[span.start : span.end].strip()
        at = span.end
    assert not text[at:].strip()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[1]" * 20_000, id="markers"),
        pytest.param("x" * 200_000, id="one-word"),
        pytest.param("“a. " * 10_000, id="unclosed-quotes"),
        pytest.param("好。" * 10_000, id="ideographic-stops"),
        pytest.param("-\n" * 10_000, id="bullets"),
        pytest.param("a\n" * 10_000, id="lines"),
        pytest.param("no. 5 " * 10_000, id="abbreviations"),
    ],
)
def test_great_texts_are_read_in_one_pass(text: str) -> None:
    spans = split_sentences(text)

    assert spans[0].start == 0
    assert spans[-1] == Span(spans[-1].start, len(text.rstrip()))


@pytest.mark.parametrize(
    "text",
    [
        "It needs .NET 8 on Windows.",
        "Run ./configure before make.",
        "The Prod. code is on the back.",
        "A client MUST wait ...SHOULD it fail.",
    ],
)
def test_a_dot_that_belongs_to_a_word_ends_nothing(text):
    assert [text[span.start : span.end] for span in split_sentences(text)] == [text]
