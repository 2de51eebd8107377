"""A fake application over a real library, with a few documents to cite."""

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

from selectolax.lexbor import LexborHTMLParser

from rag.documents.chunking import document_id_for
from rag.documents.reports import READER
from rag.records import (
    EVERYTHING,
    Answer,
    Citation,
    Document,
    MessageStatus,
    ReadingReport,
    Section,
    Unsourced,
    Verdict,
)
from tests.made import made_chunk, made_hit
from tests.web.fake_application import FakeApplication

HTML = {"Accept": "text/html,application/xhtml+xml"}

MANUAL = (
    ("Weight", "Before the weight.\n\nThe Aero 5 weighs 120 g. It is grey.\n\nAfter the weight."),
    ("Wi-Fi <script>alert(1)</script>", "The key is <script>alert('document')</script> on a card."),
    ("How do I reset it?", "| Key | Seconds |\n| --- | --- |\n| RESET | 10 |\n| POWER | 3 |"),
)
CITED = (
    "The Aero 5 weighs 120 g.",
    "The key is <script>alert('document')</script>",
    "| RESET | 10 |",
)


class PagedApplication(FakeApplication):
    """`manual.md` is in the library, and three of its chunks are what every question finds."""

    def __init__(self, settings, engine):
        super().__init__(settings, engine)
        for document in self.documents.documents(EVERYTHING):
            self.documents.delete(document.id)
        self.retriever.hits = self.add("manual.md", "Aero 5 manual", MANUAL, CITED)

    def add(self, name, title, sections, cited):
        """Store a document of one chunk per section; returns the hits."""
        document_id = document_id_for(name)
        stored = [
            Section(index, (heading,), f"§ {heading}", text)
            for index, (heading, text) in enumerate(sections)
        ]
        pairs = enumerate(zip(stored, cited, strict=True))
        chunks = [
            chunk_of(document_id, name, title, at, section, text) for at, (section, text) in pairs
        ]
        digest = sha256(repr(sections).encode()).hexdigest()
        now = datetime.now(UTC)
        document = Document(
            document_id, name, title, "text/markdown", digest, 1400, len(chunks), now,
            report=ReadingReport(reader=READER),
        )  # fmt: skip
        self.documents.replace(document, stored, chunks)
        return [
            made_hit(chunk, section.text, relevance=0.9)
            for chunk, section in zip(chunks, stored, strict=True)
        ]


def chunk_of(document_id, name, title, position, section, text):
    start = section.text.index(text)
    return made_chunk(
        f"chunk-{name}-{position}"[:40],
        text,
        document_id=document_id,
        document_name=name,
        document_title=title,
        section_index=section.index,
        position=position,
        heading_path=section.heading_path,
        locator=section.locator,
        start=start,
        end=start + len(text),
    )


def answer_to(session, question, text, *, flags=(), unsourced=(), **more):
    """Store a turn; `flags` are (marker, verdict, attributed)."""
    turn = session.begin(question)
    citations = tuple(
        Citation(int(marker.strip("[]")), text.index(marker), text.index(marker) + len(marker),
                 verdict, attributed=attributed)
        for marker, verdict, attributed in flags
    )  # fmt: skip
    statements = tuple(
        Unsourced(text.index(each), text.index(each) + len(each)) for each in unsourced
    )
    own = {name: more.pop(name) for name in ("declined", "model") if name in more}
    answer = Answer(text, citations, statements, **own)
    done = replace(turn.answer, content=text, status=MessageStatus.COMPLETE, answer=answer, **more)
    return session.finish(done)


SUPPORTED, UNSUPPORTED = Verdict.SUPPORTED, Verdict.OFF_SUBJECT


class Page:
    """A response as a reader sees it."""

    def __init__(self, response):
        self.status = response.status_code
        self.location = response.headers.get("Location", "")
        self.html = response.get_data(as_text=True)
        self.tree = LexborHTMLParser(self.html)

    def all(self, selector):
        return self.tree.css(selector)

    def text(self, selector="main"):
        found = self.tree.css_first(selector)
        return " ".join(found.text().split()) if found else None

    def link(self, words):
        return next(a.attributes["href"] for a in self.all("a") if words in a.text())
