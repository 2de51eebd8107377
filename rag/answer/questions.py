"""What a question asks for: its terms, the kind of its answer, the products it is about."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from rag.answer.words import phrases, terms
from rag.names import find_names


class Wanted(StrEnum):
    """The kind of answer that a question asks for."""

    FIGURE = "figure"
    DATE = "date"
    PERSON = "person"
    PLACE = "place"
    REASON = "reason"
    STEPS = "steps"
    MEANING = "meaning"
    ANYTHING = "anything"


# The first that matches holds; German beside English, since the words are few.
_CUES = (
    (
        Wanted.FIGURE,
        r"\bhow (many|much|long|far|tall|heavy|large|big|wide|fast|high|deep|old|often|loud)\b"
        r"|\b(price|cost|costs|weight|weigh|capacity|voltage|wattage|dimensions|resolution|"
        r"maximum|minimum|percentage|number of|size of|range of)\b|\bwie (viel|viele|lange|hoch|"
        r"schwer|groß|oft|weit)\b|\b(kostet|wiegt|gewicht|preis)\b",
    ),
    (Wanted.DATE, r"\b(when|what (year|date|day|month|time)|since what|wann|in welchem jahr)\b"),
    (Wanted.PERSON, r"\b(who|whose|whom|wer|wem|wessen)\b"),
    (Wanted.PLACE, r"\b(where|what (country|city|place)|wo|wohin|woher)\b"),
    (Wanted.REASON, r"\b(why|what (causes?|caused)|reason|warum|weshalb|wieso)\b"),
    (
        Wanted.STEPS,
        r"\bhow (do|can|to|should|would|could|does one)\b|\bsteps?\b|\bwie (kann|stelle)\b",
    ),
    (
        Wanted.MEANING,
        r"^\W*(what|who) (is|are|was|were|does)\b|\b(meaning|definition|define|mean|stand for)\b"
        r"|\bwas (ist|sind|bedeutet)\b",
    ),
)
# The adjective says what is measured, and no answer repeats it.
_MEASURED = re.compile(
    r"\bhow (long|far|tall|large|big|wide|fast|high|deep|old|often|loud)\b", re.IGNORECASE
)
_COMPILED = tuple((wanted, re.compile(pattern, re.IGNORECASE)) for wanted, pattern in _CUES)

_MONTH = (
    r"jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|"
    r"nov(ember)?|dec(ember)?|januar|februar|märz|mai|juni|juli|oktober|dezember"
)
_HOLDS = {
    Wanted.FIGURE: re.compile(
        r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|thousand|million|"
        r"once|twice|half|zwei|drei|vier|fünf)\b",
        re.IGNORECASE,
    ),
    Wanted.DATE: re.compile(
        rf"\b(1\d|20)\d\d\b|\b({_MONTH})\b\.?\s*\d|\d\.?\s*({_MONTH})\b|\b\d+\s*(days?|weeks?|months?|"
        r"years?|hours?|minutes?|seconds?|am|pm|tage?n?|wochen?|monate?n?)\b|\b(mon|tues|wednes|"
        r"thurs|fri|satur|sun)day\b",
        re.IGNORECASE,
    ),
    Wanted.PERSON: re.compile(r"(?<!^)(?<![.!?]\s)\b[A-ZÀ-Þ][a-zà-ÿ]+(\s+[A-ZÀ-Þ][\w.]*)+"),
    Wanted.PLACE: re.compile(
        r"\b(in|at|on|near|from|to|under|above|below|behind|inside|im|am|bei|auf)\s+(the\s+)?"
        r"[\"“]?[A-ZÀ-Þ]|\b(located|situated|found|settings?|menu|tab|page)\b"
    ),
    Wanted.REASON: re.compile(
        r"\b(because|since|due to|so that|in order to|caused?|reason|therefore|thus|as a result|"
        r"to (avoid|prevent|protect|reduce|ensure)|weil|damit|deshalb)\b",
        re.IGNORECASE,
    ),
    Wanted.STEPS: re.compile(
        r"^(- |1\. )|\b(tap|press|select|open|click|choose|go to|set|use|run|enter|hold|turn|swipe|"
        r"connect|install|follow|add|call|insert|remove|you can|drücken|wählen|öffnen)\b",
        re.IGNORECASE,
    ),
    Wanted.MEANING: re.compile(
        r"\b(is|are|was|were|means?|refers? to|describes?|allows?|lets?|ist|sind|bedeutet)\b",
        re.IGNORECASE,
    ),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read."""

    text: str
    terms: frozenset[str]
    phrases: frozenset[str]
    wanted: Wanted

    def is_served_by(self, text: str) -> bool:
        """Whether a text holds the kind of thing that is wanted; of anything, it always does."""
        pattern = _HOLDS.get(self.wanted)
        return pattern is None or bool(pattern.search(text))


def read_question(text: str) -> Question:
    """Its terms, and the kind of its answer by its first cue."""
    wanted = next((kind for kind, cue in _COMPILED if cue.search(text)), Wanted.ANYTHING)
    told = _MEASURED.sub(" ", text)
    return Question(text, terms(told), phrases(told), wanted)


class Products:
    """Which of the products that the sources name a question is about, and which are rivals.

    Rivals are siblings of a product asked for: `Aero 5 Pro` and `Aero 7` when it is `Aero 5`.
    """

    def __init__(self, question: str, texts: Iterable[str]) -> None:
        known = {_key(name) for text in texts for name in _names(text)}
        known |= {_key(name) for name in _names(question)}
        asked = _mentioned(_key(question), known)
        # Only products that could be mistaken for another one matter here.
        self._asked = frozenset(
            name for name in asked if any(_are_siblings(name, other) for other in known - {name})
        )
        self._rivals = frozenset(
            name for name in known - asked if any(_are_siblings(mine, name) for mine in self._asked)
        )

    def asked_in(self, text: str) -> frozenset[str]:
        """The products asked for that a text names itself."""
        if len(self._asked) < 2:
            return frozenset()
        return frozenset(_mentioned(_key(text), self._asked | self._rivals) & self._asked)

    def fit(self, text: str, context: str) -> float:
        """1 where a product asked for is named, -1 where only a rival is, else 0.

        A text that names neither is about whatever stands above it.
        """
        if not self._rivals:
            return 0.0
        for where in (text, context):
            named = _mentioned(_key(where), self._asked | self._rivals)
            if named & self._asked:
                return 1.0
            if named:
                return -1.0
        return 0.0


@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[str, ...]:
    return tuple(name.text for name in find_names(text))


def _key(text: str) -> str:
    return " ".join(re.sub(r"[™®©]", "", text).casefold().split())


def _mentioned(text: str, names: Iterable[str]) -> set[str]:
    """The names in a text, longest first: within `aero 5 pro` no `aero 5` is mentioned."""
    found: set[str] = set()
    for name in sorted(names, key=len, reverse=True):
        pattern = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
        rest = re.sub(pattern, "\0", text)
        if rest != text:
            found.add(name)
            text = rest
    return found


def _are_siblings(asked: str, other: str) -> bool:
    if asked.split()[0] != other.split()[0]:
        return False
    if other.startswith(f"{asked} "):
        return True
    return any(map(str.isdigit, other)) and (
        asked.startswith(f"{other} ") or any(map(str.isdigit, asked))
    )
