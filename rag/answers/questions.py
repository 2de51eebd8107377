"""What a question asks for: its terms, and the kind of its answer."""

import re
from dataclasses import dataclass
from enum import StrEnum

from rag.answers.words import phrases, terms
from rag.text.names import find_names
from rag.text.sentences import split_sentences

_ASKS = re.compile(r"(what|which|how|why|when|where|who|whose)\b", re.IGNORECASE)
_FEWEST_TERMS = 2  # a question with fewer lives from what was said before it


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
        r"\bhow (do|can|to|should|would|could|does one)\b|\bsteps?\b|\bwie (kann|stelle)\b"
        r"|\bhow (is|are) .*\b\w+ed\b",
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
_BRIEF = {Wanted.FIGURE, Wanted.DATE, Wanted.PERSON, Wanted.PLACE}
_LOOKED_UP = re.compile(
    r"\W*what (is|are|was|were) the (?!differen)[^?]+ (of|for|on) ", re.IGNORECASE
)
_POINTED = re.compile(r"\W*(is|are|was|were|do|does|did|has|have|which|whose)\b", re.IGNORECASE)
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


# Words of questions that an answer need not repeat.
IDLE = terms(
    "support supports difference different differ mean means work works hold held keep come comes "
    "use used compare better best have happen happens kind type thing things go make makes take "
    "takes need needs possible available able know help matter product products device "
    "option options feature features function functions setting settings mode anything everything"
)

# What is asked for, and the units of its answer.
_UNITS = (
    (
        r"how (far|tall|large|big|wide|high|deep)|wie (weit|hoch|breit|tief|groß)"
        r"|taller|larger|bigger|smaller|wider|higher|deeper|breiter|höher|tiefer|größer|kleiner",
        r"\d\s?(mm|cm|m|km|in|inch(es)?|ft|feet|metres?|meters?|miles?)[²³]?\b|[\d.] × \d",
    ),
    (
        r"how long|wie lange|longer|longest|länger",
        r"\b(seconds?|minutes?|hours?|days?|weeks?|months?|years?|sekunden?|minuten?|stunden?|"
        r"tage?n?|wochen?|monate?n?|jahren?)\b|\d\s?(s|min|h|mm|cm|m|km)\b",
    ),
    (
        r"how heavy|weight|weighs?|heavier|lighter|wie schwer|gewicht|wiegt|schwerer|leichter",
        r"\d\s?(g|kg|lbs?|oz|t|grams?|pounds?|tons?)\b|\b(weight|gewicht)\b[^:;.]{0,10}: \d",
    ),
    (
        r"prices?|costs?|(how|more|less|most|least) expensive|cheap(er|est)?|how much (is|are)|"
        r"kostet|kosten|preise?|teurer|teuerste\w*|billiger|billigste\w*|günstiger|günstigste\w*",
        r"[€$£¥]|\b(EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|euros?|dollars?|pounds?|yen|prices?|preis)\b",
    ),
    (
        r"water(proof|tight|[- ]?resistant)?|splash(es|ing|proof)?|rain(proof)?|dust(proof)?",
        r"\bIP[X\d]\d[A-Z]?\b|\b(water|splash|rain|dust)[- ]?(proof|tight|resistan(t|ce))\b",
    ),
    (
        r"how loud|louder|quieter|noisier|wie laut|lauter|leiser",
        r"\d\s?(dB(\(A\)|A)?|sones?)(?!\w)",
    ),
    (
        r"how fast|faster|fastest|quicker|schneller",
        r"\d\s?([kMGT]?bit/s|[kMGT]bps|[kM]B/s|km/h|mph|m/s|rpm|fps|seconds?|minutes?)\b",
    ),
)
_MEASURES = tuple(
    (re.compile(rf"\b({asked})\b", re.IGNORECASE), re.compile(units, re.IGNORECASE))
    for asked, units in _UNITS
)

_JOINED = re.compile(r"\b(and|or|with|und|oder|mit)\b|[,;&/]", re.IGNORECASE)
_ASKS_WHETHER = re.compile(
    r"\W*(is|are|was|were|do|does|did|can|could|may|must|has|have|will)\b(?!.*\bor\b)"
    r"(?!.*\b(what|which|how|why|when|where|who|than|not|no|never|without)\b)(?!.*n['’]t\b)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read."""

    text: str
    terms: frozenset[str]
    phrases: frozenset[str]
    wanted: Wanted
    names: frozenset[str] = frozenset()  # of products and the like
    aspects: frozenset[str] = frozenset()  # terms of no name: what is asked about it
    measure: re.Pattern[str] | None = None  # what a text must hold to give what is asked for

    @property
    def is_brief(self) -> bool:
        """Whether one statement is likely to be the whole answer."""
        if self.wanted is Wanted.ANYTHING:
            return bool(_POINTED.match(self.text))
        return self.wanted in _BRIEF or bool(_LOOKED_UP.match(self.text))

    @property
    def asks_whether(self) -> bool:
        """Whether `yes` or `no` would be an answer, and a plain one."""
        return bool(_ASKS_WHETHER.match(self.text))

    @property
    def asks_one_figure(self) -> bool:
        """Whether one thing that is measured is asked for, and nothing beside it."""
        asked = sum(bool(pattern.search(self.text)) for pattern, _units in _MEASURES)
        return asked == 1 and not _JOINED.search(self.text)

    def is_measured_in(self, text: str) -> bool:
        """Whether a text has a figure in a unit of what is asked for, if any is."""
        return self.measure is not None and bool(self.measure.search(text))

    def is_served_by(self, text: str) -> bool:
        """Whether a text holds the kind of thing that is wanted; of anything, it always does."""
        pattern = _HOLDS.get(self.wanted)
        return pattern is None or bool(pattern.search(text))


def _asked_in(text: str) -> str:
    """What is asked, without what was said before: `My TV is new. How do I set it up?`"""
    spans = split_sentences(text)
    told = [text[span.start : span.end] for span in spans]
    asked = " ".join(part for part in told if part.endswith("?") or _ASKS.match(part))
    return asked if len(terms(asked)) >= _FEWEST_TERMS else text


def read_question(text: str) -> Question:
    """Its terms, and the kind of its answer by its first cue."""
    wanted = next((kind for kind, cue in _COMPILED if cue.search(text)), Wanted.ANYTHING)
    told = _MEASURED.sub(" ", _asked_in(text))
    measure = next((units for asked, units in _MEASURES if asked.search(text)), None)
    found = terms(told)
    names = frozenset(name.text for name in find_names(text))
    named = frozenset[str]().union(*map(terms, names))
    return Question(text, found, phrases(told), wanted, names, found - named - IDLE, measure)
