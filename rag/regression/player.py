"""Play a script in a session, turn by turn, and check its expectations."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rag.citations.gate import canonical
from rag.citations.markers import cited_numbers, without_markers
from rag.citations.register import brought_source
from rag.documents.files import IncomingFile
from rag.errors import UserError
from rag.language.names import Lexicon
from rag.memory.context import SUMMARY_TITLE
from rag.memory.summary import spelled_out
from rag.records import (
    EVERYTHING,
    ContextConfig,
    Failed,
    Finished,
    ImportedMessage,
    Role,
    Source,
    Text,
)
from rag.regression.report import Check, CitedSource, PlayedTurn, ending
from rag.regression.script import (
    Add,
    Ask,
    CitedPlace,
    Compress,
    Configured,
    Expectations,
    Import,
    Recalled,
    Regenerate,
    Remove,
    Restart,
    Script,
    ScriptFile,
    ScriptTurn,
    SettingsStep,
    WantedStatement,
    flat,
)
from rag.runtime.progress import Stage
from rag.sessions.transcript import edited
from rag.tables.result import result_from

if TYPE_CHECKING:
    from rag.seams import SessionHandle
    from rag.wiring.application import Application

NOT_IN_NUMBERS = re.compile(r"[,\s*]")
ROW = re.compile(r"\s*(?:>\s*)?\|")
CheckOutcome = tuple[str, bool, str]  # (expectation, whether it holds, what was found instead)


@dataclass(slots=True)
class Earlier:
    """The results of earlier turns, by turn number."""

    cited: dict[int, tuple[Source, ...]] = field(default_factory=dict)
    exchanges: dict[int, str] = field(default_factory=dict)
    indices: dict[int, int] = field(default_factory=dict)  # message indices of the questions

    def numbers(self, turn: int, document: str | None = None) -> set[int]:
        """Return the source numbers that a turn cited, of one document or all."""
        return {
            source.number
            for source in self.cited.get(turn, ())
            if document in (None, source.document_name)
        }


def of_answer(turn: Expectations, ended: Finished, past: Earlier) -> Iterator[CheckOutcome]:
    """Check an answer's words, sources and verdicts."""
    text, answer = ended.message.content, ended.message.answer
    sources = ", ".join(f"{s.document_name} ({s.locator})" for s in ended.sources)
    yield "is answered", bool(text.strip()), ""
    for wanted in turn.cites:
        name = wanted if isinstance(wanted, str) else f"{wanted.document} at {wanted.place!r}"
        yield f"cites {name}", _cites(wanted, ended.sources), sources or "no source"
    for words in turn.says:
        yield f"says {words!r}", holds(text, words), text
    for words in turn.says_not:
        yield f"does not say {words!r}", not holds(text, words), text
    yield from _of_question(turn, ended)
    if turn.declines is not None:
        declined = answer is not None and answer.declined
        yield "declines" if turn.declines else "answers", declined == turn.declines, text
    if turn.verdicts is not None:
        verdicts = [citation.verdict.value for citation in answer.citations] if answer else []
        fine = bool(verdicts) and set(verdicts) <= set(turn.verdicts)
        yield f"verdicts are {' or '.join(turn.verdicts)}", fine, ", ".join(verdicts) or "none"
    if turn.same_number_as is not None:
        same = turn.same_number_as
        before = past.numbers(same.turn, same.source)
        now = {source.number for source in ended.sources if source.document_name == same.source}
        expected = f"cites {same.source} under the number of turn {same.turn}"
        yield expected, bool(before & now), f"{sorted(before)} then, {sorted(now)} now"


def _of_question(turn: Expectations, ended: Finished) -> Iterator[CheckOutcome]:
    query = ended.message.resolved_query or ""
    if turn.resolves_to is not None:
        resolves = words_of(turn.resolves_to) <= words_of(query)
        yield f"resolves to {turn.resolves_to!r}", resolves, query
    if turn.follow_up is not None:
        word = "is a follow-up" if turn.follow_up else "stands alone"
        yield word, ended.message.is_followup == turn.follow_up, query


def no_other_numbers(text: str, highest: int) -> CheckOutcome:
    """Check that the answer shows only source numbers 1 to `highest`, which were given out."""
    other = [number for number in cited_numbers(text) if not 1 <= number <= highest]
    return "gives no number that it was not given", not other, ", ".join(map(str, other))


def _cites(wanted: str | CitedPlace, sources: Sequence[Source]) -> bool:
    if isinstance(wanted, str):
        return any(source.document_name == wanted for source in sources)
    return any(
        source.document_name == wanted.document
        and holds(" ".join((source.locator, *source.heading_path)), wanted.place)
        for source in sources
    )


# ── Words and numbers in texts ───────────────────────────────────────────────────────────────


def holds(text: str, words: str) -> bool:
    """Return whether a text has these words in a row, ignoring case, blanks, markers, emphasis.

    Words that begin or end with a digit do not match inside a longer figure.
    """
    wanted = re.escape(flat(words))
    before = r"(?<!\d)(?<!\d[.,])" if words[:1].isdigit() else ""
    after = r"(?![.,]?\d)" if words[-1:].isdigit() else ""
    return re.search(before + wanted + after, flat(without_markers(text))) is not None


def is_same_value(shown: str, wanted: str) -> bool:
    """Return whether a cell has this value: 1,216 is 1216, and 243.20 is 243.2."""
    plain = [NOT_IN_NUMBERS.sub("", cell) for cell in (shown, wanted)]
    try:
        return math.isclose(*map(float, plain))
    except ValueError:
        return holds(shown, wanted)


def words_of(text: str) -> set[str]:
    """Return the words of a text in lower case."""
    return set(re.findall(r"\w+", text.casefold()))


def numbers_in(text: str) -> set[int]:
    """Return every source number in a summary, including ranges such as `[3]–[40]`."""
    return set(cited_numbers(spelled_out(text)))


def stands_beside(text: str, words: str, numbers: Iterable[int]) -> bool:
    """Return whether the words are on one line, or in a table with its lead-in, with a number."""
    wanted = set(numbers)
    return any(
        holds(block, words) and wanted & numbers_in(block) for block in _lines_and_tables(text)
    )


def _lines_and_tables(text: str) -> Iterator[str]:
    """Yield each line, and each table with the line before it."""
    lead, rows = "", list[str]()
    for line in [*text.splitlines(), ""]:
        yield line
        if ROW.match(line):
            rows.append(line)
            continue
        if rows:
            yield "\n".join([lead, *rows])
            rows = []
        lead = line if line.strip() else lead


OWNER = "regression"
MANY = 2_000  # messages, more than any context window holds


@dataclass(slots=True)
class Position:
    """The state of a replay, with which another process can continue it."""

    script: Script
    source: ScriptFile
    session_id: str
    compacts: bool = True  # False: replays without compaction, to compare
    turns_done: int = 0  # turns played so far
    earlier: Earlier = field(default_factory=Earlier)
    failed: set[int] = field(default_factory=set)  # turns


class Player:
    """Plays one script against an application."""

    def __init__(self, application: "Application", position: Position) -> None:
        self._application = application
        self._assistant = application.assistant
        self._session: SessionHandle = application.store.open(position.session_id, owner=OWNER)
        self._position = position

    def play(self) -> Iterator[PlayedTurn]:
        """Yield each turn from the current position to the next restart or the end.

        Raises:
            UserError: An expectation of the file can never fail; the message says which.
        """
        position = self._position
        for turn in position.script.turns[position.turns_done :]:
            if isinstance(turn, Restart):
                return
            played = self._turn(position.turns_done + 1, turn)
            position.turns_done += 1
            if played.failures:
                position.failed.add(position.turns_done)
            yield played

    def _turn(self, number: int, turn: ScriptTurn) -> PlayedTurn:
        does: dict[type, Callable[[int, Any], PlayedTurn]] = {
            Ask: self._ask,
            Regenerate: self._ask,
            Compress: self._compress,
            Import: self._import,
            SettingsStep: self._configure,
            Add: self._add,
            Remove: self._remove,
        }
        played = does[type(turn)](number, turn)
        tokens = int(self._assistant.context(self._session)["stats"]["tokens"])
        checks = played.checks
        if isinstance(turn, Ask | Regenerate) and turn.within_tokens is not None:
            fits = tokens <= turn.within_tokens
            expected = f"a model is sent at most {turn.within_tokens:,} tokens"
            checks = (*checks, Check(number, expected, fits, f"{tokens:,}"))
        return replace(played, tokens=tokens, checks=checks)

    # ── Questions ────────────────────────────────────────────────────────────────────────────

    def _ask(self, number: int, turn: Ask | Regenerate) -> PlayedTurn:
        action, question = "regenerate", "the same again"
        if isinstance(turn, Ask):
            action, question = "ask", turn.ask
            if turn.edit is not None:
                self._branch(number, turn.edit)
        try:
            if isinstance(turn, Ask):
                events = self._assistant.ask(self._session, turn.ask)
            else:
                last = self._session.read().message_count - 1
                events = self._assistant.regenerate(self._session, last)
        except UserError as error:  # the question cannot be asked at all
            raise self._error(number, action, str(error).rstrip(".")) from error
        try:
            outcome_events = list(events)
        except Exception as error:  # noqa: BLE001 - any error fails this turn; others go on
            check = Check(number, "is answered", False, f"{type(error).__name__}: {error}")
            return PlayedTurn(number, action, question, checks=(check,))
        last_event = ending(outcome_events)
        if self._position.compacts:
            self._application.jobs.run_waiting()
        if isinstance(last_event, Failed):
            check = Check(number, "is answered", False, last_event.message)
            return PlayedTurn(number, action, question, checks=(check,))
        past, text = self._position.earlier, last_event.message.content
        streamed = "".join(event.text for event in outcome_events if isinstance(event, Text))
        outcomes = list(self._answer_checks(turn, last_event, number))
        source_count = self._session.read().source_count
        outcomes.append(no_other_numbers(f"{streamed}\n\n{text}", source_count))
        past.cited[number], past.exchanges[number] = last_event.sources, f"{question}\n{text}"
        past.indices[number] = last_event.message.index - 1
        query = last_event.message.resolved_query or ""
        return PlayedTurn(
            number,
            action,
            question,
            answer=text,
            resolved=query if query != question else "",
            cited=_cited(last_event),
            checks=tuple(Check(number, *outcome) for outcome in outcomes),
        )

    def _branch(self, number: int, earlier: int) -> None:
        """Continue from a question that is edited, without the turns after it."""
        index = self._position.earlier.indices.get(earlier)
        if index is None:
            raise self._error(number, "edit", f"turn {earlier} asked nothing before this one")
        self._session = edited(self._session, index)
        self._position.session_id = self._session.id

    def _answer_checks(
        self, turn: Ask | Regenerate, ended: Finished, number: int
    ) -> Iterator[CheckOutcome]:
        same = turn.same_number_as
        if same is not None and not self._position.earlier.numbers(same.turn, same.source):
            self._blame(number, "same_number_as", same.turn, f"cited nothing of {same.source}")
        yield from of_answer(turn, ended, self._position.earlier)
        if turn.computes is not None:
            values = self._computed(ended)
            matches = any(is_same_value(value, turn.computes) for value in values)
            got = ", ".join(values) or f"no table was computed: {ended.message.content}"
            yield f"computes {turn.computes!r}", matches, got

    def _computed(self, ended: Finished) -> list[str]:
        answer = ended.message.answer
        stored = self._session.result(answer.result) if answer and answer.result else None
        if stored is None:
            return []
        result = result_from(stored)
        cells = ((*result.cells(row), *map(str, row)) for row in result.rows)  # €240, and 240.0
        return list(dict.fromkeys(value for row in cells for value in row))

    # ── Memory ───────────────────────────────────────────────────────────────────────────────

    def _compress(self, number: int, turn: Compress) -> PlayedTurn:
        if not self._position.compacts:
            return PlayedTurn(number, "compress", "not summarised, to compare")
        self._assistant.compact(self._session, keep_turns=1)
        summary = self.summary()
        left = sum(m.role == Role.USER for m in self._assistant.context_messages(self._session))
        got = f"{left} turns word for word, and a summary of {len(summary)} characters"
        is_done = bool(summary) and left <= 1
        text = "all turns but the newest are summarised"
        recalled = [self._recalled(recall) for recall in turn.recalls]
        outcomes = [
            (text, is_done, got),
            *self._summary_checks(number, turn, summary),
            *self._brought_back(number, turn, recalled),
        ]
        checks = tuple(Check(number, *outcome) for outcome in outcomes)
        return PlayedTurn(
            number, "compress", text, summary=summary, recalled=tuple(recalled), checks=checks
        )

    def summary(self) -> str:
        """Return the summary that a model is sent, without its title."""
        for message in self._assistant.context_messages(self._session):
            if message.role == Role.SYSTEM:
                return message.content.partition(SUMMARY_TITLE)[2].strip()
        return ""

    def _summary_checks(self, number: int, turn: Compress, summary: str) -> Iterator[CheckOutcome]:
        for state in turn.states:
            yield self._states(number, state, summary)
        seen, past = numbers_in(summary), self._position.earlier
        for earlier in turn.keeps_sources_of:
            wanted = past.numbers(earlier)
            if not wanted:
                self._blame(number, "keeps_sources_of", earlier, "cited nothing")
            got = f"{sorted(wanted & seen)} of {sorted(wanted)}"
            yield f"keeps the sources of turn {earlier}", bool(wanted) and wanted <= seen, got
        lexicon = Lexicon(self._application.documents.lexicon(self._session.readable()))
        for earlier in turn.keeps_names_of:
            names = lexicon.whole_names(past.exchanges.get(earlier, ""))
            if not names:
                self._blame(number, "keeps_names_of", earlier, "names no product")
            lost = names - lexicon.whole_names(summary)
            got = f"without {', '.join(sorted(lost))}"
            yield f"keeps the names of turn {earlier}", bool(names) and not lost, got
        if turn.within_tokens is not None:
            tokens = self._application.count(summary)
            expected = f"the summary takes at most {turn.within_tokens:,} tokens"
            yield expected, tokens <= turn.within_tokens, f"{tokens:,}"

    def _states(self, number: int, statement: WantedStatement, summary: str) -> CheckOutcome:
        if statement.turn is None:
            return f"states {statement.words!r}", holds(summary, statement.words), summary
        numbers = self._position.earlier.numbers(statement.turn, statement.source)
        if not numbers:
            of = f" of {statement.source}" if statement.source else ""
            self._blame(number, "states", statement.turn, f"cited nothing{of}")
        markers = " or ".join(f"[{number}]" for number in sorted(numbers))
        beside = stands_beside(summary, statement.words, numbers)
        return f"states {statement.words!r} beside {markers}", beside, summary

    def _recalled(self, wanted: Recalled) -> str:
        """Return what memory recalls for a question, without messages sent verbatim."""
        messages = self._assistant.preview(self._session, wanted.ask)
        ends = [messages[0], messages[-1]] if messages[0].role == Role.SYSTEM else [messages[-1]]
        sent = "\n".join(end.content for end in ends)
        return sent.partition(SUMMARY_TITLE)[2].replace(wanted.ask, "") or ends[-1].content

    def _brought_back(
        self, number: int, turn: Compress, recalled: Sequence[str]
    ) -> Iterator[CheckOutcome]:
        past = self._position.earlier
        for wanted, text in zip(turn.recalls, recalled, strict=True):
            exchange = past.exchanges.get(wanted.turn, "")
            if not holds(exchange, wanted.words):
                self._blame(number, "recalls", wanted.turn, f"does not say {wanted.words!r}")
            numbers = past.numbers(wanted.turn)
            is_recalled, beside = holds(text, wanted.words), ""
            if stands_beside(exchange, wanted.words, numbers):
                is_recalled = stands_beside(text, wanted.words, numbers)
                beside = ", beside its number"
            yield f"recalls {wanted.words!r} for {wanted.ask!r}{beside}", is_recalled, text

    def _blame(self, number: int, key: str, earlier: int, what: str) -> None:
        """Raise an error of the script for an expectation that cannot fail, if that turn passed."""
        if earlier not in self._position.failed:
            raise self._error(number, key, f"turn {earlier} {what}")

    def _error(self, number: int, key: str, message: str) -> UserError:
        return self._position.source.error(("turns", number - 1, key), message)

    # ── What is done beside asking ───────────────────────────────────────────────────────────

    def _import(self, number: int, turn: Import) -> PlayedTurn:
        sources = [
            brought_source(source.n, source.text, source.document, locator=source.place)
            for source in turn.sources
        ]
        messages = [ImportedMessage(message.role, message.content) for message in turn.messages]
        self._session.append(messages, sources)
        text = "\n".join(message.content for message in messages)
        answers = [m.content for m in messages if m.role == Role.ASSISTANT]
        numbers = cited_numbers("\n\n".join(map(canonical, answers)))
        past = self._position.earlier
        past.cited[number] = tuple(self._session.sources(numbers))
        past.exchanges[number] = canonical(text)
        return PlayedTurn(number, "import", f"{len(messages)} messages", answer=text)

    def _configure(self, number: int, turn: SettingsStep) -> PlayedTurn:
        configure(self._session, turn.settings, compacts=self._position.compacts)
        changed = turn.settings.model_dump(exclude_none=True)
        summary = ", ".join(f"{key}: {value}" for key, value in changed.items())
        return PlayedTurn(number, "settings", summary)

    def _add(self, number: int, turn: Add) -> PlayedTurn:
        name, text = turn.add.name, turn.add.text
        file = IncomingFile(name, lambda _most: (text or "").encode())
        if turn.add.file is not None:
            path = self._position.source.path.parent / turn.add.file
            if not path.is_file():
                raise self._error(number, "add", f"there is no file {path}")
            file = IncomingFile.from_path(path, name=name)
        checks = [
            Check(number, f"{name} is read", progress.stage is not Stage.FAILED, progress.reason)
            for progress in self._application.ingestion.ingest([file])
            if progress.is_final
        ]
        return PlayedTurn(number, "add", name, checks=tuple(checks))

    def _remove(self, number: int, turn: Remove) -> PlayedTurn:
        documents = self._application.documents.documents(EVERYTHING)
        document = next((one for one in documents if one.name == turn.remove), None)
        if document is None:
            raise self._error(number, "remove", f"there is no document {turn.remove!r}")
        self._application.ingestion.delete(document.id)
        return PlayedTurn(number, "remove", turn.remove)


def configure(session: "SessionHandle", wanted: Configured, *, compacts: bool) -> None:
    """Change a session's configuration.

    Without compaction, messages stay verbatim as far as they fit.
    """
    config = wanted.changed(session.read().config)
    if not compacts:
        most = config.max_tokens
        config = ContextConfig(enabled=False, max_tokens=most, recent_message_count=MANY)
    session.configure(config)


def _cited(ended: Finished) -> tuple[CitedSource, ...]:
    by_number = {source.number: source for source in ended.sources}
    citations = ended.message.answer.citations if ended.message.answer else ()
    verdicts = {(citation.number, citation.verdict.value) for citation in citations}
    return tuple(
        CitedSource(number, by_number[number].document_name, by_number[number].locator, verdict)
        for number, verdict in sorted(verdicts)
        if number in by_number
    )
