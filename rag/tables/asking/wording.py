"""Whether the words of a question ask over rows at all, whatever tables there are."""

import re

from rag.tables.asking.words import (
    COMPARED,
    DIFFERENCE,
    DIFFERENT,
    GROUP,
    MEDIAN,
    OPERATORS,
    SUPERLATIVES,
    TOP,
    counted,
)
from rag.tables.wordforms import normalised
from rag.text.languages import any_of

# "How heavy is the Aero 5 Pro Max?", "the aero 5 pro max": words that stand in names as well.
IN_NAMES = ("max", "min", "top", "best")
ENDS = any_of(set(SUPERLATIVES) - set(IN_NAMES))
AGGREGATES = re.compile(
    r"\b(?:total(?:led|s)?|sum of|altogether|combined|added up|gesamt\w*|summe|insgesamt|average|"
    r"avg|mean (?=\w)|durchschnitt\w*|im schnitt|share of|percentage|percent|proportion|fraction|"
    r"anteil|prozent|sort(?:ed)?|rank(?:ed|ing)?|sortiere?|order(?:ed)? by|how much|wie viel)"
)
SUPERLATIVE = re.compile(
    rf"\b(?:{ENDS})\b|\b(?:{any_of(IN_NAMES)}) (?!in|on|of|at|is|for|and|or|with)\w"
)
COMPARING = re.compile(
    rf"\b(?:{'|'.join(each.pattern for each, _sign in COMPARED)}) (?:\w+ ){{0,2}}\d|"
    r"\b(?:than|als|above|below|uber|unter) (?:the|their|its|they|der|die|das|ihr\w*)\b|"
    r"\b(?:between|zwischen) (?:\w+ )?\d"
)
# "How long does it last on a charge?": the verb, not the last of some rows.
LASTS = re.compile(
    r"\b(?:does|do|did|will|can|may) (?:\w+ ){1,6}last(?=\W*$| (?:on|for|with|in|if|when|per)\b)"
)
LISTED = re.compile(
    r"^(?:which|what|welche|list|show|name|nenne|zeig\w*)(?: me| mir| all| alle| the| die){0,3} "
    r"(?!is |are |ist |sind )\w+(?:s|en|er|e)\b"
)
ASKING = (AGGREGATES, MEDIAN, DIFFERENT, DIFFERENCE, TOP, SUPERLATIVE, COMPARING, LISTED)
WORD = re.compile(r"[^\W_]+")


def says_rows(question: str) -> bool:
    """Whether it counts, adds up or orders, in words that are no part of a name."""
    said = LASTS.sub(" ", normalised(_without_names(question)))
    return bool(counted(said)) or any(pattern.search(said) for pattern in ASKING)


def may_group(question: str) -> bool:
    """Whether it says "by" or "per", which ordinary questions say as well."""
    return GROUP.search(normalised(_without_names(question))) is not None


def name_words(question: str) -> set[str]:
    """Words of asking that a capital inside the sentence makes a name: the "Max" of "Pro Max"."""
    found = list(WORD.finditer(question))[1:]
    return {
        word[0].casefold()
        for word in found
        if word[0][0].isupper()
        and (word[0].casefold() in OPERATORS or GROUP.fullmatch(word[0].lower()))
    }


def _without_names(question: str) -> str:
    """Words of asking are taken out where they go on a name: behind a capital or a figure."""
    kept: list[str] = []
    before = ""
    for at, word in enumerate(question.split()):
        is_capital = word[0].isupper() and at > 0
        goes_on = is_capital and ((before[:1].isupper() and at > 1) or before[:1].isdigit())
        is_of_name = is_capital and word.strip("?!.,").casefold() in ("max", "min", "pro")
        kept.append("¤" if goes_on or is_of_name else word)
        before = word
    return " ".join(kept)
