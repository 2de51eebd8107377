"""The product answers the sample library's questions and holds its conversations, without a model.

A floor is what was reached once. It is never lowered: an answer that is lost is a defect.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from rag.commands.evaluate import library, regress
from rag.evaluation.measures import grade, read_questions
from rag.settings import Settings

DATA = Path(__file__).parents[2] / "data"
pytestmark = pytest.mark.slow
# Questions whose answer cites a right file; whose answer says every figure; and how many there are.
# Of those that nothing answers: how many are declined.
FLOORS = {
    "fact": (33, 33, 33),
    "table": (15, 15, 16),
    "howto": (7, 6, 7),
    "comparison": (4, 2, 4),
    "contradiction": (2, 1, 2),
    "discontinued": (3, 3, 3),
    "name_trap": (8, 8, 8),
    "unanswerable": (1, 1, 6),
}


def cites(graded):
    right = {graded.question.document, *graded.question.also}
    return bool(right & set(graded.documents)) and not graded.declined


def says_figures(graded):
    """Every figure of the known answer, whole."""
    figures = re.findall(r"\d+(?:[.,]\d+)*", graded.question.answer)
    said = graded.answered
    return all(re.search(rf"(?<![\d.,]){re.escape(each)}(?!\d)", said) for each in figures)


def counted(graded):
    """By kind: right file cited, figures said, of how many."""
    cited, said, asked = Counter(), Counter(), Counter()
    for each in graded:
        kind = each.question.kind
        asked[kind] += 1
        cited[kind] += cites(each) if each.is_answerable else each.declined
        said[kind] += says_figures(each) if each.is_answerable else each.declined
    return {kind: (cited[kind], said[kind], asked[kind]) for kind in asked}


@pytest.fixture(scope="module")
def reached(tmp_path_factory):
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"))
    with library(settings, DATA / "library") as application:
        questions = read_questions(DATA / "questions.jsonl")
        create = application.store.create
        graded = [grade(each, application.assistant, create("ann")) for each in questions]
    return counted(graded)


def test_every_kind_has_a_floor(reached):
    assert {kind: asked for kind, (_, _, asked) in reached.items()} == {
        kind: asked for kind, (_, _, asked) in FLOORS.items()
    }


@pytest.mark.parametrize("kind", FLOORS)
def test_questions_are_answered_from_the_right_file_with_the_right_figures(reached, kind):
    assert all(now >= floor for now, floor in zip(reached[kind], FLOORS[kind], strict=True))


def test_conversations_hold(tmp_path):
    settings = Settings(data_dir=tmp_path)

    replays = list(regress(settings, [DATA / "conversations"]))

    assert [(each.title, each.failures) for each in replays if each.failures] == []
