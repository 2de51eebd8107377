"""Files that cannot be read, over the API and over the page."""

import io
import json
import zipfile
from io import BytesIO
from uuid import uuid4

import pytest

from tests.acceptance.conftest import MANUAL
from tests.documents import office_files


def encrypted_pdf():
    return office_files.pdf([["Secret weight: 120 g"]], encrypt="password")


def truncated_pdf():
    whole = office_files.pdf([[f"Line {n} of the manual" for n in range(40)]])
    return whole[: len(whole) // 3]


def docx_with(body, declaration=""):
    """A document whose XML is ours."""
    whole = office_files.docx(lambda document: document.add_paragraph("Weight"))
    out = io.BytesIO()
    with zipfile.ZipFile(BytesIO(whole)) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "word/document.xml":
                content = content.replace(b"Weight", body)
                end = content.index(b"?>") + 2
                content = content[:end] + declaration.encode() + content[end:]
            target.writestr(name, content)
    return out.getvalue()


def zip_bomb():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("[Content_Types].xml", "<Types/>")
        target.writestr("word/document.xml", b"<a>" + b" " * 20_000_000)
    return out.getvalue()


UNREADABLE = [
    pytest.param("a.pdf", encrypted_pdf, id="encrypted PDF"),
    pytest.param("a.pdf", lambda: b"%PDF-1.7\n1 0 obj\n<<", id="truncated PDF"),
    pytest.param("a.pdf", lambda: b"", id="PDF of zero bytes"),
    pytest.param("a.md", lambda: b"", id="text of zero bytes"),
    pytest.param("a.docx", lambda: b"PK\x03\x04broken", id="broken DOCX"),
    pytest.param("a.docx", zip_bomb, id="zip bomb"),
    pytest.param("a.xlsx", lambda: MANUAL, id="text named XLSX"),
    pytest.param("a.exe", lambda: b"MZ\x90\x00" + bytes(range(256)) * 20, id="a program"),
    pytest.param("a.csv", lambda: b"\x00\x01\x02" * 400, id="CSV of nothing readable"),
]


@pytest.mark.parametrize(("name", "made"), UNREADABLE)
def test_an_unreadable_file_fails_its_job_with_name_and_reason_and_the_next_is_read(
    shared, name, made
):
    library = shared
    before = library.get("/documents")["documents"]

    job = library.upload(name, made())

    assert job["state"] == "failed", job
    assert name in job["error"]
    assert len(job["error"]) > len(name) + 15
    assert "Traceback" not in job["error"]
    assert str(library.folder) not in json.dumps(job)
    assert library.get("/documents")["documents"] == before
    assert job["error"].split(":")[-1].strip()[:20] in shown(library)
    following = library.upload("next.md", f"# Nova\n\nNumber {uuid4()}.\n".encode())
    assert following["state"] == "done"


def shown(library):
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser(library.page("/documents").get_data(as_text=True)).body.text()


def test_a_truncated_pdf_is_read_in_part_or_refused_with_the_reason(library):
    job = library.upload("cut.pdf", truncated_pdf())

    assert job["state"] in ("done", "failed")
    assert job["state"] == "done" or "cut.pdf" in job["error"]


def test_external_entities_of_a_docx_are_never_opened(library, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("zanzibar")
    declaration = f'<!DOCTYPE a [<!ENTITY x SYSTEM "file://{secret}">]>'

    library.upload("entity.docx", docx_with(b"Weight &x; is here", declaration))

    found = library.post("/search", json={"query": "zanzibar weight", "limit": 50}).get_json()
    assert "zanzibar" not in json.dumps(found["hits"])


def test_scripts_of_html_are_never_quoted(library):
    page = b"<h1>Nova</h1><script>var zanzibar = 1</script><p>The Nova weighs 80 g.</p>"

    assert library.upload("nova.html", page)["state"] == "done"

    hits = library.post("/search", json={"query": "How heavy is Nova?"}).get_json()["hits"]
    assert any("80 g" in hit["text"] for hit in hits)
    assert "zanzibar" not in json.dumps(hits)
