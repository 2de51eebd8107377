"""A stretch of a transcript as the page shows it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from rag.citations.markers import cited_numbers
from rag.records import (
    Message,
    MessageStatus,
    NoticeKind,
    Role,
    Session,
    Source,
    Summary,
)
from rag.render.answers import Register, answer_html, plain_html
from rag.render.gate import outgoing
from rag.render.statements import with_warnings
from rag.render.tables import ShownResult, result_of, without_rows
from rag.seams import LIBRARY, TABLES, SessionHandle, SessionMemory, SourceRegister, Versions
from rag.sessions.branches import versions_of

TURNS_SHOWN = 20
MESSAGES_SHOWN = 2 * TURNS_SHOWN
SOURCES_LISTED = 30


@dataclass(frozen=True)
class ShownMessage:
    """One message, ready to be shown."""

    message: Message
    register: Register
    html: Markup
    sources: tuple[Source, ...]  # those it cites, by number
    searched_for: str  # the question that stands alone, where that is another than was asked
    query: str  # the question as it was searched for
    is_last: bool
    result: ShownResult | None = None  # the table that was computed

    @property
    def copied(self) -> str:
        """What the copy button gives as Markdown: the text, and what is wrong with it."""
        return with_warnings(self.message)

    @property
    def footnotes(self) -> str:
        """What it adds."""
        return footnotes(self.sources)

    @property
    def set_aside(self) -> Markup:
        """What a model said, where passages stand first instead."""
        aside = self.message.answer.set_aside if self.message.answer else None
        return answer_html(aside.text, replace(self.register, answer=None)) if aside else Markup()

    @property
    def is_answer(self) -> bool:
        return self.message.role == Role.ASSISTANT

    @property
    def is_declined(self) -> bool:
        """Whether the documents do not answer; who asks which table is meant does not say so.

        Nor does a card of the closest passages, which claims nothing.
        """
        answer = self.message.answer
        if answer is None or answer.card is not None:
            return False
        return answer.declined and answer.model not in (LIBRARY, TABLES)

    @property
    def is_without_model(self) -> bool:
        """Whether a model should have written it."""
        notices = self.message.answer.notices if self.message.answer else ()
        return any(notice.kind is NoticeKind.WITHOUT_MODEL for notice in notices)

    @property
    def can_be_written_again(self) -> bool:
        is_ended = self.message.status is not MessageStatus.PENDING
        return self.is_answer and self.is_last and is_ended


@dataclass(frozen=True, slots=True)
class ShareKept:
    """How much of the summarised turns the summaries still say."""

    end: int  # the first message that is not summarised
    turns: int  # that they stand for
    citations: int  # in the summaries
    stated: int  # of these, with their statement
    citations_required: int
    names: int  # in the summaries
    names_required: int
    brought_back: int  # numbers and names that a question brings back
    lost: int  # in neither: 0, or it is a fault
    is_ranged: bool  # numbers that stand in ranges, for want of room


@dataclass(frozen=True, slots=True)
class ShownTranscript:
    """Messages `[start, end)` of a session."""

    session: Session
    messages: tuple[ShownMessage, ...]
    start: int
    end: int
    coverage: ShareKept | None  # None while nothing is summarised
    cited: tuple[Source, ...]  # in the messages that are shown, newest first
    read: tuple[Source, ...]  # the newest that were shown to the writer, but are not cited here
    versions: Mapping[int, Versions]  # where questions were edited, by their index

    @property
    def is_newest(self) -> bool:
        return self.end >= self.session.message_count


@dataclass(frozen=True, slots=True)
class WantedRange:
    """Which stretch is wanted; the newest turns where nothing is said."""

    before: int | None = None
    middle: int | None = None  # in the middle
    after: int | None = None


def transcript_of(handle: SessionHandle, session_url: str, place: WantedRange) -> ShownTranscript:
    """The newest turns, those before or after a message, or those around one."""
    session = handle.read()
    start, end = window(session.message_count, place)
    messages = handle.messages(start, end)
    count = session.source_count
    listed = handle.sources(range(max(1, count - SOURCES_LISTED + 1), count + 1))
    shown = shown_messages(handle, messages, session_url, last=session.message_count - 1)
    cited = cited_in(shown)
    numbers = {source.number for source in cited}
    return ShownTranscript(
        session=session,
        messages=shown,
        start=start,
        end=end,
        coverage=kept_in(handle.summaries()),
        cited=cited[::-1],
        read=tuple(source for source in reversed(listed) if source.number not in numbers),
        versions={versions.index: versions for versions in versions_of(session, handle.family())},
    )


def window(count: int, place: WantedRange) -> tuple[int, int]:
    """Which messages are shown; a question stays with its answer where they come in pairs."""
    if place.after is not None and place.after < count:
        return place.after, min(count, place.after + MESSAGES_SHOWN)
    end = count if place.before is None else min(place.before, count)
    if place.middle is not None:
        end = min(count, place.middle // 2 * 2 + MESSAGES_SHOWN // 2)
    start = max(0, end - MESSAGES_SHOWN)
    return start + start % 2, end


def whole_transcript(handle: SessionMemory, session_url: str) -> Iterator[ShownMessage]:
    """All turns, however many, a stretch at a time."""
    count = handle.read().message_count
    for start in range(0, count, MESSAGES_SHOWN):
        stretch = handle.messages(start, min(count, start + MESSAGES_SHOWN))
        messages = [outgoing(message) for message in stretch]
        register, questions = _read(handle, messages, session_url)
        for message in messages:
            yield _shown_message(message, register, questions.get(message.turn, ""), is_last=False)


def cited_in(messages: Sequence[ShownMessage]) -> tuple[Source, ...]:
    """The sources of some messages, by number."""
    cited = {source.number: source for message in messages for source in message.sources}
    return tuple(cited[number] for number in sorted(cited))


def register_for(handle: SourceRegister, session_url: str, texts: Sequence[str]) -> Register:
    """The sources that some texts cite."""
    numbers = sorted({number for text in texts for number in cited_numbers(text)})
    sources = handle.sources(numbers) if numbers else []
    return Register(session_url, {source.number: source for source in sources})


def shown_messages(
    handle: SessionMemory, messages: Sequence[Message], session_url: str, *, last: int
) -> tuple[ShownMessage, ...]:
    """Messages with everything that their part of the page says."""
    messages = [outgoing(message) for message in messages]
    register, questions = _read(handle, messages, session_url)
    return tuple(
        _with_result(
            handle,
            _shown_message(
                message, register, questions.get(message.turn, ""), is_last=message.index == last
            ),
        )
        for message in messages
    )


def _read(
    handle: SourceRegister, messages: Sequence[Message], session_url: str
) -> tuple[Register, dict[int, str]]:
    """The sources that messages cite, and the question of each turn."""
    register = register_for(handle, session_url, [message.content for message in messages])
    questions = {message.turn: message.content for message in messages if message.role == Role.USER}
    return register, questions


def _with_result(handle: SourceRegister, message: ShownMessage) -> ShownMessage:
    """A computed answer with its table below its words, instead of among them."""
    result = result_of(handle, message.message)
    if result is None:
        return message
    words = replace(message.message, content=without_rows(message.message.content))
    return replace(message, html=_html(words, message.register), result=result)


def _shown_message(
    message: Message, register: Register, question: str, *, is_last: bool
) -> ShownMessage:
    is_answer, of_answer = message.role == Role.ASSISTANT, replace(register, answer=message.index)
    sources = _cited(message.content, register.sources) if is_answer else ()
    resolved = message.resolved_query or ""
    is_other = message.is_followup and resolved.strip() != question.strip()
    return ShownMessage(
        message=message,
        register=of_answer,
        html=_html(message, of_answer) if is_answer else plain_html(message.content, register),
        sources=sources,
        searched_for=resolved if is_other else "",
        query=resolved or question,
        is_last=is_last,
    )


def _html(message: Message, register: Register) -> Markup:
    answer = message.answer
    if answer is None:
        return answer_html(message.content, register)
    return answer_html(
        message.content,
        register,
        citations=answer.citations,
        unsourced=answer.unsourced,
        figures=answer.figures,
    )


def _cited(text: str, sources: Mapping[int, Source]) -> tuple[Source, ...]:
    return tuple(sources[number] for number in sorted(cited_numbers(text)) if number in sources)


def footnotes(sources: Sequence[Source]) -> str:
    """Lines that say, wherever a text is pasted, where it comes from."""
    places = (f", {source.locator}" if source.locator else "" for source in sources)
    return "\n".join(
        f"{cited.marker} {cited.document_title}{place} ({cited.document_name})"
        for cited, place in zip(sources, places, strict=True)
    )


def kept_in(summaries: Sequence[Summary]) -> ShareKept | None:
    """What was required of the summarised turns, and what became of it."""
    if not summaries:
        return None
    reports = [summary.report for summary in summaries]
    return ShareKept(
        end=max(summary.end for summary in summaries),
        turns=sum(summary.end - summary.start + 1 for summary in summaries) // 2,
        citations=sum(report.citations_in_summary for report in reports),
        stated=sum(len(report.stated_citations) for report in reports),
        citations_required=sum(report.citations_required for report in reports),
        names=sum(report.names_kept for report in reports),
        names_required=sum(report.names_required for report in reports),
        brought_back=sum(
            report.citations_brought_back + report.names_brought_back for report in reports
        ),
        lost=sum(report.citations_lost + report.names_lost for report in reports),
        is_ranged=any(report.ranged_citations for report in reports),
    )
