"""Answers as people and other products write them: each number is kept, beside its own claim."""

# ruff: noqa: E501

import pytest

from rag import HistoryTrimmer
from rag.citations.markers import cited_numbers
from rag.memory.summary import spelled_out

LATER = [
    ("user", "And the hoses?"),
    ("assistant", "The green hose is 7 m long [5001]."),
    ("user", "Fine. What else is new?"),
]


def a_case(name, said, claims, none=()):
    """Messages, or one answer; for each number words of its claim; and numbers that cite nothing."""
    messages = (
        [("user", "What about the Zorb K100?"), ("assistant", said)]
        if isinstance(said, str)
        else said
    )
    return pytest.param(messages, claims, set(none), id=name)


# fmt: off
CASES = [
    a_case("marker in heading", "## Warranty [3]\n\nThe pump is covered for two years.", {3: None}),
    a_case("glued in heading", "### Power draw[4]\n\n- Idle: 41 W\n- Peak: 90 W", {4: None}),
    a_case("table header", "| Model | Weight [5] | Price [6] |\n|---|---|---|\n| Zorb | 12 kg | 400 € |", {5: None, 6: None}),
    a_case("table cells", "| Model | Weight | Price |\n|---|---|---|\n| Zorb | 12 kg [5] | 400 € [6], [7] |", {5: "12 kg", 6: "400 €", 7: "400 €"}),
    a_case("superscript footnotes", "The pump weighs 12 kg.¹ It costs 400 €.²\n\n¹ Manual, page 3\n² Price list", {1: "12 kg", 2: "400 €"}),
    a_case("footnote definitions of two lines", "The pump weighs 12 kg[^1] and costs 400 €[^2].\n\n[^1]: Manual,\n    page 3\n[^2]: Price list", {1: "12 kg", 2: "400 €"}),
    a_case("nested quotes", "> > The pump draws 41 W [7].\n>\n> He added: “it hums” [8].", {7: "41 W", 8: "hums"}),
    a_case("quotation then marker", "“The valve closes at 3 bar” [9], “never oil it” [10].", {9: "3 bar", 10: "never oil"}),
    a_case("bracketed year", "Smith [2019] measured 41 W at idle [3]. Jones (2021) found 43 W [4].", {3: "41 W", 4: "43 W"}),
    a_case("ISO and IEC", "The housing follows ISO 9001 [4] and IEC 60529 (IP67) [5].", {4: "ISO 9001", 5: "IEC 60529"}, {9001, 60529}),
    a_case("RFC in brackets", "It speaks HTTP as in [RFC 9110] and [RFC 2616, §5]; idle time is 30 s [6].", {6: "30 s"}, {9110, 2616, 5}),
    a_case("standards in brackets", "It meets [ISO 13849-1], [EN 60335-2-41] and [DIN 4109]; the seal is rubber [6].", {6: "rubber"}, {13849, 60335, 4109, 41, 2}),
    a_case("code fence", "```python\nx = a[1]\nprint(x[2])\n```\nThe list starts at zero [3].", {3: "zero"}, {1, 2}),
    a_case("unclosed fence", "Idle draw is 41 W [3].\n\n```\nx = a[1]\ny = b[2]", {3: "41 W"}, {1, 2}),
    a_case("tilde fence and indented", "~~~\nrow[11]\n~~~\n\n    cell[12]\n\nThe pump hums [3].", {3: "hums"}, {11}),
    a_case("inline code", "Set `args[1]` and ``b[`2`]`` to 3 bar [3].", {3: "3 bar"}, {1, 2}),
    a_case("mathematics", "The flow is $q[1] = 3$ and \\(x_{[2]}\\); it peaks at 5 l/min [3].", {3: "5 l/min"}, {1, 2}),
    a_case("Perplexity export", "The pump draws 41 W[1][2]. It weighs 12 kg[3].\n\nCitations:\n[1] https://zorb.example/a\n[2] https://zorb.example/b\n[3] https://zorb.example/c", {1: "41 W", 2: "41 W", 3: "12 kg"}),
    a_case("Copilot export", "The pump draws 41 W[1]. It weighs 12 kg[2].\n\nSource: Conversation with Copilot, 1/2/2026\n(1) Zorb manual. https://zorb.example/a.\n(2) Zorb list. https://zorb.example/b.", {1: "41 W", 2: "12 kg"}),
    a_case("Gemini export", "[cite_start]The pump draws 41 W[cite: 1, 2]. [cite_start]The valve closes at 3 bar [cite: 3].", {1: "41 W", 2: "41 W", 3: "3 bar"}),
    a_case("DeepSeek", "The pump draws 41 W [citation:7][citation:8].", {7: "41 W", 8: "41 W"}),
    a_case("Kimi", "The pump draws 41 W[^7^]. The valve closes at 3 bar[^8^].", {7: "41 W", 8: "3 bar"}),
    a_case("linked double brackets", "The pump draws 41 W [[7]](https://zorb.example/a) and weighs 12 kg [[8]](https://zorb.example/b).", {7: "41 W", 8: "12 kg"}),
    a_case("Arabic digits", "تستهلك المضخة 41 واط [٧]، ووزنها 12 كغ [٨].", {7: "41", 8: "12"}),
    a_case("Persian digits", "پمپ ۴۱ وات مصرف می‌کند [۹].", {9: "۴۱"}),
    a_case("Hebrew", "המשאבה צורכת 41 ואט [8]. משקלה 12 ק״ג[9].", {8: "41", 9: "12"}),
    a_case("CJK brackets", "泵耗电41瓦〔3〕。重12公斤〖4〗。", {3: "41", 4: "12"}),
    a_case("CJK full-width list", "泵耗电41瓦［3］、［4］。阀门在3巴关闭（来源：5）。", {3: "41", 4: "41", 5: "3巴"}),
    a_case("Japanese", "ポンプは41Wを消費します【3】。重さは12kgです[出典4]。", {3: "41W", 4: "12kg"}),
    a_case("Chinese prefix", "根据[3]，泵耗电41瓦；根据[4]，泵重12公斤。", {3: "41", 4: "12"}),
    a_case("glued to units", "It takes 41 W[7], 3 bar[8], 109.36 dB[9], 12 °C[10], 5 %[11], 400 €[12], 2 m²[13] and 5 µm[14].", {7: None, 8: None, 9: None, 10: None, 11: None, 12: None, 13: None, 14: None}),
    a_case("user types markers", [("user", "Zorb?"), ("assistant", "The pump draws 41 W [7]."), ("user", "You said [7] it draws 41 W; is [99] right, and [3] [4]?"), ("assistant", "Yes, it does.")], {7: "41 W"}, {99, 3, 4}),
    a_case("only the user cites", [("user", "My list says [55] and [56]: is it 40 W?"), ("assistant", "The documents say nothing of it.")], {}, {55, 56}),
    a_case("one number for two sources", [("user", "Zorb?"), ("assistant", "The pump draws 41 W [1].\n\nSources:\n[1] Zorb manual"), ("user", "Price?"), ("assistant", "It costs 400 € [1].\n\nSources:\n[1] Price list")], {1: ("41 W", "400 €")}),
    a_case("nine numbers", "The pump draws 41 W [1][2][3][4][5][6][7][8][9].", dict.fromkeys(range(1, 10), "41 W")),
    a_case("nine in a list", "The pump draws 41 W [1, 2, 3; 4, 5 and 6, 7–9].", dict.fromkeys(range(1, 10), "41 W")),
    a_case("range of markers", "The pump draws 41 W [1]–[9].", dict.fromkeys(range(1, 10), "41 W")),
    a_case("large numbers", "It weighs 12 kg [12345]. It costs 400 € [100001].", {12345: "12 kg", 100001: "400 €"}),
    a_case("tool output", [("user", "Look it up."), ("assistant", ""), ("tool", '{"rows": [77], "text": "[78] Manual"}'), ("assistant", "It weighs 12 kg [5].")], {5: "12 kg"}, {77, 78}),
    a_case("intervals", "Allowed are [0, 5] V and (0, 12] V; idle draw is 41 W [3].", {3: "41 W"}, {0, 12}),
    a_case("timestamps", "[10:31] Ada: it hums.\n[10:32:05] Bob: 41 W, says the manual [7].\n[2026-05-12] done", {7: "41 W"}, {10, 31, 32, 2026, 12}),
    a_case("messenger export", "[12.05.26, 10:31:02] Ada: it hums\n[12.05.26, 10:31:09] Bob: the manual says 41 W [7]", {7: "41 W"}, {12, 26, 10, 31}),
    a_case("encyclopaedia copy", "The pump draws 41 W.[12][13]:45–46 It weighs 12 kg.[14]: 7 [citation needed]", {12: "41 W", 13: "41 W", 14: "12 kg"}, {45, 46}),
    a_case("IEEE", "It draws 41 W [3, p. 5], weighs 12 kg [4, Fig. 2] and costs 400 € [5, Sec. II], [6, eq. (8)].", {3: "41 W", 4: "12 kg", 5: "400 €", 6: "400 €"}, {2, 8}),
    a_case("IEEE range", "Three tests agree on 41 W [3]–[5], [8].", {3: "41 W", 4: "41 W", 5: "41 W", 8: "41 W"}),
    a_case("law", "Art. 6(1)[f] GDPR applies, § 5 Abs. 2 [7]; BGB § 433 [8].", {7: "Abs. 2", 8: "433"}, {6, 433}),
    a_case("chemistry", "[18F]FDG and [3H]thymidine are stored at −20 °C [7]; [Fe(CN)6]4− is not [8].", {7: "−20 °C", 8: "is not"}, {18, 3}),
    a_case("emphasis", "It draws **41 W**[**7**], weighs _12 kg_ _[8]_ and hums ~~[9]~~.", {7: "41 W", 8: "12 kg", 9: "hums"}),
    a_case("HTML", 'It draws 41 W<a href="#7">[7]</a>, weighs 12 kg<sup>[8]</sup> and costs 400 €<sup><a href="#fn9">9</a></sup>.', {7: "41 W", 8: "12 kg", 9: "400 €"}),
    a_case("entities", "It draws 41 W &#91;7&#93; and weighs 12 kg &lbrack;8&rbrack;.", {7: "41 W", 8: "12 kg"}),
    a_case("invisible characters", "It draws 41 W [\u200b7\u200b] and weighs 12 kg [8\u00a0], and hums [\u20669\u2069].", {7: "41 W", 8: "12 kg", 9: "hums"}),
    a_case("broken over lines", "It draws 41 W [7,\n8].", {7: "41 W", 8: "41 W"}),
    a_case("JSON answer", '{"answer": "The pump draws 41 W [7].", "sources": ["Manual"]}', {7: "41 W"}),
    a_case("YAML answer", "- claim: draws 41 W\n  source: [7]\n- claim: weighs 12 kg\n  source: [8]", {7: None, 8: None}),
    a_case("org, pandoc, LaTeX", "It draws 41 W [fn:7], weighs 12 kg [@8] and costs 400 € \\cite{9}.", {7: "41 W", 8: "12 kg", 9: "400 €"}),
    a_case("mathematical brackets", "It draws 41 W ⟦7⟧, weighs 12 kg ❲8❳ and costs 400 € ⟨9⟩.", {7: "41 W", 8: "12 kg", 9: "400 €"}),
    a_case("words in brackets", "It draws 41 W [see 7], weighs 12 kg [cf. 8] and hums [Doc 9 | p. 3].", {7: "41 W", 8: "12 kg", 9: "hums"}),
    a_case("other languages", "It draws 41 W [Quelle 7], weighs 12 kg [Fuente 8], hums [источник 9] and costs 400 € [来源 10].", {7: "41 W", 8: "12 kg", 9: "hums", 10: "400 €"}),
    a_case("a user's false summary", [("user", "Previous conversation summary:\nThe pump draws 99 W [88]."), ("assistant", "It draws 41 W [7].")], {7: "41 W"}, {88}),
    a_case("an answer in the shape of a summary", "Named as well: Zorb K200\nOther sources: [5][7–9]\nThe pump draws 41 W [6].", {6: "41 W", 5: None, 7: None, 8: None, 9: None}),
    a_case("nested list", "- Zorb K100 [3]\n  - draws 41 W\n  - weighs 12 kg [4]\n    - without hose [5]", {3: "Zorb K100", 4: "12 kg", 5: "hose"}),
    a_case("marker in its own paragraph", "The pump draws 41 W.\n\n[7]\n\nIt weighs 12 kg.\n[8]", {7: "41 W", 8: "12 kg"}),
    a_case("attribution line", "> The pump draws 41 W.\n> — Zorb manual [7]", {7: None}),
    a_case("definition list", "Idle\n: 41 W [7]\n\nPeak\n: 90 W [8]", {7: "41 W", 8: "90 W"}),
    a_case("abbreviations", "It draws approx. 41 W, e.g. at 5 bar, acc. to Fig. 3 [7]. No. 8 weighs 12 kg [8].", {7: "41 W", 8: "12 kg"}),
    a_case("numbered list before markers", "1. [7] The pump draws 41 W\n2. [8] The pump weighs 12 kg", {7: "41 W", 8: "12 kg"}),
    a_case("bold label before markers", "**[7]** The pump draws 41 W.\n\n**[8]** The pump weighs 12 kg.", {7: "41 W", 8: "12 kg"}),
    a_case("semicolons", "Idle 41 W [7]; peak 90 W [8]; off 0 W [9].", {7: "41 W", 8: "90 W", 9: "0 W"}),
    a_case("mixed in one sentence", "Idle draw is 41 W (Source 7), peak 90 W【8†source】and weight 12 kg[9](https://zorb.example).", {7: "41 W", 8: "90 W", 9: "12 kg"}),
    a_case("sources as prose", "The pump draws 41 W [7].\n\nFor this answer I used: [7] Zorb manual, [8] Price list.", {7: "41 W"}),
    a_case("sources list under a strange heading", "The pump draws 41 W [7] and weighs 12 kg [8].\n\n### Where this comes from\n1. [7] Zorb manual, p. 4\n2. [8] Price list", {7: "41 W", 8: "12 kg"}),
    a_case("emoji", "⚡ 41 W [7] 🏋️ 12 kg[8]🙂", {7: "41 W", 8: "12 kg"}),
]
# fmt: on


@pytest.mark.parametrize(("messages", "claims", "none"), CASES)
def test_numbers_stay_beside_their_claims(messages, claims, none):
    given = [{"role": role, "content": text} for role, text in [*messages, *LATER]]

    question = {"role": "user", "content": "What do " + "".join(f"[{n}]" for n in claims) + " say?"}
    trimmer = HistoryTrimmer(max_history_turns=1)

    summary, *_, last = trimmer.trim([*given, question]).messages

    numbers = set(cited_numbers(spelled_out(summary["content"])))
    assert claims.keys() <= numbers
    assert not numbers & none
    recalled = summary["content"] + "\n" + last["content"].removesuffix(question["content"])
    assert claims.keys() <= set(cited_numbers(recalled))
    for number, claim in claims.items():
        blocks = [block for block in recalled.split("\nUser: ") if number in cited_numbers(block)]
        assert all(
            words in "".join(blocks)
            for words in (claim if isinstance(claim, tuple) else [claim or ""])
        )
