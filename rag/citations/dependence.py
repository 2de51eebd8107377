"""Which sentences cannot stand alone, and which limit the sentence before them."""

from rag.citations.clauses import says_enough
from rag.language.languages import phrases
from rag.language.lazy_patterns import re
from rag.language.sentences import ENTRY, leads_in

# Words that point back; a sentence that begins with one is quoted with the sentence before it.
_POINTS_BACK = re.compile(rf"(?:{phrases('points_back')})\b", re.IGNORECASE)
_CJK_PRONOUN = re.compile("[它他她这這那此该該其]|不|否|是的|それ|これ|いいえ|はい")
_LIMITS = re.compile(rf"(?:{phrases('narrows')})\b", re.IGNORECASE)
# What takes back the sentence before it, whatever that cites.
_TAKES_BACK = re.compile(rf"(?:{phrases('takes_back')})\b", re.IGNORECASE)
_ELIDES = re.compile(
    rf"\b(?:{phrases('elides')})[\s.!*_]*(?:\[\d[\d,\s]*\][\s.!]*)*$", re.IGNORECASE
)
_MARKUP = re.compile(r"^[\s>*_\"'“„(«]*(?:\[\d[\d,\s]*\][\s:,]*)*")  # at the beginning of any
_FEW = 4  # words; with fewer it is part of what it follows


def depends(sentence: str) -> bool:
    """Whether a sentence only says what it says after the one before it."""
    body = _MARKUP.sub("", sentence, count=1)
    points_back = _POINTS_BACK.match(body) or _CJK_PRONOUN.match(body) or _ELIDES.search(body)
    return bool(points_back or not says_enough(body, _FEW))


def limits(sentence: str, *, cites: bool) -> bool:
    """Whether it takes back or narrows the sentence before it, so that both are quoted."""
    body = _MARKUP.sub("", sentence, count=1)
    return bool(_TAKES_BACK.match(body) or (not cites and _LIMITS.match(body)))


# ── Sentences that state nothing ─────────────────────────────────────────────────────────────

_MANNERS = re.compile(rf"(?:{phrases('manners')})\b", re.IGNORECASE)
_DECLINES = re.compile(phrases("declines"), re.IGNORECASE)


def states_something(sentence: str, *, cites: bool) -> bool:
    """Whether a sentence says anything that a source could carry; its markers are taken out.

    Who cites states something, however it begins: `If you need longer, ask for leave [2]`.
    """
    bare = sentence.strip()
    if leads_in(bare):
        return False
    bullet = ENTRY.match(bare)
    plain = bare[bullet.end() :] if bullet else bare
    if (not cites and _MANNERS.match(plain)) or _DECLINES.search(plain[:400]):
        return False
    return says_enough(plain)
