import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.search.query import MAX_TERMS, terms_of


def tokens_of(query: str, *, counts: bool | None = None) -> set[tuple[str, ...]]:
    return {term.tokens for term in terms_of(query) if counts in (None, term.counts)}


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
    assert tokens_of(query, counts=True) == words


@pytest.mark.parametrize(
    ("query", "spelling"),
    [
        pytest.param("AX-5400", ("ax", "5400"), id="as it is written"),
        pytest.param("AX-5400", ("ax5400",), id="written together"),
        pytest.param("WH1000XM4", ("wh", "1000xm4"), id="written apart"),
        pytest.param("Aero 5 Pro", ("aero", "5", "pro"), id="a name with a number"),
        pytest.param("channel list", ("channel", "list"), id="two words"),
    ],
)
def test_a_name_is_looked_for_in_its_spellings(query, spelling) -> None:
    assert spelling in tokens_of(query, counts=False)


def test_two_words_with_a_stop_word_between_are_no_phrase() -> None:
    assert tokens_of("list of channels", counts=False) == set()


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


def test_a_verb_is_looked_up_under_the_noun_of_tables_too() -> None:
    terms = {term.tokens: term for term in terms_of("What does the lamp cost?")}

    assert terms[("cost",)].counts
    assert not terms[("price",)].counts
    assert ("weight",) in {term.tokens for term in terms_of("How much does it weigh?")}


@pytest.mark.parametrize("query", ["How much is the Aero 5?", "how much are two of them"])
def test_who_asks_how_much_something_is_asks_for_its_price(query: str) -> None:
    assert ("price",) in {term.tokens for term in terms_of(query)}


def test_who_asks_how_much_of_something_there_is_asks_for_no_price() -> None:
    assert ("price",) not in {term.tokens for term in terms_of("How much memory has it?")}
