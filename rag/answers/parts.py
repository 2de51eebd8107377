"""A question that asks several things, as questions that can be answered one by one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag.answers.comparing import OWNING, compared_in, may_compare
from rag.answers.questions import read_question
from rag.text.names import find_names

MOST_PARTS = 4
_OPENS = (
    r"(?:what|which|how|why|when|where|who|whose|is|are|was|were|do|does|did|can|could|will|has|"
    r"have|wie|was|warum|wann|wo|wer|welche[rsn]?|ist|sind|kann|hat)\b"
)
_JOINT = re.compile(rf"(?<=\?)\s+|[,;]?\s+(?:and|und)\s+(?:also\s+)?(?={_OPENS})", re.IGNORECASE)
_BEGINS = re.compile(rf"\W*{_OPENS}", re.IGNORECASE)
# One question about two things, not two questions.
_COMPARES = re.compile(r"\b(differ\w*|between|compar\w*|versus|vs|unterschied\w*)\b", re.IGNORECASE)
_OWNER = re.compile(r"\b(its|their)\b", re.IGNORECASE)
_STANDS_FOR = re.compile(r"\b(it|they|them|this one|that one|es)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """One of several questions: as it was asked, and as it can be understood alone."""

    asked: str
    alone: str


def searched_apart(
    question: str, lexicon: Callable[[], Sequence[str]] = tuple
) -> list[tuple[str, str]]:
    """What to search for one by one, by meaning and by words; [] where it asks one thing.

    Each side of a comparison; or the parts of a question that asks several things, and before them
    the whole question, because its parts are mostly about one subject.
    """
    comparison = compared_in(question, lexicon()) if may_compare(question) else None
    if comparison is not None:
        return [comparison.searched(side) for side in comparison.sides]
    parts = parts_of(question)
    searched = [question, *(part.alone for part in parts)]
    return [(each, each) for each in searched] if len(parts) > 1 else []


def parts_of(question: str) -> list[Part]:
    """The questions in a question, in order; the question alone where it cannot be taken apart.

    `What does the Aero 5 weigh and what does it cost?` becomes two, the second one about the
    Aero 5 in words too. Where it is not clear what a part is about the question stays whole.
    """
    whole = [Part(question, question)]
    asked = [part.strip() for part in _JOINT.split(question.strip())]
    if not 1 < len(asked) <= MOST_PARTS or _COMPARES.search(question):
        return whole
    if not all(_BEGINS.match(part) for part in asked):
        return whole
    alone = _with_subjects(asked)
    if not all(read_question(part).aspects for part in alone):
        return whole
    return [Part(*both) for both in zip(asked, alone, strict=True)] if alone else whole


def _with_subjects(parts: list[str]) -> list[str]:
    """Each part with the product of those before it where it names none; [] where none is."""
    told: list[str] = []
    subject = ""
    for part in parts:
        names = [OWNING.sub("", name.text) for name in find_names(part)]
        if len(names) > 1:
            return []  # which of them a pronoun stands for is not clear
        if names or not told:
            told.append(part)
        elif _STANDS_FOR.search(part) or _OWNER.search(part):
            if not subject:
                return []
            replaced = _OWNER.sub(f"{subject}'s", part, count=1)
            told.append(_STANDS_FOR.sub(subject, replaced, count=1))
        else:
            told.append(f"{part.rstrip('?')} ({subject})?" if _is_model(subject) else part)
        subject = names[0] if names else subject
    return told


def _is_model(name: str) -> bool:
    """`Aero 5` is meant on; after a mere `Claude` the next question may be about anything."""
    return any(character.isdigit() for character in name)
