"""Better readers reach old libraries: what an older one read is told, and read anew when asked."""

import hashlib
from dataclasses import replace

import pytest

from groundnote import Library
from rag.documents.reports import left_out
from rag.documents.store_rows import StoredDocument
from rag.records import DEFAULT_COLLECTION, EVERYTHING, ReadingReport, SourceState

NEW = b"# Limits\n\nThe count rate may reach 10<sup>6</sup> events per second.\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Its document was read by an older reader, which lost what was raised."""
    with Library(tmp_path_factory.mktemp("library")) as library:
        library.add("limits.md", NEW)
        store = library._application.documents
        (document,) = store.documents(EVERYTHING)
        (section,) = store.sections(document.id, EVERYTHING)
        (chunk,) = store.chunks_of(document.id, EVERYTHING)
        text = section.text.replace("10^6", "106")
        older = replace(document, report=ReadingReport())
        store.replace(older, [replace(section, text=text)], [replace(chunk, id="old", text=text)])
        library._application.ingestion.synchronise()
        yield library


@pytest.fixture(scope="module")
def cited(library):
    """A conversation that cites it."""
    chat = library.chat()
    chat.ask("What may the count rate reach?")
    return chat


def sources_of(chat):
    return chat._session.sources()


def test_what_an_older_reader_read_is_told_read_anew_once_and_its_citations_stay(library, cited):
    application = library._application
    before = sources_of(cited)

    older = application.documents.read_before(EVERYTHING)
    reports = [report for _done, _total, report in application.reread(DEFAULT_COLLECTION)]

    assert [each.name for each in older] == ["limits.md"]
    assert [each.reason for each in reports if each.is_final] == [""]
    assert "10^6 events" in library.search("count rate")[0].passage
    assert application.documents.read_before(EVERYTHING) == []
    assert list(application.reread(DEFAULT_COLLECTION)) == []
    assert before
    assert "106" in before[0].text
    assert [(each.text, each.state) for each in sources_of(cited)] == [
        (each.text, SourceState.CURRENT) for each in before
    ]

    library.add("limits.md", NEW.replace(b"second", b"minute"))

    assert {each.state for each in sources_of(cited)} == {SourceState.CHANGED}


def test_what_is_refused_now_keeps_its_text_and_is_named(library):
    application = library._application
    store = application.documents
    document = store.documents(EVERYTHING)[0]
    section, chunk = (
        store.sections(document.id, EVERYTHING)[0],
        store.chunks_of(document.id, EVERYTHING)[0],
    )
    damaged = b"%PDF-1.4 damaged"
    once = replace(
        document,
        id="once",
        name="once.pdf",
        content_hash=hashlib.sha256(damaged).hexdigest(),
        size_bytes=len(damaged),
        report=ReadingReport(),
    )
    chunk = replace(chunk, id="once-1", document_id="once", text="Readable once.")
    section = replace(section, text="Readable once.")
    store.replace_all([StoredDocument(once, [section], [chunk], original=damaged)])

    reports = [report for _done, _total, report in application.reread(DEFAULT_COLLECTION)]

    assert "once.pdf" in reports[-1].reason
    assert [each.text for each in store.sections("once", EVERYTHING)] == ["Readable once."]
    kept = store.document("once", EVERYTHING)
    assert kept.report.refused == reports[-1].reason
    assert left_out(kept.report)[-1].startswith("what newer readers find, for they refuse the file")
    assert store.read_before(EVERYTHING) == []  # it is not offered to them again
