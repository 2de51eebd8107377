import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.search.word_index import MAX_TERMS, terms_of


def tokens_of(query: str) -> set[tuple[str, ...]]:
    return {term.tokens for term in terms_of(query)}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        pytest.param("How do I reset the router?", {("reset",), ("router",)}, id="stop words"),
        pytest.param("to be or not to be", {("to",), ("be",), ("or",), ("not",)}, id="only these"),
        pytest.param("IT support", {("it",), ("support",)}, id="capitals"),
        pytest.param("नमस्ते", {("नमस्ते",)}, id="marks"),
        pytest.param("中国人", {("中国",), ("国人",)}, id="Chinese"),
        pytest.param("ภาษาไทย", {("ภาษ",), ("าษา",), ("ษาไ",), ("าไท",), ("ไทย",)}, id="Thai"),
        pytest.param("中", {("中",)}, id="one letter"),
        pytest.param("用X9", {("用",), ("x9",)}, id="mixed scripts"),
        pytest.param("", set(), id="empty"),
        pytest.param('"*()^:-+ \0', set(), id="operators alone"),
    ],
)
def test_a_query_is_taken_apart_into_terms(query, words) -> None:
    assert tokens_of(query) == words


@settings(max_examples=150)
@given(st.text(max_size=300))
def test_tokens_hold_no_operators_and_stay_few(query) -> None:
    terms = terms_of(query)

    assert len(terms) <= MAX_TERMS
    assert len(set(terms)) == len(terms)
    for token in (token for term in terms for token in term.tokens):
        assert token
        assert not set(token) & set("\"'*()^:-+\\|&!<> \0\n\t")


def test_a_hundred_thousand_characters_are_cut() -> None:
    assert len(terms_of("word number " * 10_000)) <= MAX_TERMS
