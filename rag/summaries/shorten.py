"""Make a cited sentence shorter without losing its figures, names, negations and markers."""

import re
from itertools import islice

from rag.citations.features import holds_essentials
from rag.text.sentences import FULL_STOPS

SHORT_WORDS = 24  # a telegram longer than this loses the words farthest from what matters
BRIEF_WORDS = 12  # where even telegrams do not fit
LEAST_WORDS = 2
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
    r"|;)[^\[\]]*?(?=[.!?]?$|\s*\[|[,;])"
)
_FILLER = re.compile(
    r"\b(?:also|just|very|really|simply|currently|quite|basically|actually|generally|typically|"
    r"particularly|especially|respectively|easily|fully|conveniently|comfortably|furthermore|"
    r"additionally|however|overall)\b,? ?",
    re.IGNORECASE,
)
# Before a name, where it says nothing; inside a phrase it stays, or the phrase would be another.
_ARTICLE = re.compile(
    r"(?:^(?:The|An?)|\b(?:the|an?)) (?=[^\W\d_a-zß-öø-ÿ]|\w+\d|i[A-Z])|^(?:The|An?) "
)


_LOWER_WORD = re.compile(r"(?<![\w-])[^\W\dA-Z_]{3,}")
_FIGURE = re.compile(r"(?<![\[\w])\d")


def trim_sentence(sentence: str) -> str:
    """The sentence without opening phrases, and without asides and clauses that state nothing."""
    shorter = _LEAD_IN.sub("", sentence)
    shorter = _PARENTHESIS.sub(_unless_essential, shorter)
    shorter = _TAIL.sub(_unless_essential, shorter)
    shorter = shorter.strip(" ,;")
    return _capital(shorter) if shorter != sentence and _says_enough(shorter) else sentence


def _says_enough(sentence: str) -> bool:
    """Whether something is left beside names and markers."""
    return len(_LOWER_WORD.findall(sentence)) >= LEAST_WORDS or bool(_FIGURE.search(sentence))


def _capital(text: str) -> str:
    """With a capital at the beginning, unless it begins with a name such as `iPhone`."""
    return text[:1].upper() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def closed(sentence: str) -> str:
    """With a full stop, so that it stays a sentence of its own beside others."""
    bare = sentence.rstrip("\"'”’»)」』")
    return sentence if bare.endswith(tuple(FULL_STOPS)) else f"{sentence}."


def _unless_essential(match: re.Match[str]) -> str:
    return match[0] if holds_essentials(match[0]) else ""


def telegram(sentence: str, words_a_marker: int = SHORT_WORDS) -> str:
    """The sentence without filler words and needless articles, cut down where still long."""
    shorter = _ARTICLE.sub("", _FILLER.sub("", sentence)).strip()
    words = _capital(shorter).split(" ")
    most = words_a_marker * max(1, shorter.count(" ["))
    return " ".join(words if len(words) <= most else _essential_words(words, most))


def _essential_words(words: list[str], most: int) -> list[str]:
    """Words near what matters, and of the others the first; a gap is shown as `…`."""
    wanted: set[int] = set()
    for index, word in enumerate(words):
        if holds_essentials(word):
            wanted.update(range(max(0, index - NEAR_WORDS), index + 3))
    others = (index for index in range(len(words)) if index not in wanted)
    wanted.update(islice(others, max(NEAR_WORDS, most - len(wanted))))
    kept: list[str] = []
    for index, word in enumerate(words):
        if index in wanted:
            kept.append(word)
        elif kept[-1] != "…":
            kept.append("…")
    return kept
