"""The records of sources, citations and answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """Who wrote a message, in the words of the OpenAI protocol."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of a tool; `arguments` is JSON as the model wrote it, perhaps invalid.

    What its server sent beside the call and its message (`beside`, `beside_message`) is sent back
    with it: signatures and reasoning, without which some servers refuse the result.
    """

    id: str
    name: str
    arguments: str
    beside: Mapping[str, Any] = field(default_factory=dict, hash=False)
    beside_message: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the context, as a model is sent it."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()  # on assistant messages
    tool_call_id: str | None = None  # on tool messages


# ── An answer without a model: what was found, as it stands in the documents ──────────────────────

OPEN = 3  # passages of a card that are shown whole; the others are folded


@dataclass(frozen=True, slots=True)
class QuotedPassage:
    """A passage of a source, quoted; markers in it are made harmless."""

    number: int  # of the source
    heading: str  # the document's title and the headings above it, in one line
    text: str  # reads as a section's text: tables with pipes, entries `- `, code four blanks
    marked: tuple[tuple[int, int], ...] = ()  # two sentences or one row, nearest to the question


@dataclass(frozen=True, slots=True)
class DocumentLink:
    """A document to open."""

    id: str
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Mention:
    """Which documents hold a name that was asked for."""

    name: str
    count: int
    documents: tuple[DocumentLink, ...]  # some of them


@dataclass(frozen=True, slots=True)
class Card:
    """Passages in the order of the search; `Answer.text` says the same in Markdown."""

    passages: tuple[QuotedPassage, ...] = ()
    said: str = ""  # shown first: that these hardly answer; all passages are folded then
    mentions: tuple[Mention, ...] = ()
    lead: str = ""  # the answer: quoted words in a fixed frame, each with its number
    perhaps: str = ""  # where nothing is sure: a sentence with documents that may answer
    denied: tuple[int, ...] = ()  # numbers in `lead` whose sources contradict each other

    @property
    def is_weak(self) -> bool:
        return bool(self.said)

    @property
    def open(self) -> tuple[QuotedPassage, ...]:
        return () if self.is_weak else self.passages[:OPEN]

    @property
    def folded(self) -> tuple[QuotedPassage, ...]:
        return self.passages[len(self.open) :]


# ── Sources, citations and answers ────────────────────────────────────────────────────────────────


class SourceState(StrEnum):
    """What became of a source since it was first shown."""

    CURRENT = "current"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Source:
    """What a session cites under a number, as it was when first shown: a chunk, or a snapshot.

    The id of a snapshot that is no chunk begins with its kind: "table:…".
    """

    number: int  # from 1, never reused; 0 until the session gave one
    chunk_id: str
    document_id: str
    document_name: str
    document_title: str
    locator: str
    heading_path: tuple[str, ...]
    text: str  # the chunk
    passage: str  # the chunk in its neighbourhood: what the model was shown
    content_hash: str  # sha256 of `passage`, hex
    state: SourceState = SourceState.CURRENT

    @property
    def marker(self) -> str:
        return f"[{self.number}]"


class Verdict(StrEnum):
    """The result of comparing a statement with one of the sources it cites."""

    SUPPORTED = "supported"  # the source states it
    COMPUTED = "computed"  # recomputed from figures of its sources, and right
    CONTRADICTED = "contradicted"  # the source states another value for the same
    OFF_SUBJECT = "off_subject"  # the source is about something else
    OPEN = "open"  # not decided: the default, shown without a warning
    UNSOURCED = "unsourced"  # without a number, and no source states it

    @property
    def is_warning(self) -> bool:
        return self in (Verdict.CONTRADICTED, Verdict.OFF_SUBJECT)

    @property
    def is_certain(self) -> bool:
        """Whether words prove it, so that no judge is asked."""
        return self in (Verdict.SUPPORTED, Verdict.COMPUTED)


@dataclass(frozen=True, slots=True)
class Citation:
    """One number at one place of an answer; a marker such as `[1, 2]` gives two citations."""

    number: int
    start: int  # of the whole marker, offsets into the answer's text
    end: int
    verdict: Verdict = Verdict.OPEN
    reason: str = ""  # of the verdict, one sentence for people; "" where nothing was compared
    attributed: bool = False  # placed by attribution, not by the writer
    judged_by: str = ""  # the model whose verdict this is; "" where words decided
    stated: str = ""  # of a contradiction by words: what the statement says, such as "410 g"
    given: str = ""  # of the same: what the source says, such as "112 g"


@dataclass(frozen=True, slots=True)
class Unsourced:
    """A stretch of an answer that cites nothing, repeats nothing and that no source carries."""

    start: int
    end: int


class FigureStatus(StrEnum):
    """Where a figure of a cited statement comes from."""

    FOUND = "found"  # it stands in a source of the statement, or the user said it
    DERIVED = "derived"  # it follows from figures that the statement names
    UNFOUND = "unfound"  # neither


@dataclass(frozen=True, slots=True)
class CheckedFigure:
    """One figure of an answer, by offsets into its text."""

    start: int
    end: int
    status: FigureStatus
    number: int | None = None  # of the source that it stands in; None where only the user said it
    cited: tuple[int, ...] = ()  # numbers of the sources that were searched


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model server counted them."""

    prompt_tokens: int
    completion_tokens: int


class Judging(StrEnum):
    """Whether a judge looks at what words could not decide of an answer."""

    OFF = "off"  # there is no judge, or nothing is open
    PENDING = "pending"  # its verdicts come later
    DONE = "done"
    FAILED = "failed"  # it gave no verdicts: those decided by words stay


@dataclass(frozen=True, slots=True)
class SetAside:
    """What a model said where the passages that were found stand first instead."""

    text: str  # with its markers
    reason: str  # one sentence for people


class NoticeKind(StrEnum):
    """Why an answer is less than it could be; what helps depends on it."""

    DISAGREEMENT = "disagreement"  # sources give different values for the same
    OTHER_PRODUCT = "other_product"  # the answer is about another product than the question
    CUT = "cut"  # the model reached its limit of tokens: it can go on
    LOOP = "loop"  # the model repeated itself and was stopped
    WITHOUT_MODEL = "without_model"  # the model failed: it can be asked again
    WORDS_ALONE = "words_alone"  # the vector index did not answer: passages were found by words
    OTHER_LANGUAGE = "other_language"  # the question's is not that of the documents
    UNREAD = "unread"  # the answer may be in a file that could not be read
    PASSED_OVER = "passed_over"  # a part of the request could not be read


@dataclass(frozen=True, slots=True)
class Notice:
    """What people are told beside an answer."""

    kind: NoticeKind
    text: str  # one or two sentences


@dataclass(frozen=True, slots=True)
class Offer:
    """A reading of a question that is not sure enough to be its answer."""

    label: str  # the question in this reading
    plan: Mapping[str, Any]  # of a table, as `POST /tables/query` takes it


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its text, and how far its sources state it."""

    text: str
    citations: tuple[Citation, ...] = ()
    unsourced: tuple[Unsourced, ...] = ()
    figures: tuple[CheckedFigure, ...] = ()
    declined: bool = False  # the documents do not answer, and the text says so
    model: str = "extractive"
    usage: Usage | None = None
    result: int | None = None  # the number of the source that is the table this answer shows
    card: Card | None = None  # of an answer without a model: `text` is the same in Markdown
    notices: tuple[Notice, ...] = ()
    judging: Judging = Judging.OFF
    judging_failure: str = ""  # "The check failed: …" if it failed
    set_aside: SetAside | None = None  # also at the end of `text`, in Markdown
    offers: tuple[Offer, ...] = ()  # other readings, to choose from
    given: str = ""  # the JSON that a client asked for; `text` says the same for people
    rounds: tuple[ChatMessage, ...] = ()  # calls of a client's tools, with their results

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls whose results the client still has to send; the turn is not over before."""
        return self.rounds[-1].tool_calls if self.rounds else ()
