from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.citations.register import as_source, assign_numbers, content_hash, source_state
from rag.records import Chunk, Hit, SourceState

TURNS = st.lists(st.lists(st.text("abcdef", max_size=2), max_size=6), max_size=12)


def test_new_chunks_get_the_next_numbers_in_order() -> None:
    assert assign_numbers({"a": 1}, ["b", "a", "c", "b"]) == {"a": 1, "b": 2, "c": 3}


def test_numbers_of_chunks_that_the_caller_does_not_know_are_not_given_again() -> None:
    assert assign_numbers({"b": 2}, ["b", "x"], taken=7) == {"b": 2, "x": 8}
    assert assign_numbers({}, ["x"], taken=7) == {"x": 8}


@given(TURNS)
def test_a_number_is_never_changed_or_used_again(turns: list[list[str]]) -> None:
    numbers: dict[str, int] = {}
    for chunk_ids in turns:
        before = numbers
        numbers = assign_numbers(before, chunk_ids)

        assert before.items() <= numbers.items()
        assert sorted(numbers.values()) == list(range(1, len(numbers) + 1))
        assert assign_numbers(numbers, chunk_ids) == numbers


def test_a_source_keeps_the_evidence_of_its_hit() -> None:
    chunk = Chunk("c1", "d1", "aero.md", "Aero 5", 0, 3, ("Setup",), "§ Setup", "Press it.", 5, 14)
    hit = Hit(chunk, 0.9, "Now. Press it.", 0, 14)

    source = as_source(hit, 4)

    assert (source.number, source.chunk_id, source.passage) == (4, "c1", "Now. Press it.")
    assert (source.text, source.heading_path, source.locator) == (
        "Press it.",
        ("Setup",),
        "§ Setup",
    )
    assert source.content_hash == sha256(b"Now. Press it.").hexdigest()
    assert source.state is SourceState.CURRENT


def test_text_that_cannot_be_encoded_has_a_hash_too() -> None:
    assert len(content_hash("a\ud800")) == 64
    assert content_hash("a") != content_hash("b")


@pytest.mark.parametrize(
    ("has_document", "has_chunk", "state"),
    [
        pytest.param(True, True, SourceState.CURRENT, id="unchanged"),
        pytest.param(True, False, SourceState.CHANGED, id="document-was-changed"),
        pytest.param(False, False, SourceState.DELETED, id="document-was-deleted"),
    ],
)
def test_state_of_a_source(has_document: bool, has_chunk: bool, state: SourceState) -> None:
    assert source_state(has_document=has_document, has_chunk=has_chunk) is state
