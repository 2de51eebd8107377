"""One turn, top to bottom: a question becomes an answer with citations."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rag.chat.answers import Answering
from rag.chat.context import ContextBuilder, PreparedContext, QuestionSources
from rag.chat.draft import Draft
from rag.chat.follow_ups import MAX_CONTEXT, NO_TURN, FollowUps, LastTurn, topic_of
from rag.citations.markers import cited_numbers
from rag.citations.register import as_source, unwrapped
from rag.db import waiting_for_database
from rag.errors import (
    ContextTooLong,
    IndexAway,
    ModelError,
    NotFound,
    RagError,
    TooLarge,
    UserError,
)
from rag.language.words import phrases
from rag.memory.context import as_messages
from rag.records import (
    NO_FILTERS,
    Answer,
    ChatMessage,
    Discarded,
    Event,
    Failed,
    Filters,
    Finished,
    Hit,
    ImportedMessage,
    Judged,
    Judging,
    Message,
    MessageStatus,
    Notice,
    NoticeKind,
    Readable,
    Resolution,
    Resolved,
    Role,
    Source,
    Sources,
    Summary,
    SummaryReport,
    Text,
)
from rag.runtime.budget import hang_up_reason
from rag.runtime.error_log import is_due
from rag.runtime.metrics import Metrics
from rag.seams import (
    NO_OPTIONS,
    AnswerOptions,
    DirectAnswer,
    OpenTurn,
    Retriever,
    SessionHandle,
    SessionMemory,
    SessionTranscript,
    SourceRegister,
)
from rag.seams.models import ENDLESS_SECONDS, Deadline

GOES_ON = re.compile(
    rf"(?:(?:{phrases('polite')}) )?(?:{phrases('goes_on')})(?: (?:{phrases('polite')}))?\W*",
    re.IGNORECASE,
)
POINTED_AT = 0.1  # relevance, at least, of what points back and is found where it points
LOOKED_UP = 0.5  # relevance of a cell that a table was asked for
TALK = 3  # questions by which the language of a talk is told
CITED_LAST = 3  # sources of the last answer whose documents are preferred by the next search
WORDS_ALONE = "The search by meaning is away; these sources were found by words alone."
log = logging.getLogger(__name__)
INTERNAL = "Something went wrong on our side. Your question is kept: ask for the answer again."


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Bounds of one turn."""

    question_chars: int = 20_000
    sources: int = 8
    history_turns: int = 10
    answer_seconds: float = ENDLESS_SECONDS

    def check(self, question: str) -> None:
        """Refuse what cannot be asked, before anything is stored."""
        if not question.strip():
            raise UserError("The question is empty. Type what you want to know.")
        if len(question) > self.question_chars:
            raise TooLarge(
                f"The question has {len(question):,} characters; at most "
                f"{self.question_chars:,} are taken. Shorten it, or add the text as a document."
            )


class Assistant:
    """Answers questions in sessions; everything it needs is given by `rag.wiring`."""

    def __init__(
        self,
        retriever: Retriever,
        followups: FollowUps,
        memory: ContextBuilder,
        answering: Answering,
        *,
        limits: TurnLimits,
        metrics: Metrics | None = None,
    ) -> None:
        self._retriever = retriever
        self._followups = followups
        self._memory = memory
        self._answering = answering
        self._limits = limits
        self._metrics = metrics or Metrics()

    def ask(
        self,
        session: SessionHandle,
        question: str,
        wishes: AnswerOptions = NO_OPTIONS,
        *,
        note: Callable[[OpenTurn], None] = lambda turn: None,
    ) -> Generator[Event, None, None]:
        """Answer a question with citations and remember the turn; `note` is called with the begun
        turn.

        The question is checked at once; everything else happens while the events are read. Closing
        the iterator stops the model and keeps what was written, marked as interrupted.

        Raises:
            UserError: the question is empty or too long; nothing was stored.
        """
        self._limits.check(unwrapped(question).question)
        return self._metrics.watched(self._begun(session, question, wishes, note))

    def _begun(
        self,
        session: SessionHandle,
        question: str,
        wishes: AnswerOptions,
        note: Callable[[OpenTurn], None],
    ) -> Generator[Event, None, None]:
        turn = session.begin(question)
        note(turn)
        yield from self._turn(session, turn, wishes)

    def regenerate(
        self,
        session: SessionHandle,
        index: int,
        wishes: AnswerOptions = NO_OPTIONS,
        *,
        note: Callable[[OpenTurn], None] = lambda turn: None,
    ) -> Generator[Event, None, None]:
        """Write the last answer anew, or go on with its turn where it called the asker's tools.

        The earlier one is kept as a revision.
        """
        turn = session.begin_again(index)
        note(turn)
        return self._metrics.watched(self._turn(session, turn, wishes))

    def search(
        self,
        session: SessionHandle,
        question: str,
        limit: int | None = None,
        *,
        filters: Filters = NO_FILTERS,
        readable: Readable | None = None,
    ) -> tuple[Resolution, list[Hit]]:
        """Return the question as resolved in its conversation, and the hits for it.

        `readable` are some of the collections that the session asks.
        """
        question = unwrapped(question).question
        last = self._last(session, session.read().message_count)
        permitted = readable or session.readable()
        resolution = self._followups.resolve(question, last, permitted)
        return self._followups.search(
            question,
            last,
            resolution,
            lambda resolved: self._hits(resolved, permitted, limit=limit, filters=filters),
        )

    def context(self, session: SessionMemory) -> dict[str, Any]:
        """Return the messages that would be sent now without a new question, and statistics."""
        messages, stats = self._memory.context(session)
        lines = [line for summary in session.summaries() for line in summary.lines]
        return {"messages": messages, "stats": stats, "lines": lines}

    def context_messages(self, session: SessionMemory) -> tuple[ChatMessage, ...]:
        """Return the messages of `context` alone."""
        return self._memory.context(session)[0]

    def compact(
        self, session: SessionMemory, *, keep_turns: int | None = None
    ) -> SummaryReport | None:
        """Summarise all but the newest turns now; return None if there is nothing to summarise.

        `keep_turns` turns stay word for word; by default as many as the session's settings say.
        """
        summary = self._memory.compact(session, keep_turns=keep_turns)
        return None if summary is None else summary.report

    def preview(self, session: SessionHandle, question: str) -> tuple[ChatMessage, ...]:
        """Return what a model would be sent for a question with its sources; nothing is stored."""
        resolution, _ = self.search(session, question)
        resolved = resolution.query if resolution.is_followup else ""
        return self._memory.preview(session, question, resolved)

    def summarize(self, session: SessionMemory, start: int, end: int) -> Summary:
        """Summarise messages `[start, end)` on request. Raises UserError for a wrong range."""
        return self._memory.remembered.summarize(session, start, end)

    def correct_summary(self, session: SessionMemory, line: str, text: str) -> Summary:
        """Replace the text of a summary line, or delete the line; later summaries keep the
        correction.

        Raises NotFound if the summary has no such line any more.
        """
        summary = self._memory.remembered.correct(session, line, text)
        if summary is None:
            raise NotFound("The summary has no such line any more. Open it again.")
        return summary

    def _turn(
        self,
        session: SessionHandle,
        turn: OpenTurn,
        wishes: AnswerOptions,
    ) -> Generator[Event, None, None]:
        notices = [Notice(NoticeKind.PASSED_OVER, notice) for notice in wishes.notices]
        deadline = Deadline(self._limits.answer_seconds)
        draft = Draft(turn.answer, wishes=wishes, notices=notices, deadline=deadline)
        with self._metrics.trace.part("turn") as draft.trace:
            draft.trace.note(session=session.id, answer=turn.answer.index)
            try:
                yield from self._answer(session, turn, draft)
            except RagError as error:
                _keep(session, draft, str(error))
                draft.trace.fail(error)
                yield Failed(error, str(error), turn.answer.index)
            except BaseException:
                # The client went away, or we are broken: either way what was written is kept.
                _keep(session, draft, hang_up_reason() or INTERNAL)
                raise

    def _answer(self, session: SessionHandle, turn: OpenTurn, draft: Draft) -> Iterator[Event]:
        question, readable = unwrapped(turn.question.content).question, session.readable()
        self._memory.give_way(session)
        with draft.trace.part("follow-up") as span:
            index, past = turn.question.index, draft.wishes.history
            last = NO_TURN if past is None and not index else self._last(session, index, past)
            resolution = self._going_on(session, turn) if index else None
            resolution = resolution or self._followups.resolve(question, last, readable)
            span.note(is_followup=resolution.is_followup, method=resolution.method)
        draft.resolution = resolution
        with draft.trace.part("direct") as span:
            direct = self._answering.direct(session, question, resolution, draft)
            span.note(made_by=direct.made_by if direct is not None else "")
        if direct is not None:
            yield from self._say(session, turn, direct, draft)
            return
        named = resolution.source_numbers
        preface = _about_unknown(session, named) if named else ""
        with draft.trace.part("retrieval") as span:
            evidence = self._find(session, question, last, resolution, draft)
            by_words = any(notice.kind is NoticeKind.WORDS_ALONE for notice in draft.notices)
            span.note(sources=len(evidence.sources), by_words_alone=by_words)
        draft.resolution = resolution = evidence.resolution
        yield Resolved(resolution.query, resolution.is_followup, resolution.method)
        yield Sources(evidence.sources)

        if draft.wishes.history is None:
            draft.state, compacted = self._memory.before_turn(session, turn)
            yield from compacted
        if preface and not draft.wishes.wants_json:
            draft.preface = preface
            yield Text(preface)
        sources = yield from self._write(session, turn, evidence, draft)

        with draft.trace.part("check") as span, waiting_for_database():
            answer = self._answering.checked(session, draft, sources)
            answer = self._answering.gated(session, evidence, draft, answer, last.turns)
            if answer.set_aside is not None:
                span.note(set_aside=answer.set_aside.reason)
            verdicts = Counter(citation.verdict.value for citation in answer.citations)
            span.note(unsourced=len(answer.unsourced), **verdicts)
            message = session.finish(draft.complete(answer))
        draft.has_ended = True
        self._memory.after_turn(session, turn, message, draft.state)
        if answer.set_aside is not None and not draft.remains:
            yield Discarded(answer.set_aside.reason)
            yield Text(answer.text)
        yield Finished(message, self._of(session, answer, evidence.sources), draft.stats)
        if answer.judging is Judging.PENDING:
            with draft.trace.part("judge"):
                judged = self._answering.judged(session, message)
            if judged is not None:
                yield Judged(judged)

    def _say(
        self, session: SessionHandle, turn: OpenTurn, direct: DirectAnswer, draft: Draft
    ) -> Iterator[Event]:
        """Store and stream an answer that needs no writer; what it computed is weighed before."""
        if direct.claim is not None:
            computed = Resolution(direct.claim.question, is_followup=False, method="unchanged")
            hits = self._hits(computed, session.readable(), draft)
            sources = [as_source(hit) for hit in hits]
            direct = self._answering.weighed(session, direct, direct.claim, sources)
        draft.resolution = resolution = direct.resolution or draft.resolution
        if resolution is not None:
            yield Resolved(resolution.query, resolution.is_followup, resolution.method)
        yield Sources(direct.sources)
        answer = yield from self._answering.say(session, direct, draft)
        message = session.finish(draft.complete(answer))
        draft.has_ended = True
        self._memory.after_turn(session, turn, message)
        yield Finished(message, self._of(session, answer, direct.sources), draft.stats)

    def _going_on(self, session: SessionTranscript, turn: OpenTurn) -> Resolution | None:
        """Return the question that was being answered, if this one only asks to continue a cut
        answer.
        """
        index = turn.question.index
        if not GOES_ON.fullmatch(turn.question.content.strip()):
            return None
        for before in session.messages(index - 1, index):
            notices = before.answer.notices if before.answer else ()
            if before.resolved_query and any(notice.kind is NoticeKind.CUT for notice in notices):
                return Resolution(before.resolved_query, is_followup=True, method="rules")
        return None

    def _last(
        self, session: SessionHandle, end: int, past: Sequence[ImportedMessage] | None = None
    ) -> LastTurn:
        """Return the newest turn that cited something, else the newest turn.

        It is taken from the messages before `end`, or from the `past` that the request sent along.
        """
        most = 2 * self._limits.history_turns
        if past is None:
            messages = session.bare_messages(max(0, end - most), end)
        else:
            messages = as_messages(past)[-most:]
        pairs = pairs_of(messages)
        if not pairs:
            return NO_TURN
        question, answer = next(
            (pair for pair in reversed(pairs) if cited_numbers(pair[1].content)), pairs[-1]
        )
        bare_question = unwrapped(question.content).question
        whole = session.messages(answer.index, answer.index + 1) if past is None else ()
        resolved = next((message.resolved_query for message in whole if message.resolved_query), "")
        numbers = cited_numbers(answer.content)[:CITED_LAST]
        sources = {source.number: source for source in session.sources(numbers)} if numbers else {}
        return LastTurn(
            topic_of(bare_question, resolved or bare_question),
            sources.get(numbers[0]) if numbers else None,
            frozenset(source.document_id for source in sources.values()),
            tuple((unwrapped(q.content).question, answer.content) for q, answer in pairs),
            " ".join(unwrapped(q.content).question[:MAX_CONTEXT] for q, _ in pairs[-TALK:]),
        )

    def _hits(
        self,
        resolution: Resolution,
        readable: Readable,
        draft: Draft | None = None,
        *,
        limit: int | None = None,
        filters: Filters = NO_FILTERS,
    ) -> list[Hit]:
        """Search; by words alone, with a notice in the draft, while vectors are unavailable."""
        limit, query = limit or self._limits.sources, resolution.searched or resolution.query
        before = resolution.before
        try:
            return self._retriever.search(
                query, readable, before=before, limit=limit, filters=filters
            )
        except (ModelError, IndexAway) as error:
            if draft is None:
                raise
            notice = Notice(NoticeKind.WORDS_ALONE, WORDS_ALONE)
            draft.notices += [] if notice in draft.notices else [notice]
            if is_due("words alone"):
                log.warning("searched by words alone", extra={"error": type(error).__name__})
            return self._retriever.by_words(query, readable, before=before, limit=limit)

    def _find(
        self,
        session: SourceRegister,
        question: str,
        last: LastTurn,
        resolution: Resolution,
        draft: Draft,
    ) -> QuestionSources:
        """Return the sources that a question names, such as [3]; for any other question, search."""
        readable = session.readable()
        sources = session.sources(resolution.source_numbers) if resolution.source_numbers else []
        if sources:
            whole = {source.number: 1.0 for source in sources}
            return QuestionSources(tuple(sources), whole, resolution, readable)
        resolution, hits = self._followups.search(
            question, last, resolution, lambda resolved: self._hits(resolved, readable, draft)
        )
        registered = session.register(hits)
        about = resolution.before.documents if resolution.is_followup else ()
        relevance = {
            source.number: max(hit.relevance, POINTED_AT * (source.document_id in about))
            for hit, source in zip(hits, registered, strict=True)
        }
        relevance |= {cell.number: LOOKED_UP for cell in draft.cells}
        return QuestionSources((*draft.cells, *registered), relevance, resolution, readable)

    def _write(
        self, session: SessionHandle, turn: OpenTurn, evidence: QuestionSources, draft: Draft
    ) -> Generator[Event, None, tuple[Source, ...]]:
        """Call the writer; retry with less context as long as the server finds it too long.

        Each retry drops one pair of turns, or as many as the limit that the server named demands.
        """
        most_pairs, tokens_tried, refused = None, 0, None
        offered, state, wishes = self._answering.worth_showing(evidence), draft.state, draft.wishes
        while True:
            try:
                prepared = self._memory.prepare(
                    session, turn, offered, state, most_pairs=most_pairs, wishes=wishes
                )
            except TooLarge as error:  # the question alone does not fit
                alone = PreparedContext((), 0, tuple(offered.sources))
                yield from self._answering.without_model(session, alone, evidence, draft, error)
                return alone.sources
            is_less = refused is None or prepared.tokens < tokens_tried
            tokens_tried, draft.stats, state = prepared.tokens, prepared.stats, prepared.state
            try:
                if refused is not None and not is_less:
                    raise refused
                yield from self._answering.stream(session, prepared, evidence, draft)
            except ContextTooLong as error:
                if is_less and not draft.text:
                    most_pairs, refused = max(0, prepared.stats["pairs"] - 1), error
                    continue
                yield from self._answering.without_model(session, prepared, evidence, draft, error)
            except ModelError as error:
                yield from self._answering.without_model(session, prepared, evidence, draft, error)
            return prepared.sources

    def _of(
        self, session: SourceRegister, answer: Answer, sources: Sequence[Source]
    ) -> tuple[Source, ...]:
        """Return the sources that an answer cites, by number."""
        by_number = {source.number: source for source in sources}
        cited = sorted({citation.number for citation in answer.citations})
        missing = [number for number in cited if number not in by_number]
        if missing:
            by_number |= {source.number: source for source in session.sources(missing)}
        return tuple(by_number[number] for number in cited)


def _about_unknown(session: SessionHandle, numbers: Sequence[int]) -> str:
    """Return what to say of numbers in the question that the session has not given; else ""."""
    registered = {source.number for source in session.sources(numbers)}
    unknown = [str(number) for number in numbers if number not in registered]
    if not unknown:
        return ""
    taken = session.read().source_count
    those = f"they run from 1 to {taken}" if taken else "it has none yet"
    return f"This conversation has no source number {', '.join(unknown)} ({those}).\n\n"


def _keep(session: SessionTranscript, draft: Draft, reason: str) -> None:
    """Store the text of an answer that failed midway, unless its session was deleted meanwhile."""
    if not draft.has_ended:
        with suppress(NotFound), waiting_for_database():
            session.finish(draft.broken(reason))


def pairs_of(messages: Sequence[Message]) -> list[tuple[Message, Message]]:
    """Return questions with their complete answers, oldest first."""
    return [
        (question, answer)
        for question, answer in pairwise(messages)
        if question.role == Role.USER
        and answer.role == Role.ASSISTANT
        and question.turn == answer.turn
        and answer.status is MessageStatus.COMPLETE
    ]
