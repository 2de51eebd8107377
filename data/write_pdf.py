"""Write a PDF from blocks, with running titles and page numbers, the same bytes every time."""

from pathlib import Path
from xml.sax.saxutils import escape

from markup import Block
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table

STYLES = getSampleStyleSheet()
BODY = ParagraphStyle("body", parent=STYLES["BodyText"], fontSize=10.5, leading=14.5)
CELL = ParagraphStyle("cell", parent=BODY, fontSize=9, leading=11.5)
ENTRY = ParagraphStyle("entry", parent=BODY, leftIndent=14, bulletIndent=2)
HEADINGS = {
    1: STYLES["Title"],
    2: ParagraphStyle("chapter", parent=STYLES["Heading1"], spaceBefore=16, spaceAfter=6),
    3: ParagraphStyle("part", parent=STYLES["Heading2"], spaceBefore=11, spaceAfter=4),
}
GRID = [
    ("GRID", (0, 0), (-1, -1), 0.4, colors.grey),
    ("BACKGROUND", (0, 0), (-1, 0), colors.whitesmoke),
    ("VALIGN", (0, 0), (-1, -1), "TOP"),
]


def write_pdf(path: Path, title: str, blocks: list[Block]) -> None:
    """Lay the blocks out on A4; `invariant` keeps the time of day out of the file."""

    def furniture(canvas: Canvas, document: SimpleDocTemplate) -> None:
        canvas.setFont("Helvetica", 8)
        if document.page > 1:
            canvas.drawString(20 * mm, A4[1] - 12 * mm, title)
        canvas.drawRightString(A4[0] - 20 * mm, 12 * mm, f"Page {document.page}")

    document = SimpleDocTemplate(
        str(path), pagesize=A4, title=title, author="Nornwick Instruments", invariant=1
    )
    document.build(_flowables(blocks), onFirstPage=furniture, onLaterPages=furniture)


def _flowables(blocks: list[Block]) -> list[Flowable]:
    story: list[Flowable] = []
    number = 0
    for block in blocks:
        number = number + 1 if block.kind == "number" else 0
        story.extend(_flowable(block, number))
    return story


def _flowable(block: Block, number: int) -> list[Flowable]:
    text = escape(block.text)
    if block.kind == "break":
        return [PageBreak()]
    if block.kind == "heading":
        return [Paragraph(text, HEADINGS[block.level])]
    if block.kind == "table":
        return [_table(block.rows), Spacer(1, 8)]
    if block.kind in {"bullet", "number"}:
        mark = f"{number}." if number else "•"
        return [Paragraph(text, ENTRY, bulletText=mark)]
    return [Paragraph(text, BODY)]


def _table(rows: tuple[tuple[str, ...], ...]) -> Table:
    cells = [[Paragraph(escape(cell), CELL) for cell in row] for row in rows]
    return Table(cells, style=GRID, repeatRows=1, colWidths=[450 / len(rows[0])] * len(rows[0]))
