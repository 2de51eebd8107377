"""Which of the sources that were found a model is sent."""

from rag.chat.context import QuestionSources
from rag.records import NOTHING, Resolution, Source


def found(*relevance):
    sources = [
        Source(n, f"c{n}", "d", "d.md", "D", "", (), "Text.", "Text.", "")
        for n in range(1, len(relevance) + 1)
    ]
    by_number = dict(enumerate(relevance, start=1))
    asked = Resolution("How heavy is it?", is_followup=False, method="none")
    return QuestionSources(tuple(sources), by_number, asked, NOTHING)


def sent(*relevance):
    return [source.number for source in found(*relevance).to_the_point().sources]


def sent_whole(*relevance):
    return found(*relevance).to_the_point().whole


def test_what_is_far_less_likely_than_the_best_is_left_out_but_for_the_first():
    assert sent(0.8, 0.3, 0.05, 0.05, 0.35, 0.01) == [1, 2, 3, 5]


def test_what_is_about_as_likely_is_sent_however_little_that_is():
    assert sent(0.05, 0.02, 0.02, 0.01, 0.01) == [1, 2, 3, 4, 5]


def test_a_source_that_was_asked_for_by_its_number_is_sent():
    assert sent(1.0, 1.0, 1.0, 1.0) == [1, 2, 3, 4]


def test_behind_the_last_that_is_likely_beside_the_best_none_has_its_neighbourhood():
    assert sent_whole(0.8, 0.3, 0.1, 0.5, 0.35, 0.35) == 4
    assert sent_whole(0.05, 0.02, 0.02, 0.001) == 3
    assert sent_whole(0.9, 0.1) == 1
    assert sent_whole(1.0, 1.0) == 2


def test_no_source_is_no_answer():
    assert not found().is_sure
    assert sent() == []
