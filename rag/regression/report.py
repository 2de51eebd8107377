"""Results of replays and measurements, as text for people, JSON and JUnit for programs."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Protocol
from xml.etree import ElementTree

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict, Field
from rich.console import Console
from rich.markup import escape

from rag.errors import UserError
from rag.language.words import ENGLISH
from rag.records import Event, Failed, Finished
from rag.regression.script import ScriptFile, read_text, validated
from rag.seams import SessionHandle
from rag.wiring.components import package_folder

# ── Results of a replay, turn by turn ────────────────────────────────────────────────────────────


def ending(events: Iterable[Event]) -> Finished | Failed:
    """Return the event with which a turn ended; a judge's events may follow it."""
    return [event for event in events if isinstance(event, Finished | Failed)][-1]


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation of a turn, checked."""

    turn: int  # from 1
    expectation: str
    held: bool
    got: str = ""  # what was found instead


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A source that an answer cites."""

    number: int
    document: str
    place: str
    verdict: str


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """A turn and its results."""

    number: int  # from 1
    action: str
    said: str  # the question, or a description of the action
    answer: str = ""
    resolved: str = ""  # the standalone question, if it differs
    cited: tuple[CitedSource, ...] = ()
    summary: str = ""
    recalled: tuple[str, ...] = ()  # what a model would be sent for each probe, without the summary
    tokens: int = 0  # tokens that a model would be sent after this turn
    checks: tuple[Check, ...] = ()

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.held)


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of one conversation."""

    title: str
    file: str
    turns: tuple[PlayedTurn, ...] = ()
    error: str = ""  # an error of the file, which was not replayed completely
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The file's name without endings."""
        return Path(self.file).name.split(".")[0]

    @property
    def checks(self) -> tuple[Check, ...]:
        return tuple(check for turn in self.turns for check in turn.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.held)

    @property
    def passed(self) -> bool:
        return not self.error and not self.failures

    @property
    def outcome(self) -> tuple[object, ...]:
        """What must be equal in two runs of the same script."""
        return self.error, self.turns


# ── Measuring answers to questions with known answers ────────────────────────────────────────────

_ARTICLE = re.compile(ENGLISH.patterns["articles"])


class EvaluatedQuestion(BaseModel):
    """One line of a questions file; without `document` the library does not answer it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    question: Annotated[str, Field(min_length=1)]
    kind: str = ""
    answer: str | None = None
    document: str | None = None  # that answers it
    also: tuple[str, ...] = ()  # other documents that do
    key: str | None = None  # words of the document that a good answer holds


@dataclass(frozen=True, slots=True)
class Graded:
    """A question and its graded answer."""

    question: EvaluatedQuestion
    answered: str
    declined: bool
    documents: tuple[str, ...]  # cited, in order of their first citation

    @property
    def is_answerable(self) -> bool:
        return self.question.document is not None

    @property
    def cites_first(self) -> bool:
        """Whether the first citation is of a document that answers."""
        right = {self.question.document, *self.question.also}
        return bool(self.documents) and self.documents[0] in right

    @property
    def f1(self) -> float:
        return token_f1(self.answered, self.question.answer or "")


class Answers(Protocol):
    """The assistant that is measured."""

    def ask(self, session: SessionHandle, question: str) -> Iterator[Event]: ...


def read_questions(path: Path) -> list[EvaluatedQuestion]:
    """Read a JSON Lines file of questions.

    Raises:
        UserError: It is missing or empty, or a line is no question; names the line.
    """
    questions: list[EvaluatedQuestion] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}, line {number}: not JSON; {error}.") from error
        questions.append(validated(EvaluatedQuestion, ScriptFile(path, data, {(): number})))
    if not questions:
        raise UserError(f"{path} holds no question.")
    return questions


def grade(question: EvaluatedQuestion, assistant: Answers, session: SessionHandle) -> Graded:
    """Ask one question in a session and grade the answer."""
    last = ending(assistant.ask(session, question.question))
    if isinstance(last, Failed):
        return Graded(question, "", declined=True, documents=())
    answer = last.message.answer
    by_number = {source.number: source.document_name for source in last.sources}
    numbers = [citation.number for citation in answer.citations] if answer else []
    return Graded(
        question,
        last.message.content,
        declined=answer is not None and answer.declined,
        documents=tuple(dict.fromkeys(by_number[n] for n in numbers if n in by_number)),
    )


def token_f1(text: str, gold: str) -> float:
    """Return the overlap of words without articles and markers, as SQuAD's F1.

    Source: Rajpurkar et al., EMNLP 2016.
    """
    ours, theirs = Counter(_words(text)), Counter(_words(gold))
    common = sum((ours & theirs).values())
    if common == 0:
        return 0.0
    precision, recall = common / sum(ours.values()), common / sum(theirs.values())
    return 2 * precision * recall / (precision + recall)


def _words(text: str) -> list[str]:
    plain = re.sub(r"\[[\d, –-]+\]", " ", text.lower())
    return [word for word in re.findall(r"\w+", plain) if not _ARTICLE.fullmatch(word)]


def summary_of(graded: Sequence[Graded]) -> dict[str, Any]:
    """Return means over all questions; a measure without questions is None."""
    answerable = [g for g in graded if g.is_answerable]
    others = [g for g in graded if not g.is_answerable]
    answers = _mean([not g.declined for g in answerable])
    declines = _mean([g.declined for g in others])
    both = None if answers is None or declines is None else (answers + declines) / 2
    return {
        "questions": len(graded),
        "first_citation_right": _mean([g.cites_first for g in answerable]),
        "token_f1": _mean([g.f1 for g in answerable if g.question.answer]),
        "answered": answers,
        "declined": declines,
        "balanced_accuracy": both,
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


# ── Reports ──────────────────────────────────────────────────────────────────────────────────────

LONGEST_ANSWER = 700  # characters shown of an answer that was not expected
VERSION = 1


def as_json(replays: Sequence[Replay]) -> dict[str, Any]:
    """Return everything as JSON, to be compared with a later run."""
    return {
        "version": VERSION,
        "passed": sum(replay.passed for replay in replays),
        "failed": sum(not replay.passed for replay in replays),
        "conversations": [
            {
                "name": replay.name,
                "title": replay.title,
                "file": replay.file,
                "passed": replay.passed,
                "error": replay.error,
                "checks": [asdict(check) for check in replay.checks],
                "turns": [
                    {key: value for key, value in asdict(turn).items() if key != "checks"}
                    for turn in replay.turns
                ],
            }
            for replay in replays
        ],
    }


def as_junit(replays: Sequence[Replay]) -> bytes:
    """Return JUnit XML with a suite for each conversation and a case for each turn."""
    root = ElementTree.Element("testsuites", name="groundnote regress")
    for replay in replays:
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=replay.title,
            tests=str(max(1, len(replay.turns))),
            failures=str(sum(bool(turn.failures) for turn in replay.turns)),
            errors=str(int(bool(replay.error))),
            time=f"{replay.seconds:.2f}",
        )
        for turn in replay.turns:
            name = _xml(f"turn {turn.number}: {turn.said}")
            case = ElementTree.SubElement(suite, "testcase", classname=replay.name, name=name)
            for check in turn.failures:
                failure = ElementTree.SubElement(case, "failure", message=_xml(check.expectation))
                failure.text = _xml(difference(turn, check))
        if replay.error:
            case = ElementTree.SubElement(suite, "testcase", classname=replay.name, name="file")
            ElementTree.SubElement(case, "error", message=_xml(replay.error))
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _xml(text: str) -> str:
    """Remove characters that XML does not allow."""
    return "".join(
        character
        for character in text
        if character in "\t\n" or " " <= character <= "\ud7ff" or character > "\ue000"
    )


def difference(turn: PlayedTurn, check: Check) -> str:
    """Describe what was expected, what was found, and what it was made from."""
    lines = [f"expected: {check.expectation}", f"got:      {_indented(check.got or 'not that')}"]
    lines.insert(0, f"{turn.action}: {turn.said}")
    if turn.resolved:
        lines.append(f"searched: {turn.resolved}")
    if turn.answer and check.got != turn.answer:
        lines.append(f"answer:   {_indented(turn.answer)}")
    lines += [
        f"{f'[{source.number}]':<9} {source.document}, {source.place} ({source.verdict})"
        for source in turn.cited
    ]
    return "\n".join(lines)


def _indented(text: str) -> str:
    short = text if len(text) <= LONGEST_ANSWER else text[:LONGEST_ANSWER] + " …"
    return short.strip().replace("\n", "\n          ")


def show(replay: Replay, console: Console) -> None:
    """Print one line for a conversation, and a difference for each failed expectation."""
    sign = "[green]passed[/green]" if replay.passed else "[red]failed[/red]"
    about = f"{len(replay.checks)} checks, {replay.seconds:.1f} s"
    console.print(f"{sign}  {escape(replay.title)}  [dim]{about}[/dim]", soft_wrap=True)
    if replay.error:
        console.print(f"        {escape(replay.error)}", soft_wrap=True)
    for turn in replay.turns:
        for check in turn.failures:
            text = difference(turn, check).replace("\n", "\n          ")
            console.print(f"        turn {turn.number}, {escape(text)}", soft_wrap=True)


# ── Beside another run ───────────────────────────────────────────────────────────────────────


def cost_of_compaction(replay: Replay, without: Replay) -> dict[str, Any]:
    """Compare with a run without compaction: changed answers, lost citations, saved tokens."""
    pairs = [
        (one, other)
        for one, other in zip(replay.turns, without.turns, strict=False)
        if one.action in ("ask", "regenerate")
    ]
    cites = [
        ({c.number for c in one.cited}, {c.number for c in other.cited}) for one, other in pairs
    ]
    return {
        "answers": len(pairs),
        "answers_changed": [one.number for one, other in pairs if one.answer != other.answer],
        "citations": sum(len(other) for _, other in cites),
        "citations_lost": sum(len(other - one) for one, other in cites),
        "expectations_failed": [len(replay.failures), len(without.failures)],
        "tokens": [sum(one.tokens for one, _ in pairs), sum(other.tokens for _, other in pairs)],
    }


def show_cost(replay: Replay, without: Replay, console: Console) -> None:
    """Print the cost of compaction in one line."""
    cost = cost_of_compaction(replay, without)
    changed = cost["answers_changed"]
    where = f" (turns {', '.join(map(str, changed))})" if changed else ""
    with_, without_ = cost["tokens"]
    saved = 100 * (without_ - with_) / without_ if without_ else 0
    console.print(
        f"        compaction: {len(changed)} of {cost['answers']} answers changed{where}, "
        f"{cost['citations_lost']} of {cost['citations']} citations lost, {without_:,} tokens "
        f"became {with_:,} ({saved:.0f} % less)",
        soft_wrap=True,
    )


def compared(before: Any, now: Any) -> dict[str, list[str]]:
    """Group expectations by how they changed since an earlier report."""
    old, new = _by_expectation(before), _by_expectation(now)
    both = [key for key in new if key in old]
    return {
        "better": [key for key in both if new[key] and not old[key]],
        "worse": [key for key in both if old[key] and not new[key]],
        "same": [key for key in both if old[key] == new[key]],
        "new": [key for key in new if key not in old],
        "gone": [key for key in old if key not in new],
    }


def _by_expectation(report: Any) -> dict[str, bool]:
    results = {}
    for conversation in report["conversations"]:
        for check in conversation["checks"]:
            results[f"{conversation['name']}, turn {check['turn']}: {check['expectation']}"] = (
                check["held"]
            )
        results[f"{conversation['name']}: the file can be replayed"] = not conversation["error"]
    return results


def read_report(path: Path) -> Any:
    """Read an earlier `--json` report. Raises UserError."""
    try:
        report = json.loads(read_text(path))
    except ValueError as error:
        raise UserError(f"{path} is no report of `regress --json`: {error}.") from error
    if not isinstance(report, dict) or report.get("version") != VERSION:
        raise UserError(f"{path} is no report of this version of `regress --json`. Make it anew.")
    return report


def show_comparison(changes: dict[str, list[str]], console: Console) -> None:
    """Print counts, and the names of what is better and worse."""
    counts = ", ".join(f"{len(names)} {word}" for word, names in changes.items() if names)
    console.print(f"beside the earlier run: {counts}", highlight=False)
    for word in ("worse", "better"):
        for change in changes[word]:
            console.print(f"        {word}: {escape(change)}", soft_wrap=True)


def show_measures(graded: Sequence[Graded], console: Console) -> None:
    """Print a line for each wrong answer, then the means."""
    for answer in graded:
        wrong = answer.is_answerable and (answer.declined or not answer.cites_first)
        if wrong or (not answer.is_answerable and not answer.declined):
            cited = ", ".join(answer.documents) or "nothing"
            did = "declined" if answer.declined else f"cited {cited}"
            question = answer.question
            console.print(
                f"{escape(question.id)}: {escape(question.question)} [dim]{escape(did)}; expected "
                f"{escape(question.document or 'to decline')}[/dim]",
                soft_wrap=True,
            )
    for name, value in summary_of(graded).items():
        shown = "-" if value is None else f"{value:g}"
        console.print(f"{name.replace('_', ' '):<22} {shown:>8}", highlight=False)


WIDTH, HEIGHT, LEFT, FOOT = 900, 150, 48, 22  # of the plot


def as_page(replays: Sequence[Replay]) -> str:
    """Return an HTML page of the conversations with their turns; failed ones come first."""
    files = FileSystemLoader(package_folder("templates"))
    templates = Environment(loader=files, autoescape=True, undefined=StrictUndefined)
    return templates.get_template("report.html").render(
        replays=sorted(replays, key=lambda replay: replay.passed), failure=_failure, tokens=_plot
    )


def _failure(turn: PlayedTurn, check: Check) -> str:
    """Describe a failed check without the parts that the page shows below it."""
    return difference(replace(turn, answer="", resolved="", cited=()), check).partition("\n")[2]


def _plot(turns: Sequence[PlayedTurn]) -> dict[str, Any]:
    """Return a line plot of the tokens sent after each turn, with summaries marked."""
    most = max((turn.tokens for turn in turns), default=0)
    if len(turns) < 2 or not most:
        return {}
    step = (WIDTH - LEFT - 8) / (len(turns) - 1)
    points = [
        (f"{LEFT + index * step:.1f}", f"{(HEIGHT - FOOT) * (1 - turn.tokens / most) + 6:.1f}")
        for index, turn in enumerate(turns)
    ]
    return {
        "width": WIDTH, "height": HEIGHT, "left": LEFT, "foot": HEIGHT - FOOT, "most": most,
        "last": turns[-1].number, "line": " ".join(",".join(point) for point in points),
        "marks": [
            (*point, turn.number)
            for turn, point in zip(turns, points, strict=True)
            if turn.action == "compress"
        ],
    }  # fmt: skip
