"""Small files of every format, made on the spot."""

import io
import zipfile


def pdf(pages, *, title="", encrypt=None, bookmarks=()) -> bytes:
    """Each page is a list of (text, size, bold) or of plain strings, from top to bottom."""
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, encrypt=encrypt)
    canvas.setTitle(title)
    for number, lines in enumerate(pages):
        for mark in bookmarks:
            if mark[0] == number:
                canvas.bookmarkPage(mark[2])
                canvas.addOutlineEntry(mark[2], mark[2], level=mark[1])
        y = 800
        for line in lines:
            text, size, bold = line if isinstance(line, tuple) else (line, 10, False)
            y -= size * 1.3
            canvas.setFont("Helvetica-Bold" if bold else "Helvetica", size)
            canvas.drawString(60, y, text)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def saved(document) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def docx(build) -> bytes:
    import docx as library

    document = library.Document()
    build(document)
    return saved(document)


def pptx(build) -> bytes:
    import pptx as library

    presentation = library.Presentation()
    build(presentation)
    return saved(presentation)


def xlsx(sheets) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    return saved(book)


def with_part(data: bytes, part: str, content: bytes) -> bytes:
    """A zipped file with one part added or replaced."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", 8) as new:
        for each in old.namelist():
            if each != part:
                new.writestr(each, old.read(each))
        new.writestr(part, content)
    return out.getvalue()


def pdf_of_flowables(build) -> bytes:
    """Laid out by reportlab: tables with wrapped cells, lists, paragraphs."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import SimpleDocTemplate

    out = io.BytesIO()
    SimpleDocTemplate(out).build(build(getSampleStyleSheet()))
    return out.getvalue()


def pdf_of_drawing(draw) -> bytes:
    """One page, drawn on a canvas of reportlab."""
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out)
    draw(canvas)
    canvas.save()
    return out.getvalue()
