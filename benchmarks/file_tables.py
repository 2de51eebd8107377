"""Five tables in seven formats, twenty questions each: how many are computed right.

python -m benchmarks.file_tables [--format NAME …] [--told]
The tables are as people keep them: codes with zeros, years in headers, German figures, subtotals,
headers in two rows. Tables, questions and answers were written before any result was looked at.
"""

import argparse
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rag.documents.files import IncomingFile
from rag.records import Finished, Message
from rag.settings import Settings
from rag.wiring.application import Application, build

Row = Sequence[str]
NARROW = 2  # points between the lines of a cell and its words
TABLES: dict[str, tuple[Row, ...]] = {
    "Spare parts of the pump house": (
        ("Part no", "Description", "Stock", "Price"),
        ("00501", "Bearing cap", "14", "12.40 EUR"),
        ("00502", "Shaft seal", "120", "8.95 EUR"),
        ("00510", "Impeller", "6", "214.00 EUR"),
        ("00517", "Gasket set", "45", "31.20 EUR"),
        ("00533", "Float switch", "18", "47.50 EUR"),
        ("00540", "Check valve", "27", "66.10 EUR"),
        ("00571", "Drain plug", "300", "1.75 EUR"),
    ),
    "Takings by region": (
        ("Region", "2024 Actual", "2025 Plan", "2025 Actual"),
        ("North", "1,240", "1,300", "1,287"),
        ("South", "980", "1,050", "1,112"),
        ("East", "1,515", "1,600", "1,488"),
        ("West", "760", "800", "845"),
        ("Overseas", "2,030", "2,100", "2,365"),
    ),
    "Werke 2025": (
        ("Werk", "Umsatz", "Kosten", "Mitarbeiter"),
        ("Kassel", "1.234,50 €", "980,25 €", "12"),
        ("Jena", "2.045,00 €", "1.700,10 €", "25"),
        ("Bremen", "899,90 €", "1.010,40 €", "9"),
        ("Passau", "3.410,75 €", "2.205,00 €", "31"),
        ("Gera", "1.120,00 €", "840,00 €", "14"),
    ),
    "Hours of the crews in May": (
        ("Crew", "Person", "Hours", "Overtime"),
        ("Quay", "Ito", "152", "4"),
        ("Quay", "Adeyemi", "160", "11"),
        ("Quay", "Lindqvist", "148", "0"),
        ("Quay total", "", "460", "15"),
        ("Yard", "Moreau", "155", "7"),
        ("Yard", "Okafor", "161", "13"),
        ("Yard total", "", "316", "20"),
        ("Grand total", "", "776", "35"),
    ),
    "Tightening torques": (
        ("Size", "Torque (Nm)", ""),
        ("", "dry", "oiled"),
        ("M6", "10.4", "8.3"),
        ("M8", "25", "20"),
        ("M10", "50", "40"),
        ("M12", "86.5", "69"),
        ("M16", "210", "168"),
    ),
}
HEADS = {"Tightening torques": 2}  # rows of a header whose first cell spans both of them
QUESTIONS: tuple[tuple[str, str | float], ...] = (
    ("What is the price of the impeller?", 214),
    ("How many parts have a stock below 20?", 3),
    ("Which part has the highest price?", "Impeller|00510"),
    ("What is the total stock?", 530),
    ("Which region has the highest 2025 Actual?", "Overseas"),
    ("What is the total 2025 Plan?", 6850),
    ("What is the 2024 Actual of South?", 980),
    ("What is the average 2024 Actual?", 1305),
    ("Wie hoch ist der Umsatz von Kassel?", 1234.5),
    ("Was ist die Summe der Kosten?", 6735.75),
    ("Welches Werk hat die höchsten Kosten?", "Passau"),
    ("Wie hoch ist der durchschnittliche Umsatz?", 1742.03),
    ("What are the total hours?", 776),
    ("Who has the most overtime?", "Okafor"),
    ("How many hours did Lindqvist work?", 148),
    ("What is the average overtime?", 7),
    ("What is the oiled torque of M8?", 20),
    ("Which size has the highest dry torque?", "M16"),
    ("How many sizes have a dry torque above 40?", 3),
    ("What is the lowest oiled torque?", 8.3),
)
NEAR = 0.002  # of a figure: what rounding for people changes


def csv_file(name: str, rows: Sequence[Row]) -> bytes:
    """With semicolons where figures have commas."""
    import csv

    text = io.StringIO()
    has_commas = any("," in cell for row in rows for cell in row)
    csv.writer(text, delimiter=";" if has_commas else ",").writerows(rows)
    return text.getvalue().encode()


def excel_file(name: str, rows: Sequence[Row]) -> bytes:
    """Figures are figures where they bear no sign."""
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = name[:31]
    for row in rows:
        sheet.append([float(cell) if _is_plain(cell) else cell or None for cell in row])
    for across in _spans(name):
        sheet.merge_cells(across)
    return _saved(book.save)


def _is_plain(cell: str) -> bool:
    return cell.replace(".", "", 1).isdecimal() and (not cell.startswith("0") or cell == "0")


def _spans(name: str) -> tuple[str, ...]:
    return ("B1:C1", "A1:A2") if name in HEADS else ()


def word_file(name: str, rows: Sequence[Row]) -> bytes:
    """A heading, a sentence and the table."""
    from docx import Document

    document = Document()
    document.add_heading(name, 1)
    document.add_paragraph("The figures are those of the last count.")
    table = document.add_table(len(rows), len(rows[0]))
    _fill(table, rows, name)
    return _saved(document.save)


def slide_file(name: str, rows: Sequence[Row]) -> bytes:
    """One slide with the table."""
    from pptx import Presentation
    from pptx.util import Inches

    slides = Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[5])
    slide.shapes.title.text = name
    size = (Inches(1), Inches(2), Inches(8), Inches(4))
    table = slide.shapes.add_table(len(rows), len(rows[0]), *size).table
    _fill(table, rows, name)
    return _saved(slides.save)


def _fill(table: object, rows: Sequence[Row], name: str) -> None:
    for at, row in enumerate(rows):
        for column, text in enumerate(row):
            table.cell(at, column).text = text  # type: ignore[attr-defined]
    if name in HEADS:
        table.cell(0, 1).merge(table.cell(0, 2))  # type: ignore[attr-defined]
        table.cell(0, 0).merge(table.cell(1, 0))  # type: ignore[attr-defined]


def html_file(name: str, rows: Sequence[Row]) -> bytes:
    """A page with a header of `th`."""
    heads = HEADS.get(name, 1)
    lines = []
    for at, row in enumerate(rows):
        cells = [
            f"<{'th' if at < heads else 'td'}{_reach(name, at, column)}>{text}"
            for column, text in enumerate(row)
            if not (name in HEADS and (at, column) in ((0, 2), (1, 0)))
        ]
        lines.append("<tr>" + "".join(cells))
    return f"<title>{name}</title><h1>{name}</h1><table>{''.join(lines)}</table>".encode()


def _reach(name: str, row: int, column: int) -> str:
    if name not in HEADS or row:
        return ""
    return {0: " rowspan=2", 1: " colspan=2"}.get(column, "")


def pdf_file(
    name: str, rows: Sequence[Row], *, padding: float = NARROW, lines: bool = True
) -> bytes:
    """A page with a heading, a sentence and the table, its cells drawn or not."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

    style: list[tuple[object, ...]] = [
        ("LEFTPADDING", (0, 0), (-1, -1), padding),
        ("RIGHTPADDING", (0, 0), (-1, -1), padding),
    ]
    style += [("GRID", (0, 0), (-1, -1), 0.5, "black")] if lines else []
    style += [("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 0), (0, 1))] if name in HEADS else []
    look = getSampleStyleSheet()
    parts = [
        Paragraph(name, look["Heading1"]),
        Paragraph("The figures are those of the last count, in May.", look["BodyText"]),
        Table(rows, style=TableStyle(style)),
    ]
    return _saved(lambda file: SimpleDocTemplate(file).build(parts))


def _saved(save: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()


FORMATS: dict[str, tuple[str, Callable[[str, Sequence[Row]], bytes]]] = {
    "csv": ("csv", csv_file),
    "xlsx": ("xlsx", excel_file),
    "docx": ("docx", word_file),
    "pptx": ("pptx", slide_file),
    "html": ("html", html_file),
    "pdf, narrow cells": ("pdf", pdf_file),
    "pdf, no lines": ("pdf", lambda *table: pdf_file(*table, padding=10, lines=False)),
}


def graded(kind: str) -> Iterator[tuple[str, str, str]]:
    """Of each question its grade and what was said."""
    ending, write = FORMATS[kind]
    with tempfile.TemporaryDirectory() as data:
        application = build(Settings(data_dir=Path(data)))
        try:
            files = [
                IncomingFile.from_bytes(f"{name}.{ending}", write(name, rows))
                for name, rows in TABLES.items()
            ]
            for report in application.ingestion.ingest(files):
                if report.error is not None:
                    print(report.name, report.reason, file=sys.stderr)
            for question, expected in QUESTIONS:
                yield question, *_grade(application, question, expected)
        finally:
            application.stop()


def _grade(application: Application, question: str, expected: str | float) -> tuple[str, str]:
    """A figure or a cell that leads is a claim; else one of three buttons, or what is shown."""
    message = _answer(application, question)
    lead = message.content.strip().splitlines()[0] if message.content.strip() else ""
    is_claim = bool(message.answer and message.answer.result) or '"' in lead
    if is_claim:
        return ("computed" if _holds(lead, expected) else "wrong"), lead
    for offer in message.answer.offers[:3] if message.answer else ():
        found = _answer(application, offer.label)
        if _holds(found.content.strip().splitlines()[0], expected):
            return "offered", offer.label
    return ("shown" if _holds(message.content, expected) else "missed"), message.content[:200]


def _answer(application: Application, question: str) -> Message:
    *_, end = application.assistant.ask(application.store.create("bench"), question)
    assert isinstance(end, Finished)
    return end.message


def _holds(text: str, expected: str | float) -> bool:
    from rag.language.amounts import parse_figure

    if isinstance(expected, str):
        return any(name in text for name in expected.split("|"))
    words = text.replace("*", " ").replace('"', " ").replace("[", " [").split()
    figures = (parse_figure(word.strip(".:;"), decimal=sign) for word in words for sign in ".,")
    return any(
        abs(float(figure.value) - expected) <= NEAR * max(1.0, abs(expected))
        for figure in figures
        if figure
    )


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", action="append", choices=FORMATS)
    parser.add_argument("--told", action="store_true", help="print what became of each")
    given = parser.parse_args()
    for kind in given.format or FORMATS:
        counts: Counter[str] = Counter()
        for question, grade, text in graded(kind):
            counts[grade] += 1
            if given.told and grade != "computed":
                print(f"{grade:9}{question}: {' '.join(text.split())[:200]}")
        grades = ", ".join(
            f"{counts[grade]} {grade}"
            for grade in ("computed", "offered", "shown", "missed", "wrong")
        )
        print(f"| {kind} | {grades} |", flush=True)


if __name__ == "__main__":
    main()
