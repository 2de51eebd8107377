"""The product answers the sample library's questions and holds its conversations, without a model.

A floor is what was reached once. It is never lowered: an answer that is lost is a defect.
"""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.baselines import BASELINES, DEPTH, Baselines, falls_behind
from rag.cli.evaluate import evaluate
from rag.records import EVERYTHING
from rag.regression.replay import files_of
from rag.regression.report import read_questions
from rag.regression.script import read_script
from rag.wiring.application import build

DATA = Path(__file__).parents[2] / "data"
FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
pytestmark = pytest.mark.slow
# Questions whose answer cites a right file; whose answer says every figure; and how many there are.
# Of those that nothing answers: how many are declined.
FLOORS = {
    "fact": (33, 33, 33),
    "table": (16, 16, 16),
    "howto": (7, 7, 7),
    "comparison": (4, 4, 4),
    "contradiction": (2, 1, 2),
    "discontinued": (3, 3, 3),
    "name_trap": (8, 8, 8),
    "unanswerable": (4, 4, 6),
}


def cites(graded):
    right = {graded.question.document, *graded.question.also}
    return bool(right & set(graded.documents)) and not graded.declined


def says_figures(graded):
    """Every figure of the known answer, whole; 29 is as good as 29.00."""
    said = set(map(number, FIGURE.findall(graded.answered)))
    return set(map(number, FIGURE.findall(graded.question.answer))) <= said


def number(figure):
    try:
        return float(figure)
    except ValueError:
        return figure  # a version, or with commas


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
def reached(sample_libraries):
    return counted(evaluate(sample_libraries, DATA / "questions.jsonl", DATA / "library"))


def test_every_kind_has_a_floor(reached):
    assert {kind: asked for kind, (_, _, asked) in reached.items()} == {
        kind: asked for kind, (_, _, asked) in FLOORS.items()
    }


@pytest.mark.parametrize("kind", FLOORS)
def test_questions_are_answered_from_the_right_file_with_the_right_figures(reached, kind):
    assert all(now >= floor for now, floor in zip(reached[kind], FLOORS[kind], strict=True))


CARDS = Path(__file__).parents[2] / "benchmarks" / "cards"


def sample_questions():
    questions = read_questions(DATA / "questions.jsonl")
    return [(q.question, {q.document, *q.also}) for q in questions if q.document]


def card_questions(site):
    lines = (CARDS / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["site"] == site]
    return [(row["question"], {row["path"]}) for row in rows]


@pytest.mark.parametrize(
    ("folder", "questions"),
    [
        (DATA / "library", sample_questions()),
        (CARDS / "mixed", card_questions("mixed")),
        (CARDS / "trades", card_questions("trades")),
    ],
    ids=["sample", "mixed", "trades"],
)
def test_search_is_no_worse_than_the_plainest_ones(sample_libraries, folder, questions):
    """By the reciprocal rank of a right file; paired by question, beyond chance."""
    with sample_libraries.copied(folder) as data:
        application = build(sample_libraries.settings(data))
        ranks = ranks_of(application, questions)
        application.stop()

    assert len(questions) > 50
    assert sum(ranks["ours"].values()) > 0
    assert {name for name in BASELINES if falls_behind(ranks["ours"], ranks[name])} == set()


def ranks_of(application, questions):
    """Of each way to search, by question: one by the place of the first right file."""
    list(application.second.make_missing())
    plain = Baselines(
        application.embedder, application.index, application.words, application.second
    )
    ranks = {name: {} for name in ("ours", *BASELINES)}
    for question, right in questions:
        hits = application.retriever.search(question, EVERYTHING, limit=DEPTH)
        ours = {"ours": [(hit.chunk.id, hit.score) for hit in hits]}
        for name, ranking in (ours | plain.rankings(question)).items():
            ids = [key for key, _ in ranking]
            chunks = application.documents.chunks(ids, EVERYTHING)
            names = list(dict.fromkeys(chunks[key].document_name for key in ids))
            places = [place for place, file in enumerate(names, start=1) if file in right]
            ranks[name][question] = 1 / places[0] if places else 0.0
    return ranks


CONVERSATIONS = list(files_of([DATA / "conversations"]))


@pytest.mark.parametrize("path", CONVERSATIONS, ids=lambda path: path.name.split(".")[0])
def test_a_conversation_holds(sample_replayer, path):
    replay = sample_replayer.replay(path)

    assert replay.error == ""
    assert [(check.turn, check.expectation, check.got) for check in replay.failures] == []


def test_there_are_enough_of_them_and_enough_are_long():
    lengths = [len(read_script(path)[0].turns) for path in CONVERSATIONS]

    assert len(lengths) >= 25
    assert sum(length > 12 for length in lengths) >= 12
    assert sum(length > 40 for length in lengths) >= 5
