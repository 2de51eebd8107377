"""Which sentences cannot stand alone, and which limit the sentence before them."""

from rag.citations.clauses import says_enough
from rag.text.late import re

# Words that point back; a sentence that begins with one is quoted with the sentence before it.
_POINTS_BACK = re.compile(
    r"(?:it|its|this|that|these|those|they|them|their|he|she|his|her|such|both|neither|either|the "
    r"(?:latter|former|same)|then|however|but|yet|still|nevertheless|nonetheless|otherwise|"
    r"therefore|thus|hence|so|instead|except|unless|only|even|consequently|conversely|likewise|"
    r"similarly|yes|yeah|no|not|never|nope|wrong|false|incorrect|untrue|true|right|correct|exactly|"
    r"and|or|nor|because|which|who|whereas|although|though|provided|until|"
    r"(?:if|when|while|since|once|after|before|as|because|although|unless|in|for|with|by|on|at|from|"
    r"to|under|of|without|during|until|despite|beyond|than)\s+"
    r"(?:it|its|this|that|these|those|they|them|their|such|so|not|either|both|neither)|"
    r"as a result|by contrast|on the (?:contrary|other hand)|"
    r"es|er|dabei|dafür|davon|dazu|damit|danach|dagegen|darin|daraus|dort|allerdings|jedoch|aber|"
    r"doch|sonst|andernfalls|ansonsten|nein|ja|nicht|nur|falsch|richtig|stimmt|beide\w*|deshalb|"
    r"daher|deswegen|trotzdem|dennoch|außer|und|oder|weil|obwohl|solche\w*|dies(?:e[rsmn]?)?|"
    r"jene[rsmn]?)\b",
    re.IGNORECASE,
)
# "Das ist falsch" points back, "Das Gerät …" does not.
_GERMAN_PRONOUN = re.compile(r"(?:Das|Sie|Der|Die)\s+[a-zäöü]")
_CJK_PRONOUN = re.compile("[它他她这這那此该該其]|不|否|是的|それ|これ|いいえ|はい")
_LIMITS = re.compile(
    r"(?:but|however|except|unless|only|not|never|although|though|yet|otherwise|until|provided|"
    r"aber|jedoch|allerdings|außer|nur|sonst|andernfalls|nicht|doch)\b",
    re.IGNORECASE,
)
# What takes back the sentence before it, whatever that cites.
_TAKES_BACK = re.compile(
    r"(?:(?:but |however,? )?(?:this|that|it|which|both|these|those|they)\b(?:\W+\w+){0,3}?\W+"
    r"(?:no longer|wrong|false|incorrect|untrue|not (?:true|correct|so|the case)|outdated|obsolete|"
    r"revoked|withdrawn|a mistake|an error|denied|disputed)\b|(?:das|dies|es)\b(?:\W+\w+){0,3}?\W+"
    r"(?:falsch|nicht (?:mehr|wahr|richtig|so)|überholt|widerrufen|ein (?:Fehler|Irrtum))\b|"
    r"(?:wrong|false|incorrect|untrue|falsch)\b)",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[\s>*_\"'“„(«]*(?:\[\d[\d,\s]*\][\s:,]*)*")
_FEW = 4  # words; with fewer it is part of what it follows


def leans(sentence: str) -> bool:
    """Whether a sentence only says what it says after the one before it."""
    body = sentence[_end_of_markup(sentence) :]
    return bool(
        _POINTS_BACK.match(body)
        or _CJK_PRONOUN.match(body)
        or _GERMAN_PRONOUN.match(body)
        or not says_enough(body, _FEW)
    )


def limits(sentence: str, *, cites: bool) -> bool:
    """Whether it takes back or narrows the sentence before it, so that both are quoted."""
    body = sentence[_end_of_markup(sentence) :]
    return bool(_TAKES_BACK.match(body) or (not cites and _LIMITS.match(body)))


def _end_of_markup(sentence: str) -> int:
    found = _MARKUP.match(sentence)
    return found.end() if found else 0


# ── Sentences that state nothing ─────────────────────────────────────────────────────────────

_MANNERS = re.compile(
    r"(?:hi|hello|hey|sure|certainly|of course|thanks|thank you|you[’']re welcome|glad to|happy to|"
    r"great question|good question|let me know|please let me|i hope|feel free|if you have any|"
    r"if you need|here (?:is|are|[’']s)|hallo|gern|danke|wenn sie|bitte)\b",
    re.IGNORECASE,
)
_DECLINES = re.compile(
    r"\b(?:documents?|documentation|sources?|context|manuals?|passages?|texts?|excerpts?|"
    r"information)\b.{0,40}\b(?:(?:do|does|did)(?: not|n[’']t)|cannot|never) (?:\w+ )?"
    r"(?:say|mention|contain|provide|answer|specify|state|include|cover|tell|describe|give|list|"
    r"address|discuss|explain|indicate)"
    r"|\b(?:documents?|sources?|context|manuals?|passages?) (?:\w+ ){0,3}(?:contain|provide|give|"
    r"say|have|offer|include)s? (?:no|nothing)\b"
    r"|\b(?:is|are|was|were|there[’']s) no (?:\w+ )?(?:information|mention|details?|answer)\b"
    r"|\bno (?:\w+ )?(?:information|mention|answer) (?:\w+ ){0,3}(?:is|was|in|about|on)\b"
    r"|(?:^|\W)i (?:could not|couldn[’']t|cannot|can[’']t|do not|don[’']t|was unable to) "
    r"(?:find|know|see|answer|tell|determine)\b"
    r"|\b(?:dokumente?n?|quellen?|unterlagen) (?:\w+ ){0,6}(?:nichts?|keine?)\b",
    re.IGNORECASE,
)
_LEADS_IN = re.compile(r"[:：?？][\"'”’*_)\]」』]*$")
_ENTRY = re.compile(r"(?:[-*+•◦‣–]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])\s+")


def states_something(sentence: str) -> bool:
    """Whether a sentence without markers says anything that a source could carry."""
    bare = sentence.strip()
    if _LEADS_IN.search(bare[-20:]):
        return False
    plain = _ENTRY.sub("", bare, count=1)
    if _MANNERS.match(plain) or _DECLINES.search(plain[:400]):
        return False
    return says_enough(plain)
