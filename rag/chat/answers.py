"""Write one answer through the marker gate, then check what was written."""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from rag.chat.card import (
    all_cited,
    notices_beside,
    quotation,
    quoted,
    set_aside,
    unchecked,
)
from rag.chat.context import ContextSources, PreparedContext, QuestionSources
from rag.chat.decision import decide, weakness
from rag.chat.draft import Draft, RegisteredNumbers, composed, cut_at_stop, through_gate
from rag.chat.evidence import COMPUTED, EvidenceReader
from rag.chat.tool_loop import ToolRoom
from rag.citations.markers import cited_numbers, neutralise
from rag.citations.verdicts import attribute, check
from rag.errors import ModelError, ModelInterrupted, OverBudget, RagError, TooLarge
from rag.language.words import language_of
from rag.records import (
    Answer,
    Citation,
    Discarded,
    Event,
    Judging,
    Message,
    Notice,
    NoticeKind,
    Readable,
    Resolution,
    Role,
    SetAside,
    Source,
    Text,
    ToolUsed,
    Verdict,
)
from rag.runtime.budget import has_hung_up, planning
from rag.seams import (
    ComputedFigure,
    DirectAnswer,
    DirectAnswers,
    Embedder,
    Matrix,
    ModelDelta,
    SessionHandle,
    SessionTranscript,
    SourceRegister,
    Writer,
    WriteRequest,
)
from rag.seams.models import Judge
from rag.tokens import count_tokens

USER_LOOKED_AT = 20  # messages, whose figures a user has said
BROKE_OFF = "The model broke off; this is what it wrote until then. {}"
REMAINS = "It broke off there, without a source."
log = logging.getLogger(__name__)
EarlierTurns = Sequence[tuple[str, str]]  # questions with their answers, oldest first
Learn = Callable[[int, int], None]  # tokens as we estimated them, and as the server reported them


class LibraryRemarks(Protocol):
    """Remarks about the library that stand beside an answer."""

    def __call__(
        self, session: SessionHandle, question: str, sources: Sequence[Source], *, is_sure: bool
    ) -> list[Notice]: ...


@dataclass(frozen=True, slots=True)
class DirectSources:
    """The parts that speak besides the writer: direct answers, and remarks on written ones."""

    direct: Sequence[DirectAnswers] = ()
    lexicon: Callable[[Readable], Sequence[str]] = lambda readable: ()
    remarks: LibraryRemarks | None = None
    others: Mapping[str, Writer] = field(default_factory=dict)  # that may be picked, by model


@dataclass(frozen=True, slots=True)
class Checks:
    """Further checks of statements, beside the comparison of their words."""

    judge: Judge | None = None
    embedder: Embedder | None = None


class Answering:
    """Writes one answer through the marker gate, then checks what was written."""

    def __init__(
        self,
        writer: Writer,
        tools: ToolRoom | None = None,
        *,
        fallback: Writer | None = None,
        checks: Checks = Checks(),
        beside: DirectSources = DirectSources(),
        learn: Learn = lambda estimated, reported: None,
    ) -> None:
        self._writer = writer
        self._tools = tools
        self._fallback = fallback
        self._checks = checks
        self._beside = beside
        self._learn = learn

    def direct(
        self, session: SessionHandle, question: str, resolution: Resolution, draft: Draft
    ) -> DirectAnswer | None:
        """Return the first answer that needs no writer, or None; put offers of tables into the
        draft.

        The others offer what they would compute: a register of documents has as many rows as it
        has, whatever the library says of itself.
        """
        lead: DirectAnswer | None = None
        for side in () if draft.wishes.needs_model else self._beside.direct:
            with suppress(OverBudget), planning():  # the passages tell it then
                if lead is not None:
                    draft.offers += side.readings(session, question, resolution)
                elif (answer := side.answer(session, question, resolution)) is not None:
                    draft.offers += answer.offers
                    draft.cells += () if answer.text else answer.sources
                    lead = answer if answer.text else None
        return lead

    def weighed(
        self,
        session: SourceRegister,
        direct: DirectAnswer,
        claim: ComputedFigure,
        sources: Sequence[Source],
    ) -> DirectAnswer:
        """Decide on a computed figure together with what the passages say of the same.

        Of the sources, which have no number yet, those get one that deny it.
        """
        lexicon = self._beside.lexicon(session.readable())
        spoken = language_of(claim.question, direct.talk)
        reader = EvidenceReader(claim.question, lexicon, spoken)
        computed = reader.claimed(claim)
        if computed is None:
            return direct
        quotations = [
            e for e in reader.read(sources, _refuse_to_embed) if not claim.is_of_part(e.quote)
        ]
        lead = decide([computed, *quotations], sources, spoken)
        if not lead.evidence:  # a text says that it is past
            return replace(direct, is_denied=True)
        denials = [evidence.source for evidence in lead.evidence if evidence.kind != COMPUTED]
        if not denials:
            return direct
        numbered = {source.chunk_id: source for source in session.register_sources(denials)}
        quotations = [
            replace(e, source=numbered.get(e.source.chunk_id, e.source)) for e in quotations
        ]
        lead = decide([computed, *quotations], sources, spoken)
        text = lead.text + direct.text.removeprefix(direct.text.split("\n", 1)[0])
        cited = (*direct.sources, *numbered.values())
        return replace(direct, text=text, sources=cited, is_denied=True)

    def say(
        self, session: SessionHandle, direct: DirectAnswer, draft: Draft
    ) -> Generator[Event, None, Answer]:
        """Send an answer that needs no writer through the gate; nothing is added to it."""
        deltas = cut_at_stop([ModelDelta(text=direct.text)], draft.wishes, count=count_tokens)
        yield from composed(deltas, RegisteredNumbers(session, direct.sources), draft)
        verdict = Verdict.SUPPORTED if direct.result is None else Verdict.COMPUTED
        verdict = Verdict.OPEN if direct.is_denied else verdict
        return Answer(
            text=draft.text,
            citations=all_cited(draft.text, verdict),
            declined=direct.declined,
            model=direct.made_by,
            result=direct.result,
            notices=tuple(draft.notices),
            offers=draft.offers,
        )

    def worth_showing(self, evidence: QuestionSources) -> ContextSources:
        """Return the sources that the writer gets: some of them for a card, all for a model."""
        return evidence.all() if self._fallback is None else evidence.to_the_point()

    def stream(
        self,
        session: SessionHandle,
        prepared: PreparedContext,
        evidence: QuestionSources,
        draft: Draft,
    ) -> Iterator[Event]:
        """Stream the writer's text through the gate, which passes only numbers of the session."""
        request = _request(prepared, evidence, draft)
        registered = RegisteredNumbers(session, evidence.sources)
        others = self._beside.others
        picked = session.read().model if others else None
        draft.writer = writer = others.get(picked or "", self._writer)
        passed = through_gate if writer.reads_context else composed
        asked_again = False
        with draft.trace.part("model") as span:
            span.note(context_tokens=prepared.tokens, fitting_sources=len(prepared.sources))
            try:
                with closing(self._deltas(writer, session, request)) as deltas:
                    for delta in passed(deltas, registered, draft):
                        asked_again = asked_again or isinstance(delta, ToolUsed | Discarded)
                        yield delta
                if draft.usage is not None and not asked_again:
                    self._learn(prepared.sent_tokens, draft.usage.prompt_tokens)
                if not (draft.text.strip() or draft.calls):
                    raise ModelInterrupted(
                        f"{writer.name} returned an empty answer. Ask for the answer again."
                    )
            finally:
                span.note(gen_ai__request__model=draft.model, characters=len(draft.text))
                if draft.usage is not None:
                    span.note(gen_ai__usage__input_tokens=draft.usage.prompt_tokens)
                    span.note(gen_ai__usage__output_tokens=draft.usage.completion_tokens)

    def without_model(
        self,
        session: SessionHandle,
        prepared: PreparedContext,
        evidence: QuestionSources,
        draft: Draft,
        error: ModelError | TooLarge,
    ) -> Iterator[Event]:
        """Write the answer that needs no model in place of one whose model failed.

        Raises the error again where this was such an answer, or somebody wanted it to end. What is
        too long for a model is not for one that needs none. What the model had written stays: as
        the answer where it cites, else below.
        """
        is_by_words = not self._writer.reads_context and isinstance(error, TooLarge)
        fallback = self._writer if is_by_words else self._fallback
        wishes = draft.wishes
        is_models = wishes.insists if isinstance(error, TooLarge) else wishes.needs_model
        if draft.cited and not (has_hung_up() or is_models):
            draft.notices.append(Notice(NoticeKind.CUT, BROKE_OFF.format(error)))
            return
        if fallback is None or has_hung_up() or is_models:
            raise error
        if draft.text:
            draft.remains = draft.text.strip()
            yield draft.discard("The model broke off.")
        request = _request(prepared, evidence, draft)
        draft.writer, draft.usage = fallback, None
        if not is_by_words:
            draft.notices.append(Notice(NoticeKind.WITHOUT_MODEL, f"Without the model: {error}"))
        registered = RegisteredNumbers(session, evidence.sources)
        yield from composed(fallback.write(request), registered, draft)
        if draft.remains:
            yield Text(quotation(draft.remains, REMAINS))

    def _deltas(
        self, writer: Writer, session: SessionHandle, request: WriteRequest
    ) -> Generator[ModelDelta | ToolUsed, None, None]:
        if self._tools is None:
            yield from writer.write(request)
        else:
            yield from self._tools.write(writer, request, session)

    def checked(self, session: SessionHandle, draft: Draft, shown: Sequence[Source]) -> Answer:
        """Add the citations that the writer forgot, and mark what its sources do not support."""
        if draft.calls or draft.wishes.wants_json:  # for a program, not for people
            return self._for_a_program(session, draft, shown)
        if draft.card is not None:
            answer = quoted(draft, draft.card, shown)
        else:
            answer = self._checked(session, draft, shown)
        answer = replace(answer, offers=draft.offers, rounds=draft.wishes.rounds)
        if draft.remains:
            whole = answer.text + quotation(draft.remains, REMAINS)
            answer = replace(answer, text=whole, set_aside=SetAside(draft.remains, REMAINS))
        query = draft.resolution.query if draft.resolution else ""
        if self._beside.remarks is None or not query:
            return answer
        remarks = self._beside.remarks(session, query, shown, is_sure=not answer.declined)
        return replace(answer, notices=(*answer.notices, *remarks))

    def _for_a_program(
        self, session: SessionHandle, draft: Draft, shown: Sequence[Source]
    ) -> Answer:
        answer = unchecked(draft, RegisteredNumbers(session, shown))
        sources = {source.number: source for source in session.sources(cited_numbers(answer.text))}
        user = _texts_of_user(session, draft)
        checked = check(answer.text, sources, embedder=self._checks.embedder, user=user)
        if answer.calls:
            return replace(answer, citations=checked.citations)
        return replace(
            answer,
            citations=checked.citations,
            unsourced=checked.unsourced,
            figures=checked.figures,
            judging=self._judging(checked.citations),
        )

    def gated(
        self,
        session: SourceRegister,
        evidence: QuestionSources,
        draft: Draft,
        answer: Answer,
        past: EarlierTurns,
    ) -> Answer:
        """Return the answer; if the model's is surely useless, the passages with it below them.

        The card is made anyway where no model answers, so that nothing is asked for it.
        """
        is_models = draft.writer is self._writer and draft.card is None
        is_models = is_models and not draft.wishes.needs_model
        if self._fallback is None or answer.declined or not is_models:
            return answer
        shown = {source.number: source for source in evidence.sources}
        cited = [citation.number for citation in answer.citations if citation.number not in shown]
        others = session.sources(sorted(set(cited))) if cited else ()
        sources = shown | {source.number: source for source in others}
        query = evidence.resolution.query
        reason = weakness(query, answer, sources, past, self._checks.embedder)
        if not reason:
            return answer
        request = WriteRequest(
            question=query,
            sources=evidence.sources,
            messages=(),
            max_tokens=0,
            relevance=evidence.relevance,
            readable=evidence.readable,
            earlier=evidence.resolution.earlier,
            talk=evidence.resolution.talk,
        )
        text, card = "", None
        for delta in self._fallback.write(request):
            text, card = text + delta.text, delta.card or card
        return answer if card is None or card.is_weak else set_aside(answer, text, card, reason)

    def _checked(self, session: SessionHandle, draft: Draft, shown: Sequence[Source]) -> Answer:
        declined = draft.writer is not None and draft.writer.declined(draft.text)
        by_number = {source.number: source for source in shown}
        others = [number for number in draft.cited if number not in by_number]
        if others:
            by_number |= {source.number: source for source in session.sources(others)}
        text, attributed = draft.preface + draft.text, frozenset[tuple[int, int]]()
        if not declined:
            completed = attribute(text, {s.number: s for s in shown})
            text = completed.text
            attributed = frozenset((c.number, c.start) for c in completed.citations if c.attributed)
        user = _texts_of_user(session, draft)
        checked = check(text, by_number, embedder=self._checks.embedder, user=user)
        sources = () if declined else tuple(by_number.values())
        notices = notices_beside(draft, text, sources, self._checks.embedder)
        ours = len(draft.preface)  # which is no statement of the writer
        unsourced = tuple(statement for statement in checked.unsourced if statement.start >= ours)
        citations = tuple(
            replace(citation, attributed=(citation.number, citation.start) in attributed)
            for citation in checked.citations
        )
        return Answer(
            text=text,
            citations=citations,
            unsourced=() if declined else unsourced,
            figures=() if declined else checked.figures,
            declined=declined,
            model=draft.model,
            notices=notices,
            usage=draft.usage,
            judging=Judging.OFF if declined else self._judging(citations),
        )

    def _judging(self, citations: Sequence[Citation]) -> Judging:
        """Return whether a judge is asked: where there is one, and words leave something open."""
        is_open = any(not citation.verdict.is_certain for citation in citations)
        return Judging.PENDING if is_open and self._checks.judge is not None else Judging.OFF

    def judged(self, session: SessionHandle, message: Message) -> Message | None:
        """Return the stored answer with a judge's verdicts, or with why there are none; None if
        there is no judge.
        """
        answer, judge = message.answer, self._checks.judge
        if judge is None or answer is None or answer.judging is not Judging.PENDING:
            return None
        try:
            wanted = sorted({citation.number for citation in answer.citations})
            sources = {source.number: source for source in session.sources(wanted)}
            verdicts = check(answer.text, sources, judge, embedder=self._checks.embedder).citations
        except RagError as error:
            failure = f"The check failed: {neutralise(str(error))}"  # it may quote the reply
            judged_answer = replace(answer, judging=Judging.FAILED, judging_failure=failure)
        except Exception as error:  # whatever a judge does, the answer stands
            log.warning("The judge failed", exc_info=error)
            failure = "The check failed: something went wrong on our side."
            judged_answer = replace(answer, judging=Judging.FAILED, judging_failure=failure)
        else:
            by_judge = {(e.number, e.start): e for e in verdicts if e.judged_by}
            citations = tuple(
                replace(by_judge.get((e.number, e.start), e), attributed=e.attributed)
                for e in answer.citations
            )
            judged_answer = replace(answer, citations=citations, judging=Judging.DONE)
        try:
            return session.judge(replace(message, answer=judged_answer))
        except RagError:  # such as a conversation deleted meanwhile
            return None


def _refuse_to_embed(texts: Sequence[str]) -> Matrix:
    """Stand in for an embedder where a text is only compared by its figures."""
    raise ModelError("Words alone decide.")


def _texts_of_user(session: SessionTranscript, draft: Draft) -> Iterator[str]:
    """Return the question as resolved and as asked, and the user's questions just before it.

    They are read when a figure stands in no source; a question may come in a client's template.
    """
    if draft.resolution:
        yield draft.resolution.query
    messages = session.recent(USER_LOOKED_AT)
    yield from (message.content for message in messages if message.role == Role.USER)


def _request(prepared: PreparedContext, evidence: QuestionSources, draft: Draft) -> WriteRequest:
    return WriteRequest(
        question=evidence.resolution.query,
        sources=prepared.sources,
        messages=(*prepared.messages, *draft.wishes.rounds),
        max_tokens=prepared.max_tokens,
        tools=prepared.tools,
        waiting_tools=prepared.waiting_tools,
        relevance=evidence.relevance,
        wishes=draft.wishes,
        readable=evidence.readable,
        earlier=evidence.resolution.earlier,
        talk=evidence.resolution.talk,
        has_offers=bool(draft.offers),
        deadline=draft.deadline,
    )
