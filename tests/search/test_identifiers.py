"""A code is found however it is typed, stands first, and is missed by name."""

import random
import string

import pytest

from rag.db import collections, writing
from rag.records import EVERYTHING, MissingIdentifier, Readable
from rag.search.lexical import NONE, look_up_identifiers
from tests.applications import application_over


@pytest.fixture
def codes(library):
    """Bulletins whose other passages speak of all that a question may say."""
    for number, code in enumerate(("KH-2319-K", "XK-4471-B", "XK-4471-C", "99.35.181", "22220297")):
        library.add(f"Bulletin {number}", f"Article {code}: the heater is kept in cabinet 85.")
    for number in range(12):
        text = f"What does the article cost? Which switch costs {number} EUR, and what is it?"
        library.add(f"Prices {number}", text)
    return library


def first(library, question):
    return library.retriever.search(question, EVERYTHING, limit=3)[0].chunk.text


@pytest.mark.parametrize(
    "question",
    [
        "KH-2319-K",
        "kh-2319-k",
        "KH2319K",
        "KH 2319 K",
        "ＫＨ－２３１９－Ｋ",
        "What does the article KH-2319-K cost?",
        "Was kostet der KH-2319-K-Schalter?",
        "KH-2391-K",
    ],
)
def test_stands_first_however_it_is_typed(codes, question):
    assert "KH-2319-K" in first(codes, question)


def test_versions_and_figures_count_too(codes):
    assert "99.35.181" in first(codes, "99.35.181")
    assert "22220297" in first(codes, "what is article 22220297")


def test_one_that_nobody_has_is_missed_with_those_near_to_it(codes):
    found = look_up_identifiers(codes.engine, "What does XK-4471-D cost?", EVERYTHING)

    assert found.missing == (MissingIdentifier("XK-4471-D", ("XK-4471-B", "XK-4471-C")),)
    assert not found.exact


def test_of_what_may_not_be_read_nothing_is_near(codes):
    with writing(codes.engine) as connection:
        row = {"id": "2", "name": "Board", "owner": "anna", "everybody": 0}
        connection.execute(collections.insert().values(row | {"version": 0}))
    codes.add("Secret", "Article XK-4471-E", collection="2")
    asked = look_up_identifiers(codes.engine, "XK-4471-D", Readable(frozenset({"1"})))

    assert asked.missing[0].near == ("XK-4471-B", "XK-4471-C")
    assert look_up_identifiers(codes.engine, "XK-4471-E", Readable(frozenset({"1"}))).missing


def test_what_stands_everywhere_is_no_code(codes):
    for number in range(20):
        codes.add(f"Page {number}", f"Form AB-1234 page {number}, {'x' * number}.")

    assert not look_up_identifiers(codes.engine, "AB-1234", EVERYTHING).exact


def test_one_in_many_passages_stands_above_nothing_that_answers(library):
    for number in range(6):
        library.add(f"Sheet {number}", f"GATA3 is a gene, sheet {number}.")
    library.add("Cells", "Human cells are reprogrammed by replacing genes.")

    assert "reprogrammed" in first(
        library, "Are human cells reprogrammed by replacing GATA3 genes?"
    )


@pytest.mark.parametrize(
    "question",
    ["Wi-Fi 6", "A4", "2026", "What does it cost in 2026?", "interleukin-2", "3-dimensional"],
)
def test_words_and_years_take_over_no_question(codes, question):
    codes.add("Cells", "Interleukin-2 and interleukin-4 in 2-dimensional and 3-dimensional layers.")

    assert look_up_identifiers(codes.engine, question, EVERYTHING) == NONE


def test_a_near_code_does_not_stand_above_what_answers(codes):
    codes.add("Cells", "Human cells are reprogrammed by replacing genes.")
    codes.add("Sheet", "GATA4 is a gene.")

    assert "reprogrammed" in first(codes, "Are human cells reprogrammed by replacing GATA3 genes?")
    assert "GATA4" in first(codes, "GATA3")


# ── Fifty invented codes, each typed in every way ─────────────────────────────────────────────

CHANCE = random.Random(4471)
LETTERS, DIGITS = string.ascii_uppercase, string.digits


def invented():
    """Of the shapes that makers use; the last sign tells three siblings apart."""
    shapes = ("AA-0000-A", "A000-00", "AAA00.0A", "00.00.0000", "AA0000AA", "0000-0000")
    signs = {"A": LETTERS, "0": DIGITS}
    shape = CHANCE.choice(shapes)
    return "".join(CHANCE.choice(signs[each]) if each in signs else each for each in shape)


CODES = sorted({invented() for _ in range(60)})[:50]


def plain(code):
    return "".join(filter(str.isalnum, code))


def swapped(code):
    """Two signs in the middle in each other's place."""
    place = next(
        at
        for at in range(1, len(code) - 1)
        if code[at : at + 2].isalnum() and code[at] != code[at + 1]
    )
    return code[:place] + code[place + 1] + code[place] + code[place + 2 :]


def full_width(code):
    return "".join(chr(ord(sign) + 0xFEE0) for sign in code)


@pytest.fixture(scope="module")
def fifty(tmp_path_factory):
    files = {
        f"{number}.md": f"# Sheet {number}\n\nThe valve {code} closes at {number} bar."
        for number, code in enumerate(CODES)
    } | {
        f"talk {number}.md": f"# Talk {number}\n\nWhat closes at {number} bar? Which valve, and "
        "what does it cost? Welches Ventil schließt, und was kostet es?"
        for number in range(20)
    }
    with application_over(tmp_path_factory.mktemp("library"), files) as application:
        yield application.retriever


@pytest.mark.parametrize(
    ("typed", "least"),
    [
        pytest.param(str, 50, id="as it stands"),
        pytest.param(str.lower, 50, id="small letters"),
        pytest.param("At what pressure does the valve {} close?".format, 50, id="in a sentence"),
        pytest.param("Bei welchem Druck schließt das Ventil {}?".format, 50, id="in German"),
        pytest.param(full_width, 50, id="full width"),
        pytest.param(plain, 47, id="without separators"),  # .93 of them
        pytest.param(swapped, 33, id="two signs swapped"),  # .66
    ],
)
def test_of_fifty_codes_so_many_stand_first(fifty, typed, least):
    firsts = [fifty.search(typed(code), EVERYTHING, limit=1)[0].chunk.text for code in CODES]

    assert sum(code in first for code, first in zip(CODES, firsts, strict=True)) >= least
