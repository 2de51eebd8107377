"""A paragraph is shown in its setting: what limits a sentence is never lost."""
# ruff: noqa: E501 - tables are read across

from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag import HistoryTrimmer
from rag.citations.gate import canonical
from rag.citations.markers import cited_numbers
from rag.memory.context import SUMMARY_TITLE
from rag.memory.recall import LONGEST, USUAL, Index, read_paragraphs, size
from rag.tokens import count_tokens

# What is asked, the heading or lead-in that turns a sentence round, the sentence, what limits it.
LANGUAGES = {
    "en": ("Which statement is false?", "Not covered", "Water damage in the cellar", "However, storms are covered"),
    "de": ("Welche Aussage ist falsch?", "Nicht versichert", "Wasserschäden im Keller", "Stürme sind jedoch versichert"),
    "fr": ("Quelle phrase est fausse ?", "Non couvert", "Dégâts des eaux à la cave", "Toutefois, la tempête est couverte"),
    "es": ("¿Qué frase es falsa?", "No cubierto", "Daños por agua en el sótano", "Sin embargo, la tormenta sí"),
    "it": ("Quale frase è falsa?", "Non coperto", "Danni da acqua in cantina", "Tuttavia la tempesta è coperta"),
    "nl": ("Welke zin is onjuist?", "Niet gedekt", "Waterschade in de kelder", "Storm is echter wel gedekt"),
    "ru": ("Что неверно?", "Не покрывается", "Ущерб от воды в подвале", "Однако буря покрывается"),
    "zh": ("哪句话是错的？", "不保", "地下室的水损", "但暴风雨除外"),
    "ar": ("أي جملة خاطئة؟", "غير مشمول", "أضرار المياه في القبو", "لكن العاصفة مشمولة"),
}  # fmt: skip
OTHER = "Of this there is nothing to say that would be of use to anybody who asks. " * 16
FORMS = {
    "heading": "{other}\n\n## {limit}\n\n{said} [3].\n\n## Z\n\n{other}",
    "deep heading": "# A\n\n{other}\n\n## {limit}\n\n### B\n\n{said} [3].\n\n{other}",
    "underlined heading": "{other}\n\n{limit}\n------\n\n{said} [3].\n\n{other}",
    "bold line": "{other}\n\n**{limit}**\n\n{said} [3].\n\n{other}",
    "list with lead-in": "{other}\n\n{limit}:\n\n- {said} [3]\n- x\n\n{other}",
    "long list": "{other}\n\n{limit}:\n{entries}\n- {said} [3]\n{entries}",
    "nested list": "{other}\n\n- {limit}\n{nested}\n  - {said} [3]\n{nested}",
    "long table": "{other}\n\n| {limit} | n |\n|---|---|\n{rows}\n| {said} | [3] |\n{rows}",
    "question before it": "{said} [3].",
    "in what follows": "{other}\n\n{said} [3]. {behind}.\n\n{other}",
    "the next paragraph": "{said} [3].\n\n{behind}.",
    "quotation": "{other}\n\n> {limit}:\n> {said} [3].\n\n{other}",
}  # fmt: skip


def filled(form, limit, said, behind):
    entries = "\n".join(
        f"- Entry {n} that is as long as entries are, or more [1]" for n in range(30)
    )
    nested = "\n".join(f"  - Entry {n} that is as long as entries are [1]" for n in range(30))
    rows = "\n".join(
        f"| row {n} of a table that is long enough to be cut | [1] |" for n in range(30)
    )
    words = {"entries": entries, "nested": nested, "rows": rows, "other": OTHER.strip()}
    return FORMS[form].format(limit=limit, said=said, behind=behind, **words)


@pytest.mark.parametrize(("language", "form"), product(LANGUAGES, FORMS))
def test_what_limits_a_sentence_comes_with_it(language, form):
    asked, limit, said, behind = LANGUAGES[language]
    talk = [
        message
        for number in range(60)
        for message in (
            {"role": "user", "content": f"And what of place {number}?"},
            {"role": "assistant", "content": f"Place {number} is far away. {OTHER[:300]} [9]"},
        )
    ]
    messages = [
        {"role": "user", "content": asked},
        {"role": "assistant", "content": filled(form, limit, said, behind)},
        *talk,
        {"role": "user", "content": f"{said}?"},
    ]

    sent = HistoryTrimmer(max_tokens=2500).trim(messages).messages

    blocks = [b for m in sent for b in m["content"].removesuffix(f"{said}?").split("\nUser: ")]
    blocks = [block for block in blocks if said in block]
    assert blocks
    expected = {
        "question before it": asked,
        "in what follows": behind,
        "the next paragraph": behind,
    }
    for block in blocks:
        line = next(line for line in block.splitlines() if said in line)
        assert 3 in cited_numbers(line)
        assert expected.get(form, limit) in block
        assert block.startswith(asked) or f"User: {asked}" in block or SUMMARY_TITLE in block


def test_a_short_message_is_one_paragraph():
    (paragraph,) = read_paragraphs(0, "# A\n\nIt is so [1].\n\n- x\n- y", count_tokens)

    assert paragraph.text == "# A\n\nIt is so [1].\n\n- x\n- y"
    assert paragraph.numbers == (1,)


def test_numbers_at_the_end_of_a_message_stand_for_all_of_it():
    text = f"First {OTHER}\n\nSecond {OTHER}\n\nThird {OTHER.strip()} [4][5]"

    paragraphs = read_paragraphs(0, text, count_tokens)

    assert len(paragraphs) > 2
    assert all({4, 5} == {*each.numbers, *each.behind} for each in paragraphs)
    assert "(… [4][5])\n" in paragraphs[0].with_setting


def test_numbers_elsewhere_stand_for_nothing_else():
    text = f"First {OTHER} [1]\n\nSecond {OTHER}\n\nThird {OTHER.strip()} [4]"

    (second,) = [p for p in read_paragraphs(0, text, count_tokens) if "Second" in p.text]

    assert second.numbers == second.behind == ()


def test_a_block_of_code_that_is_cut_stays_code():
    code = "\n".join(
        f"value[{n}] = row[{n + 1}]  # as it is in the table of values" for n in range(80)
    )

    paragraphs = read_paragraphs(0, f"So:\n\n```python\n{code}\n```\nDone [7].", count_tokens)

    assert {n for each in paragraphs for n in each.numbers} == {7}
    assert all(cited_numbers(each.with_setting) in ([], [7]) for each in paragraphs)


WORDS = st.sampled_from(
    ["Es gilt [1].", "- x [2]", "  - y", "# H", "**B**", "", "| a | [3] |", "|---|---|", "```", "~~~",
     "    z[4]", "> q [5]", "1. n", "So:", "Wirklich?", "泵 [6]。", "`c [7]`", "$x[8]$", "$", "`", "a" * 700,
     "Ein langer Satz, der nichts sagt. " * 40]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(WORDS, max_size=12))
@example(["    z[4]", "```", "Es gilt [1]."])
@example(["# H", "```"])
@example(["So:", "", "Wirklich?", "```"])
def test_any_message_is_cut_into_whole_parts(lines):
    text = canonical("\n".join(lines))
    known = set(cited_numbers(text))

    paragraphs = read_paragraphs(0, text, count_tokens)

    said = "".join("".join(p.text + p.setting for p in paragraphs).split())
    for line in text.split("\n"):
        words = line.strip(" #*>-_=\t|`~:$").split()
        assert all(word.strip("#*>|`~: ") in said for word in words)
    for paragraph in paragraphs:
        assert set(cited_numbers(paragraph.with_setting)) <= known
        assert paragraph.tokens == count_tokens(paragraph.with_setting)
        assert size(paragraph.text) <= max(USUAL, LONGEST) + 40 or {" ", "\n"} & {*paragraph.text}


def test_of_what_is_kept_each_word_is_counted_anew():
    said = ["The pump is red.", "A blue pump.", "The lamp is red."]
    paragraphs = [read_paragraphs(at, text, count_tokens) for at, text in enumerate(said)]
    index, anew = Index(), Index()
    for message in range(3):
        index.add(message, paragraphs[message])
    index.keep(1, 3)
    anew.add(1, paragraphs[1])
    anew.add(2, paragraphs[2])

    assert index.words == anew.words
    assert (index.count, index.total) == (anew.count, anew.total)
