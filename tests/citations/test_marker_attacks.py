"""Spellings of citations as models write them, and brackets that are none, by the dozen."""

# ruff: noqa: E501

import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rag.citations.gate import MarkerGate, canonical, data_as_code
from rag.citations.markers import cited_numbers, keep_markers, neutralise

ONE = [
    "[**7**]", "[*7*]", "[__7__]", "[(7)]", "[<7>]", "[{7}]", "⟦7⟧", "〚7〛", "〖7〗", "❲7❳", "⁅7⁆", "﹝7﹞",
    "⟨7⟩", "〈7〉", "{7}", "{source 7}", "{ref: 7}", "{#7}", '{"source": 7}', '{"citation": [7]}',
    "\\cite{7}", "\\citep{7}", "\\cite[p. 3]{7}", "\\footcite{7}", "\\ref{7}", "\\cite{source7}",
    "\\textsuperscript{7}", "$^7$", "$^{7}$", "$^{[7]}$", "^7^", "^[7]^",
    "&#91;7&#93;", "&#x5B;7&#x5D;", "&lbrack;7&rbrack;", "&lsqb;7&rsqb;",
    "[No. 7]", "[no. 7]", "[Nr. 7]", "[n° 7]", "[nº 7]", "[№ 7]", "[№7]", "[→ 7]", "[†7]", "[@7]",
    "[source_7]", "[source-7]", "[source #7]", "[source=7]", '[source="7"]', "[src-7]", "[ref_7]",
    "[cite-7]", "[doc_7]", "[id:7]", "[web:7]", "[file:7]", "[kb:7]", "[Context 7]", "[Snippet 7]",
    "[Result 7]", "[note 7]", "[fn7]", "[see 7]", "[cf. 7]", "[vgl. 7]", "[see source 7]",
    "[fuente 7]", "[fonte: 7]", "[bron 7]", "[kilde 7]", "[źródło 7]", "[zdroj 7]", "[источник 7]",
    "[출처 7]", "[مصدر 7]", "[来源7]", "（来源：7）", "【7：手册】", "［来源7］",
    "[7. Manual]", "[7 | Manual]", "[7; Manual]", "[7, manual.pdf]", "[7 (Manual)]", "[7 (p. 3)]",
    "[7†]", "[7†Manual.pdf]", "[7, S. 3]", "[7, pp. 3-4]", "(footnote 7)", "(doc 7)", "(passage 7)",
    "(Source 7: Manual)", "(Source 7, p. 3)", "(see source 7)", "(ref. 7)",
    "[cite]7[/cite]", "[sup]7[/sup]", "<c>7</c>", "<co>7</co>", "<sources>7</sources>",
    "[\u200b7]", "[7\u2060]", "[\u20667\u2069]", "[\u202a7\u202c]", "[7, eq. (8)]", "[7 | p. 3]", "[７]", "[٧]", "[۷]", "[७]",
    "[voir 7]", "[véase 7]", "[vedi 7]", "[zie 7]", "[cfr. 7]", "[siehe auch 7]", "[vgl. auch 7]", "[see also 7]",
    "[réf. 7]", "[référence 7]", "[cited: 7]", "[Beleg 7]", "[Dokument 7]", "[Dok. 7]", "[evidence 7]", "[n7]", "[^7^]",
    "[source 7, p. 3]", "[7, Table 2]", "[7, tableau 2]", "[7, para. 4]", "[7, step 3]", "[7, row 4]", "[7, note 3]",
    "[7, Fig. 3a]", "[7, clause 5]", "[7, appendix B]", "[7, slide 4]", "[7, Art. 5]", "[7p3]", "[7:p3]", "[7, l. 12]",
    "[7, “Returns”]", '<cite id="7"></cite>', "<cite data-id='7'>7</cite>", "[cite_start][cite: 7]", "[⁷]",
]  # fmt: skip
SEVERAL = [
    ("[7/8]", [7, 8]), ("[7|8]", [7, 8]), ("[7 | 8]", [7, 8]), ("[7+8]", [7, 8]), ("[7 · 8]", [7, 8]), ("[7/8/9]", [7, 8, 9]),
    ("\\cite{7,8}", [7, 8]), ("\\cite{ref7,ref8}", [7, 8]), ("{7, 8}", [7, 8]), ("[@7; @8]", [7, 8]),
    ("[7,8,9 and 12]", [7, 8, 9, 12]), ("[Document 7, Document 8]", [7, 8]), ("[S7-S9]", [7, 8, 9]),
    ("[7]–[9]", [7, 8, 9]), ("[7]-[9]", [7, 8, 9]), ("[7] to [9]", [7, 8, 9]), ("[7][8]-[10]", [7, 8, 9, 10]),
    ("[7..9]", [7, 8, 9]), ("[7…9]", [7, 8, 9]), ("[7~9]", [7, 8, 9]), ("[7−9]", [7, 8, 9]),
    ("[7--9]", [7, 8, 9]), ("[7]/[8]", [7, 8]), ("(Quellen 7 und 8)", [7, 8]), ("⟦7, 8⟧", [7, 8]),
    ("[7; see also 9]", [7, 9]), ("[7, see also 9]", [7, 9]), ("[7; also 9]", [7, 9]), ("[7, vgl. auch 9]", [7, 9]),
    ("[7, p.3; 9, p.4]", [7, 9]), ("[7: Returns; 9: Prices]", [7, 9]), ("[7, §1; 9, §2]", [7, 9]), ("[7 à 9]", [7, 8, 9]),
    ("[⁷⁻⁹]", [7, 8, 9]), ("(see also [7], [9])", [7, 9]), ("[réf. 7 et 9]", [7, 9]), ("[7 und 9]", [7, 9]),
]  # fmt: skip
NONE = [
    "arr[1:7]", "arr[7:]", "arr[:7]", "data['7']", 'd["7"]', "v[i+7]", "foo{7}", "[a-z]{7}", ".{7}",
    "\\d{7}", "x{7,8}", "{0}", "{07}", "{7.5}", "{'a': 7}", "{{7}}", "\\frac{7}{8}", "\\sqrt{7}",
    "x^{7}", "$x^{7}$", "$10^7$", "2^7^", "10^7^", "m^2^", "H~7~O", "~7~", "cout << 7 << x", "1 << 7 >> 2",
    "[0]", "[07]", "[7-3]", "[1-99]", "[12:30]", "[7.5]", "[7 %]", "[7 mm]", "[7 s]", "[7 pages]",
    "[12 lines]", "[2024-05-07]", "[07.05.2024]", "[5/7/2024]", "[24/7]", "[16/9]", "[v1.7]", "[7.0.1]",
    "- [ ] buy 7", "[7. März 2024]", "[7. May]", "[Figure 7]", "[Table 7]", "[page 7]", "[p. 3, 7]",
    "[Step 7]", "[Article 7]", "[§ 7]", "[Art. 7]", "[Windows 11]", "[Python 3]", "[Room 7]", "[n=7]",
    "[size: 7]", "[7 8]", "[7 000]", "[2x7]", "[2×7]", "[7*8]", "[±7]", "[-7]", "[>7]", "[7+]", "[7 °C]",
    "[$7]", "[7€]", "bicyclo[2.2.1]", "[1,2-b]pyridine", "[18F]FDG", "K3[Fe(CN)6]", "(7)", "(7, 8)",
    "（7）", "第7条", "(see 7)", "(Step 7)", "<7>", "<td>7</td>", "<sub>7</sub>", "«7»", "'7'", "*7*",
    "`{7}`", "```\n{7} ⟦7⟧ \\cite{7}\n```", "$[7]$", "\\[ {7} \\]", "&#7;", "&amp;7", "&#91;a&#93;",
    "http://x/[7]", "http://x/?a=[7]&b=[8]", "https://x.org/a-[7]/#[8]", "https://x.org/a?ids[]=[7]",
    f"http://x/{'a' * 200}/[7]", "https://x.org/a_(b)[7]", "https://x.org/[7][8]",
    "vec![7]", "vec![7, 8]", "smallvec![7; 8]", "R[7]C[8]", "=R[7]C[8]:R[9]C[7]", "R[-7]C[8]",
    "\\cite{smith2019}", "\\ref{fig:7}", "[Smith et al., 7]", "[^note]", "regex [0-9]{7}",
    '{"ids": [7, 8]}', '{"a": 1, "b": [7]}', '```\nids = [7, 8]\n```', "x ∈ [7, 8]", "args[7].name", "self.items[7]", "${arr[7]}", "class_[7]",
    "[0, 1]", "(0, 1]", "[7, 9)", "]7, 8[", "[x]", "[ ]", "[7 May 2024]", "[7 mm]", "[7–9 mm]", "[5 pages a minute]",
    "[7 steps a day]", "[7 of 9]", "[7-day]", "[7, 8.5]", '[7, "a"]', "['7', '8']", "[7..]", "[-7, 7]", "[7am]", "[USB 3]",
    "$x_{[7]}$", "\\(x[7]\\)", "f⁽²⁾", "⁽⁷⁾", '<source id="7">', "[item 7]", "[Q7]", "①", "((7))", "{{7}}", "<|7|>", "[7 8 9]",
]  # fmt: skip


def through_the_gate(text: str, known: set[int]) -> str:
    gate = MarkerGate(known.__contains__)
    return "".join([*map(gate.feed, text), gate.finish()])


@pytest.mark.parametrize("spelled", ONE)
def test_one_citation(spelled: str) -> None:
    said = f"It runs at night {spelled}."

    assert canonical(said) == through_the_gate(said, {7}) == "It runs at night [7]."
    assert "[7]" not in through_the_gate(said, {8})


@pytest.mark.parametrize(("spelled", "numbers"), SEVERAL)
def test_several_citations(spelled: str, numbers: list[int]) -> None:
    kept = canonical(f"It runs at night {spelled}.")

    assert kept.replace("–", "").replace("-", "").replace(" to ", "").replace("/", "") == (
        "It runs at night " + "".join(f"[{number}]" for number in numbers) + "."
    )
    assert through_the_gate(f"It runs {spelled}.", set(numbers)) == canonical(f"It runs {spelled}.")


@pytest.mark.parametrize(
    "before",
    ["[manual](https://x.org/a)", "(https://x.org/a)", "<https://x.org/a>", "https://x.org/a.", "Stop now!",
     "vitamin C", "Group A (https://x.org/a_(b))"],
)  # fmt: skip
def test_a_citation_after_an_address_or_a_letter_is_checked(before: str) -> None:
    assert through_the_gate(f"{before}[7]. So", {7}) == f"{before}[7]. So"
    assert "[7]" not in through_the_gate(f"{before}[7]. So", set())
    assert canonical(f"{before}[7; 8] So") == f"{before}[7][8] So"


@pytest.mark.parametrize("text", NONE)
def test_no_citation_keeps_every_letter(text: str) -> None:
    for said in (text, f"So {text} here.")[: 1 if text.startswith(("-", "`")) else 2]:
        assert canonical(said) == said
        assert through_the_gate(said, {7, 8}) == said
        assert through_the_gate(said, set()) == said


@pytest.mark.parametrize("emphasised", ["_quiet_", "_very quiet_", "__quiet__", "__very quiet__"])
def test_a_citation_after_emphasis_is_checked(emphasised: str) -> None:
    assert through_the_gate(f"{emphasised}[7].", {7}) == f"{emphasised}[7]."
    assert through_the_gate(f"{emphasised}[7].", set()) == f"{emphasised}."


@pytest.mark.parametrize(
    "said", ['{"sources": [99]}', 'It says "yes": [99].', "Total = [99]", "M[99]"]
)
def test_what_only_looks_like_a_list_is_checked(said: str) -> None:
    assert "99" not in through_the_gate(said, {7})


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from([*ONE, *(s for s, _ in SEVERAL), *NONE, " ", "So ", ". ", "\n", "|", "**"])
    )
)
@example(["http://x/[7]", "⟦7⟧", "[7]-[9]"])
@example(["http://x/[7]", "⟦7⟧", "&amp;7", "[**7**]"])
@example(["[$7]", "{source 7}", "$^7$"])
@example(["class_[7]", "[**7**]", "[**7**]", "class_[7]"])
def test_any_of_them_together_read_alike_in_a_stream_and_twice(pieces: list[str]) -> None:
    text = "".join(pieces)
    assume(data_as_code(text) == text)  # an answer that is data has tests of its own
    for known in ({7, 8}, set[int]()):
        whole = canonical(text, known)

        streamed = through_the_gate(text, known)
        assert whole in (streamed, keep_markers(streamed, known.__contains__))
        assert set(cited_numbers(whole)) <= known
        again = canonical(whole, known)  # only what stands around a marker may still go
        assert cited_numbers(again) == cited_numbers(whole)
        assert re.sub(r"[\W\d_]", "", again) == re.sub(r"[\W\d_]", "", whole)


def test_a_spelling_that_may_be_text_is_taken_out_by_nobody() -> None:
    text = "Fill {1} in, a ratio of [3/4], on ⟨5⟩ lines."

    assert keep_markers(text, lambda number: False).startswith("Fill {1} in, a ratio of [3/4]")


def test_brackets_of_all_kinds_are_harmless_in_documents() -> None:
    for spelled in ONE:
        assert "[7]" not in canonical(f"So {neutralise(spelled)} it is.")


SAID = "It runs at night [1]. It is quiet [2]."


@pytest.mark.parametrize(
    "ending",
    [
        "\n\n[1] Pump manual\n[2] Price list 2024",
        "\n[1] Pump manual, page 3\n[2] Price list",
        "\n\n- [1] Pump manual\n- [2] Price list",
        "\n\n## Evidence\n\n[1] Pump manual\n[2] Price list",
        "\n\n**Documents consulted**\n- [1] Pump manual",
        "\n\nBelegstellen:\n[1] Pumpenhandbuch, S. 3\n[2] Preisliste",
        "\n\nConsulted documents:\n\n[1]: Pump manual\n[2]: Price list",
        "\n\n---\n[1] Pump manual\n",
        "\n\nSources:\n1. Pump manual\n2. Price list",
    ],
)
def test_a_list_of_sources_is_no_part_of_an_answer(ending: str) -> None:
    assert canonical(SAID + ending) == through_the_gate(SAID + ending, {1, 2}) == SAID


@pytest.mark.parametrize(
    "ending",
    [
        "\n\n[1] weighs 3 kg\n[2] weighs 4 kg",
        "\n\n[1] Weight: 3 kg\n[2] Weight: 4 kg",
        "\n\n[1] The pump is quiet.\n[2] The list is new.",
        "\n\nThe two models [1][2]:\n\n- [1] Aero 5\n- [2] Aero 6",
        "\n\nThe models are:\n[1] Aero 5\n[2] Aero 6",
        "\n\n[3] Aero 7",
        "\n\n[1] **Aero 5** – light and quiet\n[2] **Aero 6** – heavy",
        "\n\n## Steps\n1. Open the lid\n2. Press Reset",
        "\n\nNotes on noise:\nIt hums [1].",
    ],
)
def test_what_states_something_stays(ending: str) -> None:
    assert canonical(SAID + ending) == through_the_gate(SAID + ending, {1, 2, 3}) == SAID + ending
