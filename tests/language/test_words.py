"""Words: which carry meaning, their stems, and that there is one stop list."""

import ast
from pathlib import Path

import pytest

from rag.language.words import STOP_WORDS, content_words, language_of, stem, terms, tokens

RAG = Path(__file__).parents[2] / "rag"


def test_words_meet_in_their_stems() -> None:
    assert terms("It charges two devices.") == terms("charging of the device, two")


def test_keeps_the_plus_of_a_name_and_the_signs_of_a_figure() -> None:
    assert [token.text for token in tokens("Cantoro One+, 1.2.3 and 10:30")] == [
        "Cantoro", "One+", "1.2.3", "and", "10:30",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Refunds are paid within five days.", "en"),
        ("Eine Rückerstattung erfolgt innerhalb von fünf Tagen.", "de"),
        ("Aero 5", "en"),
        ("| Product | Weight |\n|---|---|\n| Aero 5 Pro | 620 g |", "en"),
        ("Wie schwer ist der Aero 5 Pro?", "de"),
        ("", "en"),
    ],
)
def test_tells_the_language(text: str, language: object) -> None:
    assert language_of(text).code == language


@pytest.mark.parametrize(
    ("question", "around", "language"),
    [
        ("aero 5 pro warranty", "The warranty begins with the day of the purchase.", "en"),
        ("aero 5 pro Garantie", "Die Garantie gilt zwei Jahre und beginnt mit dem Kauf.", "de"),
        ("Garantie?", "Die Garantie gilt zwei Jahre und beginnt mit dem Kauf.", "de"),
        ("Was kostet das?", "The price of it is in the list of all of the prices.", "de"),
        ("what is it?", "Die Garantie gilt zwei Jahre und beginnt mit dem Kauf.", "en"),
        ("aero 5", "", "en"),
    ],
)
def test_a_few_words_are_of_the_language_around_them(question, around, language):
    assert language_of(question, around).code == language


def test_short_questions_of_one_talk_tell_its_language_together():
    flights = "The flights to Riga are late, and those of the morning are not."

    assert language_of("nur 2025", flights).code == "en"
    assert language_of("nur 2025", "Kosten pro Fach", flights).code == "de"


def test_stems_german_as_german() -> None:
    assert stem("Rückerstattungen", "de") == stem("Rückerstattung", "de")


def test_reads_pairs_of_letters_where_no_blanks_are_set() -> None:
    assert content_words("保証期間") == ("保証", "証期", "期間")


def _strings(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    found = [each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)]
    return [each for each in found if isinstance(each, str)]


NOT_MOVED = {"library/answers.py"}  # this only shrinks


def test_there_is_no_second_stop_list() -> None:
    for path in RAG.rglob("*.py"):
        if "languages" in path.parts or str(path.relative_to(RAG)) in NOT_MOVED:
            continue
        for text in _strings(path):
            words = text.split()
            if len(words) < 25 or any(word.endswith((".", ",")) for word in words):
                continue
            stopped = [word for word in words if word in STOP_WORDS]
            assert len(stopped) <= 0.5 * len(words), (path, text[:80])
