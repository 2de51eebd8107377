"""Counting by lines gives what counting at once gives."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rag.citations.markers import cited_numbers
from rag.summaries.kept_names import KeptNames
from rag.summaries.line_counts import by_lines
from rag.summaries.lines import numbers_in
from rag.text.names import Lexicon
from rag.tokens import count_tokens

TEXTS = st.lists(
    st.sampled_from(
        ["- Aero 5 weighs 240 g [3].", ";", "; ", "\n", "\n\n", " ",
         "[1, 2]", "Aero 5", "Pro", ".", "`",
         "~~~", "arr", "[4]", "(x)", ": y", "é", "//", "'s", "\t", "【7】", "-", "2 ", "x" * 450]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_lines_have_the_tokens_of_the_whole(text):
    assert by_lines(count_tokens)(text) == count_tokens(text)


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_lines_have_the_numbers_of_the_whole(text):
    assert numbers_in(text) == set(cited_numbers(text))


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_lines_keep_the_names_of_the_whole(text):
    names = ["Aero 5", "Aero 5 Pro", "Pro"]

    assert KeptNames(names).kept(text) == Lexicon(names).kept(text)


def test_each_line_is_counted_once():
    counted = []
    count = by_lines(lambda text: counted.append(text) or 1)

    count("one\ntwo")
    count("one\nthree")

    assert counted == ["one\n", "two", "three"]
