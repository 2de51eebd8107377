"""Financial statements in PDF: each figure under its period."""

import io

import pytest

from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load

LABELS, COLUMNS = 60, (330, 400, 470, 540)  # where labels begin and figures end


def statement(rows, headers=(), *, above=(), columns=COLUMNS, below=()) -> bytes:
    """A page: lines above, header words as (centre, lift over the rows, text), rows, lines below.

    A row is its label, set in by its leading blanks, and its figures, aligned to the right.
    """
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    y = 800
    for line in above:
        canvas.setFont("Helvetica", 10)
        canvas.drawString(LABELS, y, line)
        y -= 12
    y -= 60
    canvas.setFont("Helvetica-Bold", 8)
    for centre, lift, text in headers:
        canvas.drawCentredString(centre, y + lift, text)
    canvas.setFont("Helvetica", 9)
    for label, *figures in rows:
        indent = 3 * (len(label) - len(label.lstrip()))
        canvas.drawString(LABELS + indent, y, label.strip())
        for right, figure in zip(columns, figures, strict=False):
            if figure.startswith("$"):  # the sign stands at the column's left edge
                canvas.drawString(right - 45, y, "$")
                figure = figure[1:]
            canvas.drawRightString(right, y, figure)
        y -= 12
    for line in below:
        y -= 12
        canvas.drawString(LABELS, y, line)
    canvas.save()
    return out.getvalue()


PERIODS = [
    (340, 34, "Three Months Ended"),
    (480, 34, "Nine Months Ended"),
    *((right - 20, 24, "June 29,") for right in COLUMNS),
    *((right - 20, 15, year) for right, year in zip(COLUMNS, ("2024", "2023") * 2, strict=True)),
]


def document(data: bytes):
    return load("report.pdf", data, limits=LoadLimits())


def rows_of(data: bytes) -> list[list[str]]:
    lines = "\n".join(section.text for section in document(data).sections).split("\n")
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if "|" in line]


def test_stacked_headers_stand_over_each_figure():
    data = statement(
        [
            ("Net sales:",),
            ("  Hardware", "$1,200", "$1,100", "$3,600", "$3,300"),
            ("  Service", "300", "250", "900", "800"),
            ("Cost of sales:",),
            ("  Hardware", "700", "650", "2,100", "2,000"),
            ("Net income (loss)", "$(15)", "$12", "$—", "$90"),
        ],
        PERIODS,
        above=["STATEMENTS OF OPERATIONS", "(In millions, except per share amounts)"],
    )

    header, _rule, *rows = rows_of(data)
    assert header == [
        "(In millions, except per share amounts)",
        "Three Months Ended June 29, 2024",
        "Three Months Ended June 29, 2023",
        "Nine Months Ended June 29, 2024",
        "Nine Months Ended June 29, 2023",
    ]
    assert ["Net sales: Hardware", "$1,200", "$1,100", "$3,600", "$3,300"] in rows
    assert ["Cost of sales: Hardware", "700", "650", "2,100", "2,000"] in rows
    assert ["Service", "300", "250", "900", "800"] in rows
    assert ["Net income (loss)", "$(15)", "$12", "$—", "$90"] in rows


def test_every_small_table_of_a_long_statement_has_the_header():
    rows = [(f"Item number {at}", "1,000", "2,000", "3,000", "4,000") for at in range(30)]

    found = rows_of(statement(rows, PERIODS))
    headers = [row for row in found if "Three Months Ended June 29, 2024" in row]
    assert len(headers) > 3
    assert sum(row[0].startswith("Item number") for row in found) == 30


def test_a_label_of_two_lines_is_one():
    data = statement(
        [
            ("Depreciation of property and equipment and capitalised",),
            ("content costs", "10", "20"),
            ("Deferred taxes", "30", "40"),
        ],
        [(310, 15, "2024"), (380, 15, "2023")],
    )

    assert [
        "Depreciation of property and equipment and capitalised content costs",
        "10",
        "20",
    ] in rows_of(data)


def test_without_a_header_no_row_is_taken_for_one():
    data = statement([("Due in 2025", "$100", "$90"), ("Due in 2026", "80", "70")])

    header, _rule, first, _second = rows_of(data)
    assert not any(header)
    assert first == ["Due in 2025", "$100", "$90"]


def test_prose_with_figures_is_no_table():
    lines = [
        f"In 202{at} we sold 1,{at}00 lamps for $ 2,{at}00 each, more than ever." for at in "345"
    ]

    assert rows_of(statement([], above=lines)) == []


def test_a_page_number_below_is_no_row():
    data = statement(
        [("Sales", "10", "20"), ("Cost", "5", "6")],
        [(310, 15, "2024"), (380, 15, "2023")],
        below=["", "", "", "17"],
    )

    assert not any("17" in row for row in rows_of(data))


@pytest.mark.parametrize(
    ("cover", "title"),
    [
        (
            [
                "UNITED STATES SECURITIES AND EXCHANGE COMMISSION",
                "FORM 10-K",
                "For the fiscal year ended June 30, 2024",
                "Northwind Lamps, Inc.",
                "(Exact name of registrant as specified in its charter)",
            ],
            "Northwind Lamps, Inc. – Form 10-K – fiscal year ended June 30, 2024",
        ),
        (
            ["FORM 8-K", "Northwind Lamps, Inc.", "(Exact name of the registrant as specified)"],
            "Northwind Lamps, Inc. – Form 8-K",
        ),
        (["Form 1 is to be filled in by the", "exact name of the product."], "report"),
    ],
)
def test_a_filing_is_titled_by_company_form_and_period(cover, title):
    assert document(statement([], above=cover)).title == title


def page_of(draw) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out)
    canvas.setFont("Helvetica", 9)
    draw(canvas)
    canvas.save()
    return out.getvalue()


COUNTS = [("Year", "Total", "Boys", "Girls")] + [
    (f"{year}", f"{year}1", f"{at}1,20{at}", f"{at}2,30{at}")
    for at, year in enumerate(range(2011, 2016))
]


def test_rows_of_years_written_column_by_column_are_rows():
    def draw(canvas):
        for column in range(4):
            for at, row in enumerate(COUNTS):
                canvas.drawRightString(150 + 60 * column, 700 - 12 * at, row[column])

    header, _rule, *rows = rows_of(page_of(draw))
    assert header == list(COUNTS[0])
    assert rows == [list(row) for row in COUNTS[1:]]


@pytest.mark.parametrize("angle", [90, 270])
def test_a_table_on_a_turned_page_is_read(angle):
    def draw(canvas):
        canvas.translate(300, 400)
        canvas.rotate(angle)
        for at, row in enumerate(COUNTS):
            for column, cell in enumerate(row):
                canvas.drawRightString(60 * column, -12 * at, cell)

    assert ["2013", "20131", "21,202", "22,302"] in rows_of(page_of(draw))


def test_a_column_of_words_stands_between_label_and_figures():
    rows = [("Notes due 2024", "Level 2", "$1,199"), ("Funds", "Level 1", "124")]

    def draw(canvas):
        canvas.drawCentredString(365, 720, "2024")
        canvas.drawCentredString(265, 720, "Category")
        for at, (label, words, figure) in enumerate(rows):
            canvas.drawString(60, 700 - 12 * at, label)
            canvas.drawString(250, 700 - 12 * at, words)
            canvas.drawRightString(380, 700 - 12 * at, figure)

    header, _rule, *found = rows_of(page_of(draw))
    assert header == ["Category", "2024"]  # and nothing above the labels
    assert found == [list(row) for row in rows]


def test_the_mark_of_a_note_is_no_part_of_a_word_and_a_power_is():
    def draw(canvas):
        canvas.drawString(60, 700, "Total revenue")
        canvas.setFont("Helvetica", 5)
        canvas.drawString(60 + canvas.stringWidth("Total revenue", "Helvetica", 9), 703, "3")
        canvas.setFont("Helvetica", 9)
        canvas.drawString(122, 700, "for 12 m")
        canvas.setFont("Helvetica", 5)
        canvas.drawString(122 + canvas.stringWidth("for 12 m", "Helvetica", 9), 703, "2")

    [section] = document(page_of(draw)).sections
    assert section.text == "Total revenue [note 3] for 12 m²"
