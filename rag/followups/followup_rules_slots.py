"""Put a fragment ("What about Q4?") into the slot that it fills in an earlier question."""

import re
from collections.abc import Sequence

from rag.followups.followup_names import Names
from rag.followups.followup_words import (
    PREPOSITIONS,
    Mention,
    mentions,
    word_set,
)

MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
# Most telling first: in "Q4 2024" the quarter and the year are two slots.
PERIODS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bq[1-4]\b|\b(?:first|second|third|fourth|last|1st|2nd|3rd|4th)\s+quarter\b",
        r"\bh[12]\b|\b(?:first|second)\s+half\b",
        rf"\b{MONTH}\b(?!\s+i\b)",
        r"\b(?:19|20)\d\d(?:[-–/](?:\d\d|(?:19|20)\d\d))?\b|\bfy\s?\d{2,4}\b",
        r"\b(?:this|last|next|previous|current|past)\s+(?:day|week|month|quarter|year|decade)\b",
        r"\b(?:today|yesterday|tomorrow)\b",
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b",
    )
)
VARIANTS = word_set(
    "pro max mini plus lite ultra air se xl xs standard basic premium light classic deluxe sport "
    "home business enterprise small medium large big one two three"
)
PLACES = word_set(
    "abroad overseas outside inside outdoors indoors online offline upstairs elsewhere"
)
PHRASE_END = r"(?=\s+(?:{})\b|\s*[?.!,;]|\s*$)".format("|".join(sorted(PREPOSITIONS - {"of"})))
DETERMINER = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)


def fill(earlier: str, fragment: str, lexicon: Names) -> str:
    """The earlier question with the fragment in its place; "" when no slot fits."""
    return (
        _period(earlier, fragment)
        or _product(earlier, fragment, lexicon)
        or _prepositional(earlier, fragment)
        or _named(earlier, fragment, lexicon)
        or attribute(earlier, fragment, lexicon)
    )


def is_period(fragment: str) -> bool:
    """Whether a fragment says nothing but a time."""
    rest = re.sub(r"^(?:in|for|during|on|of)\s+", "", fragment.strip(), flags=re.IGNORECASE)
    for pattern in PERIODS:
        rest = pattern.sub("", rest)
    return not rest.strip(" ,") and bool(fragment.strip())


def _period(earlier: str, fragment: str) -> str:
    if not is_period(fragment):
        return ""
    wanted = [pattern for pattern in PERIODS if pattern.search(fragment)]
    if not all(pattern.search(earlier) for pattern in wanted):
        return _other_period(earlier, fragment)
    text = earlier
    for pattern in wanted:
        new, old = pattern.search(fragment), pattern.search(text)
        if new and old:
            text = text[: old.start()] + new[0] + text[old.end() :]
    return text


def _other_period(text: str, fragment: str) -> str:
    """A year asked for a month: the new period takes the old one's place, or is added."""
    for pattern in PERIODS:
        found = pattern.search(text)
        if found:
            bare = re.sub(r"^(?:in|for|during|on)\s+", "", fragment, flags=re.IGNORECASE)
            return text[: found.start()] + bare + text[found.end() :]
    has_preposition = fragment.split()[0].lower() in PREPOSITIONS
    return append(text, fragment if has_preposition else f"in {fragment}")


def append(text: str, words: str) -> str:
    """Words added before the closing mark."""
    body = text.rstrip()
    mark = body[-1] if body and body[-1] in "?!." else ""
    return f"{body.rstrip('?!. ')} {words.strip()}{mark}"


def _product(earlier: str, fragment: str, lexicon: Names) -> str:
    name = full_product(earlier, fragment, lexicon)
    old = _product_in(earlier, name, lexicon)
    return _put(earlier, old.text, name) if name and old else ""


def _put(earlier: str, old: str, new: str) -> str:
    """One name for another, with the ending that its owner's form takes."""
    text = earlier.replace(old, new, 1)
    return text if new.endswith("s") else re.sub(rf"({re.escape(new)})'(?=\s)", r"\1's", text)


def _product_in(text: str, name: str, lexicon: Names) -> Mention | None:
    """The name that the new one replaces: the one it shares most words with."""
    names = [m for m in mentions(text, lexicon) if m.is_name]
    wanted = set(name.lower().split())
    return max(names, key=lambda m: len(wanted & set(m.text.lower().split())), default=None)


def full_product(earlier: str, fragment: str, lexicon: Names) -> str:
    """ "the Pro" after "Aero 5" is "Aero 5 Pro"; "" when the fragment names no product."""
    short = DETERMINER.sub("", fragment.strip())
    wanted = short.lower().split()
    if not wanted or short in lexicon:
        return lexicon.spelled(short)
    in_focus = [m.text for m in mentions(earlier, lexicon) if m.is_name]
    siblings = [n for n in lexicon.with_words(wanted) if _is_sibling(n, wanted, in_focus)]
    if siblings:
        return max(siblings, key=lambda name: (_closeness(name, in_focus), -len(name)))
    is_variant = len(wanted) == 1 and wanted[0] in VARIANTS and short != fragment.strip()
    if is_variant and in_focus and short[0].isupper():
        return f"{_without_variant(in_focus[-1])} {short}"
    return ""


def _is_sibling(name: str, wanted: Sequence[str], in_focus: Sequence[str]) -> bool:
    own = set(name.lower().split()) - set(wanted)
    return any(own & set(other.lower().split()) for other in in_focus)


def _closeness(name: str, in_focus: Sequence[str]) -> int:
    words = set(name.lower().split())
    return max((len(words & set(other.lower().split())) for other in in_focus), default=0)


def _without_variant(name: str) -> str:
    words = name.split()
    while len(words) > 1 and words[-1].lower() in VARIANTS:
        words.pop()
    return " ".join(words)


def _prepositional(earlier: str, fragment: str) -> str:
    """ "in Chile" takes the place of "in Argentina", or is added."""
    words = fragment.split()
    preposition = words[0].lower() if words else ""
    if fragment.lower() in PLACES:
        return append(earlier, fragment)
    if preposition not in PREPOSITIONS | {"by"} or len(words) < 2:
        return ""
    old = re.search(rf"\b{preposition}\s+(?:(?!\b{preposition}\b).)+?{PHRASE_END}", earlier)
    is_added = preposition in {"as", "compared", "versus", "vs", "than", "like"}
    if old and not is_added and not any(pattern.search(old[0]) for pattern in PERIODS):
        return earlier[: old.start()] + fragment + earlier[old.end() :]
    return append(earlier, fragment)


def _named(earlier: str, fragment: str, lexicon: Names) -> str:
    """A name takes the place of the name most like it; a noun phrase of one with its last word."""
    # Behind "about" a capital is no mere beginning of a sentence.
    new = mentions(f"about {fragment}", lexicon)
    if not new:
        return ""
    old = [m for m in mentions(earlier, lexicon) if not _is_degree(earlier, m)]
    names = [mention for mention in old if mention.is_name]
    if new[0].is_name:
        target = _most_alike(new[0], names) or (old[0] if len(old) == 1 else None)
    else:
        head = new[-1].words[-1].lower()
        alike = [m for m in old if m.words[-1].lower() == head and m.text != new[-1].text]
        target = alike[-1] if alike else (old[0] if len(old) == 1 and not names else None)
    if target is None:
        return ""
    bare = DETERMINER.sub("", fragment) if _has_article(earlier, target) else fragment
    return _put(earlier, target.text, bare)


def _is_degree(text: str, mention: Mention) -> bool:
    """ "How heavy": no thing that another could stand for."""
    return bool(re.search(rf"\bhow\s+{re.escape(mention.text)}", text, re.IGNORECASE))


def _has_article(text: str, mention: Mention) -> bool:
    return bool(re.search(rf"\b(?:the|a|an)\s+{re.escape(mention.text)}", text, re.IGNORECASE))


def _most_alike(new: Mention, names: Sequence[Mention]) -> Mention | None:
    def likeness(mention: Mention) -> tuple[int, bool, bool]:
        shared = {w.lower() for w in mention.words} & {w.lower() for w in new.words}
        return (len(shared), mention.is_person == new.is_person, mention.is_located)

    return max(names, key=likeness, default=None)


def attribute(earlier: str, fragment: str, lexicon: Names) -> str:
    """ "and the price?" after a question about one product asks for the price of that product."""
    names = [mention for mention in mentions(earlier, lexicon) if mention.is_name]
    if not names or any(mention.is_name for mention in mentions(f"about {fragment}", lexicon)):
        return ""
    name = names[-1].text
    of = re.search(
        rf"\b(?:the|a|an)\s+[\w\s-]{{2,40}}?\s+(of|for)\s+(?:the\s+)?{re.escape(name)}", earlier
    )
    bare = re.sub(r"^(?:any|some|the|a|an)\s+", "", fragment, flags=re.IGNORECASE)
    if of:
        owner = earlier[of.start(1) : of.end()]
        return f"{earlier[: of.start()]}the {bare} {owner}{earlier[of.end() :]}"
    article = "the " if _has_article(earlier, names[-1]) else ""
    return f"What about the {bare} of {article}{name}?"
