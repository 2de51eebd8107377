"""Pictures and scans, read by OCR where it is installed."""

import io
import re
from pathlib import Path

import pytest

from rag.documents.limits import LoadLimits
from rag.documents.readers import pictures as ocr
from rag.documents.readers.registry import load
from rag.documents.reports import in_words, left_out
from rag.documents.sandbox import GuardedLoader
from rag.errors import TooLarge, Unreadable

FONT = "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf"
LINES = ("Warranty of the lamp Aero 5", "The lamp weighs 410 g and has 12 watts.",
         "Größe: 35 × 20 cm, Schalter für Rücksetzen")  # fmt: skip


def drawn(lines=LINES, *, size=(1000, 400)):
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(picture)
    for row, line in enumerate(lines):
        draw.text((40, 30 + 70 * row), line, fill="black", font=ImageFont.truetype(FONT, 32))
    return picture


def saved(picture, kind, **options) -> bytes:
    data = io.BytesIO()
    picture.save(data, kind, **options)
    return data.getvalue()


def read(name, data, **limits):
    return load(name, data, limits=LoadLimits(**limits))


def text_of(document):
    return "\n".join(section.text for section in document.sections)


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
@pytest.mark.slow
def test_a_picture_is_read_and_says_by_what(kind):
    document = read(f"label.{kind.lower()}", saved(drawn(), kind, quality=95))

    assert all(line in text_of(document) for line in LINES)
    assert {section.locator for section in document.sections} == {"picture, read by OCR"}
    assert document.report.recognised == 1
    assert "1 read by OCR" in in_words(document.report)


@pytest.mark.slow
def test_a_scan_of_several_pages_keeps_their_numbers():
    pages = [drawn([f"Sheet number {number} of the plan"]) for number in (1, 2, 3)]
    data = saved(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    document = read("plan.tiff", data)

    assert [(each.page, each.locator) for each in document.sections] == [
        (1, "page 1, read by OCR"), (2, "page 2, read by OCR"), (3, "page 3, read by OCR"),
    ]  # fmt: skip


def pdf_of(*pictures, text=""):
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    data = io.BytesIO()
    canvas = Canvas(data, pagesize=(500, 200))
    if text:
        canvas.drawString(40, 100, text)
        canvas.showPage()
    for picture in pictures:
        canvas.drawImage(ImageReader(picture), 0, 0, 500, 200)
        canvas.showPage()
    canvas.save()
    return data.getvalue()


@pytest.mark.slow
def test_pages_of_a_pdf_without_text_are_read_and_the_others_as_always():
    document = read("manual.pdf", pdf_of(drawn(), text="This page was typed."))

    assert [(each.locator, each.page) for each in document.sections] == [
        ("page 1", 1), ("page 2, read by OCR", 2),
    ]  # fmt: skip
    assert "410 g" in document.sections[1].text
    assert left_out(document.report) == []


@pytest.mark.slow
def test_it_is_read_in_the_reading_process_within_its_bounds():
    loader = GuardedLoader(readers=1)
    try:
        assert "410 g" in text_of(loader.load("scan.pdf", pdf_of(drawn())))
        assert "410 g" in text_of(loader.load("a.png", saved(drawn(size=(1_600, 1_600)), "PNG")))
        status = Path(f"/proc/{loader._readers[0]._process.pid}/status").read_text()
        assert int(re.search(r"VmHWM:\s+(\d+)", status)[1]) < 1_280 * 1_024  # KiB
    finally:
        loader.close()


class TestWithoutTheExtra:
    @pytest.fixture(autouse=True)
    def away(self, monkeypatch):
        monkeypatch.setattr(ocr, "find_spec", lambda _name: None)
        monkeypatch.setattr(ocr, "_engine", None)

    def test_a_picture_says_what_would_read_it(self):
        with pytest.raises(Unreadable, match=r"groundnote\[ocr\]"):
            read("label.png", saved(drawn(), "PNG"))

    def test_a_scan_does(self):
        with pytest.raises(Unreadable, match=r"groundnote\[ocr\]"):
            read("scan.pdf", pdf_of(drawn()))

    def test_a_page_that_was_left_out_does(self):
        report = read("manual.pdf", pdf_of(drawn(), text="This page was typed.")).report

        assert report.left_out == (
            "page 2: no text layer; text in pictures is read where groundnote[ocr] is installed",
        )


class TestBounds:
    def test_of_pixels_before_anything_is_unpacked(self):
        from PIL import Image

        bomb = saved(Image.new("1", (20_000, 20_000)), "PNG")
        with pytest.raises(TooLarge, match="400,000,000 pixels"):
            read("bomb.png", bomb)

    @pytest.mark.slow
    def test_of_time_tell_what_was_left_unread(self, monkeypatch):
        monkeypatch.setattr(ocr.OcrClock, "is_over", property(_over_at_the_third_look()))
        pages = [drawn([f"Sheet {number}"]) for number in range(4)]
        document = read("x.tiff", saved(pages[0], "TIFF", save_all=True, append_images=pages[1:]))

        assert document.report.left_out == ("pages 3, 4: reading them by OCR would take too long",)

    @pytest.mark.parametrize(
        "data", [b"\x89PNG\r\n\x1a\n" + b"x" * 50, b"\xff\xd8\xff\xe0", b"GIF89a"]
    )
    def test_of_what_is_damaged(self, data):
        with pytest.raises(Unreadable, match="damaged"):
            read("a.png", data)

    def test_a_blank_picture_has_no_text(self):
        with pytest.raises(Unreadable, match="no text"):
            read("blank.png", saved(drawn([]), "PNG"))


def _over_at_the_third_look():
    looks = []
    return lambda _clock: looks.append(1) or len(looks) > 2
