"""An application whose conversations are real and whose answers are scripted."""

import sqlite3
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rag.connectors.registry import SourceRegistry
from rag.connectors.table import SourceTable
from rag.documents.store import SqlDocumentStore
from rag.errors import NotFound, UserError
from rag.llm.discovery import SecretBox
from rag.memory.conversation import ConversationMemory
from rag.records import (
    Answer,
    ChatMessage,
    Citation,
    Cited,
    Document,
    Failed,
    Finished,
    Job,
    JobState,
    Judged,
    Judging,
    MessageStatus,
    Resolution,
    Resolved,
    Role,
    Section,
    Sources,
    Summary,
    SummaryReport,
    Text,
    Usage,
    Verdict,
)
from rag.runtime.metrics import Metrics
from rag.sessions.store import SqlConversationStore
from rag.tables.answers import TableAnswers
from rag.tables.library import TableLibrary
from rag.tables.store import TableFiles, TableStore
from rag.tokens import count_tokens
from rag.wiring.components import open_collections
from tests.canary import seeded
from tests.fakes import HashEmbedder
from tests.made import made_chunk, made_hit
from tests.prepared import migrated
from tests.waiting import LONG

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def hit(number, text):
    more = {"document_id": "document-1", "position": number, "locator": f"§ Setup {number}"}
    chunk = made_chunk(f"chunk-{number}", text, heading_path=("Setup",), **more)
    return replace(made_hit(chunk, relevance=0.9), score=1 / number)


REPORT = SummaryReport(
    citations_required=1,
    citations_kept=1,
    names_required=0,
    names_kept=0,
)


class FakeRetriever:
    def __init__(self):
        self.hits = [hit(1, "The Aero 5 weighs 120 g."), hit(2, "The Aero 5 Pro weighs 140 g.")]
        self.asked = []

    def search(self, query, readable, *, before=None, limit=8, filters=None):
        self.asked.append((query, limit))
        return self.hits[:limit]


@dataclass
class FakeAssistant:
    """Answers "It weighs 120 g [1]." unless told otherwise."""

    retriever: FakeRetriever
    deltas: tuple[str, ...] = ("It weighs ", "120 g [1]", ".")
    final: str | None = None  # the stored text, where attribution changed it
    failure: Exception | None = None
    surprise: Exception | None = None
    usage: Usage | None = field(default_factory=lambda: Usage(12, 5))
    hung_up: int = 0
    asked: list[str] = field(default_factory=list)
    wishes: Any = None
    wait: Any = None
    judged: Verdict | None = None  # what a judge says afterwards

    def ask(self, session, question, wishes=None, *, note=lambda turn: None):
        self.wishes = wishes
        if not question.strip():
            raise UserError("The question is empty. Type what you want to know.")
        self.asked.append(question)
        return self._turn(session, lambda: session.begin(question), note)

    def regenerate(self, session, index, wishes=None, *, note=lambda turn: None):
        turn = session.begin_again(index)
        return self._turn(session, lambda: turn, note)

    def _turn(self, session, begin, note):
        turn = begin()
        note(turn)
        try:
            yield Resolved(turn.question.content, False, "unchanged")
            sources = session.register(self.retriever.hits)
            yield Sources(tuple(sources))
            for delta in self.deltas:
                if self.wait is not None:
                    self.wait.wait(LONG)
                yield Text(delta)
            if self.surprise is not None:
                raise self.surprise
            if self.failure is not None:
                session.finish(replace(turn.answer, status=MessageStatus.FAILED))
                yield Failed(self.failure, str(self.failure), turn.answer.index)
                return
            yield Cited(1)
        except GeneratorExit:
            self.hung_up += 1
            raise
        text = self.final or "".join(self.deltas)
        start = text.find("[1]")
        citations = (Citation(1, start, start + 3, Verdict.SUPPORTED),) if start >= 0 else ()
        judging = Judging.PENDING if self.judged else Judging.OFF
        answer = Answer(text, citations, usage=self.usage, model="scripted", judging=judging)
        done = replace(
            turn.answer,
            content=text,
            status=MessageStatus.COMPLETE,
            answer=answer,
            resolved_query=turn.question.content,
        )
        stored = session.finish(done)
        yield Finished(stored, tuple(sources[:1]), {"messages": 2, "tokens": 40})
        if self.judged:
            told = tuple(replace(c, verdict=self.judged, judged_by="wise-1") for c in citations)
            answer = replace(answer, citations=told, judging=Judging.DONE)
            yield Judged(session.judge(replace(stored, answer=answer)))

    def search(self, session, question, limit=8, *, filters=None, readable=None):
        found = self.resolve(session, question)
        return found, self.retriever.search(found.query, readable, limit=limit)

    def resolve(self, session, question):
        past = session.recent(2)
        query = f"{past[0].content} {question}" if past else question
        return Resolution(query, bool(past), "rules")

    def context(self, session):
        messages = [ChatMessage(Role(m.role), m.content) for m in session.messages()]
        return {"messages": messages, "stats": {"messages": len(messages), "tokens": 7}}

    def compact(self, session):
        return REPORT if session.messages() else None

    def summarize(self, session, start, end):
        if end > session.read().message_count:
            raise UserError(f"The session has no message {end - 1}.")
        summary = Summary(start, end, "It weighs 120 g [1].", (1,), (), REPORT, tokens=8)
        session.add_requested_summary(summary, epoch=session.epoch())
        return summary

    def correct_summary(self, session, line, text):
        summary = ConversationMemory(count_tokens).correct(session, line, text)
        if summary is None:
            raise NotFound("The summary has no such line any more.")
        return summary


class FakeJobs:
    def __init__(self):
        self.submitted = {}
        self.known = {}
        self.add("compact", "a-session")

    def add(self, kind, subject):
        job = Job(f"job-{len(self.known)}", kind, subject, JobState.QUEUED, NOW, NOW)
        self.known[job.id] = job
        return job

    def submit_ingest(self, name, data, *, owner="", collection_id="1"):
        self.submitted[name] = data
        return self.add("ingest", name)

    def job(self, job_id):
        if job_id not in self.known:
            raise NotFound(f"There is no job {job_id!r}.")
        return self.known[job_id]

    def jobs(self):
        return [job for job in self.known.values() if job.kind == "ingest"]


@cache
def library():
    """A database that holds it, made once and copied."""
    chunks = [found.chunk for found in FakeRetriever().hits]
    section = Section(0, ("Setup",), "§ Setup", "\n".join(chunk.text for chunk in chunks))
    digest = sha256(b"").hexdigest()
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    with TemporaryDirectory() as folder:
        engine = migrated(Path(folder) / "library.db")
        for number, name in enumerate(("manual.md", "prices.csv"), start=1):
            own = chunks if number == 1 else []
            document = Document(
                f"document-{number}", name, name.title(), "text/plain", digest, 10, len(own), NOW
            )
            SqlDocumentStore(engine).replace(document, [section], own)
        with engine.connect() as connection:
            connection.connection.driver_connection.backup(copy)
        engine.dispose()
    return copy


class FakeApplication:
    def __init__(self, settings, engine):
        self.settings = seeded(settings)
        self.pickable_models = settings.llm.pickable
        self.engine = engine
        self.last_checks, self.tried = {}, threading.Event()
        self.store = SqlConversationStore(engine)
        self.documents = SqlDocumentStore(engine)
        self.collections = open_collections(settings, engine)
        self.ingestion = self.documents
        folder = Path(str(settings.data_dir)) / "tables"
        self.tables = TableStore(engine, TableFiles(str(folder), folder / "cache"))
        self.table_answers = TableAnswers(TableLibrary(self.tables))
        self.retriever = FakeRetriever()
        self.embedder = HashEmbedder()
        self.assistant = FakeAssistant(self.retriever)
        self.jobs = FakeJobs()
        box = SecretBox(settings.data_dir)
        self.sources = SourceRegistry(
            SourceTable(engine), self.documents, settings.sources, lambda source: None, box
        )
        self.remembered = ConversationMemory(len)
        self.metrics = self.figures = Metrics()
        self.checks = {"database": True, "embedding": True}

    def with_library(self):
        """Two documents, the first with the chunks that the fake retriever finds."""
        with self.engine.connect() as connection:
            library().backup(connection.connection.driver_connection)
        return self

    def ready(self):
        return self.checks

    def can_answer(self, checks):
        return checks["database"]
