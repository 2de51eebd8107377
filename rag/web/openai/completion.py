"""What both OpenAI protocols share: find a session, ask, answer, and recognise the answer later.

Some requests are tasks of the client and no question of a person: for these nothing is searched,
nothing is stored, and the reply has no numbers.

A task is recognised by its structure: `metadata.task`; or a request without an answer of this
server, whose last message quotes a conversation with both sides. Any other task of a client (a
title asked after the conversation, an emoji) looks like a question and is answered as one, except
with the model `groundnote-plain`.
"""

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

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
from rag.web.api.sse import PING, PING_SECONDS, Frames, event_stream, when_due
from rag.web.openai.requests import (
    MODEL_PLAIN,
    NOBODY,
    AskingBody,
    ClientRequest,
    conversation_header,
)
from rag.web.request_context import application, default_config
from rag.web.turns import ENDING_SECONDS, RunningTurn, finished, turns


def notices_of(answer: Answer) -> list[str]:
    """Return the notices beside an answer, and how many of its statements have warnings."""
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
    """Return the calls of the client's tools that the client is to run now."""
    return end.message.answer.calls if end.message.answer else ()


def answer_text(end: Finished) -> str:
    """Return the text for the client: JSON if the client wanted JSON."""
    answer = end.message.answer
    if answer is not None and answer.calls:
        return answer.rounds[-1].content
    return answer.given if answer is not None and answer.given else end.message.content


def placed(end: Finished) -> tuple[Citation, ...]:
    """Return the citations, by their places in the text for the client."""
    answer = end.message.answer
    if answer is None or not answer.given:
        return answer.citations if answer else ()
    cited = sorted(answer.citations, key=lambda citation: citation.start)
    markers = markers_in_json(answer.given)
    places = [(start, end) for _, start, end in markers]
    if [item.number for item in cited] != [number for number, _, _ in markers]:
        first = {number: (start, end) for number, start, end in reversed(markers)}
        places = [first.get(item.number, (0, 0)) for item in cited]
    return tuple(
        replace(item, start=start, end=end)
        for item, (start, end) in zip(cited, places, strict=True)
    )


def is_whole(end: Finished) -> bool:
    """Return whether no limit cut the answer."""
    notices = end.message.answer.notices if end.message.answer else ()
    return all(notice.kind is not NoticeKind.CUT for notice in notices)


def counted(end: Finished) -> tuple[int, int]:
    """Return tokens read and written, as the model server counted; zeros without a model."""
    usage = end.message.answer.usage if end.message.answer else None
    return (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)


UrlOf = Callable[[int], str]
FENCE, BLANK_LINE = "```", "\n\n"
# A word joiner before the number: Open WebUI reads a bare `[9]`, in a link too, as the ninth of a
# list of its own, and shows nothing where that is shorter. Readers of markers ignore it.
UNSEEN = "\u2060"


def with_links(text: str, url_of: UrlOf) -> Rewritten:
    """Replace each `[9]` by `[[9]](url)`, except in code, where nothing is a marker."""
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
    """Yield the events with links; text comes in whole paragraphs, which show what is code."""
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
    """Return the complete paragraphs, and the rest."""
    end = text.rfind(BLANK_LINE)
    if end < 0 or text[:end].count(FENCE) % 2:
        return "", text
    end += len(BLANK_LINE)
    return text[:end], text[end:]


UNSTORED_FOR = timedelta(hours=24)
EXTENSION = "groundnote-fingerprints"
BUFFERED_CHARACTERS = 200  # that a model may write before it calls a tool


@dataclass(slots=True)
class AnswerToClient(ABC):
    """One answer; each protocol writes it in its own form."""

    session: SessionHandle
    request: ClientRequest
    body: AskingBody
    user: str = ""  # the client's user
    url_of: UrlOf = field(init=False)  # the address of a source, by number
    created: int = field(default_factory=lambda: int(time.time()))
    done: ClassVar[str] = ""  # the last frame

    @staticmethod
    @abstractmethod
    def chosen_session(body: Any) -> SessionMatch | None:
        """Return the session that the client names, or None."""

    @staticmethod
    @abstractmethod
    def refused(problem: dict[str, Any]) -> str:
        """Return a problem in the form of a stream, before there is an answer."""

    def __post_init__(self) -> None:
        self.url_of = source_links(self.session)

    def rewritten(self, end: Finished) -> Rewritten:
        """Return the answer's text in the form for this client."""
        text = answer_text(end)
        return with_links(text, self.url_of) if self.body.wants_links else Rewritten(text)

    @abstractmethod
    def whole(self, end: Finished) -> dict[str, Any]:
        """Return the answer in one piece."""

    def first(self) -> Iterable[str]:
        """Return the frames before any event."""
        return ()

    def begun(self, index: int) -> Iterable[str]:
        """Return the frames once the answer's index is known; called before each event."""
        return ()

    @abstractmethod
    def delta(self, text: str) -> str: ...

    @abstractmethod
    def failed(self, event: Failed) -> str: ...

    @abstractmethod
    def closing(self, end: Finished) -> Iterable[str]: ...

    def judged(self, end: Finished) -> Iterable[str]:
        """Return the frames for the judge's verdicts."""
        return ()

    def frames(self, turn: RunningTurn, table: FingerprintTable) -> Frames:
        """Yield the frames as the answer is written; an error, or a client that leaves, ends it."""
        streamed = ""
        yield from self.first()
        with self.forgotten_if_broken(turn), turn.stopped_unless_ended():
            settled = settle_text(turn.follow(ping_seconds=PING_SECONDS))
            wants_links = self.body.wants_links
            for event in marker_links(settled, self.url_of) if wants_links else settled:
                if event is None:  # nothing happened for a while
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
        """Erase a turn that did not reach its end, if the client wants nothing stored."""
        try:
            yield
        finally:
            if self.body.store is False and not isinstance(turn.end(timeout=0), Finished):
                turn.end(timeout=ENDING_SECONDS)
                if turn.index is not None:
                    forget_turn(self.session, turn.index)

    def ending(self, turn: RunningTurn, end: Finished) -> Frames:
        """Yield the end at once, then the verdicts of a judge if the client waits for them."""
        yield from self.closing(end)
        judged = yield from self.wait_for_judge(turn, end)
        if judged is not end:
            yield from self.judged(judged)

    def wait_for_judge(self, turn: RunningTurn, end: Finished) -> Generator[str, None, Finished]:
        """Return the end with the judge's verdicts, for a client that waits for them."""
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

    def remember(self, table: FingerprintTable, end: Finished, streamed: str) -> None:
        """Store fingerprints of the answer, whether the client keeps the streamed or final text."""
        calls, user = calls_of(end), self.user
        texts = {streamed, end.message.content}
        if calls:  # some clients keep no text beside calls
            texts = {calls_in_words(text, calls) for text in (answer_text(end), "")}
            key = calls_key(self.request.question, (call.id for call in calls))
            table.name(self.session, key, index=end.message.index + 1)
        keys = [key for text in texts for key in stored_keys(user, self.request.question, text)]
        if self.body.store is False:
            forget_turn(self.session, end.message.index)
        table.remember(self.session, end.message.index, keys)

    def extension(self, end: Finished) -> dict[str, Any]:
        """Return the fields that the protocols do not have."""
        answer = end.message.answer or Answer("")
        is_text = not answer.given  # the places are those of a text, not of JSON
        return {
            "session_id": self.session.id,
            "index": end.message.index,
            "resolved_query": end.message.resolved_query,
            "citations": [CitationModel.of(citation).as_json() for citation in placed(end)],
            "sources": [SourceModel.of(source).as_json() for source in end.sources],
            "unsourced": to_jsonable_python(answer.unsourced if is_text else ()),
            "figures": [
                FigureModel.of(figure).as_json() for figure in (answer.figures if is_text else ())
            ],
            "judging": answer.judging,
            "notices": notices_of(answer),
            "offers": [offer.label for offer in answer.offers],
        }

    def citations(self, end: Finished) -> list[dict[str, Any]]:
        """Return the citations in the protocols' form, with links to their sources."""
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
    """Return the answer, or its stream.

    While others wait before it, a stream says so in comments, which no client reads as an answer.
    """
    has_model = application().settings.llm.is_configured
    wishes, wanted = body.wishes(has_model=has_model), body.collections()
    if request.rounds and not has_model:
        raise UserError(NOBODY.format(body.messages_field))
    ids = None if wanted is None else rights.chosen(wanted)  # refuses before anything is begun
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
    """Return the session that the client names so, created if needed.

    It is found however little of the conversation is sent along.
    """
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
    """Return the session that the sent history continues, or a new one."""
    finder, past = _finder(body), request.history
    if request.rounds and request.called and request.question:
        waiting = finder.waiting_for(calls_key(request.question, request.called))
        if waiting is not None:
            return waiting
        past = request.up_to_the_calls()
    return finder.find(past)


def knows(body: AskingBody, past: Sequence[ImportedMessage]) -> bool:
    """Return whether an answer in the history came from this server."""
    return any(message.role == Role.ASSISTANT for message in past) and _finder(body).knows(past)


def _finder(body: AskingBody) -> ConversationFinder:
    store, config = application().store, default_config()
    owner, stores = current_owner(), body.store is not False
    return ConversationFinder(store, _fingerprints(), config, owner, body.for_whom, stores)


def _keep_or_expire(conversation: SessionMatch, body: AskingBody) -> bool:
    """Let a session expire after a day if nothing in it is to be stored.

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
    """Erase a turn; its sources keep their numbers."""
    with suppress(RagError):  # deleted in the meantime
        session.erase(index)


def _history_alone(session: SessionMatch, request: ClientRequest) -> tuple[ImportedMessage, ...]:
    """Return the request's own history, for a session that may be another user's."""
    cited = {n for message in request.history for n in cited_numbers(message.content)}
    registered = {source.number for source in session.handle.sources(sorted(cited))}
    return tuple(quoted(message, registered) for message in request.history)


def _rounds(session: SessionMatch, request: ClientRequest, field: str) -> tuple[ChatMessage, ...]:
    """Return the calls of this turn so far, with results. Raises UserError if there is no call.

    Stored calls are preferred to those of the client: the model's server may need them complete.
    """
    last = session.handle.recent(1)
    messages = request.since(last[0]) if last else None
    if messages is None and request.rounds[0].role is Role.TOOL:
        call_id = (request.rounds[0].tool_call_id or "")[:60]
        raise UserError(f"{field}: no call {call_id!r} waits for a result in this conversation.")
    return messages or request.rounds


def _goes_on(session: SessionMatch, request: ClientRequest) -> bool:
    """Return whether the last answer called the tools whose results are sent now."""
    last = session.handle.recent(1)
    if not last or last[0].role != Role.ASSISTANT:
        return False
    content = request.up_to_the_calls()[-1].content
    return request.since(last[0]) is not None or session.is_new or last[0].content == content


def _asks_again(session: SessionMatch, request: ClientRequest) -> bool:
    """Return whether a client with a header for the chat, and all of it, repeats a question."""
    last = session.handle.recent(2) if conversation_header() else ()
    if len(last) < 2:
        return False
    question, answer = last
    is_last = question.content == request.question and question.index == len(request.history)
    return is_last and answer.status is not MessageStatus.PENDING


def _begun(session: SessionMatch, request: ClientRequest, wishes: AnswerOptions) -> RunningTurn:
    """Start the turn, new or continued; a refused question changes nothing."""
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
    table: FingerprintTable = current_app.extensions[EXTENSION]
    return table


def settle_text(events: Iterator[tuple[int, Event | None]]) -> Iterator[Event | None]:
    """Yield the events, but text only once it is likely to stay: clients cannot take it back.

    After text that is discarded later, a new paragraph follows; the last chunk has the whole
    answer.
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
            return  # a judge's verdicts are not waited for


TOOLS_TO_CHOOSE = "Available Tools:"  # Open WebUI's prompt to choose tools
NO_MODEL = f"model: no language model is set here, and without one {MODEL_PLAIN!r} says nothing."
NOTHING: tuple[str, tuple[ToolCall, ...], Usage] = ("", (), Usage(0, 0))
TITLE_CHARACTERS = 60
TASK_TOKENS = 1_500  # of a reply, unless the settings or the client limit it
_FIELD = re.compile(r'\{\s*"(\w+)"\s*:\s*(\[?)')  # in the example of a prompt template
# The name of a speaker: a label with a colon, a heading, a tag.
_SPEAKER = r"^[^\w\n]{{0,8}}(?:{0}[^\w\n]{{0,4}}[:：]|(?<=# ){0}$|(?<=<){0}[\s>])"
_USER_LINE = re.compile(
    _SPEAKER.format("(?:user|human)") + r"\W{0,8}([^\n]+)", re.MULTILINE | re.IGNORECASE
)
_ANSWERED = re.compile(_SPEAKER.format("(?:assistant|ai|bot)"), re.MULTILINE | re.IGNORECASE)
_ROLES = re.compile(r"""\brole["']?\s{0,3}[:=]\s{0,3}["']?(user|assistant)\b""")
_MERGED = re.compile(r'"""\s{1,9}"""')  # answers of several models in sequence


def is_task(body: AskingBody, request: ClientRequest, *, is_named: bool = False) -> bool:
    """Return whether this is a task of the client. Raises UserError if no model could do it."""
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
    if _USER_LINE.search(text) and _ANSWERED.search(text):
        return True
    return set(_ROLES.findall(text)) == {"user", "assistant"} or bool(_MERGED.search(text))


def reply_to(body: AskingBody, request: ClientRequest) -> tuple[str, tuple[ToolCall, ...], Usage]:
    """Return the model's reply, or an empty one in the wanted form."""
    text, calls, usage = _by_model(body, request)
    if not (text or calls):
        text = empty_answer("\n".join([*request.instructions, request.question]))
    return text, calls, usage


def empty_answer(prompt: str) -> str:
    """Return an empty reply in the form that a task wants; a title is the first question."""
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
    """Return the model's reply without any source; NOTHING without a model or if it fails."""
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
    except RagError:  # a task may remain without a reply
        return NOTHING
    return text, reply.tool_calls, reply.usage or NOTHING[2]


def _without_numbers(text: str) -> str:
    """Return the reply without markers; "" for JSON that is invalid or incomplete."""
    gate = JsonGate(lambda _number: False)
    passed = gate.feed(text) + gate.finish()
    if passed.startswith("{"):
        try:
            json.loads(passed)
        except ValueError:
            return ""
        return passed
    return sanitise(passed)
