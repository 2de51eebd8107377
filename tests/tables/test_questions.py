"""What a question becomes, in the words of its plan; and what is not guessed over."""

import pytest
from werkzeug.datastructures import MultiDict

from rag.documents.files import IncomingFile
from rag.records import EVERYTHING
from rag.settings import Settings
from rag.tables.plan import in_words
from rag.web.html.plan_form import form_of, plan_from_form
from rag.wiring.building import build
from tests.fakes import HashEmbedder

CRATES = "Crate;Depot;Kind;Booked;Due;Mass;Fee;Deposit;Fragile\n" + "\n".join(
    f"C-{i};{('Aarhus', 'Brest', 'Chur')[i % 3]};{('glass', 'tools')[i % 2]};"
    f"2024-{i % 12 + 1:02}-1{i % 9};2024-12-{i % 28 + 1:02};{20 + i * 7 % 90} kg;"
    f"€{100 + i * 13 % 80};€{90 + i * 17 % 99};{('yes', 'no')[i % 4 > 0]}"
    for i in range(80)
)
BOOKED = "Booked at least {}, Booked below {}, number of rows"
FEE = "sum of Fee"
QUESTIONS = [
    ("how many crates have a fee higher than the deposit?",
     "Fee above Deposit, number of rows"),
    ("which crates have a deposit below their fee?", "Deposit below Fee, Crate"),
    ("in how many rows is more fee than deposit?", "Fee above Deposit, number of rows"),
    ("the two heaviest crates in each depot",
     "Depot, Crate, Mass, highest 2 by Mass, in each Depot"),
    ("top 1 kinds by fee in every depot",
     "sum of Fee by Depot and Kind, highest 1, in each Depot"),
    ("which depots have an average fee above 130?",
     "average of Fee above 130, average of Fee by Depot"),
    ("what percentage of the crates is fragile?",
     "Fragile = yes, share of rows and number of rows"),
    ("how many crates were booked between 3 March and 5 May 2024?",
     BOOKED.format("2024-03-03", "2024-05-06")),
    ("how many crates were booked after March 2024?",
     "Booked at least 2024-04-01, number of rows"),
    ("how many crates are due before 5.12.2024?", "Due below 2024-12-05, number of rows"),
    ("what is the difference between Aarhus and Brest?", None),
    ("difference in fee between Aarhus and Brest",
     "Depot = Aarhus or Brest, spread of the sum of Fee by Depot"),
    ("how many crates weigh at most 40 kilograms?", "Mass at most 40, number of rows"),
    ("wie viele crates wurden im ersten Quartal gebucht?", None),
    ("what is the total fee of unfragile crates?", "Fragile = no, sum of Fee"),
    ("what's the heaviest crate?", "Crate, Mass, highest 1 by Mass"),
    ("how much deposit is it in total?", "sum of Deposit"),
    ("which is heavier, C-3 or C-4?", "Crate = C-3 or C-4, Crate, Mass, highest 1 by Mass"),
    ("the heaviest crate in each depot",
     "Depot, Crate, Mass, highest 1 by Mass, in each Depot"),
    ("the most valuable crate in Brest", "Depot = Brest, Crate, Fee, highest 1 by Fee"),
    ("Gesamtgewicht pro depot", "sum of Mass by Depot"),
    ("Durchschnittsgewicht der glass crates", "Kind = glass, average of Mass"),
    ("wie viele crates sind schwerer als 1.000,5 kg?", "Mass above 1000.5, number of rows"),
    ("welche crates kosten mehr als 170 Euro?", "Fee above 170, Crate"),
]  # fmt: skip


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = build(Settings(data_dir=tmp_path_factory.mktemp("data")), embedder=HashEmbedder())
    list(application.ingestion.ingest([IncomingFile.from_bytes("crates.csv", CRATES.encode())]))
    yield application
    application.stop()


@pytest.fixture
def understood(application):
    return lambda text: next(iter(application.asked.library.understand(text, EVERYTHING)), None)


@pytest.mark.parametrize(("question", "plan"), QUESTIONS, ids=[q for q, _ in QUESTIONS])
def test_a_question_becomes_a_plan(understood, question, plan):
    choice = understood(question)

    if plan is None:
        assert choice is None or choice.understood.unused or choice.understood.doubts
    else:
        assert (in_words(choice.understood.plan), choice.understood.unused) == (plan, ())


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("how many crates weigh at least 5 tonnes?", "tonnes"),
        ("how many crates were stolen in 2024?", "stolen"),
        ("total fee of refurbished crates", "refurbished"),
        ("how many crates have the same fee and deposit?", "same"),
        ("average fee under 50 pounds", "pounds"),
    ],
)
def test_a_word_that_could_change_the_result_stays_unused(understood, question, word):
    assert word in understood(question).understood.unused


def test_its_plan_gives_the_figures(application, understood):
    choice = understood("the two heaviest crates in each depot")

    found = application.asked.library.run(choice.table, choice.understood.plan)

    assert [row[0] for row in found.rows] == ["Aarhus"] * 2 + ["Brest"] * 2 + ["Chur"] * 2


@pytest.mark.parametrize(
    ("turns", "plan"),
    [
        (("top 3 crates by fee", "what is their average mass?"),
         "of those (Crate, Fee, highest 3 by Fee), average of Mass"),
        (("top 10 crates by fee", "the cheapest 2 of those"),
         "of those (Crate, Fee, highest 10 by Fee), Crate, Fee, lowest 2 by Fee"),
        (("top 10 crates by fee", "how many of them are fragile?"),
         "of those (Crate, Fee, highest 10 by Fee), Fragile = yes, number of rows"),
        (("how many crates were booked in May 2024?", "and after June?"),
         "Booked at least 2024-07-01, number of rows"),
    ],
)  # fmt: skip
def test_those_are_the_ones_that_were_shown(application, turns, plan):
    session = application.store.create("ada")

    for question in turns:
        *_, end = application.assistant.ask(session, question)

    told = session.result(end.message.answer.result)["words"]
    assert set(told.split(", ")) == set(plan.split(", "))


def test_nothing_is_a_change_of_a_table_behind_a_question_that_stayed_open(application):
    session = application.store.create("ada")

    for question in (
        "total fee by depot",
        "how many crates weigh at least 5 tonnes?",
        "only glass",
    ):
        *_, end = application.assistant.ask(session, question)

    assert end.message.answer.result is None


@pytest.mark.parametrize(
    "question",
    [
        "how many crates have a fee higher than the deposit?",
        "the two heaviest crates in each depot",
        "which depots have an average fee above 130?",
    ],
)
def test_the_form_of_a_plan_gives_the_plan_again(understood, question):
    choice = understood(question)
    plan, form = choice.understood.plan, form_of(choice.understood.plan, choice.table)
    sent = MultiDict([("columns", name) for name in plan.columns])
    for line in form.filters:
        for part, value in zip(("column", "part", "op", "values"), line, strict=True):
            sent.add(f"filter_{part}", value)
    for column, part in form.group:
        sent.update({"group_column": column, "group_part": part})
    for kind, column in form.measures:
        sent.update({"measure_kind": kind, "measure_column": column})
    for order in plan.order:
        sent.update({"order": order.by} | ({"descending": "1"} if order.descending else {}))
    sent.add("limit", str(plan.limit or ""))

    assert in_words(plan_from_form(sent, plan, choice.table)) == in_words(plan)
