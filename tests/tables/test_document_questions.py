"""Questions to documents that hold words of asking over rows: no table answers them."""

from pathlib import Path

import pytest

from rag.documents.files import IncomingFile
from rag.records import EVERYTHING
from rag.settings import Settings
from rag.tables.answers import TableTurn
from tests.applications import application_of
from tests.tables.test_said import BOOKINGS

PRICES = Path(__file__).parents[2] / "data" / "library" / "company" / "price-list-2026.csv"
QUESTIONS = """
How much water does the coffee machine need?
How much notice must I give before I leave?
How much memory does the gateway use at night?
How many people may stay in the meeting room?
How many attempts are there before my account is locked?
How many weeks of parental leave does the handbook grant?
What happens with more than 5 failed logins?
What if I am more than 10 minutes late for a shift?
May I carry over more than 5 days of leave?
Who approves expenses above 500 francs?
Is it open between 3 and 5 on Sundays?
Which gate do I take between 7 and 9 in the morning?
What is the difference between a lease and a rental contract?
What is the difference between warm and cold standby?
Which cable belongs to the projector?
Which form is needed for a business trip to Japan?
Which is the most important rule in the workshop?
What is the best way to clean the lens?
What is the longest I can stay in the guest flat?
What was the first version that knew dark mode?
Where is the nearest first-aid kit?
Where do I find the factory reset option?
How do I reset the thermostat?
How do I undo a merge that was pushed?
How do I sort the waste in the kitchen?
How do I sort my mailbox by sender?
How do I export a report as a table?
Why does the chart in the manual look different?
Can I pay by card at the gate?
Can I see the payslips of last year?
Who is the highest authority in questions of safety?
Who came up with the name of the newest router?
What share of the costs does the insurance take over?
What percentage of alcohol is in the cleaning fluid?
What is the average lifetime of a battery pack?
What does the total on the pay slip mean?
When is the last bus back to town?
When was the oldest building on the site put up?
At least how many characters must a password have?
Up to how many guests can be invited to the party?
Imagine that you just moved here. What would be the most useful thing to learn first?
Explain the maximum power rule and what it means for induction motors.
List the steps for a clean shutdown.
List three reasons why the migration was put off.
Give me the top reasons for a rejected application.
Are there fewer than 3 exits in the old hall?
Does the lift carry more than 8 persons?
In what year did the founder retire?
After whom was the big lecture hall named?
Which law recognised two types of schools?
Wie viel Trinkgeld ist in Japan üblich?
Wie viele Schlüssel bekommt ein neuer Mieter?
Wie hoch ist die Kaution für den Grillplatz?
Was ist der Unterschied zwischen Probezeit und Befristung?
Welches Verfahren wurde 1901 vorgestellt?
Welche Spurweite haben zwei der Museumsbahnen?
In welchem Jahr starb der Gründer?
Nach wem wurde der große Hörsaal benannt?
Wer ist die älteste Mitarbeiterin im Archiv?
Wann fährt der letzte Zug nach Hause?
""".strip().splitlines()


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    files = {"bookings.csv": BOOKINGS.encode(), PRICES.name: PRICES.read_bytes()}
    list(application.ingestion.ingest(IncomingFile.from_bytes(*each) for each in files.items()))
    yield application.asked
    application.stop()


@pytest.fixture(scope="module", params=["first", "behind a table"])
def past(request, answers):
    asked = "Total price EUR by channel"
    result = answers.ask(asked, EVERYTHING)
    return [] if request.param == "first" else [TableTurn(asked, asked, result, "", "")]


def test_questions_to_documents_are_left_to_the_writer(answers, past):
    found = {q: answers._of_the_talk(q, past, EVERYTHING) for q in QUESTIONS}
    taken = [q for q, each in found.items() if each is not None and getattr(each, "text", q)]

    assert taken == []


def test_what_takes_a_table_back_still_does(answers):
    first = answers.ask("Total price EUR by channel", EVERYTHING)
    past = [TableTurn("Total price EUR by channel", "", first, "", "")]
    second = answers.ask("only paid", EVERYTHING, past)
    past.append(TableTurn("only paid", "", second, "", ""))

    for back in ("undo that please", "go back"):
        assert answers.ask(back, EVERYTHING, past).rows == first.rows
