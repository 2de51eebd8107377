"""How good answers are, measured against questions whose answers are known."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from rag.errors import UserError
from rag.language.languages import ENGLISH
from rag.records import Event, Failed
from rag.regression.results import ending
from rag.regression.script_file import ScriptFile, read_text, validated
from rag.seams import SessionHandle

_ARTICLE = re.compile(ENGLISH.patterns["articles"])


class KnownQuestion(BaseModel):
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
    """One question with what came of it."""

    question: KnownQuestion
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
    """What is being measured."""

    def ask(self, session: SessionHandle, question: str) -> Iterator[Event]: ...


def read_questions(path: Path) -> list[KnownQuestion]:
    """Read a JSON Lines file.

    Raises:
        UserError: it is missing or empty, or a line is no question; names the line.
    """
    lines = read_text(path).splitlines()
    results = [
        _question(path, line, number) for number, line in enumerate(lines, start=1) if line.strip()
    ]
    if not results:
        raise UserError(f"{path} holds no question.")
    return results


def _question(path: Path, line: str, number: int) -> KnownQuestion:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise UserError(f"{path}, line {number}: not JSON; {error}.") from error
    return validated(KnownQuestion, ScriptFile(path, data, {(): number}))


def grade(question: KnownQuestion, assistant: Answers, session: SessionHandle) -> Graded:
    """Ask one question in a session of its own."""
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
    """Overlap of words, articles and markers apart, as in SQuAD (Rajpurkar et al., EMNLP 2016)."""
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
    """Means over all questions; a measure without questions is None."""
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
