"""What is said beside an answer: another language, or a file that could not be read."""

from types import SimpleNamespace

import pytest

from rag.language.words import spoken
from rag.library.answers import Remarks, UnreadFile, other_language
from rag.records import EVERYTHING, Answer, NoticeKind, Source

ENGLISH = "The warranty of the router is two years from the date of purchase."
GERMAN = "Die Garantie des Geräts beträgt zwei Jahre ab dem Tag des Kaufs."


def source(text):
    return Source(1, "c", "d", "d.md", "Handbook", "", (), text, text, "")


class Session:
    """One that may ask everything."""

    owner = "ada"

    def __init__(self, *answers):
        self.answers = answers

    def readable(self):
        return EVERYTHING

    def recent(self, count):
        return [SimpleNamespace(answer=each) for each in self.answers]


def remarks(question, *answers, is_sure=False, text=ENGLISH, english_only=True):
    files = [UnreadFile("lease-scan.pdf", "lease-scan.pdf: it holds pictures only.")]
    made = Remarks(
        lambda owner: files, lambda word, readable: word.lower() in text.lower(), english_only
    )
    return made(Session(*answers), question, [source(text)], is_sure=is_sure)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("How long is the warranty?", "en"),
        ("Wie lange ist die Garantie?", "de"),
        ("Was kostet der Aero 5?", "de"),
        ("Quelle est la durée de la garantie pour les routeurs ?", "fr"),
        ("¿Cuánto cuesta el envío de una caja?", "es"),
        ("Combien coûte l’Aero 5 ?", "fr"),
        ("Hoeveel weegt de Aero 5?", "nl"),
        ("Quanto costa?", ""),  # Italian or Portuguese
        ("Los Angeles office", ""),
        ("保証期間は？", "ja"),
        ("保修期多长？", "zh"),
        ("Aero 5 Pro Maxの重さは？", "ja"),
        ("Сколько весит Aero 5?", "cyrl"),
        ("What is the value of β in the formula?", "en"),
        ("Aero 5 reset", ""),
        ("", ""),
    ],
)
def test_languages_are_told_apart_or_not_at_all(text, code):
    assert spoken(text) == code


def test_a_german_question_to_english_documents_is_told_what_helps():
    (notice,) = remarks("Wie lange ist die Garantie?", is_sure=True)

    assert notice.kind is NoticeKind.OTHER_LANGUAGE
    assert "auf Deutsch" in notice.text
    assert "embedding.model" in notice.text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Quanto costa il router?", "The question is in Italian"),
        ("保証期間は？", "The question is in Japanese"),
        ("Какая гарантия?", "The question is in Cyrillic letters"),
    ],
)
def test_short_questions_in_other_languages_are_told_so_in_english(question, said):
    (notice,) = remarks(question, is_sure=True)

    assert notice.kind is NoticeKind.OTHER_LANGUAGE
    assert notice.text.startswith(said)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How long is the warranty?", ENGLISH),
        ("Garantie Router", ENGLISH),  # no language is sure
        ("Wie lange ist die Garantie?", "AX-1 410 g 520 EUR"),
    ],
)
def test_nothing_is_said_where_languages_are_the_same_or_not_sure(question, text):
    assert other_language(question, [source(text)]) == ""


def test_a_language_that_the_model_does_not_know_is_told_of_once():
    question = "Wie lange ist die Garantie?"

    (notice,) = remarks(question, text=GERMAN, is_sure=True)

    assert notice.text.startswith("Frage und Stellen sind auf Deutsch.")
    assert remarks(question, Answer("", notices=(notice,)), text=GERMAN, is_sure=True) == []
    assert remarks(question, text=GERMAN, is_sure=True, english_only=False) == []


def test_nothing_is_said_of_a_model_that_somebody_chose():
    assert remarks("Wie lange ist die Garantie?", english_only=False) == []


def test_a_file_that_could_not_be_read_is_named_where_the_answer_is_not_sure():
    (notice,) = remarks("What does the lease scan say about the rent?")

    assert notice.kind is NoticeKind.UNREAD
    assert notice.text.endswith("it holds pictures only.")
    assert remarks("What does the lease scan say about the rent?", is_sure=True) == []
    assert remarks("What does the lease say about the rent?") == []


def test_a_name_that_no_document_holds_is_told_whatever_is_shown():
    (notice,) = remarks("How long is the warranty of the Teal?", is_sure=True)

    assert notice.kind is NoticeKind.OTHER_PRODUCT
    assert "“Teal”" in notice.text


@pytest.mark.parametrize(
    "question",
    [
        "How long is the warranty of the Router?",  # it is there, in small letters
        "What was the revenue of FY2023?",  # may stand there as "fiscal 2023"
        "Who won the Top 10?",
        "Which of them are PDFs, and is it signed by the UN?",  # may stand there in full
        "Router Teal",  # in which language is not sure
        "Wie lange hat der Teal Garantie?",  # nouns are written as names are
        "how long is the warranty of the teal?",
    ],
)
def test_nothing_is_said_of_names_that_may_stand_there_in_another_form(question):
    told = remarks(question, is_sure=True, text=f"{ENGLISH} It is in the top.", english_only=False)

    assert told == []
