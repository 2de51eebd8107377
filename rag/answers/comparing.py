"""Questions that set things side by side: which things, and what is asked about them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rag.answers.products import family, key
from rag.answers.questions import IDLE, read_question
from rag.answers.words import terms
from rag.text.names import find_names

MOST_SIDES = 4
_LONGEST_QUESTION = 400  # characters
_OVERVIEW = "overview, features and technical data"
_LONGEST_SIDE = 6  # words
_FIRST_NAME = 0xE000  # names are read as one sign each, from the private use area
_MOST_NAMES = 200
_MOST_BESIDE_NAME = 2  # words, the name among them
_NAME = "[\ue000-\ue0ff]"
_VERSUS = "\ue100"
_PRIVATE = re.compile("[\ue000-\ue100]")
_AND = r"(?:and|or|und|oder|&)"
_THE = r"(?:the|an?|our|my|your|its|their|de[rmns]|die|das|eine?[rmns]?|beim|vom|zum|zur)\b"
_COMPARED = (
    r"(?:differ\w*|distinct\w*|distinguish\w*|compar\w*|choos\w*|choice|decid\w*|unterschied\w*|"
    r"unterscheid\w*|vergleich\w*|wahl|wählen|entscheid\w*)"
)
_BETTER = r"(?:better|worse|rather|prefer\w*|choose|choice|besser|schlechter|lieber|eher|wählen)"
_MORE = rf"(?:{_BETTER}|more|less|fewer|mehr|weniger|[^\W\d_]{{3,}}er(?:e[rsnm]?)?)"

_MAY_COMPARE = re.compile(
    rf"\b(?:and|or|und|oder|vs|versus|than|als|from|von|vom|not|lacks?|cannot|nicht|{_COMPARED})\b|&|n['’]t\b",
    re.I,
)

# `X compared with Y`, `does X differ from Y`, `is X lighter than Y`: all become `X versus Y`.
_BECOMES_VERSUS = (
    re.compile(r"\b(?:vs\b\.?|versus\b|im vergleich (?:zu[mr]?|mit)\b|verglichen mit\b)", re.I),
    re.compile(
        r"\b(?:(?:is |are )?(?:compar(?:e[sd]?|ing)|differs?|differing|different))\s+"
        r"(?:from|to|with|than|against)\b",
        re.I,
    ),
)
_THAN = re.compile(rf"\b({_MORE}(?:\s+[^\W\d_]+){{0,3}})\s+(?:than|als)\b", re.I)
_APART_FROM = re.compile(
    r"\b(?:unterscheidet|unterscheiden) (?:sich )?(?P<one>.+?) vo[nm]\b"
    r"|\bwhat (?:distinguishes|separates|sets) (?P<other>.+?) (?:apart )?from\b",
    re.I,
)
_LACKS = (
    re.compile(
        r"\bwhat (?:does|do|can|is|are) (?P<one>.+?) (?:have|has|do|offer|support|include)?\s*,?\s*"
        r"\b(?:that|which|what) (?P<two>.+?) (?:lacks?\b|cannot\b|"
        r"(?:has|have|does|do|can|is|are)\s*n[o'’]t\b)(?P<after>.*)",
        re.I,
    ),
    re.compile(
        r"\bwas (?:hat|kann|bietet) (?P<one>.+?),? (?:was|das) (?P<two>.+?) nicht\b(?P<after>.*)",
        re.I,
    ),
)
_LISTED = (
    re.compile(
        rf"(?P<before>.*\b{_COMPARED}(?:\s\S+){{0,4}}?)\s(?:between|zwischen)\s+(?P<list>.+)", re.I
    ),
    re.compile(
        rf"(?P<before>(?:how|in what|worin|wie)\b.*?)\b(?:do|does|would|will)\s"
        rf"(?P<list>[^,?]+\s{_AND}\s[^,?]+?)\s(?:differ|compare)\b(?P<after>.*)",
        re.I,
    ),
    re.compile(r"(?P<before>.*)\bunterscheiden sich\s+(?P<list>.+)", re.I),
    re.compile(
        r"(?P<before>.*?)\b(?:compare|contrast|(?:comparison|differences?|vergleich|unterschiede?) "
        r"(?:of|in|von|der|des)|vergleichen?|vergleiche)\s+(?P<list>.+)",
        re.I,
    ),
)
_COMPARE_JOINT = re.compile(r"\s(?:with|to|against|mit|gegen)\s", re.I)
_JOINT = re.compile(rf"\s*{_VERSUS}\s*|\s*,?\s{_AND}\s+", re.I)
_ASKS_WHICH = r"(?:which|who|what|where|welche[rsnm]?|wer|was|wo)\b"
_VERSUS_SIGN = re.compile(_VERSUS)
_ASKS_AGAIN = re.compile(rf"[,;?]?\s(?:and|und)\s(?:how|why|when|wie|{_ASKS_WHICH})", re.I)
_OR_AT_END = re.compile(
    rf"(?P<before>{_ASKS_WHICH}[^,:]*)[,:]\s*(?P<list>[^?;:]+?\s(?:or|oder)\s.+)", re.I
)
_OR_AT_START = re.compile(
    rf"(?P<list>[^,:]+?\s(?:or|oder)\s[^,:]+?)\s*[,:–—-]+\s*(?P<after>{_ASKS_WHICH}.*)", re.I
)
_OR_OF_BETTER = re.compile(
    rf"(?P<before>.*\b(?:{_BETTER})\s)(?P<list>\S+(?:\s\S+)*?\s(?:or|oder)\s.+)", re.I
)
_NAMES_JOINED = re.compile(
    rf"(?P<list>{_NAME}(?:,\s*(?:{_THE}\s)?{_NAME})*,?\s(?P<and>{_AND})\s(?:{_THE}\s)?{_NAME})",
    re.I,
)
_ENDS_SIDE = re.compile(
    r"\s*[,;:?]|\s+(?:for|in|on|at|by|when|if|as|with|regarding|concerning|about|behind|under|"
    r"during|considering|für|bei|beim|im|wenn|hinsichtlich|bezüglich|was|auf)\b",
    re.I,
)
_ENDS_LIST = re.compile(
    r"\s(?:in terms of|with (?:regard|respect) to|when it comes to|(?=(?:for|in|on|at|when|if|"
    r"regarding|concerning|considering|according|für|bei|beim|im|wenn|hinsichtlich|bezüglich)\b))",
    re.I,
)
_BEGINS_SIDE = re.compile(
    rf"(?:(?:what|how|which|and|is|are|do|does|should|would|can|i|we|you|it|about|to|of|whether|use|"
    rf"using|choose|pick|buy|take|get|have|that|those|was|wie|ist|sind|soll|sollte|ich|wir|man|von|"
    rf"zu|ob|{_BETTER}|{_THE})\s+)+",
    re.I,
)
_CLAUSE = re.compile(
    rf"(?P<before>.*?)\b(?:do|does|did|is|are|was|were|can|will)\s+(?:{_THE}\s+)?(?P<thing>.+?)"
    r"(?P<after>\s(?:get|have|need|take|cost|weigh|last|pay|work|earn|receive))?",
    re.I,
)
# `which grinder is quieter`: what kind of thing they are need not be said of them.
_KIND = re.compile(
    r"(?P<asks>\s*(?:which|what|welche[rsnm]?))\s[^\W\d_]+(?=\s(?:\w+s|are|have|do|can|hat|ist)\b)",
    re.I,
)
_OF = re.compile(r"(?:the|den|die|das)\s+(?P<what>.+?)\s+(?:of|for|von|für)\s+(?P<whom>.+)", re.I)
OWNING = re.compile(r"['’]s?$")  # at the end of a name: `Aero 5's`
_CUES = terms(
    "difference differences different differ differs distinguish distinction compare compared "
    "compares comparison contrast versus vs between better best worse choose choice decide main "
    "key important biggest advantage disadvantage pros cons rather prefer should one ones two both "
    "has have not buy pick unterschied unterschiede unterscheiden unterscheidet zwischen vergleich "
    "vergleiche vergleichen verglichen besser schlechter worin inwiefern sich welche welcher "
    "welches welchen oder sollte soll nehmen kaufen beiden beide hat nicht mehr"
)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the things that are compared."""

    name: str  # as it was asked, without an article
    is_name: bool  # else a phrase: `parental leave`


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared, and with regard to what."""

    sides: tuple[Side, ...]
    focus: str = ""  # the rest of the question, if it asks for anything in particular

    def searched(self, side: Side) -> tuple[str, str]:
        """What to search for one side, by meaning and by words.

        A bare name finds what repeats it, not what describes it.
        """
        alone = self.alone(side)
        return alone if self.focus or not side.is_name else f"{alone}: {_OVERVIEW}", alone

    def alone(self, side: Side) -> str:
        """What is asked about one side, to be searched and weighed alone."""
        return f"{self.focus} {side.name}".strip()


def may_compare(question: str) -> bool:
    """Whether it is worth taking a question apart: most hold none of the words that compare."""
    return bool(_MAY_COMPARE.search(question))


def compared_in(question: str, lexicon: Sequence[str] = ()) -> Comparison | None:
    """The comparison that a question asks for, if it does.

    `What is the difference between A and B`, `A vs B`, `which is lighter, A or B`. The things may
    be products of the lexicon, whatever is shaped like a name, or phrases where the sentence says
    plainly what they are.
    """
    text = " ".join(_PRIVATE.sub(" ", question).split()).rstrip(" ?!.")
    if len(text) > _LONGEST_QUESTION or not may_compare(text):
        return None
    masked = _Masked(text, lexicon)
    for found in _readings(masked.text):
        comparison = _comparison(found, masked)
        if comparison is not None:
            return comparison
    return None


@dataclass(frozen=True, slots=True)
class _Reading:
    """A sentence taken apart: the items that are compared, and all other words."""

    items: list[str]
    rest: str
    needs_names: bool = False
    needs_products: bool = False  # names that the documents list, or with a figure


class _Masked:
    """A question whose names are one sign each, so that none is taken apart."""

    def __init__(self, text: str, lexicon: Sequence[str]) -> None:
        self._names: list[str] = []
        self._listed = family(text, lexicon)
        for name in self._listed:
            pattern = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.I)
            text = pattern.sub(lambda match: self._sign(match[0]), text)
        for shape in reversed(find_names(text)):
            start = shape.start + _leading_cues(shape.text)
            name = OWNING.sub("", text[start : shape.end])
            if name.strip() and not re.search(_NAME, name) and not terms(name) <= _CUES:
                text = text[:start] + self._sign(name) + text[start + len(name) :]
        self.text = text

    def _sign(self, name: str) -> str:
        if len(self._names) == _MOST_NAMES:
            return name
        self._names.append(name)
        return chr(_FIRST_NAME + len(self._names) - 1)

    def is_product(self, name: str) -> bool:
        """Whether the documents list it, or it has a figure, as models have."""
        return key(name) in self._listed or any(map(str.isdigit, name))

    def unmasked(self, text: str) -> str:
        return re.sub(_NAME, lambda match: self._names[ord(match[0]) - _FIRST_NAME], text)


def _leading_cues(name: str) -> int:
    """Characters of the words at a name's start that belong to the sentence: `Compare Aero 5`."""
    length = 0
    for word in re.finditer(r"\S+\s*", name):
        if not terms(word[0]) <= _CUES:
            break
        length = word.end()
    return length


# ── Ways to ask ──────────────────────────────────────────────────────────────────────────────


def _readings(text: str) -> Iterator[_Reading]:
    """Each way in which the sentence may be read as a comparison, the plainest first."""
    is_one = not _ASKS_AGAIN.search(text)
    for pattern in _LACKS if is_one else ():
        if match := pattern.search(text):
            yield _Reading([match["one"], match["two"]], match["after"], needs_names=True)
    if is_one and (joined := _with_versus(text)) is not None:
        yield joined
    for pattern in _LISTED if is_one else ():
        if match := pattern.match(text):
            yield _listed(match, is_compared=pattern is _LISTED[-1])
    yield from _alternatives(text)


def _with_versus(text: str) -> _Reading | None:
    told = ""
    joined = text
    if than := _THAN.search(text):
        told = than[1]
        joined = f"{text[: than.start()]}{_VERSUS}{text[than.end() :]}"
    elif apart := _APART_FROM.search(text):
        joined = f"{apart['one'] or apart['other']} {_VERSUS}{text[apart.end() :]}"
    for pattern in _BECOMES_VERSUS:
        joined = pattern.sub(f" {_VERSUS} ", joined)
    if _VERSUS not in joined:
        return None
    return _Reading(*_items(joined, told, joint=_VERSUS_SIGN), needs_names=bool(than))


def _listed(match: re.Match[str], *, is_compared: bool) -> _Reading:
    listed = match["list"]
    rest = " ".join(filter(None, (match["before"], match.groupdict().get("after"))))
    if is_compared:
        listed = _COMPARE_JOINT.sub(f" {_VERSUS} ", listed, count=1)
        of = _OF.match(listed)
        if of and not re.search(rf"{_VERSUS}\s*{_THE}|\s{_AND}\s{_THE}", listed, re.I):
            listed, rest = of["whom"], f"{rest} {of['what']}"
    return _Reading(*_items(listed, rest))


def _items(listed: str, rest: str, *, joint: re.Pattern[str] = _JOINT) -> tuple[list[str], str]:
    """`A, B and C, for an office`: three, and the rest with what stands after them."""
    begun = joint.search(listed)
    ends = _ENDS_LIST.search(listed, begun.end()) if begun else None
    if ends:
        listed, rest = listed[: ends.start()], f"{rest} {listed[ends.end() :]}"
    *first, last = joint.split(listed)
    last, _, after = last.partition(",")
    if joint is _JOINT:
        first = [item for some in first for item in some.split(",")]
    elif first and "," in first[0]:
        before, _, first[0] = first[0].rpartition(",")
        rest = f"{rest} {before}"
    return [*first, last], f"{rest} {after}"


def _alternatives(text: str) -> Iterator[_Reading]:
    """`X or Y`, where one of them is asked for; products also joined by `and`, for a figure."""
    for pattern in (_OR_AT_END, _OR_AT_START):
        if match := pattern.match(text):
            groups = match.groupdict()
            before = _KIND.sub(r"\g<asks>", groups.get("before") or "", count=1)
            rest = f"{before} {groups.get('after') or ''}"
            yield _Reading(*_items(groups["list"], rest))
    if match := _NAMES_JOINED.search(text):
        rest = f"{text[: match.start()]} {text[match.end() :]}"
        is_either = match["and"].lower() in ("or", "oder")
        if is_either or read_question(rest).measure is not None:
            yield _Reading(*_items(match["list"], rest), needs_products=True)
    elif match := _OR_OF_BETTER.match(text):
        one, *others = re.split(r"\s(?:or|oder)\s", match["list"])
        if len(others) == 1:
            yield _Reading(_balanced(one, others[0]), f"{match['before']} {one}")


def _balanced(one: str, other: str) -> list[str]:
    """`better to use a private car` beside `a rental car`: as many words of the first."""
    other = _ENDS_SIDE.split(other, maxsplit=1)[0]
    articles = list(re.finditer(rf"\b{_THE}\s", one, re.I))
    begins = articles[-1].start() if articles and re.match(_THE, other, re.I) else None
    words = one.split()[-len(other.split()) :]
    return [one[begins:] if begins is not None else " ".join(words), other]


# ── What is compared ─────────────────────────────────────────────────────────────────────────


def _comparison(reading: _Reading, masked: _Masked) -> Comparison | None:
    items = [item for item in reading.items if item.strip()]
    if not 2 <= len(items) <= MOST_SIDES:
        return None
    read = [_side(item, is_first=not place) for place, item in enumerate(items)]
    if reading.needs_names and not all(map(_stands_alone, items)):
        return None
    sides = [Side(masked.unmasked(name), bool(re.fullmatch(_NAME, name))) for name, _ in read]
    if not all(_is_thing(side) for side in sides):
        return None
    if reading.needs_products and not all(masked.is_product(side.name) for side in sides):
        return None
    if len({key(side.name) for side in sides}) < len(sides):
        return None
    rest = masked.unmasked(" ".join([reading.rest, *(other for _, other in read)]))
    return Comparison(tuple(sides), _focus(rest, sides))


def _stands_alone(item: str) -> bool:
    """Whether an item is a name and hardly more: `the Aero 5`, not `the average Aero 5 owner`."""
    words = _BEGINS_SIDE.sub("", item.strip(), count=1).split()
    return len(words) <= _MOST_BESIDE_NAME and bool(re.search(_NAME, item))


def _side(item: str, *, is_first: bool) -> tuple[str, str]:
    """The thing itself, and the other words beside it."""
    names = list(re.finditer(_NAME, item))
    if names:
        name = names[-1] if is_first else names[0]
        before, after = item[: name.start()], item[name.end() :]
        if len((after if is_first else _BEGINS_SIDE.sub("", before)).split()) > _MOST_BESIDE_NAME:
            return "", item  # a whole clause, not a thing
        return name[0], f"{before} {after}"
    begins = _BEGINS_SIDE.match(item.lstrip())
    phrase = item.lstrip()[begins.end() if begins else 0 :]
    told = item.lstrip()[: begins.end()] if begins else ""
    ends = _ENDS_SIDE.search(phrase)
    phrase, after = (
        (phrase, "") if ends is None else (phrase[: ends.start()], phrase[ends.start() :])
    )
    thing, beside = _thing(phrase.strip())
    return thing.strip(), f"{told} {beside} {after}"


def _thing(phrase: str) -> tuple[str, str]:
    """What a clause asks about, and its other words: `pay do interns get` asks about interns."""
    clause = _CLAUSE.fullmatch(phrase)
    if clause is None:
        return phrase, ""
    return clause["thing"], f"{clause['before']} {clause['after'] or ''}"


def _is_thing(side: Side) -> bool:
    return bool(terms(side.name) - _CUES) and len(side.name.split()) <= _LONGEST_SIDE


def _focus(rest: str, sides: Iterable[Side]) -> str:
    """What is asked of both, in the question's words; "" where that is simply how they differ."""
    named = frozenset[str]().union(*(terms(side.name) for side in sides))
    words = [word for word in rest.split() if terms(word) - _CUES - named]
    told = " ".join(word.strip(",;:") for word in words)
    return told if terms(told) - IDLE else ""
