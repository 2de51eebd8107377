from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.records import Chunk, Hit
from rag.search.passages import (
    MAX_PASSAGE_WORDS,
    Texts,
    count_words,
    grown,
    merged,
    neighbourhood,
)

SENTENCES = "".join(f"Sentence number {number} says a few words. " for number in range(100))
ROWS = "".join(f"| AX-{number} | {number} € |\n" for number in range(20))
TABLE = f"Prices.\n\n| Model | Price |\n| --- | --- |\n{ROWS}"


def as_it_is(hit: Hit, texts: Texts) -> Hit:
    return hit


def hit_of(text: str, piece: str, *, words: int = 40, section: int = 0, score: float = 1.0) -> Hit:
    start = text.index(piece)
    chunk = Chunk(piece, "d", "d.md", "D", section, 0, (), "§", piece, start, start + len(piece))
    passage_start, passage_end = neighbourhood(text, start, chunk.end, words=words)
    return Hit(chunk, score, text[passage_start:passage_end], passage_start, passage_end)


def test_a_short_section_is_read_whole() -> None:
    text = "First. Second. Third."

    assert neighbourhood(text, 7, 14) == (0, len(text))


def test_a_long_section_is_read_in_whole_sentences() -> None:
    start = SENTENCES.index("Sentence number 50")

    left, right = neighbourhood(SENTENCES, start, start + 10, words=50)

    passage = SENTENCES[left:right]
    assert passage.startswith("Sentence number")
    assert passage.endswith("words.")
    assert 35 <= count_words(passage) <= 50


def test_a_table_row_is_read_with_the_header() -> None:
    start = TABLE.index("| AX-15 |")

    left, right = neighbourhood(TABLE, start, start + len("| AX-15 | 15 € |"), words=10)

    assert TABLE[left:right].startswith("| Model | Price |")


def test_a_part_of_a_long_table_is_read_from_its_own_header() -> None:
    header = "| Model | Price |\n| --- | --- |\n"
    parts = [
        header + "".join(f"| AX {part}{row} with a lid | {row} EUR |\n" for row in range(10))
        for part in range(6)
    ]
    table = "\n".join(parts)
    start = table.index("| AX 35")

    left, right = neighbourhood(table, start, start + 20)

    assert table.startswith(header, left)
    assert left < start < right


ENTRIES = "".join(f"- part number {number} of the whole set\n" for number in range(12))
CODE = "    first = 1\n\n    second = 2\n    third = 3\n"


@pytest.mark.parametrize(
    ("block", "piece"),
    [
        (f"The box holds:\n\n{ENTRIES}", "part number 6"),
        (f"Run this:\n\n{CODE}", "second = 2"),
        (f"| Model | Price |\n| --- | --- |\n{ROWS}", "| AX-3 |"),
    ],
)
def test_a_list_and_code_and_a_table_are_read_whole_with_what_leads_in(block, piece) -> None:
    text = f"{SENTENCES}\n\n{block}\n{SENTENCES}"
    start = text.index(piece)

    left, right = neighbourhood(text, start, start + len(piece), words=8)

    assert text[left:right] == block.strip()


def test_a_list_that_is_too_long_is_not_read_whole() -> None:
    text = "The box holds:\n\n" + "- one part of very many parts\n" * 300
    start = text.index("- one part", 4_000)

    left, right = neighbourhood(text, start, start + 10, words=50)

    assert count_words(text[left:right]) <= MAX_PASSAGE_WORDS


def test_a_header_too_far_away_is_left_out() -> None:
    table = "| Model | Price |\n| --- | --- |\n" + "| AX | one two three |\n" * 300

    left, _ = neighbourhood(table, len(table) - 24, len(table), words=50)

    assert left > 0


@settings(max_examples=80)
@given(
    st.text(alphabet="ab .\n|中。", max_size=400),
    st.integers(0, 400),
    st.integers(0, 400),
    st.integers(0, 60),
)
def test_a_passage_encloses_what_it_grew_from(text, first, second, words) -> None:
    start, end = sorted((min(first, len(text)), min(second, len(text))))
    piece = text[start:end].strip()

    left, right = neighbourhood(text, start, end, words=words)

    assert 0 <= left <= right <= len(text)
    assert piece in text[left:right]


def test_unspaced_letters_count_half_a_word() -> None:
    assert count_words("中国人民 abc") == 4


def test_overlapping_passages_become_one_under_the_better_chunk() -> None:
    better = hit_of(SENTENCES, "Sentence number 50 says")
    other = hit_of(SENTENCES, "Sentence number 53 says", score=0.5)

    (joined,) = merged([better, other], {("d", 0): SENTENCES}, 2, as_it_is)

    assert joined.chunk == better.chunk
    assert joined.passage == SENTENCES[joined.passage_start : joined.passage_end]
    assert other.chunk.text in joined.passage


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(hit_of(SENTENCES, "Sentence number 90 says"), id="far away"),
        pytest.param(hit_of(SENTENCES, "Sentence number 51 says", section=1), id="other section"),
        pytest.param(hit_of(SENTENCES, "Sentence number 80 says", words=370), id="too long"),
    ],
)
def test_passages_that_do_not_belong_together_stay_apart(other) -> None:
    better = hit_of(SENTENCES, "Sentence number 50 says", words=120)

    hits = merged([better, other], {("d", 0): SENTENCES, ("d", 1): SENTENCES}, 2, as_it_is)

    assert hits == [better, other]
    assert all(count_words(hit.passage) <= MAX_PASSAGE_WORDS for hit in hits)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 3)), max_size=12))
def test_only_passages_that_may_be_among_the_best_are_read(places: list[tuple[int, int]]) -> None:
    texts = {("d", section): SENTENCES for section in range(4)}
    hits = [hit_of(SENTENCES, f"Sentence number {at} s", section=part) for at, part in places]
    bare = [replace(hit, passage=hit.chunk.text) for hit in hits]
    were_read: list[Hit] = []

    def read(hit: Hit, texts: Texts) -> Hit:
        were_read.append(hit)
        return grown(hit, texts)

    best = merged(bare, texts, 3, read)

    assert best == merged([grown(hit, texts) for hit in bare], texts, len(bare), as_it_is)[:3]
    sections = {hit.chunk.section_index for hit in best}
    assert all(hit.chunk.section_index in sections for hit in were_read)


def test_a_passage_begins_with_no_part_of_a_row():
    header = "| Product | Price incl. VAT in EUR | Stock |\n| --- | --- | --- |\n"
    text = f"All prices of the year. {header}" + "".join(
        f"| Lamp {at} | {at} approx. 5 EUR | {at} |\n" for at in range(90)
    )
    start = text.index("| Lamp 80 ")

    left, _right = neighbourhood(text, start, start + 20, words=40)

    assert text[left:].startswith("| ")
    assert text[left - 1] == "\n"


def test_a_passage_of_code_keeps_its_first_indent():
    text = "Run this now please. " * 30 + "\n\n    if x:\n        go()\n\n" + "Then rest. " * 60
    start = text.index("if x:")

    left, right = neighbourhood(text, start, start + 18, words=8)

    assert text[left:right].startswith("    if x:")
