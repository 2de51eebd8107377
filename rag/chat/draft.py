"""An answer while it is being written, passed through the gate piece by piece."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import regex

from rag.chat.prompts import says_declined
from rag.citations.gate import JsonGate
from rag.citations.grammar import FOREIGN
from rag.citations.markers import find_markers, marker_text
from rag.memory.context import State
from rag.records import (
    Answer,
    Card,
    Cited,
    Discarded,
    Event,
    Message,
    MessageStatus,
    Notice,
    NoticeKind,
    Offer,
    Resolution,
    Source,
    Text,
    ToolCall,
    ToolUsed,
    Usage,
)
from rag.render.gate import AnswerGate, sanitise
from rag.runtime.metrics import Span
from rag.seams import (
    AnswerOptions,
    ChatModel,
    ModelDelta,
    ModelRequest,
    SessionHandle,
    TokenCounter,
    Writer,
    WriteRequest,
)
from rag.seams.models import Deadline

LOOKED_AT_EVERY = 200  # characters, for repetitions
CUT = "The model reached the length it is allowed; its answer ends in the middle."
LOOPED = "The model began to repeat itself and was stopped."


def through_gate(
    deltas: Iterable[ModelDelta | ToolUsed], registered: "RegisteredNumbers", draft: "Draft"
) -> Iterator[Event]:
    """Yield the writer's text as events; end a text that only repeats itself."""
    gate, watched = draft.gate(registered), 0
    for delta in deltas:
        if isinstance(delta, ToolUsed):
            yield delta
            continue
        if delta.discard:
            gate, watched = draft.gate(registered), 0
            yield draft.discard("The model had not begun its answer yet.")
        draft.note(delta)
        yield from draft.take(gate.feed(delta.text), gate.cited)
        if len(draft.text) >= watched + LOOKED_AT_EVERY and not draft.wishes.wants_json:
            watched = len(draft.text)
            end = end_before_loop(draft.text)
            if end is not None:  # the repetition is cut down to one
                draft.text = draft.text[:end]
                draft.notices.append(Notice(NoticeKind.LOOP, LOOPED))
                return
    yield from draft.take(gate.finish(), gate.cited)
    if isinstance(gate, AnswerGate):
        draft.text = gate.settle(draft.text)


def composed(
    deltas: Iterable[ModelDelta | ToolUsed], registered: "RegisteredNumbers", draft: "Draft"
) -> Iterator[Event]:
    """Yield text that code put together as events; unchanged if the gate has nothing to do.

    That is where each citation is spelled `[n]` and its number given, and no Markdown is acted on.
    """
    pieces = [delta for delta in deltas if isinstance(delta, ModelDelta)]
    text = "".join(piece.text for piece in pieces)
    markers = find_markers(text)
    is_ours = all(text[m.start : m.end] == marker_text(m.numbers) for m in markers)
    is_ours = is_ours and all(registered(number) for m in markers for number in m.numbers)
    is_ours = is_ours and not FOREIGN.search(text)
    if draft.wishes.wants_json or not is_ours or sanitise(text) != text:
        yield from through_gate(pieces, registered, draft)
        return
    end = 0
    for piece in pieces:
        draft.note(piece)
        end += len(piece.text)
        whole = (n for marker in markers if marker.end <= end for n in marker.numbers)
        yield from draft.take(piece.text, list(dict.fromkeys(whole)))


class RegisteredNumbers:
    """Tells whether a session has given a number; asks the register once for each number."""

    def __init__(self, session: SessionHandle, seen: Sequence[Source] = ()) -> None:
        self._session = session
        self._registered = {source.number for source in seen}
        self._refused = 0

    def __call__(self, number: int) -> bool:
        if number not in self._registered and number != self._refused:
            sources = self._session.sources([number])
            self._registered.update(source.number for source in sources)
            self._refused = 0 if sources else number
        return number in self._registered


@dataclass(slots=True)
class Draft:
    """An answer while it is being written."""

    answer: Message
    preface: str = ""  # said by us, before the writer's text
    text: str = ""
    cited: list[int] = field(default_factory=list)
    resolution: Resolution | None = None
    usage: Usage | None = None
    card: Card | None = None
    calls: tuple[ToolCall, ...] = ()  # of the tools of whoever asks
    writer: Writer | None = None
    wishes: AnswerOptions = field(default_factory=AnswerOptions)
    notices: list[Notice] = field(default_factory=list)
    offers: tuple[Offer, ...] = ()
    cells: tuple[Source, ...] = ()  # of tables, looked up by the words of the question
    state: State | None = None  # of the session, as the turn found it
    stats: Mapping[str, Any] = field(default_factory=dict)
    deadline: Deadline = field(default_factory=Deadline)
    remains: str = ""  # of what a model wrote before it broke off, where the passages answer
    has_ended: bool = False
    trace: Span = field(default_factory=Span)

    def gate(self, registered: RegisteredNumbers) -> AnswerGate | JsonGate:
        """The gate that the writer's text passes."""
        return JsonGate(registered) if self.wishes.wants_json else AnswerGate(registered)

    def take(self, text: str, cited: Sequence[int]) -> Iterator[Event]:
        """Add text that passed the gate; yield it, and each number cited for the first time."""
        if text:
            if not self.text:
                self.trace.happened("first words")
            self.text += text
            yield Text(text)
        for number in cited[len(self.cited) :]:
            self.cited.append(number)
            yield Cited(number)

    @property
    def model(self) -> str:
        return self.writer.name if self.writer else ""

    def note(self, delta: ModelDelta) -> None:
        """Keep what a delta brings beside its text: usage, card, tool calls."""
        self.usage = delta.usage or self.usage
        self.card = delta.card or self.card
        self.calls += delta.tool_calls
        if delta.cut:
            self.notices.append(Notice(NoticeKind.CUT, CUT))

    def discard(self, reason: str) -> Discarded:
        """Drop the text and begin anew."""
        self.text, self.cited, self.calls = "", [], ()
        return Discarded(reason)

    def complete(self, answer: Answer) -> Message:
        return self._ended(MessageStatus.COMPLETE, content=answer.text, answer=answer)

    def broken(self, reason: str) -> Message:
        """Return the unfinished answer: interrupted if any text was written, else failed."""
        status = MessageStatus.INTERRUPTED if self.text else MessageStatus.FAILED
        return self._ended(status, content=self.preface + self.text, error=reason)

    def _ended(self, status: MessageStatus, **fields: Any) -> Message:
        self.trace.note(status=status.value)
        message = replace(self.answer, status=status, **fields)
        if self.resolution is None:
            return message
        query, is_followup = self.resolution.query, self.resolution.is_followup
        return replace(message, resolved_query=query, is_followup=is_followup)


WATCHED = 6_000  # characters at the end of a text
MOST_WORDS = 240  # of what is repeated
LEAST_TIMES = 4
LEAST_CHARACTERS = 240  # of the repetitions together
LONGEST_WORD = 60  # characters; what is longer is read letter by letter
_FILLS = frozenset("|-=_.·:+ ")  # a table's empty cells, rules and leaders may be long
_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{So}"
# Where words are not set apart, and in what is too long to be a word, each character is one.
_WORD = regex.compile(
    rf"(?P<number>^[ \t]*\d{{1,4}}[.)](?=\s))"
    rf"|(?<=[\s{_SCRIPTS}]|^)[^\s{_SCRIPTS}]{{1,{LONGEST_WORD}}}+(?=[\s{_SCRIPTS}]|$)|\S",
    regex.MULTILINE,
)


def end_before_loop(text: str) -> int | None:
    """Return where to end a text whose last words repeat again and again; None if they do not.

    What is repeated stays once. Numbers of a list that goes on counting are no difference.
    """
    start = max(0, len(text) - WATCHED)
    matches = list(_WORD.finditer(text[start:]))
    words = ["1." if word["number"] else word[0] for word in matches]
    for period in range(1, min(MOST_WORDS, len(words) // LEAST_TIMES) + 1):
        if words[-period:] != words[-2 * period : -period]:
            continue
        if _FILLS.issuperset("".join(words[-period:])):
            continue
        first = len(words) - period  # where the words that repeat with this period begin
        while first > 0 and words[first - 1] == words[first - 1 + period]:
            first -= 1
        looped = len(text) - start - matches[first].start()
        times = (len(words) - first) // period
        if times >= LEAST_TIMES and looped >= LEAST_CHARACTERS:
            return start + matches[first + period - 1].end()
    return None


def cut_at_stop(
    deltas: Iterable[ModelDelta], wishes: AnswerOptions, *, count: TokenCounter | None = None
) -> Iterator[ModelDelta]:
    """Yield the answer up to the first stop text, even where deltas split it.

    With `count` also within the tokens that are wanted, for what no model counts.
    """
    sent = waiting = ""
    for delta in deltas:
        if delta.discard:
            sent = waiting = ""
        waiting += delta.text
        end = min((waiting.find(stop) for stop in wishes.stop if stop in waiting), default=None)
        beginnings = (stop[:length] for stop in wishes.stop for length in range(1, len(stop)))
        begun = (len(beginning) for beginning in beginnings if waiting.endswith(beginning))
        ready = waiting[: len(waiting) - max(begun, default=0) if end is None else end]
        waiting = waiting[len(ready) :]
        fits = ready
        if count is not None and wishes.max_tokens is not None:
            fits = _fitting(sent, ready, wishes.max_tokens, count)
        sent += fits
        yield replace(delta, text=fits)
        if len(fits) < len(ready):
            yield ModelDelta(cut=True)
            return
        if end is not None:
            return
    if waiting:
        yield ModelDelta(text=waiting)


def _fitting(before: str, text: str, most: int, count: TokenCounter) -> str:
    """Return so many words of a text as fit behind what stands before it."""
    if count(before + text) <= most:
        return text
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    if not before and ends:
        ends = [*range(1, ends[0]), *ends]  # something is said, be it half a word
    return next((text[:end] for end in reversed(ends) if count(before + text[:end]) <= most), "")


class ModelWriter:
    """Passes the assembled context to a model; the caller checks its text."""

    reads_context = True

    def __init__(self, model: ChatModel, *, temperature: float | None = None) -> None:
        self._model = model
        self._temperature = temperature
        self.name = model.name

    def write(self, request: WriteRequest) -> Iterator[ModelDelta]:
        wishes = request.wishes
        reply = self._model.stream(
            ModelRequest(
                messages=request.messages,
                max_tokens=min(request.max_tokens, wishes.max_tokens or request.max_tokens),
                temperature=self._temperature if wishes.temperature is None else wishes.temperature,
                stop=wishes.stop,
                tools=request.tools,
                passed_on=wishes.passed_on,
                deadline=request.deadline,
            )
        )
        yield from cut_at_stop(reply, wishes)  # some servers know no stop texts

    def declined(self, text: str) -> bool:
        return says_declined(text)
