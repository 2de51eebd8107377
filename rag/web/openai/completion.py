"""What both protocols of OpenAI share: a conversation is found, asked, answered and known again.

No person asked that: nothing is searched for it, nothing stored, and nothing in it has a number.

It is known by its structure: `metadata.task`; or a request that holds no answer of ours, in whose
last message a conversation is quoted, with what both sides said. Whatever else a client asks by
itself (a title asked after the talk, an emoji) looks like a question, and is one, but with the
model `groundnote-plain`.
"""

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Response, current_app
from pydantic_core import to_jsonable_python

from rag.citations.gate import JsonGate, calls_in_words, markers_in_json
from rag.citations.markers import cited_numbers, find_markers
from rag.citations.register import stored_keys, unwrapped
from rag.errors import RagError, UserError
from rag.llm.openai_compatible import complete
from rag.records import (
    Answer,
    ChatMessage,
    Citation,
    Cited,
    Discarded,
    Event,
    Failed,
    FigureStatus,
    Finished,
    ImportedMessage,
    Judging,
    MessageStatus,
    NoticeKind,
    Role,
    Text,
    ToolCall,
    Usage,
)
from rag.render.gate import Rewritten, sanitise
from rag.seams import AnswerOptions, ModelRequest, OpenTurn, SessionHandle, SessionTranscript
from rag.seams.models import CLIENTS_TASK
from rag.sessions.recognition import (
    ConversationFinder,
    FingerprintTable,
    Recognised,
    SessionMatch,
    calls_key,
    name_key,
    quoted,
    reserve_numbers,
)
from rag.web.access import rights
from rag.web.access.owner import current_owner
from rag.web.access.rights import source_links
from rag.web.api.schemas import CitationModel, FigureModel, SourceModel
from rag.web.api.sse import PING, PING_SECONDS, Frames, data_line, event_stream, when_due
from rag.web.openai.requests import (
    MODEL,
    MODEL_PLAIN,
    NOBODY,
    AskingBody,
    ChatBody,
    ClientRequest,
    conversation_header,
)
from rag.web.request_context import application, default_config
from rag.web.turns import ENDING_SECONDS, RunningTurn, finished, turns

DONE = "data: [DONE]\n\n"  # ends a stream of chat completions


def notices_of(answer: Answer) -> list[str]:
    """What people are told beside an answer, and how many of its statements are warned of."""
    texts = [notice.text for notice in answer.notices]
    warned = len({citation.start for citation in answer.citations if citation.verdict.is_warning})
    if warned:
        are = "statement is" if warned == 1 else "statements are"
        texts.append(f"{warned} {are} not what the cited source says: see `citations`.")
    if answer.unsourced:
        count = len(answer.unsourced)
        are = "statement is" if count == 1 else "statements are"
        texts.append(f"{count} {are} without a source: see `unsourced`.")
    unfound = sum(figure.status is FigureStatus.UNFOUND for figure in answer.figures)
    if unfound:
        do = "figure does" if unfound == 1 else "figures do"
        texts.append(f"{unfound} {do} not stand in the cited sources: see `figures`.")
    return texts + ([answer.judging_failure] if answer.judging_failure else [])


def calls_of(end: Finished) -> tuple[ToolCall, ...]:
    """Those of the client's tools that it is to run now."""
    return end.message.answer.calls if end.message.answer else ()


def answer_text(end: Finished) -> str:
    """What the client is given as the text: JSON where it wanted that."""
    answer = end.message.answer
    if answer is not None and answer.calls:
        return answer.rounds[-1].content
    return answer.given if answer is not None and answer.given else end.message.content


def placed(end: Finished) -> tuple[Citation, ...]:
    """The citations, by their places in what the client is given."""
    answer = end.message.answer
    if answer is None or not answer.given:
        return answer.citations if answer else ()
    cited = sorted(answer.citations, key=lambda citation: citation.start)
    markers = markers_in_json(answer.given)
    if [item.number for item in cited] != [number for number, _, _ in markers]:
        places = {number: (start, end) for number, start, end in reversed(markers)}
        return tuple(_moved(item, places.get(item.number, (0, 0))) for item in cited)
    return tuple(_moved(item, marker[1:]) for item, marker in zip(cited, markers, strict=True))


def _moved(citation: Citation, place: tuple[int, int]) -> Citation:
    return replace(citation, start=place[0], end=place[1])


def is_whole(end: Finished) -> bool:
    """Whether no limit cut the answer."""
    notices = end.message.answer.notices if end.message.answer else ()
    return all(notice.kind is not NoticeKind.CUT for notice in notices)


def counted(end: Finished) -> tuple[int, int]:
    """Tokens read and written, as the model server counted them; zeros when no model was called."""
    usage = end.message.answer.usage if end.message.answer else None
    return (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)


def used(read: int, written: int) -> dict[str, int]:
    """Tokens, as chat completions tell them."""
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def call_items(calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """Calls as chat completions tell them, with what their server wants back."""
    return [
        {
            **call.beside,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]


def head(kind: str, told_id: str, created: int) -> dict[str, Any]:
    """How a chat completion, and each chunk of one, begins."""
    return {"id": f"chatcmpl-{told_id}", "object": kind, "created": created, "model": MODEL}


UrlOf = Callable[[int], str]
FENCE, BLANK_LINE = "```", "\n\n"
# A word joiner before the number: Open WebUI takes a bare `[9]`, in a link too, for the ninth of a
# list of its own, and shows nothing where that is shorter. Whoever reads markers reads past it.
UNSEEN = "\u2060"


def with_links(text: str, url_of: UrlOf) -> Rewritten:
    """Each `[9]` as `[[9]](url)`; in code nothing is a marker, and nothing changes."""
    pieces: list[str] = []
    shifts: list[tuple[int, int]] = []
    position = by = 0
    for marker in find_markers(text):
        links = "".join(f"[[{UNSEEN}{number}]]({url_of(number)})" for number in marker.numbers)
        pieces += [text[position : marker.start], links]
        position = marker.end
        by += len(links) - (marker.end - marker.start)
        shifts.append((marker.end, by))
    return Rewritten("".join(pieces) + text[position:], tuple(shifts))


def marker_links(events: Iterable[Event | None], url_of: UrlOf) -> Iterator[Event | None]:
    """Text is told paragraph by paragraph: only a whole one says what in it is code."""
    pending = ""
    for event in events:
        if isinstance(event, Text):
            ready, pending = _whole(pending + event.text)
        elif isinstance(event, Finished | Failed):
            ready, pending = pending, ""
        else:
            ready = ""
        if ready:
            yield Text(with_links(ready, url_of).text)
        if not isinstance(event, Text):
            yield event


def _whole(text: str) -> tuple[str, str]:
    """The paragraphs that are whole, and the rest."""
    end = text.rfind(BLANK_LINE)
    if end < 0 or text[:end].count(FENCE) % 2:
        return "", text
    end += len(BLANK_LINE)
    return text[:end], text[end:]


UNSTORED_FOR = timedelta(hours=24)
EXTENSION = "groundnote-fingerprints"
BUFFERED_CHARACTERS = 200  # that a model may say before it calls a tool


@dataclass(slots=True)
class AnswerToClient(ABC):
    """One answer; how it is told is the protocol's."""

    session: SessionHandle
    request: ClientRequest
    body: AskingBody
    user: str = ""  # whom the client asks for
    url_of: Callable[[int], str] = field(init=False)  # where a source is read
    created: int = field(default_factory=lambda: int(time.time()))

    @staticmethod
    @abstractmethod
    def chosen_session(body: Any) -> SessionMatch | None:
        """The session that the client names, if it does."""

    @staticmethod
    @abstractmethod
    def refused(problem: dict[str, Any]) -> str:
        """In a stream, before there is an answer."""

    def __post_init__(self) -> None:
        self.url_of = source_links(self.session)

    def rewritten(self, end: Finished) -> Rewritten:
        """The answer's text as this client is told it."""
        text = answer_text(end)
        return with_links(text, self.url_of) if self.wants_links else Rewritten(text)

    @property
    def wants_links(self) -> bool:
        """Not in JSON, which is no Markdown."""
        return self.body.wants_links and not self.body.wants_json

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

    def frames(self, turn: RunningTurn, table: FingerprintTable) -> Frames:
        """As it is written; an error ends it, and so does a client that leaves."""
        streamed = ""
        yield from self.first()
        with self.forgotten_if_broken(turn), turn.stopped_unless_ended():
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
                    yield from self.ending(turn, event)
                    if self.done:
                        yield self.done

    @contextmanager
    def forgotten_if_broken(self, turn: RunningTurn) -> Iterator[None]:
        """A turn that did not come to its end is kept no more than another one."""
        try:
            yield
        finally:
            if self.body.store is False and not isinstance(turn.end(timeout=0), Finished):
                turn.end(timeout=ENDING_SECONDS)
                if turn.index is not None:
                    forget_turn(self.session, turn.index)

    def ending(self, turn: RunningTurn, end: Finished) -> Frames:
        """The end at once, then what a judge said: only who asked for that reads on."""
        yield from self.closing(end)
        judged = yield from self.wait_for_judge(turn, end)
        if judged is not end:
            yield from self.judged(judged)

    def wait_for_judge(self, turn: RunningTurn, end: Finished) -> Generator[str, None, Finished]:
        """The end with a judge's verdicts, for a client that wants to wait for them."""
        if end.message.answer is None or end.message.answer.judging is not Judging.PENDING:
            return end
        until = time.monotonic() + (self.body.wait_for_judge or 0.0)
        judged = end
        while judged is end and (left := until - time.monotonic()) > 0:
            judged = turn.judged(end, timeout=min(left, PING_SECONDS))
            if judged is end and turn.ended_at is not None:
                return end
            if judged is end:
                yield PING
        return judged

    def events(self, turn: RunningTurn) -> Iterator[Event | None]:
        """As this client is told them; None now and then while nothing happens."""
        events = settle_text(turn.follow(ping_seconds=PING_SECONDS))
        return marker_links(events, self.url_of) if self.wants_links else events

    def remember(self, table: FingerprintTable, end: Finished, streamed: str) -> None:
        """Know this answer again, whether the client keeps the streamed or the final text."""
        calls, user = calls_of(end), self.user
        texts = {streamed, end.message.content}
        if calls:  # some clients keep nothing beside them
            texts = {calls_in_words(text, calls) for text in (answer_text(end), "")}
            key = calls_key(self.request.question, (call.id for call in calls))
            table.name(self.session, key, index=end.message.index + 1)
        keys = [key for text in texts for key in stored_keys(user, self.request.question, text)]
        if self.body.store is False:
            forget_turn(self.session, end.message.index)
        table.remember(self.session, end.message.index, keys)

    def extension(self, end: Finished) -> dict[str, Any]:
        """What the protocols have no field for."""
        answer = end.message.answer
        citations = placed(end)
        return {
            "session_id": self.session.id,
            "index": end.message.index,
            "resolved_query": end.message.resolved_query,
            "citations": [CitationModel.of(citation).as_json() for citation in citations],
            "sources": [SourceModel.of(source).as_json() for source in end.sources],
            "unsourced": to_jsonable_python(
                answer.unsourced if answer and not answer.given else ()
            ),
            "figures": [
                FigureModel.of(figure).as_json()
                for figure in (answer.figures if answer and not answer.given else ())
            ],
            "judging": answer.judging if answer else Judging.OFF,
            "notices": notices_of(answer) if answer else [],
            "offers": [offer.label for offer in answer.offers] if answer else [],
        }

    def citations(self, end: Finished) -> list[dict[str, Any]]:
        """As the protocols have them, with links to the pages of their sources."""
        rewritten = self.rewritten(end)
        titles = {source.number: source.document_title for source in end.sources}
        return [
            {
                "start_index": rewritten.place(citation.start),
                "end_index": rewritten.place(citation.end),
                "url": self.url_of(citation.number),
                "title": titles.get(citation.number, ""),
            }
            for citation in placed(end)
            if rewritten.place(citation.end) <= len(rewritten.text)
        ]


def answered(body: AskingBody, request: ClientRequest, protocol: type[AnswerToClient]) -> Response:
    """The answer, or its stream.

    While others are before it, a stream says so in comments, which no client takes for an answer.
    """
    has_model = application().settings.llm.is_configured
    wishes, wanted = body.wishes(has_model=has_model), body.collections()
    if request.rounds and not has_model:
        raise UserError(NOBODY.format(body.messages_field))
    ids = None if wanted is None else rights.chosen(wanted)  # before anything is begun
    table = _fingerprints()

    def begin() -> tuple[RunningTurn, AnswerToClient]:
        session = (
            protocol.chosen_session(body)
            or (_session_by_name(body, request, body.name) if body.name else None)
            or _find_session(body, request)
        )
        is_kept = _keep_or_expire(session, body)
        application().metrics.conversations.labels(session.by.value).inc()
        highest = unwrapped(request.question).highest
        if request.history or highest:
            reserve_numbers(session.handle, request.history, highest)
        if ids is not None and tuple(ids) != session.handle.read().collections:
            session.handle.choose(ids)
        rounds = _rounds(session, request, body.messages_field) if request.rounds else ()
        answer_options = replace(
            wishes,
            rounds=rounds,
            history=None if session.is_certain and is_kept else _history_alone(session, request),
            instructions="\n".join(request.instructions),
            notices=request.notices,
        )
        turn = _begun(session, request, answer_options)
        return turn, protocol(turn.session, replace(request, rounds=rounds), body, body.for_whom)

    def frames() -> Frames:
        turn, answering = begin()
        return answering.frames(turn, table)

    if body.stream:
        waiting = ": waiting, {} before you\n\n".format
        return event_stream(when_due(frames, waiting=waiting, refused=protocol.refused))
    turn, answering = begin()
    with answering.forgotten_if_broken(turn):
        end = finished(turn)
        if body.wait_for_judge:
            end = turn.judged(end, timeout=body.wait_for_judge)
    answering.remember(table, end, end.message.content)
    return Response(json.dumps(answering.whole(end)), mimetype="application/json")


def _session_by_name(body: AskingBody, request: ClientRequest, name: str) -> SessionMatch:
    """The session that the client calls so, however little of it is sent along; made if need be."""
    table, owner, key = _fingerprints(), current_owner(), name_key(name)
    existing = table.session_of_key(owner, key)
    if existing is not None:
        session = application().store.open(existing[0], owner=owner)
        return SessionMatch(session, Recognised.NAMED)
    conversation = _finder(body).find(request.history, is_shared=False)
    if table.name(conversation.handle, key):
        return conversation
    conversation.handle.delete()  # another request with this name was quicker
    return _session_by_name(body, request, name)


def _find_session(body: AskingBody, request: ClientRequest) -> SessionMatch:
    """The session that goes on from what was said before, or a new one."""
    finder, past = _finder(body), request.history
    if request.rounds and request.called and request.question:
        waiting = finder.waiting_for(calls_key(request.question, request.called))
        if waiting is not None:
            return waiting
        past = request.up_to_the_calls()
    return finder.find(past)


def knows(body: AskingBody, past: Sequence[ImportedMessage]) -> bool:
    """Whether an answer in it is one of ours."""
    return any(message.role == Role.ASSISTANT for message in past) and _finder(body).knows(past)


def _finder(body: AskingBody) -> ConversationFinder:
    store, config = application().store, default_config()
    owner, stores = current_owner(), body.store is not False
    return ConversationFinder(store, _fingerprints(), config, owner, body.for_whom, stores)


def _keep_or_expire(conversation: SessionMatch, body: AskingBody) -> bool:
    """Where nothing is to be kept, a conversation of such turns alone goes after a day.

    Returns whether it stays.
    """
    session = conversation.handle
    is_kept = session.read().expires_at is None
    if body.store is False and (conversation.is_new or not is_kept):
        application().store.delete_expired()
        session.expire(datetime.now(UTC) + UNSTORED_FOR)
        return False
    if not is_kept:
        session.expire(None)
    return True


def forget_turn(session: SessionTranscript, index: int) -> None:
    """Take away what was said in a turn; its sources keep their numbers."""
    with suppress(RagError):  # deleted meanwhile
        session.erase(index)


def _history_alone(session: SessionMatch, request: ClientRequest) -> tuple[ImportedMessage, ...]:
    """What may be told of a conversation that may be somebody else's: what the request holds."""
    cited = {n for message in request.history for n in cited_numbers(message.content)}
    registered = {source.number for source in session.handle.sources(sorted(cited))}
    return tuple(quoted(message, registered) for message in request.history)


def _rounds(session: SessionMatch, request: ClientRequest, field: str) -> tuple[ChatMessage, ...]:
    """The calls of this turn so far, with their results. Raises UserError where there is no call.

    What we kept of them is better than what the client sends: their server may want it back whole.
    """
    last = session.handle.recent(1)
    messages = request.since(last[0]) if last else None
    if messages is None and request.rounds[0].role is Role.TOOL:
        call_id = (request.rounds[0].tool_call_id or "")[:60]
        raise UserError(f"{field}: no call {call_id!r} waits for a result in this conversation.")
    return messages or request.rounds


def _goes_on(session: SessionMatch, request: ClientRequest) -> bool:
    """Whether the last answer of a conversation called the tools whose results came now."""
    last = session.handle.recent(1)
    if not last or last[0].role != Role.ASSISTANT:
        return False
    content = request.up_to_the_calls()[-1].content
    return request.since(last[0]) is not None or session.is_new or last[0].content == content


def _asks_again(session: SessionMatch, request: ClientRequest) -> bool:
    """Whether a client that names the chat in a header, and sends all of it, repeats a question."""
    last = session.handle.recent(2) if conversation_header() else ()
    if len(last) < 2:
        return False
    question, answer = last
    is_last = question.content == request.question and question.index == len(request.history)
    return is_last and answer.status is not MessageStatus.PENDING


def _begun(session: SessionMatch, request: ClientRequest, wishes: AnswerOptions) -> RunningTurn:
    """The turn, new or gone on with; a refused question leaves everything as it was."""
    assistant, index = application().assistant, session.handle.read().message_count - 1

    def ask(note: Callable[[OpenTurn], None]) -> Generator[Event, None, None]:
        if request.rounds:
            is_again = _goes_on(session, request)
        else:
            is_again = session.by is Recognised.NAMED and _asks_again(session, request)
        if is_again:
            return assistant.regenerate(session.handle, index, wishes, note=note)
        return assistant.ask(session.handle, request.question, wishes, note=note)

    try:
        return turns().start(session.handle, ask)
    except RagError:
        if session.is_new:
            session.handle.delete()
        elif session.claim:
            _fingerprints().forget(session.handle, session.claim)
        raise


def _fingerprints() -> FingerprintTable:
    """The answers that this application gave to clients."""
    table = current_app.extensions[EXTENSION]
    assert isinstance(table, FingerprintTable)
    return table


def settle_text(events: Iterator[tuple[int, Event | None]]) -> Iterator[Event | None]:
    """The events, text only once it is likely to stay: these clients can take nothing back.

    What is discarded later is followed by a new paragraph; the last chunk holds the whole answer.
    """
    pending, is_settled = "", False
    for _, event in events:
        if isinstance(event, Discarded):
            pending, is_settled = "\n\n" if is_settled else "", False
            continue
        if isinstance(event, Text):
            pending += event.text
        if isinstance(event, Cited | Finished | Failed) or len(pending) > BUFFERED_CHARACTERS:
            is_settled = True
        if pending and is_settled:
            yield Text(pending)
            pending = ""
        if not isinstance(event, Text):
            yield event
        if isinstance(event, Finished | Failed):
            return  # what a judge says afterwards, nobody waits for


TOOLS_TO_CHOOSE = "Available Tools:"  # Open WebUI has some chosen so
NO_MODEL = f"model: no language model is set here, and without one {MODEL_PLAIN!r} says nothing."
NOTHING: tuple[str, tuple[ToolCall, ...], Usage] = ("", (), Usage(0, 0))
TITLE_CHARACTERS = 60
TASK_TOKENS = 1_500  # of a reply, where neither the settings nor the client says so
_FIELD = re.compile(r'\{\s*"(\w+)"\s*:\s*(\[?)')  # of the example that a template gives
# Who speaks: a label with a colon, a heading, a tag.
_SPEAKER = r"^[^\w\n]{{0,8}}(?:{0}[^\w\n]{{0,4}}[:：]|(?<=# ){0}$|(?<=<){0}[\s>])"
_USER_LINE = re.compile(
    _SPEAKER.format("(?:user|human)") + r"\W{0,8}([^\n]+)", re.MULTILINE | re.IGNORECASE
)
_ANSWERED = re.compile(_SPEAKER.format("(?:assistant|ai|bot)"), re.MULTILINE | re.IGNORECASE)
_ROLES = re.compile(r"""\brole["']?\s{0,3}[:=]\s{0,3}["']?(user|assistant)\b""")
_MERGED = re.compile(r'"""\s{1,9}"""')  # answers of several models, one behind the other


def is_task(body: AskingBody, request: ClientRequest, *, is_named: bool = False) -> bool:
    """Whether a client asks by itself. Raises UserError where nobody could answer."""
    if body.model == MODEL_PLAIN:
        if not application().settings.llm.is_configured:
            raise UserError(NO_MODEL)
        return True
    if body.metadata is not None and (body.metadata.model_extra or {}).get("task"):
        return True
    chooses = any(instruction.startswith(TOOLS_TO_CHOOSE) for instruction in request.instructions)
    if request.rounds or not (chooses or _quotes_a_talk(request.question)):
        return False
    named = is_named or (body.metadata is not None and body.metadata.session)
    return not (named or knows(body, request.history))


def _quotes_a_talk(text: str) -> bool:
    """Whether both sides of a conversation speak in a text."""
    if _USER_LINE.search(text) and _ANSWERED.search(text):
        return True
    return set(_ROLES.findall(text)) == {"user", "assistant"} or bool(_MERGED.search(text))


def done(body: ChatBody, request: ClientRequest) -> Response:
    """Its answer as a chat completion, or as the stream of one."""
    reply = _whole_reply(*reply_to(body, request))
    if body.stream:
        counts = bool(body.stream_options and body.stream_options.include_usage)
        return event_stream(_frames(reply, counts=counts))
    return Response(json.dumps(reply), mimetype="application/json")


def reply_to(body: AskingBody, request: ClientRequest) -> tuple[str, tuple[ToolCall, ...], Usage]:
    """What the model makes of it, or what stands for nothing where there is none."""
    text, calls, usage = _by_model(body, request)
    if not (text or calls):
        text = empty_answer("\n".join([*request.instructions, request.question]))
    return text, calls, usage


def empty_answer(prompt: str) -> str:
    """The form that a task wants, without anything in it; a title is how the person began."""
    match = _USER_LINE.search(prompt)
    title = " ".join(match[1].split())[:TITLE_CHARACTERS] if match else ""
    wanted = _FIELD.search(prompt)
    if wanted is None:
        return title
    name = wanted[1]
    empty: object = [] if wanted[2] else (title if name == "title" else "")
    return json.dumps({name: empty}, ensure_ascii=False)


def _by_model(
    body: AskingBody, client_request: ClientRequest
) -> tuple[str, tuple[ToolCall, ...], Usage]:
    """What it says without any source; nothing where there is no model, or where it fails."""
    settings = application().settings.llm
    model = application().model if settings.is_configured else None
    if model is None:
        return NOTHING
    wishes = body.wishes(has_model=True)
    instructions = [(Role.SYSTEM, text) for text in client_request.instructions]
    instructions += [(Role(message.role), message.content) for message in client_request.history]
    instructions.append((Role.USER, client_request.question))
    request = ModelRequest(
        tuple(ChatMessage(role, text) for role, text in instructions),
        max_tokens=min(filter(None, (settings.max_tokens, wishes.max_tokens)), default=TASK_TOKENS),
        temperature=wishes.temperature,
        stop=wishes.stop,
        passed_on=wishes.passed_on,
        patience=CLIENTS_TASK,
        thinks=False,
    )
    try:
        reply = complete(model, request)
        text = _without_numbers(reply.text)
    except RagError:  # nobody waits for it
        return NOTHING
    return text, reply.tool_calls, reply.usage or NOTHING[2]


def _without_numbers(text: str) -> str:
    """The answer; JSON that is none, or breaks off, is no answer."""
    gate = JsonGate(lambda _number: False)
    passed = gate.feed(text) + gate.finish()
    if passed.startswith("{"):
        try:
            json.loads(passed)
        except ValueError:
            return ""
        return passed
    return sanitise(passed)


def _whole_reply(text: str, calls: tuple[ToolCall, ...], usage: Usage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if calls:
        message["tool_calls"] = call_items(calls)
    end = "tool_calls" if calls else "stop"
    return {
        **_task_head("chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": end}],
        "usage": used(usage.prompt_tokens, usage.completion_tokens),
    }


def _frames(values: dict[str, Any], *, counts: bool) -> Iterator[str]:
    """At once: it is short."""
    (choice,) = values["choices"]
    delta = choice["message"]
    for place, call in enumerate(delta.get("tool_calls", ())):
        call["index"] = place
    for part, end in ((delta, None), ({}, choice["finish_reason"])):
        piece: dict[str, Any] = {"index": 0, "delta": part, "finish_reason": end}
        yield data_line({**_task_head("chat.completion.chunk"), "choices": [piece]})
    if counts:
        began = _task_head("chat.completion.chunk")
        yield data_line({**began, "choices": [], "usage": values["usage"]})
    yield DONE


def _task_head(kind: str) -> dict[str, Any]:
    now = int(time.time())
    return head(kind, f"task-{now}", now)
