"""Make a cited sentence shorter without losing its figures, names, negations and markers."""

import re

from rag.citations.features import holds_essentials

SHORT_WORDS = 24  # a telegram longer than this loses the words farthest from what matters
NEAR_WORDS = 3  # before a figure, a name, a negation or a marker: what it is about

_LEAD_IN = re.compile(
    r"^(?:(?:However|Additionally|In addition|Furthermore|Moreover|Also|Overall|In short|Finally|"
    r"In summary|Similarly|Specifically|For example|For instance|Therefore|Thus|Hence|Besides|Yes|"
    r"Sure|Certainly|Of course|As mentioned(?: \w+)?|As noted(?: \w+)?|"
    r"According to (?:the|its|our|your)(?: [a-z]+){1,5}),\s+"
    r"|(?:Please )?[Nn]ote that\s+|It is worth noting that\s+|In fact,?\s+)+"
)
_PARENTHESIS = re.compile(r"\s*\([^()\[\]]{1,200}\)")
_TAIL = re.compile(
    r"(?:,\s+(?:which|so|because|while|making|allowing|giving|ensuring|as|where|although|and)\b"
    r"|;|\s[–—])[^\[\]]*?(?=[.!?]?$|\s*\[|[,;])"
)
_FILLER = re.compile(
    r"\b(?:the|an?|also|just|very|really|simply|currently|quite|basically|actually|generally|"
    r"typically|particularly|especially|respectively|easily|fully|conveniently|comfortably|"
    r"furthermore|additionally|however|overall)\b ?",
    re.IGNORECASE,
)


def trim_sentence(sentence: str) -> str:
    """The sentence without opening phrases, and without asides and clauses that state nothing."""
    shorter = _LEAD_IN.sub("", sentence)
    shorter = _PARENTHESIS.sub(_unless_essential, shorter)
    shorter = _TAIL.sub(_unless_essential, shorter)
    shorter = shorter.strip(" ,;")
    return shorter[:1].upper() + shorter[1:] if shorter != sentence else sentence


def _unless_essential(match: re.Match[str]) -> str:
    return match[0] if holds_essentials(match[0]) else ""


def telegram(sentence: str) -> str:
    """The sentence without articles and filler words, and cut down where it is still long."""
    shorter = _FILLER.sub("", trim_sentence(sentence)).strip()
    words = shorter.split(" ")
    if len(words) <= SHORT_WORDS:
        return shorter
    return " ".join(_essential_words(words))


def _essential_words(words: list[str]) -> list[str]:
    """Words near what matters; a gap is shown as `…`."""
    wanted: set[int] = set(range(NEAR_WORDS))
    for index, word in enumerate(words):
        if holds_essentials(word):
            wanted.update(range(max(0, index - NEAR_WORDS), index + 2))
    kept: list[str] = []
    for index, word in enumerate(words):
        if index in wanted:
            kept.append(word)
        elif kept[-1] != "…":
            kept.append("…")
    return kept
