"""Whether what was expected of an answer, a summary or a recall holds."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rag.citations.markers import cited_numbers, without_markers
from rag.records import Finished, Source
from rag.regression.script import CitedPlace, Expectations

RANGE = re.compile(r"\[(\d{1,6})\]–\[(\d{1,6})\]")
NOT_IN_NUMBERS = re.compile(r"[,\s*]")
ROW = re.compile(r"\s*(?:>\s*)?\|")
CheckOutcome = tuple[str, bool, str]  # the expectation, whether it holds, what there is instead


@dataclass(slots=True)
class Earlier:
    """What earlier turns left, by their number."""

    cited: dict[int, tuple[Source, ...]] = field(default_factory=dict)
    said: dict[int, str] = field(default_factory=dict)
    indices: dict[int, int] = field(default_factory=dict)  # of the questions

    def numbers(self, turn: int, document: str | None = None) -> set[int]:
        """The numbers that a turn cited, of one document."""
        return {
            source.number
            for source in self.cited.get(turn, ())
            if document in (None, source.document_name)
        }


def of_answer(turn: Expectations, ended: Finished, past: Earlier) -> Iterator[CheckOutcome]:
    """What is expected of an answer in words, sources and verdicts."""
    text, answer = ended.message.content, ended.message.answer
    sources = ", ".join(f"{s.document_name} ({s.locator})" for s in ended.sources)
    yield "is answered", bool(text.strip()), ""
    for wanted in turn.cites:
        yield f"cites {_named(wanted)}", _cites(wanted, ended.sources), sources or "no source"
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


def no_other_numbers(text: str, given: int) -> CheckOutcome:
    """Numbers 1 to `given` are what the conversation has given; no answer may show another."""
    other = [number for number in cited_numbers(text) if not 1 <= number <= given]
    return "gives no number that it was not given", not other, ", ".join(map(str, other))


def _named(wanted: str | CitedPlace) -> str:
    return wanted if isinstance(wanted, str) else f"{wanted.document} at {wanted.place!r}"


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
    """Whether the text has the words in a row, ignoring case, blanks, markers and emphasis.

    What begins or ends with a figure is not found inside of a longer one.
    """
    wanted = re.escape(_flat(words))
    before = r"(?<!\d)(?<!\d[.,])" if words[:1].isdigit() else ""
    after = r"(?![.,]?\d)" if words[-1:].isdigit() else ""
    return re.search(before + wanted + after, _flat(without_markers(text))) is not None


def _flat(text: str) -> str:
    return " ".join(text.replace("*", "").casefold().split())


def is_same_value(shown: str, wanted: str) -> bool:
    """Whether a cell is this value: 1,216 is 1216, and 243.20 is 243.2."""
    plain = [NOT_IN_NUMBERS.sub("", each) for each in (shown, wanted)]
    try:
        return math.isclose(*map(float, plain))
    except ValueError:
        return holds(shown, wanted)


def words_of(text: str) -> set[str]:
    """The words, whatever their case."""
    return set(re.findall(r"\w+", text.casefold()))


def numbers_in(text: str) -> set[int]:
    """Every number of a summary; its list may hold ranges of any length, such as `[3]–[40]`."""
    found = set(cited_numbers(text))
    for first, last in RANGE.findall(text):
        found.update(range(int(first), int(last) + 1))
    return found


def stands_beside(text: str, words: str, numbers: Iterable[int]) -> bool:
    """Whether the words stand in one line, or one table with its lead-in, with such a number."""
    wanted = set(numbers)
    return any(holds(each, words) and wanted & numbers_in(each) for each in _together(text))


def _together(text: str) -> Iterator[str]:
    """Lines, and tables with the line before them."""
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
