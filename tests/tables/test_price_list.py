"""Thirty questions over the sample library's price list, and two sheets beside it: all exact."""

import csv
from pathlib import Path

import pytest

from rag.documents.files import IncomingFile
from rag.errors import UserError
from rag.records import EVERYTHING
from rag.settings import Settings
from tests.applications import application_of

COMPANY = Path(__file__).parents[2] / "data" / "library" / "company"
LIST = list(csv.DictReader((COMPANY / "price-list-2026.csv").open(encoding="utf-8")))


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    file = COMPANY / "price-list-2026.csv"
    list(application.ingestion.ingest([IncomingFile.from_bytes(file.name, file.read_bytes())]))
    yield lambda question: application.asked.ask(question, EVERYTHING)
    application.stop()


def of(**wanted):
    return [row for row in LIST if all(row[name] == value for name, value in wanted.items())]


def names(rows):
    return [(row["product"],) for row in rows]


def prices(rows):
    return [float(row["price_eur"]) for row in rows if row["price_eur"]]


def priced(low, high, rows=LIST):
    return [row for row in rows if row["price_eur"] and low <= float(row["price_eur"]) < high]


def ranked(rows, *, down):
    known = [row for row in rows if row["price_eur"]]
    known.sort(key=lambda row: float(row["price_eur"]) * (-1 if down else 1))
    return [(row["product"], row["price_eur"]) for row in known]


def mean(figures):
    return sum(figures) / len(figures)


QUESTIONS = {
    "how many products are on the price list?": [(33,)],
    "how many products are on sale?": [(len(of(status="on sale")),)],
    "how many are discontinued?": [(1,)],
    "what is the average price?": [(mean(prices(LIST)),)],
    "what is the cheapest product?": ranked(LIST, down=False)[:1],
    "what is the most expensive product?": ranked(LIST, down=True)[:1],
    "top 5 most expensive products": ranked(LIST, down=True)[:5],
    "the three cheapest speakers": ranked(of(group="speakers"), down=False)[:3],
    "how many speakers are there?": [(len(of(group="speakers")),)],
    "how many routers cost more than 100?": [(len(priced(100.01, 9e9, of(group="routers"))),)],
    "which products have a warranty of 60 months?": names(of(warranty_months="60")),
    "how much is the Kontor 24 PoE+?": [("389.00",)],
    "how much does the aero 5 pro max cost?": [("349.00",)],
    "what is the warranty of the sillbar 300?": [("36",)],
    "which product has the model code NW-H45?": [("Étude ANC",)],
    "what is the total price of all soundbars?": [(sum(prices(of(group="soundbars"))),)],
    "median price of headphones": [(154.0,)],
    "products under 50 euros": names(priced(0, 50)),
    "which group has the most products?": [("routers", 5)],
    "how many different groups are there?": [(len({row["group"] for row in LIST}),)],
    "how many products have a warranty of 36 months?": [(len(of(warranty_months="36")),)],
    "highest price among the switches": ranked(of(group="switches"), down=True)[:1],
    "what is the price difference between Aero 5 and Aero 5 Pro?": [(70.0,)],
    "how many products have no price?": [(1,)],
    "which products cost between 100 and 150?": names(priced(100, 150.01)),
    "what is the status of the aero 4?": [("discontinued",)],
    "list all adapters": names(of(group="adapters")),
    "how many products cost at least 200 but less than 300?": [(len(priced(200, 300)),)],
    "cheapest soundbar": ranked(of(group="soundbars"), down=False)[:1],
    "price of étude anc": [("189.00",)],
}


@pytest.mark.parametrize(("question", "rows"), QUESTIONS.items(), ids=QUESTIONS)
def test_is_answered_from_its_rows(asked, question, rows):
    result = asked(question)

    assert [tuple(row) for row in result.rows] == rows
    assert not any(note.startswith("Not used") for note in result.notes)


def test_average_price_by_group(asked):
    groups = {row["group"] for row in LIST}

    found = dict(asked("average price by group").rows)

    assert found == pytest.approx({name: mean(prices(of(group=name))) for name in groups})


def test_what_it_does_not_know_is_said(asked):
    with pytest.raises(UserError, match="No table answers this"):
        asked("how heavy is the aero 5 pro max?")


def test_tables_that_fit_alike_are_offered(tmp_path):
    application = application_of(Settings(data_dir=tmp_path))
    try:
        file = COMPANY / "price-list-2026.xlsx"
        list(application.ingestion.ingest([IncomingFile.from_bytes(file.name, file.read_bytes())]))

        with pytest.raises(UserError, match=r"Networking(.|\n)*Audio"):
            application.asked.ask("what is the cheapest product?", EVERYTHING)
        found = application.asked.ask("dealer price of the kontor 8", EVERYTHING)
        assert found.rows == (("35.1",),)
    finally:
        application.stop()
