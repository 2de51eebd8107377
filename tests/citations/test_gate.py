import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.citations.gate import MarkerGate, canonical
from rag.citations.grammar import MAX_CODE, MOST
from rag.citations.markers import cited_numbers, keep_markers

TEXTS = st.one_of(
    st.text(alphabet="[]【】［19０, -–\n`~a(:. !\u200b", max_size=60),
    st.lists(
        st.sampled_from(
            [
                "[1]",
                "\\[1\\]",
                "$x$",
                "⁷",
                "<sup>1</sup>",
                "\nSources:\n",
                "\n- [1] Title",
                "\n[^1]: title",
                "---",
                "According to source 1",
                " says",
                "**[1]**",
                ", [99]",
                "【1†source】",
                " [99]",
                "[1, 99]",
                "[98-99]",
                "【2】",
                "`",
                "```\n",
                "~~~\n",
                "(x)",
                ": y",
                "\n",
                "word",
                "arr[0]",
                "[x](y)",
                "[1](y)",
                "![1](y)",
                "\n[1]: z",
                ".",
                "[" + "1" * MOST,
                "`" + "b" * MAX_CODE,
                " " * 400,
                "`" * 120,
                "[9",
                "9]",
                "\n```" + " " * 400,
            ]
        ),
        max_size=12,
    ).map("".join),
)


def known(number: int) -> bool:
    return number in (1, 2)


def stream(deltas: list[str]) -> str:
    gate = MarkerGate(known)
    return "".join([*(gate.feed(delta) for delta in deltas), gate.finish()])


@given(TEXTS, st.data())
@settings(max_examples=300, deadline=None)
def test_every_split_gives_the_same_text(text: str, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8).map(sorted))
    deltas = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    assert stream(deltas) == stream([text])


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_single_characters_give_the_same_text(text: str) -> None:
    assert stream(list(text)) == stream([text])


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_a_whole_text_is_as_streamed_and_looked_at_again(text: str) -> None:
    """What stood apart may be a citation once a number between is gone: `[1[9]1]`."""
    streamed = stream([text])

    assert canonical(text, (1, 2)) in (streamed, keep_markers(streamed, known))


def test_an_entry_that_was_escaped_is_none_though_a_number_before_it_is_taken_out() -> None:
    text = "Two years [1], [99].\n\\[1\\]: y"

    assert stream([text]) == canonical(text, (1, 2)) == "Two years [1].\n[1]: y"


def test_a_fence_is_not_closed_far_to_the_right_however_the_text_comes() -> None:
    text = "```\n" + " " * 400 + "```\n [99]"

    assert stream(list(text)) == canonical(text, (1, 2)) == text


@pytest.mark.parametrize(
    ("delta", "shown"),
    [
        pytest.param("Two years", "Two years", id="words-at-once"),
        pytest.param("Two years ", "Two years", id="a-blank-waits"),
        pytest.param("Two years [1", "Two years", id="unfinished-marker-waits"),
        pytest.param("Two years [1]", "Two years", id="marker-waits-for-a-link"),
        pytest.param("Two years [1].", "Two years [1].", id="marker-is-whole"),
        pytest.param("word [[[[[[[[", "word [[[[[[", id="only-the-last-bracket-waits"),
        pytest.param("a `b [99]", "a", id="code-waits-for-its-end"),
        pytest.param("a `b [99]` ", "a `b [99]`", id="code-has-ended"),
        pytest.param("a `b [99]\nx", "a `b\n", id="code-never-began"),
    ],
)
def test_only_what_is_undecided_waits(delta: str, shown: str) -> None:
    assert MarkerGate(known).feed(delta) == shown


def test_what_waits_is_bounded() -> None:
    for text in ("[" + "1" * 5_000, "`" + "b" * 5_000, "`" * 5_000, "```x" + " " * 5_000):
        gate = MarkerGate(known)

        shown = sum(len(gate.feed(char)) for char in text)

        assert len(text) - shown <= MOST + 500


def test_tells_what_was_cited_and_removed_so_far() -> None:
    gate = MarkerGate(known)

    gate.feed("One [2], two [1, 99] but ")
    first = gate.cited
    gate.feed("three [98] [2")
    gate.finish()

    assert first == (2, 1)
    assert gate.cited == (2, 1)
    assert gate.removed == (99, 98)


LISTED = (
    "The Aero 5 weighs 120 g [1].\n\nReferences:\n\n- Manual of the Aero 5\n- Price list 2026\n"
)


def test_a_list_of_sources_is_left_out_also_where_it_has_no_numbers() -> None:
    assert canonical(LISTED, (1, 2)) == "The Aero 5 weighs 120 g [1]."


def test_a_list_under_such_a_heading_stays_where_nothing_is_cited() -> None:
    """It is what was asked for: a reading list."""
    told = LISTED.replace(" [1]", "")

    assert canonical(told, (1, 2)) == told


def test_what_follows_a_list_of_sources_keeps_it() -> None:
    told = f"{LISTED}\nIt is black, and weighs what it weighed in 2025 [2]."

    assert canonical(told, (1, 2)) == told


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("95 % CI [9, 25], p < 0.001", "95 % CI (9, 25), p < 0.001"),
        ("a dose range of [10, 40] minutes", "a dose range of (10, 40) minutes"),
        ("Uniform on [10, 20].", "Uniform on (10, 20)."),
        ("The interval [1, 25] holds [1].", "The interval (1, 25) holds [1]."),
        ("It opened in [2019].", "It opened in (2019)."),
        ("Values lie between [12; 30].", "Values lie between (12; 30)."),
        ("x ∈ [10, 20]", "x ∈ [10, 20]"),
        ("It lasts ten days [9, 25].", "It lasts ten days."),
        ("According to [9, 25], it is red.", "According to, it is red."),
        ("It is red [9].", "It is red."),
        ("As in the range of [1, 2] metres", "As in the range of [1][2] metres"),
    ],
)
def test_a_value_in_brackets_is_never_lost(said, shown):
    for split in range(len(said) + 1):
        gate = MarkerGate({1, 2}.__contains__)
        assert gate.feed(said[:split]) + gate.feed(said[split:]) + gate.finish() == shown


@pytest.mark.parametrize(
    "marker",
    [
        ":contentReference[oaicite:2]{index=2}",
        "citeturn0search2",
        "\ue200cite\ue202turn0search2\ue201",
        "fileciteturn0file2",
    ],
)
def test_the_markers_of_chatgpt_are_read(marker):
    said = f"It is red {marker}. Cite it :content."
    for split in range(len(said) + 1):
        gate = MarkerGate({1, 2}.__contains__)
        text = gate.feed(said[:split]) + gate.feed(said[split:]) + gate.finish()
        assert text == "It is red [2]. Cite it :content."


@pytest.mark.parametrize(
    "said",
    ["A claim^4[47]^.", "A claim ^4 [47]^.", "^[47]4^", "A claim^4[47][98]^.", "^4[47]^ and more"],
)
def test_what_stood_around_a_number_is_no_citation_without_it(said):
    once = canonical(said, {4})

    assert cited_numbers(once) == []
    assert canonical(once, {4}) == once


@pytest.mark.parametrize(
    "said", ["see [47]Source 47.", "see source [98]1.", "It fits, see [47][47]Source 47 again."]
)
def test_nothing_becomes_a_citation_because_one_was_taken_out(said):
    assert cited_numbers(canonical(said, {4})) == []


@pytest.mark.parametrize(
    "said",
    ["10^[3] m", "x[3]^2 y", "m²[3]", "[[3]](#) so", "the [3]rd", "[3]: text", "a ^4[3]^ b"],
)
def test_superscripts_and_links_around_a_number_are_read_once(said):
    once = canonical(said, {3})

    assert canonical(once, {3}) == once
    assert set(cited_numbers(once)) <= {3}


@pytest.mark.parametrize(
    "text",
    [
        '{"ids": [1, 2]}',
        '{"ids": [1], "rows": {"all": [[2], [3]]}}',
        '\n[{"page": 1}, {"ids": [4]}]\n',
        '[{"rows": [[7, 8], [9]]}]',
        '{"page": 1, "of": [[\n 1,\n 2\n]]}',
        '```json\n{"ids": [[1, 2], [3]]}\n```',
    ],
)
def test_arrays_of_data_are_no_citations_and_lose_nothing(text):
    once = canonical(text)

    assert text.strip() in once
    assert cited_numbers(once) == []
    assert canonical(once) == once


def test_what_data_says_may_cite():
    assert cited_numbers(canonical('{"answer": "It weighs 3 kg [1].", "ids": [2, 3]}')) == [1]
    assert cited_numbers(canonical("[1, 2]")) == cited_numbers(canonical("[[1], [2]]")) == [1, 2]
    assert cited_numbers(canonical("[1] says that it weighs 3 kg, [2] does not.")) == [1, 2]


def test_data_nested_without_end_is_left_as_it_is():
    endless = '{"a":[' * 50_000

    assert canonical(endless) == endless
