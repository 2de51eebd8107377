"""A question that asks several things, or of several products, as questions of their own."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.text.names import Lexicon, Name, find_names
from rag.text.words import terms

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
_OWNING = re.compile(r"['’]s?$")  # at the end of a name: `Aero 5's`
_STANDS_FOR = re.compile(r"\b(it|they|them|this one|that one|es)\b", re.IGNORECASE)
# What may stand between two names that are set side by side.
_BESIDE = re.compile(
    r"\s*(?:,|;|/|&|(?:,\s*)?\b(?:and|or|vs\.?|versus|than|with|to|from|und|oder|als|mit|von|vom|zum)\b)"
    r"\s*(?:(?:the|an?|der|die|das|den|dem|eine?[rnm]?)\s+)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Part:
    """One of several questions: as it was asked ("" for the only one), and understood alone."""

    asked: str
    alone: str


def searched_apart(question: str, lexicon: Sequence[str] = ()) -> list[tuple[str, str]]:
    """What to search for one by one, by meaning and by words; [] where it asks one thing.

    Before the parts the whole question, because they are mostly about one subject.
    """
    parts = parts_of(question, lexicon)
    searched = [question, *(part.alone for part in parts)]
    return [(each, each) for each in searched] if len(parts) > 1 else []


def parts_of(question: str, lexicon: Sequence[str] = ()) -> list[Part]:
    """The questions in a question, in order; the question alone where it cannot be taken apart.

    `What does the Aero 5 weigh and what does it cost?` becomes two, the second one about the
    Aero 5 in words too; so does `the Aero 5 or the Aero 7`. Where it is not clear what a part is
    about the question stays whole.
    """
    whole = [Part("", question)]
    sides = _sides(question, lexicon)
    if sides:
        return sides
    asked = [part.strip() for part in _JOINT.split(question.strip())]
    if not 1 < len(asked) <= MOST_PARTS or _COMPARES.search(question):
        return whole
    if not all(_BEGINS.match(part) for part in asked):
        return whole
    alone = _with_subjects(asked, Lexicon(lexicon))
    if not all(_asks_something(part) for part in alone):
        return whole
    return [Part(*both) for both in zip(asked, alone, strict=True)] if alone else whole


def _sides(question: str, lexicon: Sequence[str]) -> list[Part]:
    """The question of each of several products side by side, if it names such."""
    names = Lexicon(lexicon).find(question) if lexicon else []
    run = _side_by_side(question, names)
    if len(run) < 2 or len({name.text.casefold() for name in run}) < len(run):
        return []
    before, after = question[: run[0].start], question[run[-1].end :]
    return [Part(name.text, f"{before}{name.text}{after}") for name in run[:MOST_PARTS]]


def _side_by_side(question: str, names: Sequence[Name]) -> list[Name]:
    """The longest run of names with only such words between them."""
    runs: list[list[Name]] = []
    for name in names:
        between = question[runs[-1][-1].end : name.start] if runs else ""
        if runs and _BESIDE.fullmatch(between):
            runs[-1].append(name)
        else:
            runs.append([name])
    return max(runs, key=len, default=[])


def _asks_something(part: str) -> bool:
    named = frozenset[str]().union(*(terms(name.text) for name in find_names(part)))
    return bool(terms(part) - named)


def _with_subjects(parts: list[str], known: Lexicon) -> list[str]:
    """Each part with the product of those before it where it names none; [] where none is."""
    told: list[str] = []
    subject = ""
    for part in parts:
        names = [_OWNING.sub("", name.text) for name in find_names(part, known)]
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
