"""What the library tells of itself, from a real database."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from rag.citations.markers import find_markers
from rag.cli.terminal import LINKS
from rag.db import documents, writing
from rag.documents.files import IncomingFile
from rag.settings import Settings
from tests.applications import application_of

HANDBOOK = """# Support handbook

This handbook is for everybody who answers customers by telephone.

## 1. Refunds

A refund is paid within five business days after the parcel has been checked in.
Refunds are made by bank transfer to the account that paid.

## 2. Shipping

Orders before 14:00 leave the warehouse on the same day by parcel service.
"""
FILES = {
    "company/handbook.md": HANDBOOK,
    "aero-5.md": "# Aero 5 manual\n\nThe Aero 5 weighs 410 g. Refunds are in the handbook.\n",
    "aero-5-pro.md": "# Aero 5 Pro manual\n\nThe Aero 5 Pro weighs 520 g [1] and is heavier.\n",
    "scan.pdf.png": "",
}


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    made = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    files = (IncomingFile.from_bytes(name, text.encode()) for name, text in FILES.items())
    for report in made.ingestion.ingest(files):
        if report.stage == "failed":
            made.jobs.note_unread(report.name, report.reason)
    yield made
    made.stop()


@pytest.fixture
def told(application):
    session = application.store.create("ada")

    def told(question):
        *_, finished = application.assistant.ask(session, question)
        return finished.message

    return told


def lines(message):
    return [line for line in message.content.splitlines() if line.startswith("- ")]


class TestContents:
    def test_are_all_documents_with_links_and_what_could_not_be_read(self, told):
        answer = told("What is in the library?")

        assert answer.content.startswith("The library holds 3 documents (3 Markdown)")
        assert len(LINKS.findall(answer.content)) == 3
        assert "1 file could not be read" in answer.content
        assert lines(answer)[-1].startswith("- scan.pdf.png:")

    def test_are_told_in_german(self, told):
        assert told("Welche Dokumente gibt es?").content.startswith(
            "In der Bibliothek: 3 Dokumente"
        )

    def test_newest_come_first(self, told, application):
        now = datetime.now(UTC)
        with writing(application.engine) as connection:
            for days, name in enumerate(["aero-5-pro.md", "company/handbook.md", "aero-5.md"]):
                row = update(documents).where(documents.c.name == name)
                connection.execute(row.values(ingested_at=now - timedelta(days=days)))

        listed = lines(told("Which documents were added last?"))

        titles = "Aero 5 Pro manual", "Support handbook", "Aero 5 manual"
        assert [title in line for title, line in zip(titles, listed, strict=True)] == [True] * 3


class TestMentions:
    def test_are_counted_by_document_each_with_a_passage(self, told, application):
        answer = told("Which documents mention refunds?")

        assert answer.content.startswith("2 documents mention “refunds”")
        assert [citation.number for citation in answer.answer.citations] == [1, 2]

    def test_of_a_name_are_of_that_very_name(self, told):
        answer = told("which documents mention the aero 5?")

        assert len(lines(answer)) == 1
        assert "Aero 5 manual" in answer.content

    def test_of_two_things_are_told_apart(self, told):
        answer = told("Which documents mention the “Aero 5 Pro” or a bank transfer?")

        assert answer.content.count("1 document mentions") == 2

    def test_of_quoted_words_are_of_all_of_them(self, told):
        answer = told("Which documents mention “bank transfer to the account”?")

        assert lines(answer)[0].startswith("- [Support handbook]")

    def test_of_nothing_say_so(self, told):
        answer = told("Which documents mention zebras?")

        assert answer.answer.declined
        assert "“zebras”" in answer.content

    def test_of_an_unknown_topic_are_left_to_the_search(self, told):
        assert told("Which documents talk about zebras?").answer.model == "extractive"


class TestDocuments:
    def test_are_described_by_their_beginning_and_outline(self, told):
        answer = told("What is the support handbook about?")

        assert "3 sections" in answer.content
        assert "everybody who answers customers by telephone [1]" in answer.content
        assert "(/documents/" in answer.content.split("1. Refunds")[1][:60]

    def test_are_summarised_word_for_word_in_their_order(self, told):
        answer = told("Summarise the handbook")
        told_lines = [
            line.split("* ", 1)[-1].strip("- ").rsplit(" [", 1)[0] for line in lines(answer)
        ]

        assert len(told_lines) == 4
        places = [HANDBOOK.find(line) for line in told_lines]
        assert places == sorted(places)
        assert -1 not in places

    @pytest.mark.parametrize(
        "section",
        [
            "section 2 of the handbook",
            "the shipping section of the support handbook",
            "section 2 of the support",  # a smaller part of its name
        ],
    )
    def test_are_summarised_by_their_sections(self, told, section):
        (line,) = lines(told(f"Summarize {section}"))

        assert line.startswith("- Orders before 14:00")

    def test_that_were_just_cited_can_be_meant(self, told):
        told("Which documents mention a parcel service?")

        assert "Support handbook" in told("Summarise this document.").content

    def test_of_one_name_are_asked_back_for(self, told):
        answer = told("Summarise the manual")

        assert answer.answer.declined
        assert len(lines(answer)) == 2

    def test_that_are_none_of_ours_are_left_to_the_search(self, told):
        assert told("Summarise the differences of both routers").answer.model == "extractive"

    def test_brackets_of_their_own_are_no_citations(self, told):
        answer = told("Summarise the Aero 5 Pro manual")

        assert [marker.numbers for marker in find_markers(answer.content)] == [(1,)]
        assert "(1)" in answer.content


class TestUnreadFiles:
    @pytest.mark.parametrize(
        "question",
        [
            "Which files could not be read?",
            "Why couldn't scan.pdf.png be read?",
            "What is scan.pdf.png about?",
        ],
    )
    def test_are_named_with_the_reason(self, told, question):
        answer = told(question)

        assert answer.answer.model == "library"
        assert "scan.pdf.png:" in answer.content

    def test_are_told_of_beside_what_was_found_for_a_question_that_names_them(self, told):
        (notice,) = told("What does scan.pdf.png say about the rent?").answer.notices

        assert notice.text.startswith("scan.pdf.png:")

    def test_of_others_are_not_told_of(self, application, tmp_path):
        tokens = Settings(data_dir=tmp_path, auth={"mode": "tokens", "tokens": {"t": "ben"}})
        made = application_of(tokens)
        made.jobs.note_unread("secret.pdf", "secret.pdf: it is encrypted")
        session = made.store.create("ben")

        *_, finished = made.assistant.ask(session, "Which files could not be read?")

        assert "secret" not in finished.message.content
        made.stop()


class TestAnEmptyLibrary:
    @pytest.mark.parametrize("question", ["How heavy is it?", "What is in the library?"])
    def test_says_that_it_is_empty(self, tmp_path, question):
        made = application_of(Settings(data_dir=tmp_path))
        *_, finished = made.assistant.ask(made.store.create("ada"), question)

        assert finished.message.content.startswith("The library is empty")
        assert finished.message.answer.declined
        made.stop()


@pytest.mark.parametrize(
    ("question", "told_of"),
    [
        ("What is the Aero 5 manual about?", "1 section"),
        ("Worum geht es im Aero 5 manual?", "1 Abschnitt"),
        ("Summarise the Aero 5 manual", "The Aero 5 weighs 410 g"),
    ],
)
def test_a_document_of_one_section_is_told_of_too(told, question, told_of):
    answer = told(question)

    assert told_of in answer.content
    assert answer.answer.model == "library"


class TestATableOfDocuments:
    """Two sides count documents: the library leads, the rows of a register are offered."""

    @pytest.fixture(scope="class")
    def last(self, tmp_path_factory):
        made = application_of(Settings(data_dir=tmp_path_factory.mktemp("register")))
        register = b"document,signed,pages\n" + b"".join(
            b"Contract %d,%s,%d\n" % (row, b"yes" if row % 2 else b"no", row) for row in range(1, 8)
        )
        list(made.ingestion.ingest([IncomingFile.from_bytes("documents.csv", register)]))
        session = made.store.create("ada")

        def last(question):
            *_, finished = made.assistant.ask(session, question)
            return finished.message

        yield last
        made.stop()

    def test_the_library_says_what_it_holds_and_the_rows_are_one_click_away(self, last):
        counted = last("How many documents are there?")
        (offer,) = counted.answer.offers

        assert "1 document" in counted.content
        assert "7" in last(offer.label).content

    def test_what_asks_for_no_rows_gets_no_offer(self, last):
        assert last("What documents do you have?").answer.offers == ()
