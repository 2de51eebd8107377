"""What `forms.jsonl` holds: spellings, brackets that are none, and what a number stands for."""

import json
from pathlib import Path

import pytest

from rag.citations.gate import MarkerGate, canonical
from rag.citations.markers import cited_numbers
from rag.citations.statements import read_statements

FORMS = [json.loads(line) for line in (Path(__file__).parent / "forms.jsonl").open()]


def of_kind(kind):
    return [
        pytest.param(each, id=f"{kind} {at}")
        for at, each in enumerate(FORMS, start=1)
        if each["kind"] == kind
    ]


def gated(text, known, size):
    gate = MarkerGate(known.__contains__)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join([*map(gate.feed, pieces), gate.finish()])


@pytest.mark.parametrize("form", of_kind("spelled"))
def test_a_spelling_is_read_and_taken_out_whole(form):
    said = "The Orla mill draws 41 W at night {}."
    spelled = said.format(form["form"])
    numbers = form["numbers"]

    assert cited_numbers(canonical(spelled)) == numbers
    assert canonical(spelled).startswith("The Orla mill draws 41 W at night ")
    for size in (1, 2, 3):
        assert gated(spelled, set(numbers), size) == canonical(spelled)
        if "](" not in spelled:  # a link stays one where nobody knows its number
            assert gated(spelled, {99}, size) == said.format("").replace(" .", ".")


@pytest.mark.parametrize("form", of_kind("none"))
def test_not_a_letter_changes_where_nothing_is_cited(form):
    for size in (1, 3, 1_000):
        assert gated(form["text"], set(), size) == canonical(form["text"]) == form["text"]


@pytest.mark.parametrize("form", of_kind("kept"))
def test_a_citation_stands_beside_what_looks_like_code(form):
    assert cited_numbers(form["text"]) == form["numbers"]
    assert canonical(form["text"]) == form["text"]


@pytest.mark.parametrize("form", of_kind("removed"))
def test_an_unknown_number_leaves_nothing_behind(form):
    for size in (1, 3, 1_000):
        assert gated(form["text"], set(form["known"]), size) == form["left"]


@pytest.mark.parametrize("form", of_kind("stands for"))
def test_a_number_stands_for_its_own_words(form):
    text = form["text"]
    parts = [part for statement in read_statements(text) for part in statement.parts]

    for number, has, has_not in form["parts"]:
        said = " … ".join(text[p.start : p.end] for p in parts if number in p.numbers)
        assert all(words in said for words in has)
        assert not any(words in said for words in has_not)


@pytest.mark.parametrize("char", ["[", "(", "*", "^", "<"])
def test_long_rows_of_one_character_are_read_at_once(char):
    assert canonical(char * 100_000) == char * 100_000  # seconds, if each is tried


def test_thousands_of_markers_side_by_side_are_read_at_once():
    numbers = range(1, 3_001)

    [said] = read_statements("It is so " + "".join(f"[{n}]" for n in numbers) + ".")

    assert said.numbers == tuple(numbers)
