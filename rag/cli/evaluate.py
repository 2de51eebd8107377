"""The work of `groundnote regress` and `groundnote eval`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from rag.errors import UserError
from rag.regression import report
from rag.regression.player import OWNER
from rag.regression.replay import Libraries, Replayer, ReplayOptions, files_of, settings_for
from rag.regression.report import Check, Graded, Replay, as_page, grade, read_questions
from rag.settings import Settings

AS_SET = ReplayOptions()
WRONG_FILE, FAILED, FINE = 2, 1, 0  # exit codes


@dataclass(frozen=True, slots=True)
class ConversationChoice:
    """Which conversations are replayed, and how often."""

    paths: tuple[Path, ...]
    title_words: str = ""  # words of the file's name or title
    repeats: int = 1
    is_pair: bool = False


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """The files that a run writes."""

    html: Path | None = None
    junit: Path | None = None
    compare: Path | None = None  # an earlier report
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """One replay, and, if wanted, the same without compaction."""

    replay: Replay
    without: Replay | None = None


def regress(
    settings: Settings, wanted: ConversationChoice, options: ReplayOptions = AS_SET
) -> Iterator[Comparison]:
    """Replay each conversation in a library of its own, which is deleted.

    Raises UserError if there is nothing to replay: untested is not passed.
    """
    library_settings = settings_for(settings, options)
    libraries = Libraries(library_settings)
    files = [path for path in files_of(wanted.paths) if _is_named(path, wanted.title_words)]
    if not files:
        raise UserError(f"No conversation is called {wanted.title_words!r}.")
    with Replayer(library_settings, libraries, options) as replayer:
        for path in files:
            first = replayer.replay(path)
            for number in range(2, wanted.repeats + 1):
                first = _with_repeat(first, replayer.replay(path), number)
            if not wanted.is_pair:
                yield Comparison(first)
                continue
            with Replayer(library_settings, libraries, replace(options, compacts=False)) as other:
                yield Comparison(first, other.replay(path))


def run(
    settings: Settings,
    wanted: ConversationChoice,
    options: ReplayOptions,
    written: WrittenFiles,
    console: Console,
) -> tuple[int, str]:
    """Replay, show and write the results; return the exit code, and the JSON for programs."""
    earlier = report.read_report(written.compare) if written.compare else None
    outcomes: list[Comparison] = []
    with console.status("replaying …"):
        for outcome in regress(settings, wanted, options):  # each is shown as soon as it is done
            report.show(outcome.replay, console)
            if outcome.without is not None:
                report.show_cost(outcome.replay, outcome.without, console)
            outcomes.append(outcome)
    replays = [outcome.replay for outcome in outcomes]
    results = report.as_json(replays)
    if wanted.is_pair:
        pairs = [(outcome.replay, outcome.without) for outcome in outcomes if outcome.without]
        results["compaction"] = {one.name: report.cost_of_compaction(one, o) for one, o in pairs}
    if earlier is not None:
        results["compared"] = report.compared(earlier, results)
        report.show_comparison(results["compared"], console)
    if written.junit is not None:
        written.junit.write_bytes(report.as_junit(replays))
    if written.html is not None:
        written.html.write_text(as_page(replays), encoding="utf-8")
    code = FINE if all(replay.passed for replay in replays) else FAILED
    code = WRONG_FILE if any(replay.error for replay in replays) else code
    return code, json.dumps(results, ensure_ascii=False)


def evaluate(libraries: Libraries, questions: Path, documents: Path) -> Iterator[Graded]:
    """Ask each question of a file in a new session over a library of these documents."""
    question_set = read_questions(questions)
    with libraries.copied(documents) as data, libraries.opened(data) as application:
        for question in question_set:
            session = application.store.create(OWNER, title=question.id)
            yield grade(question, application.assistant, session)


def _is_named(path: Path, words: str) -> bool:
    if words.casefold() in path.name.casefold():
        return True
    try:
        return words.casefold() in path.read_text(encoding="utf-8")[:500].casefold()
    except (OSError, UnicodeDecodeError):
        return True  # reading it reports the error


def _with_repeat(first: Replay, again: Replay, number: int) -> Replay:
    """Return the first run, as failed if another one had a different result."""
    if again.outcome == first.outcome:
        return first
    for one, other in zip(first.turns, again.turns, strict=False):
        if one != other:
            texts = (one.answer or one.summary, other.answer or other.summary)
            got = f"\n— in run {number} —\n".join(texts)
            check = Check(one.number, f"run {number} gives the same", False, got)
            changed = replace(one, checks=(*one.checks, check))
            turns = tuple(changed if turn is one else turn for turn in first.turns)
            return replace(first, turns=turns)
    return replace(first, error=first.error or f"Run {number} ended otherwise. {again.error}")
