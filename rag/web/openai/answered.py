"""What both protocols of OpenAI share: a conversation is found, asked, answered and known again."""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from flask import Response, current_app, request
from pydantic_core import to_jsonable_python

from rag.errors import UserError
from rag.records import (
    Answer,
    Cited,
    Discarded,
    Event,
    Failed,
    Finished,
    Judging,
    NoticeKind,
    Role,
    Text,
)
from rag.seams import SessionHandle, Wishes
from rag.web.access import rights
from rag.web.access.owner import current_owner
from rag.web.api.responses import CitationModel, SourceModel
from rag.web.api.sse import PING, PING_SECONDS, Frames, event_stream, finished, when_due
from rag.web.current import application, default_config
from rag.web.openai.linked import Linked, in_links, linked
from rag.web.openai.requests import Asked, AskingBody
from rag.web.openai.transcripts import FoundSession, SessionFinder, TranscriptTable, chain, link
from rag.web.turns import Turn, turns

EXTENSION = "groundnote-transcripts"
JUDGE_SECONDS = 15.0  # that a stream stays open for a judge, unless the client says otherwise
HELD_CHARACTERS = 200  # that a model may say before it calls a tool


@dataclass(slots=True)
class Answering(ABC):
    """One answer; how it is told is the protocol's."""

    session: SessionHandle
    asked: Asked
    body: AskingBody
    base_url: str = field(default_factory=lambda: request.host_url)
    created: int = field(default_factory=lambda: int(time.time()))

    @staticmethod
    @abstractmethod
    def named(body: Any) -> FoundSession | None:
        """The session that the client names, if it does."""

    @staticmethod
    @abstractmethod
    def refused(problem: dict[str, Any]) -> str:
        """In a stream, before there is an answer."""

    def url_of(self, number: int) -> str:
        """The page of a source."""
        return f"{self.base_url}sessions/{self.session.id}/sources/{number}"

    def told(self, end: Finished) -> Linked:
        """The answer's text as this client is told it."""
        text = end.message.content
        return linked(text, self.url_of) if self.body.wants_links else Linked(text, ())

    @property
    def is_known_by_messages(self) -> bool:
        """Else the client names the session each time."""
        return not self.body.name

    @abstractmethod
    def whole(self, end: Finished) -> dict[str, Any]:
        """At once."""

    def first(self) -> Iterable[str]:
        """Before anything happens."""
        return ()

    def begun(self, index: int) -> Iterable[str]:
        """Once it is known where the answer will stand; asked before each event."""
        return ()

    @abstractmethod
    def delta(self, text: str) -> str: ...

    @abstractmethod
    def failed(self, event: Failed) -> str: ...

    @abstractmethod
    def closing(self, end: Finished) -> Iterable[str]: ...

    def judged(self, end: Finished) -> Iterable[str]:
        """What a judge said of it afterwards."""
        return ()

    @property
    def done(self) -> str:
        """The very last."""
        return ""

    def frames(self, turn: Turn, table: TranscriptTable) -> Frames:
        """As it is written; an error ends it, and so does a client that leaves."""
        streamed = ""
        yield from self.first()
        with turn.stopped_unless_ended():
            for event in self.events(turn):
                if event is None:
                    yield PING
                    continue
                if turn.index is not None:
                    yield from self.begun(turn.index)
                if isinstance(event, Text):
                    streamed += event.text
                    yield self.delta(event.text)
                elif isinstance(event, Failed):
                    yield self.failed(event)
                elif isinstance(event, Finished):
                    self.remember(table, event, streamed)
                    yield from self.closing(event)
                    yield from self._judged(turn, event)
                    if self.done:
                        yield self.done

    def _judged(self, turn: Turn, end: Finished) -> Frames:
        """What a judge says of it, if it says so soon: the text is there, nobody waits for that."""
        if end.message.answer is None or end.message.answer.judging is not Judging.PENDING:
            return
        until = time.monotonic() + self.body.seconds_for_judge(JUDGE_SECONDS)
        judged = end
        while judged is end and (left := until - time.monotonic()) > 0:
            judged = turn.judged(end, timeout=min(left, PING_SECONDS))
            if judged is end and turn.ended_at is not None:
                return
            if judged is end:
                yield PING
        if judged is not end:
            yield from self.judged(judged)

    def events(self, turn: Turn) -> Iterator[Event | None]:
        """As this client is told them; None now and then while nothing happens."""
        events = settled(turn.follow(ping_seconds=PING_SECONDS))
        return in_links(events, self.url_of) if self.body.wants_links else events

    def remember(self, table: TranscriptTable, end: Finished, streamed: str) -> None:
        """Know this conversation again, whether the client keeps the streamed or the final text."""
        if self.is_known_by_messages:
            hashes = chain(self.asked.past)
            question = link(hashes[-1] if hashes else "", Role.USER, self.asked.question)
            texts = {streamed, end.message.content, self.told(end).text}
            answers = {link(question, Role.ASSISTANT, text) for text in texts}
            table.remember(self.session, answers, index=end.message.index + 1)

    def extension(self, end: Finished) -> dict[str, Any]:
        """What the protocols have no field for."""
        answer = end.message.answer
        citations = answer.citations if answer else ()
        return {
            "session_id": self.session.id,
            "index": end.message.index,
            "resolved_query": end.message.resolved_query,
            "citations": [CitationModel.of(citation).as_json() for citation in citations],
            "sources": [SourceModel.of(source).as_json() for source in end.sources],
            "unsourced": to_jsonable_python(answer.unsourced if answer else ()),
            "judging": answer.judging if answer else Judging.OFF,
            "notices": notices_of(answer) if answer else [],
            "offers": [each.label for each in answer.offers] if answer else [],
        }

    def citations(self, end: Finished) -> list[dict[str, Any]]:
        """As the protocols have them, with links to the pages of their sources."""
        answer, told = end.message.answer, self.told(end)
        titles = {source.number: source.document_title for source in end.sources}
        return [
            {
                "start_index": told.place(citation.start),
                "end_index": told.place(citation.end),
                "url": self.url_of(citation.number),
                "title": titles.get(citation.number, ""),
            }
            for citation in (answer.citations if answer else ())
        ]


def answered(body: AskingBody, asked: Asked, protocol: type[Answering]) -> Response:
    """The answer, or its stream.

    While others are before it, a stream says so in comments, which no client takes for an answer.
    """
    wishes, wanted = body.wishes(), body.collections()
    ids = None if wanted is None else rights.chosen(wanted)  # before anything is begun
    table = _transcripts()

    def begin() -> Turn:
        found = protocol.named(body) or _known_as(body.name, asked) or _found_for(asked)
        if ids is not None and tuple(ids) != found.session.read().collections:
            found.session.choose(ids)
        return _begun(found, asked.question, wishes)

    def frames() -> Frames:
        turn = begin()
        return protocol(turn.session, asked, body).frames(turn, table)

    if body.stream:
        waiting = ": waiting, {} before you\n\n".format
        return event_stream(when_due(frames, waiting=waiting, refused=protocol.refused))
    turn = begin()
    answering = protocol(turn.session, asked, body)
    end = turn.judged(finished(turn), timeout=body.seconds_for_judge(0))
    answering.remember(table, end, end.message.content)
    return Response(json.dumps(answering.whole(end)), mimetype="application/json")


def _known_as(name: str, asked: Asked) -> FoundSession | None:
    """The session that the client calls so, however little of it is sent along; made if need be."""
    if not name:
        return None
    table, owner, key = _transcripts(), current_owner(), link("", "name", name)
    for state in table.find(owner, key):
        return FoundSession(application().store.open(state.session_id, owner=owner), is_new=False)
    found = _found_for(asked)
    table.remember(found.session, [key], index=1)
    return found


def _found_for(asked: Asked) -> FoundSession:
    """The session that goes on from what was said before, or a new one."""
    finder = SessionFinder(application().store, _transcripts(), config=default_config())
    return finder.session_for(current_owner(), asked.past, instructions=asked.instructions)


def _begun(found: FoundSession, question: str, wishes: Wishes) -> Turn:
    """The turn; a refused question leaves everything as it was."""
    try:
        assistant = application().assistant
        return turns().start(found.session, lambda noting: assistant.ask(noting, question, wishes))
    except UserError:
        if found.is_new:
            found.session.delete()
        elif found.state is not None:
            _transcripts().give_back(found.session.owner, found.state)
        raise


def _transcripts() -> TranscriptTable:
    """The states of conversations that this application sent out."""
    table = current_app.extensions[EXTENSION]
    assert isinstance(table, TranscriptTable)
    return table


def notices_of(answer: Answer) -> list[str]:
    """What people are told beside an answer, and how many of its statements are warned of."""
    told = [each.text for each in answer.notices]
    warned = len({each.start for each in answer.citations if each.verdict.is_warning})
    if warned:
        are = "statement is" if warned == 1 else "statements are"
        told.append(f"{warned} {are} not what the cited source says: see `citations`.")
    if answer.unsourced:
        count = len(answer.unsourced)
        are = "statement is" if count == 1 else "statements are"
        told.append(f"{count} {are} without a source: see `unsourced`.")
    return told + ([answer.judging_failure] if answer.judging_failure else [])


def is_whole(end: Finished) -> bool:
    """Whether no limit cut the answer."""
    notices = end.message.answer.notices if end.message.answer else ()
    return all(each.kind is not NoticeKind.CUT for each in notices)


def counted(end: Finished) -> tuple[int, int]:
    """Tokens read and written, as the model server counted them; zeros when no model was called."""
    usage = end.message.answer.usage if end.message.answer else None
    return (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)


def settled(events: Iterator[tuple[int, Event | None]]) -> Iterator[Event | None]:
    """The events, text only once it is likely to stay: these clients can take nothing back.

    What is discarded later is followed by a new paragraph; the last chunk holds the whole answer.
    """
    held, is_settled = "", False
    for _, event in events:
        if isinstance(event, Discarded):
            held, is_settled = "\n\n" if is_settled else "", False
            continue
        if isinstance(event, Text):
            held += event.text
        if isinstance(event, Cited | Finished | Failed) or len(held) > HELD_CHARACTERS:
            is_settled = True
        if held and is_settled:
            yield Text(held)
            held = ""
        if not isinstance(event, Text):
            yield event
        if isinstance(event, Finished | Failed):
            return  # what a judge says afterwards, nobody waits for
