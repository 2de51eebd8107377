"""A reading that does not use every word of a question is offered, never claimed."""

from pathlib import Path

import pytest

from rag.documents.files import IncomingFile
from rag.settings import Settings
from tests.applications import application_of

LIBRARY = Path(__file__).parents[2] / "data" / "library"
SONGS = """school,fight,official,seconds
North,yes,yes,60
South,no,yes,90
West,no,no,70
"""
CABINET = """leader,appointee,departure_day
Ford,Ames,100
Ford,Birch,200
Hoover,Cole,900
"""
PAPERS = """Paper,"Daily Sales, 2004","Daily Sales, 2013","Change in Daily Sales, 2004-2013"
Morning News,"21,000","16,000",-24%
Evening Post,"11,000","13,000",18%
"""
TICKETS = """Event,Division,"Avg TP, $"
Bears at Lions,North,100
Lions at Bears,North,200
Rams at Jets,West,50
"""
SALARIES = """major,monthly_pay,openings
Nursing,48000,1200
Physics,45000,340
Drama,27000,1068
"""


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    files = [IncomingFile.from_bytes("majors.csv", SALARIES.encode())]
    made = {
        "fight-songs": SONGS,
        "papers": PAPERS,
        "cabinet": CABINET,
        "2014-average-ticket-price": TICKETS,
    }
    files += [IncomingFile.from_bytes(f"{name}.csv", text.encode()) for name, text in made.items()]
    files += [
        IncomingFile.from_path(path, name=str(path.relative_to(LIBRARY)))
        for path in sorted(LIBRARY.rglob("*"))
        if path.is_file()
    ]
    list(application.ingestion.ingest(files))
    yield application
    application.stop()


@pytest.fixture
def session(application):
    return application.store.create("somebody")


def asked(application, session, question):
    *_, end = application.assistant.ask(session, question)
    return end.message.answer


def test_a_verb_that_no_column_knows_leaves_the_question_to_the_passages(application, session):
    answer = asked(application, session, "How much does the Aero 5 Pro Max weigh?")

    assert answer.result is None
    assert answer.card is not None


def test_what_is_not_wholly_understood_is_offered_and_can_be_taken(application, session):
    answer = asked(application, session, "What is the lowest monthly pay anyone endures?")

    assert answer.result is None
    (offer,) = [each for each in answer.offers if "monthly_pay" in each.label]

    taken = asked(application, session, offer.label)

    assert taken.result is not None
    assert "27000" in taken.text


@pytest.mark.parametrize(
    "question", ["How many outdoor products glow?", "What is the average price of outdoor rockets?"]
)
def test_a_part_of_a_value_beside_a_word_that_nothing_knows_is_not_offered(
    application, session, question
):
    assert asked(application, session, question).offers == ()


def test_whether_the_best_is_the_highest_or_the_lowest_is_offered(application, session):
    answer = asked(application, session, "Which major has the worst monthly pay?")

    assert answer.result is None
    assert any("lowest monthly_pay" in offer.label for offer in answer.offers)


def test_a_year_is_no_figure_of_a_column_that_never_comes_near(application, session):
    question = "Which major had the most openings between 2010 and 2014?"

    assert asked(application, session, question).result is None


def test_what_the_rows_are_called_is_not_surely_a_condition(application, session):
    answer = asked(application, session, "How many fight songs are official?")

    assert answer.result is None
    labels = [offer.label for offer in answer.offers]
    assert any("where official = yes" in label for label in labels)
    assert any("where fight = yes and official = yes" in label for label in labels)


def test_no_figure_is_added_up_of_whose_name_only_a_part_is_said(application, session):
    answer = asked(application, session, "Which leader had the most departures?")

    assert answer.result is None


def test_a_little_word_of_a_column_says_nothing_of_it(application, session):
    question = "What was the daily sales of the Morning News in 2013?"

    assert "**16,000**" in asked(application, session, question).text


def test_what_is_done_with_figures_is_not_what_the_table_is_called(application, session):
    answer = asked(application, session, "average ticket price in the North division")

    assert answer.result is None  # the rows of a division are no average


def test_a_column_that_is_named_twice_is_one_figure(application, session):
    offers = asked(application, session, "average pay, monthly pay of all heroes").offers

    assert not any(offer.label.count("monthly_pay") > 1 for offer in offers)


def test_an_offer_is_kept_with_its_answer(application, session):
    asked(application, session, "What is the lowest monthly pay anyone endures?")

    assert session.recent(1)[0].answer.offers[0].plan["table"]


@pytest.mark.parametrize(
    ("question", "label"),
    [
        ("How many outdoor are discontinued?", "Lofthav™ Mesh Outdoor"),
        ("How many products of the group speakers are discontinued?", "where group = speakers"),
    ],
)
def test_values_that_no_row_has_together_are_offered(application, session, question, label):
    answer = asked(application, session, question)

    assert answer.result is None
    assert any(label in offer.label for offer in answer.offers)


def test_of_values_that_are_compared_each_figure_names_its_own(application, session):
    question = "Which plays longer, the Étude or the Étude ANC with noise cancelling on?"

    text = asked(application, session, question).text

    assert "| Étude | none | 52 hours |" in text
    assert "**none**" not in text


def test_a_cell_is_claimed_only_of_what_is_named_in_full(application, session):
    answer = asked(application, session, "What is the PoE budget used of the Kontor 24 PoE+?")

    assert "**amber**" not in answer.text


def test_tables_that_say_different_things_of_one_cell_are_buttons(application, session):
    answer = asked(application, session, "What is the PoE budget of the Kontor 24 PoE+?")

    assert answer.result is None
    assert len({offer.label for offer in answer.offers}) == len(answer.offers) == 2
    assert "370 W" in answer.text
    assert "250 W" in answer.text
    assert len(answer.citations) == 2
