"""Files of kinds that people keep beside their documents: read as what their content is."""

import io

import duckdb
import pytest

from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load
from rag.errors import Unreadable
from tests.documents.office_files import docx, pdf, pptx
from tests.documents.test_more_formats import open_document, places, zipped

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
POWERPOINT = "application/vnd.openxmlformats-officedocument.presentationml"
MACROS = "application/vnd.ms-word.document.macroEnabled.main+xml"


def read(name, data):
    return load(name, data.encode() if isinstance(data, str) else data, limits=LoadLimits())


def text_of(document):
    return "\n".join(section.text for section in document.sections)


def as_kind(data, before, after):
    """The same package, its main part of another kind."""
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    kinds = "[Content_Types].xml"
    assert before.encode() in parts[kinds]
    return zipped(parts | {kinds: parts[kinds].replace(before.encode(), after.encode())})


class TestPlainText:
    @pytest.mark.parametrize("ending", ["org", "tex", "bib", "ini", "toml", "ics", "vcf", "xyz"])
    def test_of_any_ending_is_read(self, ending):
        document = read(f"a.{ending}", "[lamp]\nhours = 20\n")

        assert "hours = 20" in text_of(document)

    def test_that_is_a_key_is_not(self):
        with pytest.raises(Unreadable, match="a key or a certificate"):
            read("server.pem", "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n")

    def test_that_is_a_page_or_xml_is_read_as_that(self):
        assert read("a.aspx", "<html><p>Lamps</p></html>").media_type == "text/html"
        assert read("a.rss", '<?xml version="1.0"?><rss><a>Lamps</a></rss>').media_type == (
            "application/xml"
        )


class TestXml:
    def test_that_is_a_text_keeps_the_order_of_its_words_and_its_titles(self):
        document = read(
            "a.dita",
            '<?xml version="1.0"?><topic><title>Lamps</title><body>'
            "<p>Press <b>twice</b> to dim.</p><section><title>Cells</title><p>Two.</p></section>"
            "</body></topic>",
        )

        assert "Press twice to dim." in text_of(document)
        assert (document.title, document.sections[-1].heading_path) == ("Lamps", ("Cells",))

    def test_that_is_data_is_told_under_its_keys(self):
        document = read("a.xml", "<lamp><name>Aero</name><hours>20</hours></lamp>")

        assert "hours: 20" in text_of(document)

    def test_that_is_a_drawing_gives_its_words_alone(self):
        drawing = (
            '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0 L9 9"/><text>Lid</text></svg>'
        )

        assert text_of(read("a.svg", drawing)) == "Lid"


class TestMailboxes:
    def test_are_read_mail_by_mail(self):
        box = (
            "From ada@x Mon\nSubject: One\nFrom: ada@x\n\nThe lid.\n\n>From here on.\n\n"
            "From bo@x Tue\nSubject: Two\nFrom: bo@x\n\nThe cells.\n"
        )
        document = read("old.mbox", box)

        assert document.title == "old"
        assert {section.locator for section in document.sections} == {"mail 1", "mail 2"}
        assert "\n\nFrom here on." in text_of(document)

    def test_mails_of_apple_are_read_without_what_stands_around_them(self):
        mail = "Subject: One\nFrom: ada@x\n\nThe lid.\n"
        document = read("1.emlx", f"{len(mail)}\n{mail}<plist>flags</plist>\n")

        assert "The lid." in text_of(document)
        assert "flags" not in text_of(document)


class TestParquet:
    def parquet(self, folder, query):
        path = folder / "lamps.parquet"
        duckdb.execute(f"COPY ({query}) TO '{path}'")
        return read("lamps.parquet", path.read_bytes())

    def test_is_read_as_a_table(self, tmp_path):
        document = self.parquet(tmp_path, "FROM (VALUES ('Aero', 20), ('Nox', 9)) t(lamp, hours)")

        assert places(document)[0][0] == "rows 2–3"
        assert "Nox" in text_of(document)
        assert document.tables[0].typed == (1,)

    def test_of_values_that_python_has_no_type_for_is_read(self, tmp_path):
        document = self.parquet(
            tmp_path,
            "SELECT 'Aero' AS lamp, TIMESTAMPTZ '2025-01-02 03:04:05+00' AS at, [1, 2] AS parts, "
            '{\'a\': 1} AS "x""y", 1.50::DECIMAL(9, 2) AS price, NULL AS note FROM range(3)',
        )

        for shown in ("2025-01-02", "[1, 2]", "{'a': 1}", "1.50"):
            assert shown in text_of(document)

    def test_that_is_cut_off_is_told(self):
        with pytest.raises(Unreadable, match="cut off"):
            read("lamps.parquet", b"PAR1 and no more")


class TestOffice:
    def test_documents_with_macros_and_templates_are_read(self):
        data = docx(lambda document: document.add_paragraph("The lid."))
        for kind in (MACROS, f"{WORD}.template.main+xml"):
            assert text_of(read("a.docm", as_kind(data, f"{WORD}.document.main+xml", kind))) == (
                "The lid."
            )

    def test_shows_are_read(self):
        def build(show):
            slide = show.slides.add_slide(show.slide_layouts[5])
            slide.shapes.title.text = "The lid."

        kinds = (f"{POWERPOINT}.{kind}.main+xml" for kind in ("presentation", "slideshow"))
        show = as_kind(pptx(build), *kinds)

        assert read("a.ppsx", show).title == "The lid."

    def test_a_document_type_of_macros_is_no_attack_and_entities_are(self):
        from tests.documents.office_files import with_part

        whole = open_document("text", "<office:text><text:p>The lid.</text:p></office:text>")
        macros = '<!DOCTYPE script:module PUBLIC "-//OpenOffice.org//DTD" "module.dtd"><a/>'

        assert text_of(read("a.odt", with_part(whole, "Basic/one.xml", macros))) == "The lid."
        with pytest.raises(Unreadable, match="declares a document type or entities"):
            read("a.odt", with_part(whole, "Basic/one.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a/>'))

    def test_flat_open_documents_are_read(self):
        import zipfile

        whole = open_document("text", "<office:text><text:p>The lid.</text:p></office:text>")
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            flat = archive.read("content.xml")

        assert text_of(read("a.fodt", flat)) == "The lid."


def test_a_pdf_whose_list_of_objects_is_wrong_is_read():
    data = pdf([["The lid."]])
    at = data.index(b"xref\n") + len(b"xref\n0 9\n")
    lines = data[at:].split(b"\n")
    broken = data[:at] + b"\n".join(
        b"0000000003" + line[10:] if line.endswith(b" n ") else line for line in lines
    )
    assert broken != data

    assert "The lid." in text_of(read("a.pdf", broken))
