"""Documents in a folder of this machine, and conversations about them."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rag.citations.verdicts import CheckedText, check_text, cite_text
from rag.documents.files import IncomingFile, collect
from rag.errors import RagError
from rag.records import (
    DEFAULT_COLLECTION,
    Citation,
    Document,
    Event,
    Failed,
    Finished,
    Hit,
    Judged,
    Message,
    Source,
    Text,
    Unsourced,
)
from rag.runtime.progress import Progress, Stage
from rag.seams import Embedder, SessionHandle
from rag.settings import load_settings
from rag.wiring.application import build


@dataclass(frozen=True, slots=True)
class Ingested:
    """The results of an ingest by file name; `failed` gives the reasons."""

    added: tuple[str, ...]
    unchanged: tuple[str, ...]
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its citations; `str()` is the text."""

    text: str
    citations: tuple[Citation, ...]  # each number at each place, with its verdict
    sources: Mapping[int, Source]  # the cited sources, by number
    unsourced: tuple[Unsourced, ...]  # statements in no source: `text[start:end]`
    declined: bool  # the documents do not answer the question
    notices: tuple[str, ...]
    session_id: str

    def __str__(self) -> str:
        return self.text


class Library:
    """A library and its conversations, all of it kept in one folder.

    Settings are those of `settings.json` and the environment; `settings` (sections or top-level
    values, such as `{"llm": {"base_url": …, "model": …}}`) win over both. Only one process can use
    the folder: a running server is used over its API instead. `embedder` replaces the embedding
    model of the settings.

    Raises GroundnoteError, as all methods do; the message says what to do.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        settings: Mapping[str, Any] | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        wanted = {**(settings or {}), "data_dir": Path(folder).absolute()}
        self._application = build(load_settings(**wanted), embedder=embedder)
        self._owner = self._application.settings.sessions.default_owner

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the library and release the folder; it cannot be used afterwards."""
        self._application.stop()

    # ── Documents ────────────────────────────────────────────────────────────────────────────

    def ingest(self, *paths: str | Path) -> Ingested:
        """Add files and folders; unchanged files cost nothing, a changed one replaces itself.

        A file that cannot be read stops no other. Raises if a path does not exist.
        """
        return _ended(self._progress(collect([Path(path) for path in paths])))

    def add(self, name: str, data: bytes) -> Ingested:
        """Add one file by its bytes; the end of its name determines its format."""
        return _ended(self._progress([IncomingFile.from_bytes(name, data)]))

    def documents(self) -> list[Document]:
        """Return all documents, by name."""
        return self._application.documents.documents(self._readable())

    def remove(self, document_id: str) -> None:
        """Delete a document; its cited passages can still be opened where they are cited."""
        self._application.ingestion.delete(document_id)

    def search(self, query: str, *, limit: int = 8) -> list[Hit]:
        """Return the passages nearest to some words, best first."""
        return self._application.retriever.search(query, self._readable(), limit=limit)

    # ── Conversations ────────────────────────────────────────────────────────────────────────

    def ask(self, question: str) -> Answer:
        """Answer one question, in a conversation of its own."""
        return self.chat().ask(question)

    def chat(self, session_id: str | None = None) -> "Chat":
        """Open a conversation, new or continued: each number keeps its source to the end."""
        store = self._application.store
        if session_id is None:
            return Chat(self, store.create(self._owner))
        return Chat(self, store.open(session_id, owner=self._owner))

    def check(self, text: str) -> CheckedText:
        """Return the text with citations of this library's passages, and verdicts."""
        return cite_text(
            text, self._application.retriever, self._readable(), embedder=self._application.embedder
        )

    # ── For asyncio ──────────────────────────────────────────────────────────────────────────

    async def aingest(self, *paths: str | Path) -> Ingested:
        """Call `ingest` in a thread."""
        return await asyncio.to_thread(self.ingest, *paths)

    async def asearch(self, query: str, *, limit: int = 8) -> list[Hit]:
        """Call `search` in a thread."""
        return await asyncio.to_thread(self.search, query, limit=limit)

    async def aask(self, question: str) -> Answer:
        """Call `ask` in a thread."""
        return await asyncio.to_thread(self.ask, question)

    # ── Parts ────────────────────────────────────────────────────────────────────────────────

    def _readable(self) -> Any:
        return self._application.collections.readable(self._owner)

    def _progress(self, files: Sequence[IncomingFile]) -> Iterator[Progress]:
        ingestion = self._application.ingestion
        ingestion.synchronise()
        placed = [replace(file, collection_id=DEFAULT_COLLECTION) for file in files]
        return ingestion.ingest(placed)

    def _events(self, session: SessionHandle, question: str) -> Iterator[Event]:
        yield from self._application.assistant.ask(session, question)
        self._application.jobs.run_waiting()

    def _checked(self, session: SessionHandle, text: str) -> CheckedText:
        sources = {source.number: source for source in session.sources()}
        return check_text(text, sources, embedder=self._application.embedder)


class Chat:
    """One conversation; `library.chat(chat.session_id)` continues it, in any process."""

    def __init__(self, library: Library, session: SessionHandle) -> None:
        self._library = library
        self._session = session

    @property
    def session_id(self) -> str:
        return self._session.id

    def ask(self, question: str) -> Answer:
        """Answer a question in the context of the conversation."""
        return self._answer([*self._library._events(self._session, question)])

    def stream(self, question: str) -> Iterator[str]:
        """Yield the text of the answer as it is written; `messages()` then has all of it."""
        for event in self._library._events(self._session, question):
            if isinstance(event, Text):
                yield event.text
            elif isinstance(event, Failed):
                raise _raised(event)

    async def aask(self, question: str) -> Answer:
        """Call `ask` in a thread."""
        return await asyncio.to_thread(self.ask, question)

    async def astream(self, question: str) -> AsyncIterator[str]:
        """Run `stream`, each step in a thread."""
        words = self.stream(question)
        while (text := await asyncio.to_thread(next, words, None)) is not None:
            yield text

    def messages(self) -> list[Message]:
        """Return all messages."""
        return self._session.messages()

    def sources(self) -> dict[int, Source]:
        """Return all numbered sources of this conversation."""
        return {source.number: source for source in self._session.sources()}

    def check(self, text: str) -> CheckedText:
        """Return a verdict for each number of any text, from this conversation's sources."""
        return self._library._checked(self._session, text)

    def _answer(self, events: Sequence[Event]) -> Answer:
        last = next(event for event in reversed(events) if isinstance(event, Finished | Failed))
        if isinstance(last, Failed):
            raise _raised(last)
        judged = [event.message for event in events if isinstance(event, Judged)]
        message = judged[-1] if judged else last.message
        said = message.answer
        return Answer(
            text=message.content,
            citations=said.citations if said else (),
            sources={source.number: source for source in last.sources},
            unsourced=said.unsourced if said else (),
            declined=said.declined if said else False,
            notices=tuple(notice.text for notice in said.notices) if said else (),
            session_id=self.session_id,
        )


def _raised(failed: Failed) -> RagError:
    return failed.error if isinstance(failed.error, RagError) else RagError(failed.message)


def _ended(reports: Iterator[Progress]) -> Ingested:
    ended = [report for report in reports if report.is_final]
    return Ingested(
        added=_names(each for each in ended if each.stage not in (Stage.FAILED, Stage.UNCHANGED)),
        unchanged=_names(each for each in ended if each.stage is Stage.UNCHANGED),
        failed={each.name: each.reason for each in ended if each.stage is Stage.FAILED},
    )


def _names(reports: Iterator[Progress]) -> tuple[str, ...]:
    return tuple(report.name for report in reports)
