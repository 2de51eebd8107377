import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag.citations.grammar import MAX_CODE, MOST
from rag.citations.markers import (
    Rewriter,
    as_it_stands,
    cited_numbers,
    find_markers,
    keep_markers,
    marker_text,
    neutralise,
)

HOSTILE = st.lists(
    st.sampled_from(
        [
            "[",
            "]",
            "[1]",
            "[99]",
            "[2, 99]",
            "[1-3]",
            "[98–99]",
            "【99】",
            "【1】",
            "［2］",
            "［９９］",
            "9",
            "1",
            ", ",
            "-",
            " ",
            "\n",
            "`",
            "``",
            "```",
            "~~~",
            "~",
            "(",
            ")",
            ":",
            "!",
            "a",
            "。",
            "é",
            "arr",
            "\u200b",
            "[ 1 ]",
            "\t",
            ".",
            "_",
            "x [99]",
            "【",
            "］",
            "[0]",
            "[01]",
            "^",
            "[1](u)",
            "\n[1]: ",
            "`[99]`",
            "\n```\n",
            "<sup>99</sup>",
            "⁹⁹",
            "²",
            "[^99]",
            "\\[99\\]",
            "\\",
            "$",
            "$x$",
            "**",
            "(Source 99)",
            "(source ",
            "source 99 says ",
            "According to ",
            "【99†source】",
            "[99: the title]",
            ", [99], ",
            " and ",
            "    ",
            "[" + "1," * MOST,
            "`" + "x" * MAX_CODE,
        ]
    ),
    max_size=14,
).map("".join)


def known(number: int) -> bool:
    return number in (1, 2, 3)


def nothing(number: int) -> bool:
    return False


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        pytest.param("Yes [1].", [(1,)], id="plain"),
        pytest.param("Yes [1][2].", [(1,), (2,)], id="adjacent"),
        pytest.param("Yes [1, 2].", [(1, 2)], id="group"),
        pytest.param("Yes [1,2].", [(1, 2)], id="group-without-blank"),
        pytest.param("Yes [1-3].", [(1, 2, 3)], id="range"),
        pytest.param("Yes [1–3, 7].", [(1, 2, 3, 7)], id="range-with-en-dash-in-a-group"),
        pytest.param("Yes【4】.", [(4,)], id="lenticular-even-after-a-letter"),
        pytest.param("はい［5］。", [(5,)], id="full-width-brackets"),
        pytest.param("はい［１２］。", [(12,)], id="full-width-digits"),
        pytest.param("はい【1、2】。", [(1, 2)], id="ideographic-comma"),
        pytest.param("是的[1]。", [(1,)], id="after-a-character-that-is-no-identifier"),
        pytest.param("是。[1][2]", [(1,), (2,)], id="after-an-ideographic-full-stop"),
        pytest.param("Great![1]", [(1,)], id="after-an-exclamation-mark"),
        pytest.param("Yes [2, 1, 2].", [(2, 1)], id="repeated-number"),
        pytest.param("Yes [1\u200b2].", [(12,)], id="zero-width-character-inside"),
        pytest.param("See [1]: it says so.", [(1,)], id="colon-inside-a-line"),
        pytest.param("[[1]]", [(1,)], id="nested"),
        pytest.param("[see here][1]", [(1,)], id="after-a-bracket-that-is-no-index"),
        pytest.param("(`arr`)[1]", [(1,)], id="after-a-parenthesis"),
        pytest.param("a`[1] b", [(1,)], id="backtick-without-end"),
        pytest.param("a`[1]\nb`", [(1,)], id="backtick-with-its-end-on-another-line"),
        pytest.param("``a`[1]`` [2]", [(2,)], id="two-backticks-around-one"),
        pytest.param("```\n[1]\n```\n[2]", [(2,)], id="after-a-fence"),
        pytest.param("  ~~~ x\n[1]\n~~~~ \n[2]", [(2,)], id="after-a-fence-of-tildes"),
        pytest.param("```a``` [2]", [(2,)], id="three-backticks-in-one-line"),
        pytest.param("[12345678901234567890]", [(12345678901234567890,)], id="long-number"),
    ],
)
def test_finds_markers(text: str, numbers: list[tuple[int, ...]]) -> None:
    found = find_markers(text)

    assert [marker.numbers for marker in found] == numbers
    assert all(cited_numbers(text[m.start : m.end]) == list(m.numbers) for m in found)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a_[1][2]", id="index-of-an-index"),
        pytest.param("a[i][2]", id="index-after-a-named-index"),
        pytest.param("a[b[1]][2]", id="index-in-an-index"),
        pytest.param("[1](https://x)", id="link"),
        pytest.param("![1](x.png)", id="image"),
        pytest.param("`[1]`", id="inline-code"),
        pytest.param("``x ` [1]``", id="inline-code-with-a-backtick"),
        pytest.param("```\n[1]\n```", id="fence"),
        pytest.param("```python\n[1]", id="open-fence"),
        pytest.param("~~~\n```\n[1]\n~~~", id="fence-in-a-fence"),
        pytest.param("[0] [01] [1, 0] [1, 02]", id="zeros"),
        pytest.param(
            "[2 x 4] [3 of 5] [16 by 9] [7 mm] [a] [1a] [1.2] [-1] [1-2-3] [,1] [] [3-1] [1-1000]",
            id="other-brackets",
        ),
        pytest.param("[1】【1]", id="unequal-brackets"),
        pytest.param("[1", id="unfinished"),
    ],
)
def test_leaves_other_brackets_alone(text: str) -> None:
    assert find_markers(text) == []
    assert keep_markers(text, nothing) == text


@pytest.mark.parametrize(
    ("text", "kept", "removed"),
    [
        pytest.param("Two [1] and five [99].", "Two [1] and five.", (99,), id="unknown"),
        pytest.param("Two [1, 99].", "Two [1].", (99,), id="group"),
        pytest.param("Two [2-5].", "Two [2][3].", (4, 5), id="range"),
        pytest.param("Two【1】 or［９９］!", "Two[1] or!", (99,), id="full-width"),
        pytest.param("a [98] [99] b", "a b", (98, 99), id="two-removed"),
        pytest.param("a [99][1] b", "a [1] b", (99,), id="kept-after-removed"),
        pytest.param("a [1] [99].", "a [1].", (99,), id="removed-after-kept"),
        pytest.param("a [99]b", "a b", (99,), id="words-are-not-joined"),
        pytest.param("[1]【99】(x)", "[1] (x)", (99,), id="no-link-is-made"),
        pytest.param("[99]: x", "x", (99,), id="colon-of-a-removed-marker"),
        pytest.param("a【99】[1]", "a [1]", (99,), id="no-index-is-made"),
        pytest.param("[9【98】9]", "[9…9]", (98,), id="no-marker-is-made"),
        pytest.param("[1, [99] 2]", "[1, … 2]", (99,), id="no-group-is-made"),
        pytest.param("x ``[99]` [1]", "x ``…` [1]", (99,), id="no-code-is-made"),
        pytest.param("【1】(x)", "[1] (x)", (), id="full-width-before-a-parenthesis"),
        pytest.param("a [1](https://x.y) b", "a [1] b", (), id="link"),
        pytest.param("a [99](https://x.y) b", "a [99](https://x.y) b", (), id="link-elsewhere"),
        pytest.param("a [99](#s) b", "a b", (99,), id="link-to-a-source"),
        pytest.param("a, [99].", "a.", (99,), id="comma-before"),
        pytest.param("a [1], [99], and [2].", "a [1], and [2].", (99,), id="comma-between"),
        pytest.param("a ([99]).", "a.", (99,), id="parentheses"),
        pytest.param("a **[99]** b", "a b", (99,), id="emphasis"),
        pytest.param("**a [99]** b", "**a** b", (99,), id="within-emphasis"),
        pytest.param(
            "According to source 99, so.", "According to source, so.", (99,), id="in-prose"
        ),
        pytest.param("[99]", "", (99,), id="only-a-marker"),
        pytest.param("a [99]", "a", (99,), id="at-the-end"),
        pytest.param("a ", "a ", (), id="blank-at-the-end"),
    ],
)
def test_keeps_allowed_numbers_only(text: str, kept: str, removed: tuple[int, ...]) -> None:
    rewriter = Rewriter(known)

    assert rewriter.feed(text) + rewriter.finish() == kept == keep_markers(text, known)
    assert tuple(rewriter.removed) == removed


SPELLINGS = [
    "x [7].", "x.[7]", "so[7].", "x [7]", "x [ 7 ].",
    "x\u00a0[7].", "x [7\u200b].", "x ([7]).",
    "x (see [7]).", "x **[7]**.", "x *[7]*.", "x __[7]__.", "x \\[7\\].",
    "x【7】.", "x 【7†source】.",
    "x 【7:0†source】.", "x [7†L3-L5].", "x ［7］.", "x 〔7〕.", "x [^7].", "x ^[7].", "x [[7]].",
    "x [[7]](#a).", "x [7](#cite).", "x [7]().", "x [Source 7].", "x [source: 7].", "x [Ref. 7].",
    "x [ref 7].", "x [S7].", "x [#7].", "x [doc7].", "x [Document 7].", "x [cite: 7].",
    "x (Source 7).",
    "x (source: 7).", "x [7: The handbook].", "x [7, §1.1].", "x [7, p. 12].", "x [7, Section 2].",
    "so<sup>7</sup>.", "x <sup>[7]</sup>.",
    'so<sup><a href="#7">7</a></sup>.', 'x <a href="#s">[7]</a>.',
    "x <cite>7</cite>.", '<ref id="7"/>', "words⁷.", "x ⁷.", "x. ⁷",
    "水[7]。", "水。[7]", "ماء [7].",
    "(at noon)[7].", "in 2019[7].", "109.36 dB[7].", "41.3 W[7] |", "5 m[7].", "file(s)[7].",
    "see manual.pdf[7].", "**so**[7].", "`code`[7].", "$x = 1$ [7].", "costs $5 [7] or $6.",
    "> x [7].", "- x [7]", "| x | y [7] |", "[7]: The lamp is red.", "According to source 7, so.",
    "Source 7 says so.", "laut Quelle 7 so.", "– [7] –", "“x”[7]", "x%[7]", "x °C[7]", "K117[7]",
    "x [７].",
    "x [Quelle 7].", "x![7]", "Q4[7]", "iPhone[7]", "kWh[7]", "50 °C[7]", "- item\n\n    more [7]",
    "x [٧].", "x [७].", "x [7 – Manual].", "x [7 p. 3].", "x <b>[7]</b>.", "x <span>[7]</span>.",
    "x (Quelle [7]).", "x [Source: [7]].",
]  # fmt: skip


@pytest.mark.parametrize("text", SPELLINGS)
def test_every_spelling_is_read_written_once_and_removed(text: str) -> None:
    assert cited_numbers(text) == [7]
    written = keep_markers(text, lambda number: number == 7)
    assert written.count("[7]") == 1
    assert keep_markers(written, lambda number: number == 7) == written
    rewriter = Rewriter(nothing)
    without = rewriter.feed(text) + rewriter.finish()
    assert tuple(rewriter.removed) == (7,)
    assert not set("7７⁷") & set(without.replace("K117", ""))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("x [7; 8].", [7, 8]),
        ("x [7 and 8].", [7, 8]),
        ("x [7 or 8].", [7, 8]),
        ("x [7 и 8].", [7, 8]),
        ("x [7和8].", [7, 8]),
        ("x [7 to 9].", [7, 8, 9]),
        ("x [7, 8, and 9].", [7, 8, 9]),
        ("x [7 & 8].", [7, 8]),
        ("x [7 und 8].", [7, 8]),
        ("x [7,\n8].", [7, 8]),
        ("x [7-9].", [7, 8, 9]),
        ("x [7 – 9, 12].", [7, 8, 9, 12]),
        ("x dB[7][8].", [7, 8]),
        ("x [7] [8].", [7, 8]),
        ("x [7], [8] and [9].", [7, 8, 9]),
        ("x ([7], [8]).", [7, 8]),
        ("x [Sources 7, 8].", [7, 8]),
        ("x [Source 7, Source 8].", [7, 8]),
        ("x (Sources 7 and 8).", [7, 8]),
        ("x [S7, S8].", [7, 8]),
        ("x [^7][^8].", [7, 8]),
        ("words⁷˒⁸.", [7, 8]),
        ("x <sup>7, 8</sup>.", [7, 8]),
        ("x 【7†source】【8†source】.", [7, 8]),
        ("According to sources 7 and 8, so.", [7, 8]),
        ("x [7](#a), [8](#b).", [7, 8]),
    ],
)
def test_several_numbers(text: str, numbers: list[int]) -> None:
    assert cited_numbers(text) == numbers
    written = keep_markers(text, lambda _number: True)
    assert cited_numbers(written) == numbers
    assert all(f"[{number}]" in written for number in numbers)
    assert not any(str(number) in keep_markers(text, nothing) for number in numbers)


@pytest.mark.parametrize(
    "text",
    [
        "a[7]", "x1[7]", "my_list[7]", "userIds[7]", "self.rows[7]", "f(x)[7]", "get()[7]",
        "a[i][7]", "p->q[7]", "ns::v[7]", "$HOME[7]", "https://x.y/z[7]", "(7)", "[0]", "[07]",
        "[7-3]",
        "[1-99]", "[7.5]", "[7a]", "[12:30]", "[x]", "[ ]", "![7](x.png)", "10⁷", "x²", "5 m²",
        "kg/m³",
        "10⁻⁷", "m<sup>2</sup>", "10<sup>7</sup>", "(a+b)²", "¹⁵N", "$x[7]$", "$$a_{[7]}$$",
        "\\(x[7]\\)",
        "\\[ x[7] = 2 \\]", "`[7]`", "``a ` [7]``", "```\n[7]\n```", "~~~\n[7]", "    [7]", "\t[7]",
        "> ```\n> [7]\n> ```", "power source 7 is on", "the source 7", "[Figure 7]", "[page 7]",
        "[Step 7]", "[2024-05-07]", "[1, None]",
    ],
)  # fmt: skip
def test_what_is_no_citation_keeps_every_letter(text: str) -> None:
    assert find_markers(text) == []
    assert keep_markers(text, nothing) == text


@given(HOSTILE)
@settings(max_examples=300, deadline=None)
@example("a [1-1000000000][99](x) [[[99]]]")
@example("9 [99]_()[99]")
@example("``[99]`\n[98] ```x\n[1]")
@example("` " + "x" * (MAX_CODE - 2) + "[98][98] `[99]`")
def test_no_unknown_number_leaves(text: str) -> None:
    kept = keep_markers(text, known)

    assert all(map(known, cited_numbers(kept)))


@given(st.text(alphabet="[]【】19, -–\n`~a(:.", max_size=40))
@settings(max_examples=300, deadline=None)
def test_rewriting_twice_changes_nothing_more(text: str) -> None:
    once = keep_markers(text, known)

    assert keep_markers(once, known) == once


@given(HOSTILE)
@settings(max_examples=200, deadline=None)
def test_offsets_are_exact(text: str) -> None:
    for marker in find_markers(text):
        assert 0 <= marker.start < marker.end <= len(text)
        assert set(cited_numbers(text[marker.start : marker.end])) <= set(marker.numbers)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=120, unique=True))
@settings(max_examples=50, deadline=None)
def test_written_markers_are_read_back(numbers: list[int]) -> None:
    assert cited_numbers(marker_text(numbers)) == numbers


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        pytest.param("as shown [1].", "as shown (1).", id="citation"),
        pytest.param("as shown [1, 2-4]", "as shown (1, 2-4)", id="group"),
        pytest.param("【1】［２］", "(1)(２)", id="full-width"),
        pytest.param("rows[1][2] = 0", "rows(1)(2) = 0", id="index"),
        pytest.param("cut off [99", "cut off (99", id="cut-in-a-number"),
        pytest.param("cut off [", "cut off (", id="cut-after-the-bracket"),
        pytest.param("[note] [x1] []", "[note] [x1] []", id="other-brackets"),
        pytest.param("red :contentReference[oaicite:9]{index=9}.", "red (9).", id="oaicite"),
        pytest.param(
            "red \ue200cite\ue202turn0search9\ue202turn1view2\ue201.", "red (9, 2).", id="cite"
        ),
        pytest.param("`citeturn0search9`", "`(9)`", id="cite-in-code"),
    ],
)
def test_documents_own_markers_are_made_harmless(text: str, harmless: str) -> None:
    assert neutralise(text) == harmless


@given(HOSTILE, HOSTILE)
@example("$<sup>99</sup>$", "")
@example("$```<sup>99</sup>$", "")
@example("[<sup>99</sup>]", "")
@example("[<sup>99</sup>", "]")
@settings(max_examples=300, deadline=None)
def test_harmless_text_stays_harmless_in_any_context(first: str, second: str) -> None:
    harmless = neutralise(first)

    assert neutralise(harmless) == harmless
    both = harmless + neutralise(second)
    assert not any(both[marker.start] in "[【［" for marker in find_markers(both))
    assert find_markers("\n" + harmless + "1]") == []
    behind = "x " + harmless
    assert not any(behind[marker.start] in "[【［" for marker in find_markers(behind))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 4_000, id="opening"),
        pytest.param("[1" * 2_000, id="begun"),
        pytest.param("[" + "1," * 4_000 + "1]", id="one-group-of-4000"),
        pytest.param("[1]" * 1_000, id="markers"),
        pytest.param("`" * 5_000, id="backticks"),
        pytest.param("` `` " * 2_000, id="unclosed-code"),
        pytest.param("a[" * 2_000 + "1]" * 2_000, id="nested-indices"),
        pytest.param("[\u200b" * 2_000, id="invisible"),
        pytest.param("[1-99]" * 500, id="ranges"),
        pytest.param("[" + "9" * 5_000 + "]", id="one-long-number"),
    ],
)
def test_great_numbers_of_brackets_are_read_in_one_pass(text: str) -> None:
    kept = keep_markers(text, known)

    assert all(map(known, cited_numbers(kept)))
    assert find_markers(neutralise(text)) == []


def test_a_link_to_a_numbered_section_is_no_citation() -> None:
    outline = "- [1. Refunds](/documents/7#s1)\n- [2. Returns](/documents/7#s2)\n"

    assert keep_markers(outline, known) == outline


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("95 % CI [9, 25], p < 0.001", "95 % CI `[9, 25]`, p < 0.001"),
        ("see [12] and [3][4].", "see `[12]` and `[3][4]`."),
        (
            "| from | to |\n|---|---|\n| [1, 3] | [4] |",
            "| from | to |\n|---|---|\n| `[1, 3]` | `[4]` |",
        ),
        ("set led.color_data[1][2] or $m[1]$", "set led.`color_data[1][2]` or $m(1)$"),
        ("between $5 [1] and $6", "between $5 `[1]` and $6"),
        ("a `tick [3, 9]", "a `tick (3, 9)"),  # it could open code that ends in ours
        ("又【3】", "又(3)"),
    ],
)
def test_people_see_figures_in_brackets_as_they_stand(text: str, shown: str) -> None:
    assert as_it_stands(text) == shown


@given(HOSTILE)
@settings(deadline=None)
def test_what_people_see_never_becomes_a_citation(text: str) -> None:
    shown = as_it_stands(text)

    assert find_markers(shown) == []
    assert find_markers(f"> {shown}\n\nMore.") == [] or shown == neutralise(text)
