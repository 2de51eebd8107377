"""A figure that was computed stands in one list with what texts say of the same."""

import pytest

from rag.documents.files import IncomingFile
from rag.records import Verdict
from rag.settings import Settings
from tests.applications import application_of

SALES = (
    "Product,Region,Quarter,Revenue EUR\nFern,North,Q1,500\nFern,South,Q1,300\nMoss,North,Q2,440"
)
TICKETS = "Ticket,Status,Owner\nT1,open,Ada\nT2,open,Bo\nT3,closed,Ada\nT4,open,Cy"
TEXTS = {
    "denied.md": "# Memo of the board\n\nThe total revenue is EUR 1,310, as the audit found.",
    "agreed.md": "# Memo of the board\n\nThe total revenue is EUR 1,240, as the audit found.",
    "part.md": "# Memo of the board\n\nThe revenue in the North is EUR 940.",
    "unit.md": "# Memo of the board\n\nThe total revenue grew by 12 %.",
    "other.md": "# Memo of the board\n\nThe total rent is EUR 9,000.",
    "supersedes.md": "# Memo\n\nThe total revenue is EUR 1,310 instead of EUR 1,240.",
    "count.md": "# Minutes\n\nThere are 5 open tickets.",
    "price-list.md": (
        "# Price list\n\n## Tools\n\n| Product | Price |\n| --- | --- |\n| Saw | 9 |\n| Axe | 8 |\n"
        "\n## Parts\n\n| Product | Price |\n| --- | --- |\n| Nut | 1 |\n| Rod | 3 |\n| Pin | 2 |\n"
    ),
    "library.md": "# Minutes\n\nThere are 40 documents in the library.",
}
TOTAL = "What is the total revenue?"


@pytest.fixture
def ask(tmp_path):
    application = application_of(Settings(data_dir=tmp_path))

    def ask(question, *names):
        files = {"sales.csv": SALES, "tickets.csv": TICKETS} | {n: TEXTS[n] for n in names}
        for report in application.ingestion.ingest(
            IncomingFile.from_bytes(name, text.encode()) for name, text in files.items()
        ):
            assert report.stage != "failed", report.reason
        *_, finished = application.assistant.ask(application.store.create("ada"), question)
        return finished.message

    yield ask
    application.stop()


def verdicts(message):
    return {citation.verdict for citation in message.answer.citations}


def test_what_a_text_denies_is_not_ticked_and_both_are_quoted_with_their_numbers(ask):
    message = ask(TOTAL, "denied.md")

    first = message.content.split("\n")[0]
    assert "€1,240" in first
    assert '"The total revenue is EUR 1,310' in first
    assert {citation.number for citation in message.answer.citations} == {1, 2}
    assert verdicts(message) == {Verdict.OPEN}


def test_what_says_that_it_supersedes_leads(ask):
    message = ask(TOTAL, "supersedes.md")

    assert message.content.startswith('Memo: "The total revenue is EUR 1,310')
    assert "Otherwise sales" in message.content
    assert {citation.number for citation in message.answer.citations} == {1, 2}
    assert "[0]" not in message.content


@pytest.mark.parametrize("name", ["agreed.md", "part.md", "unit.md", "other.md"])
def test_only_the_same_of_the_same_rows_in_the_same_unit_denies(ask, name):
    message = ask(TOTAL, name)

    assert message.content.startswith("The total Revenue is **€1,240**")
    assert verdicts(message) == {Verdict.COMPUTED}


def test_a_count_is_denied_by_another_count_of_the_same(ask):
    message = ask("How many tickets are open?", "count.md")

    assert "**3**" in message.content
    assert '"There are 5 open tickets."' in message.content
    assert Verdict.COMPUTED not in verdicts(message)


def test_no_text_denies_what_the_library_says_of_itself(ask):
    message = ask("How many documents are there?", "library.md")

    assert "3 documents" in message.content
    assert "40" not in message.content


def test_the_rows_of_one_of_a_documents_tables_are_not_claimed_for_all(ask):
    answer = ask("How many products are in the price list?", "price-list.md").answer

    assert answer.result is None
