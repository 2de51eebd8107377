"""Ligatures that a PDF writes with one character are read as their letters."""

import zlib

import pytest

from rag.documents.limits import LoadLimits
from rag.documents.readers.pdf.reader import Ligatures
from rag.documents.readers.registry import load

DIFFERENCES = b"/Differences [30 /f_f /f_i]"


def pdf(content: bytes) -> bytes:
    """One page in one font, whose codes 30 and 31 are ligatures."""
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R"
        b" /Resources << /Font << /F 4 0 R >> >> >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica"
        b" /Encoding << /Type /Encoding /BaseEncoding /WinAnsiEncoding " + DIFFERENCES + b" >> >>",
        b"<< /Length %d >> stream\n%s\nendstream" % (len(content), content),
    )
    body, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj %s endobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF"
    size = len(objects) + 1
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + end % (size, len(body))


def shown(*lines: str) -> bytes:
    drawn = "".join(f"({line}) Tj 0 -40 Td " for line in lines)
    return b"BT /F 12 Tf 50 700 Td " + drawn.encode("latin-1") + b"ET"


def test_words_are_whole_at_their_beginning_in_their_middle_and_at_their_end():
    data = pdf(shown("\x1frst choose an in\x1fll", "Then save the \x1fle and turn it o\x1e"))

    text = "\n".join(each.text for each in load("a.pdf", data, limits=LoadLimits()).sections)

    assert "first choose an infill" in text
    assert "Then save the file and turn it off" in text


def packed(part: bytes) -> bytes:
    stream = zlib.compress(part)
    return b"7 0 obj << /Type /ObjStm /N 1 /First 4 /Filter /FlateDecode >> stream\r\n" + stream


@pytest.mark.parametrize(
    "data", [DIFFERENCES, packed(DIFFERENCES), b"/ObjStm" + packed(DIFFERENCES)]
)
def test_fonts_are_found_wherever_they_stand(data):
    assert Ligatures(data).spell("in\x1fll o\x1e") == "infill off"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("the \x0crst e\x0bect of She\x0eeld", "the first effect of Sheffield"),
        ("an in\ruence", "an influence"),
        ("\x0c + 2 \x0b", "\x0c + 2 \x0b"),  # a sign of mathematics
        ("a line\r\n", "a line\r\n"),
        ("the \uf761\uf772\uf770\uf761 of \uf731\uf739\uf736\uf738", "the ARPA of 1968"),
    ],
)
def test_without_names_they_are_those_of_tex_and_adobe(written, read):
    assert Ligatures(b"").spell(written) == read


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"/Differences [31 /A_acute.1 /x]",
        b"/Differences [31 /f_i] /Differences [31 /f_l]",  # fonts that do not agree
        b"/Differences [31 /fi",
        b"/ObjStm stream\nnothing packed",
        packed(DIFFERENCES)[:-30],
    ],
)
def test_what_no_font_names_for_sure_stays(data):
    assert Ligatures(data).spell("in\x1fll") == "in\x1fll"


@pytest.mark.parametrize("piece", [b"/Differences [", b"/ObjStm ", b"/ObjStm stream\n", b"/f_i "])
def test_of_hostile_files_no_more_is_read_than_they_hold(piece):
    assert Ligatures(piece * 200_000).spell("\x1f") == "\x1f"
