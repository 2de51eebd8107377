"""What is wrong with the statements of an answer, in words, and where that is said: behind each."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rag.citations.statements import read_statements
from rag.records import CheckedFigure, Citation, FigureStatus, Message, Verdict

VERDICTS = {
    Verdict.SUPPORTED: "The source says so.",
    Verdict.COMPUTED: "Recomputed from figures of the sources.",
    Verdict.CONTRADICTED: "The source says something else.",
    Verdict.OFF_SUBJECT: "The source does not speak of this.",
    Verdict.OPEN: "Not checked.",
}
_SIGNS = re.compile(r"[\\`*_|<>~]")  # of Markdown


@dataclass(frozen=True, slots=True)
class StatementWarning:
    """What is wrong with one statement."""

    end: int  # behind its last word or marker
    said: tuple[tuple[int, str], ...]  # each of its numbers that is wrong, and why

    def __str__(self) -> str:
        """In one line; which numbers are meant is said where there are several."""
        if len(self.said) == 1:
            return self.said[0][1]
        alike: dict[str, str] = {}
        for number, why in self.said:
            alike[why] = f"{alike.get(why, '')}[{number}]"
        return " ".join(f"{numbers} {why}" for why, numbers in alike.items())


def verdict_in_words(citation: Citation) -> str:
    """The reason, or what its verdict means; a judge's word is shown as the judge's."""
    reason = " ".join((citation.reason or VERDICTS[citation.verdict]).split())
    return f"{citation.judged_by} says: {reason}" if citation.judged_by else reason


def warnings_in(text: str, citations: Sequence[Citation]) -> list[StatementWarning]:
    """The statements of which a number does not say so, in order."""
    by_end: defaultdict[int, dict[tuple[int, str], None]] = defaultdict(dict)
    for citation in citations:
        if citation.verdict.is_warning:
            by_end[_end_of(text, citation)][citation.number, verdict_in_words(citation)] = None
    return [StatementWarning(end, tuple(reasons)) for end, reasons in sorted(by_end.items())]


def with_warnings(message: Message) -> str:
    """A message as Markdown that says behind each statement what is wrong with it."""
    text, answer = message.content, message.answer
    if answer is None:
        return text
    notes = [(warning.end, f"⚠ {warning}") for warning in warnings_in(text, answer.citations)]
    notes += [(statement_end(text, u.start, u.end), "no source") for u in answer.unsourced]
    notes += [(figure.end, missing_in_words(figure)) for figure in unfound_in(answer.figures)]
    for end, note in sorted(notes, reverse=True):
        escaped = _SIGNS.sub(r"\\\g<0>", note)
        text = f"{text[:end]} *({escaped})*{text[end:]}"
    return text


def missing_in_words(mark: CheckedFigure) -> str:
    """What stands behind a figure that was not found: "not in source 1"."""
    *others, last = map(str, mark.cited)
    if not others:
        return f"not in source {last}"
    return f"not in sources {', '.join(others)} and {last}"


def unfound_in(figures: Sequence[CheckedFigure]) -> list[CheckedFigure]:
    """Those that stand in no source of their statement, nor follow from others."""
    return [figure for figure in figures if figure.status is FigureStatus.UNFOUND]


def _end_of(text: str, citation: Citation) -> int:
    for statement in read_statements(text):
        if statement.start <= citation.start < statement.end:
            return max(citation.end, statement_end(text, statement.start, statement.end))
    return citation.end


def statement_end(text: str, start: int, end: int) -> int:
    """Behind its last word, within the cell where it is a row."""
    return start + len(text[start:end].rstrip(" \t|\n"))
