"""The sample library is what data/README.md says, and its questions can be answered from it."""

import csv
import html
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[1] / "data"
LIBRARY = DATA / "library"
DOCUMENTS = sorted(path for path in LIBRARY.rglob("*") if path.is_file())
GENERATED = [path for path in DOCUMENTS if path.suffix in {".pdf", ".docx", ".pptx", ".xlsx"}]
QUESTIONS = [
    json.loads(line) for line in (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
ANSWERABLE = [question for question in QUESTIONS if question["kind"] != "unanswerable"]
KINDS = {
    "fact",
    "table",
    "howto",
    "comparison",
    "contradiction",
    "discontinued",
    "name_trap",
    "unanswerable",
}
WORDS_PER_PAGE = 350


def name_of(path):
    return path.relative_to(LIBRARY).as_posix()


@cache
def pages_of(path):
    """The text of each page, slide or sheet; other formats are one page of any length."""
    readers = {".pdf": pdf_pages, ".pptx": slides, ".docx": word_text, ".xlsx": sheets}
    if path.suffix in readers:
        return readers[path.suffix](path)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        text = html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<(s\w+)>.*?</\1>", " ", text)))
    return [text]


def pdf_pages(path):
    import pypdfium2

    with pypdfium2.PdfDocument(path) as document:
        return [page.get_textpage().get_text_range() for page in document]


def word_text(path):
    import docx

    document = docx.Document(str(path))
    rows = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    return ["\n".join([paragraph.text for paragraph in document.paragraphs] + rows)]


def slides(path):
    from pptx import Presentation

    return ["\n".join(texts_on(slide)) for slide in Presentation(str(path)).slides]


def texts_on(slide):
    for shape in slide.shapes:
        if shape.has_text_frame:
            yield shape.text_frame.text
        elif shape.has_table:
            yield from (cell.text for row in shape.table.rows for cell in row.cells)
    if slide.has_notes_slide:
        yield slide.notes_slide.notes_text_frame.text


def sheets(path):
    import openpyxl

    book = openpyxl.load_workbook(path, read_only=True)
    rows = [row for sheet in book for row in sheet.iter_rows(values_only=True)]
    return ["\n".join(",".join(str(cell) for cell in row) for row in rows)]


def text_of(path):
    return " ".join(" ".join(pages_of(path)).split())


def page_count(path):
    if path.suffix in {".pdf", ".pptx"}:
        return len(pages_of(path))
    return len(text_of(path).split()) / WORDS_PER_PAGE


def price_list():
    with (LIBRARY / "company/price-list-2026.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_the_library_has_forty_pages():
    assert sum(page_count(path) for path in DOCUMENTS) >= 40


def test_every_format_is_there():
    suffixes = {path.suffix for path in DOCUMENTS}

    assert suffixes == {".md", ".html", ".pdf", ".docx", ".pptx", ".csv", ".xlsx", ".txt"}


def test_there_are_at_least_25_products_with_a_code_of_their_own():
    products = price_list()

    assert len({row["product"] for row in products}) >= 25
    assert len({row["model_code"] for row in products}) == len(products)


def test_every_product_is_described_outside_the_price_lists():
    texts = [
        re.sub(r"[™®]", "", text_of(path)) for path in DOCUMENTS if "price-list" not in path.name
    ]
    products = [
        (re.sub(r"[™®]| \(.*\)", "", row["product"]), row["model_code"]) for row in price_list()
    ]

    assert [
        (name, code)
        for name, code in products
        if not any(code in text and name in text for text in texts)
    ] == []


def test_both_price_lists_agree():
    workbook = text_of(LIBRARY / "company/price-list-2026.xlsx")

    for row in price_list():
        price = f"{float(row['price_eur']):g}" if row["price_eur"] else "discontinued 31 March 2025"
        assert f"{row['model_code']},{row['product']},{price}," in workbook


def test_some_product_names_are_the_beginning_of_others():
    names = [row["product"] for row in price_list()]

    pairs = {(a, b) for a in names for b in names if b.startswith(f"{a} ")}

    assert {("Aero 5", "Aero 5 Pro"), ("Aero 5 Pro", "Aero 5 Pro Max")} <= pairs
    assert ("pico-link", "pico-link s") in pairs


def test_the_documents_that_contradict_each_other_still_do():
    handbook = text_of(LIBRARY / "company/support-handbook.md")
    deck = text_of(LIBRARY / "company/sales-deck.pptx")
    manual = text_of(LIBRARY / "networking/kontor-service-manual.pdf")
    pro = next(row for row in price_list() if row["product"] == "Aero 5 Pro")

    assert "| Aero 5, Aero 5 Pro, Aero 4 | 24 months |" in handbook
    assert pro["warranty_months"] == "36"
    assert "Kontor 24 PoE+ 24 370 W" in deck
    assert "PoE budget of 250 W" in manual


def test_the_readme_lists_each_document_and_each_product_with_its_code():
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    documents = [f"`{name_of(path)}`" for path in DOCUMENTS]
    products = [f"| {row['product']} | {row['model_code']} |" for row in price_list()]

    assert [each for each in documents + products if each not in readme] == []


def test_question_ids_are_unique_and_every_kind_occurs():
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS) >= 60
    assert {question["kind"] for question in QUESTIONS} == KINDS


def test_the_document_of_a_question_holds_its_answer():
    for question in ANSWERABLE:
        text = text_of(LIBRARY / question["document"])
        told = " ".join([text, *(text_of(LIBRARY / name) for name in question["also"])])

        assert question["key"] in text, question["id"]
        for figure in re.findall(r"\d+(?:\.\d+)*", question["answer"]):
            found = re.search(rf"(?<!\d){re.escape(figure)}(?!\d)", told)
            assert found, (question["id"], figure)


def test_unanswerable_questions_name_no_document():
    for question in QUESTIONS:
        assert (question["document"] is None) == (question["kind"] == "unanswerable")


@pytest.fixture(scope="module")
def made_again(tmp_path_factory):
    pytest.importorskip("reportlab", reason="reportlab comes with the dev extra")
    folders = [tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")]
    for folder in folders:
        script = [sys.executable, str(DATA / "make_library.py"), "--out", str(folder)]
        subprocess.run(script, check=True, capture_output=True, timeout=120)
    return folders


@pytest.mark.slow  # both runs of the script take longer than all other tests of this file
@pytest.mark.parametrize("path", GENERATED, ids=name_of)
def test_a_generated_file_says_what_its_source_says(path, made_again):
    # Other versions of the writing libraries may give other bytes; the text is what counts.
    assert pages_of(made_again[0] / name_of(path)) == pages_of(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", GENERATED, ids=name_of)
def test_two_runs_give_the_same_bytes(path, made_again):
    first, second = (folder / name_of(path) for folder in made_again)

    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_every_committed_binary_comes_from_the_script(made_again):
    made = {path.relative_to(made_again[0]) for path in made_again[0].rglob("*") if path.is_file()}

    assert made == {path.relative_to(LIBRARY) for path in GENERATED}
