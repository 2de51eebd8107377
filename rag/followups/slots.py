"""Put a fragment ("What about Q4?", "and the Pro?") in its place in the last question.

Only a time takes the place of a time, and a name that of a name; a circumstance ("from abroad") is
added where the question has none of its kind. What else a fragment may be, it is left as it was
asked.
"""

import re
from collections.abc import Sequence

from rag.followups.mentions import ARTICLES, LOCATIVES, Mention, mentions
from rag.followups.names import Names
from rag.text.words import language_of

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
    )
)
BEFORE_PERIOD = re.compile(r"^(?:in|for|during|on|of)\s+", re.IGNORECASE)
CIRCUMSTANCES = frozenset({"from", "without", "during", "within", "outside"})
PREPOSITION = re.compile(rf"^({'|'.join(LOCATIVES)}|for|für)\s+", re.IGNORECASE)
FITS_ANY = frozenset({"on", "for", "auf", "bei", "beim", "für"})
DETERMINER = re.compile(rf"^(?:{'|'.join(ARTICLES)})\s+", re.IGNORECASE)


def fill(earlier: str, fragment: str, lexicon: Names) -> str:
    """The earlier question with the fragment in its place; "" when no slot surely fits."""
    if is_period(fragment):
        return _period(earlier, fragment)
    return _name(earlier, fragment, lexicon) or _circumstance(earlier, fragment, lexicon)


def is_period(fragment: str) -> bool:
    """Whether a fragment says nothing but a time."""
    rest = BEFORE_PERIOD.sub("", fragment.strip())
    for pattern in PERIODS:
        rest = pattern.sub("", rest)
    return not rest.strip(" ,") and bool(fragment.strip())


def _period(earlier: str, fragment: str) -> str:
    """Each time in the place of one of its kind, or all of them in the place of the first."""
    period = BEFORE_PERIOD.sub("", fragment.strip())
    wanted = [pattern for pattern in PERIODS if pattern.search(period)]
    if all(pattern.search(earlier) for pattern in wanted):
        for pattern in wanted:
            new = pattern.search(period)
            earlier = pattern.sub(new[0] if new else "", earlier, count=1)
        return earlier
    old = next(filter(None, (pattern.search(earlier) for pattern in PERIODS)), None)
    if old:
        return earlier[: old.start()] + period + earlier[old.end() :]
    return _added(earlier, f"in {period}")


def _circumstance(earlier: str, fragment: str, lexicon: Names) -> str:
    """ "And from abroad?" after "How long do refunds take?"; a name may belong elsewhere."""
    opening = fragment.split()[0].lower()
    has_one = opening in earlier.lower().split()
    if opening not in CIRCUMSTANCES or has_one or len(fragment.split()) < 2:
        return ""
    is_named = bool(mentions(f"about {fragment}", lexicon))
    return "" if is_named or any(map(str.isupper, fragment[1:])) else _added(earlier, fragment)


def _added(question: str, words: str) -> str:
    body = question.rstrip()
    mark = body[-1] if body[-1:] in {"?", "!", "."} else ""
    return f"{body.rstrip('?!. ')} {words}{mark}"


def _name(earlier: str, fragment: str, lexicon: Names) -> str:
    """A product, or another name, takes the place of the one that is most like it.

    In German every noun has a capital: there only what the library calls a product is a name.
    """
    place = PREPOSITION.match(fragment)
    fragment = PREPOSITION.sub("", fragment)
    is_german = language_of(earlier).code == "de"
    names = [m for m in mentions(earlier, lexicon) if not is_german or m.text in lexicon]
    new = _new_name(fragment, [mention.text for mention in names], lexicon)
    if not new or not names or (is_german and new not in lexicon):
        return ""
    likeness = [_likeness(new, mention) for mention in names]
    if likeness.count(max(likeness)) > 1:
        return ""
    old = names[likeness.index(max(likeness))]
    if place and place[1].lower() not in FITS_ANY and not old.is_located:
        return ""
    own = DETERMINER.match(fragment)  # behind an article the new name needs none of its own
    is_bare = own is not None and new == fragment[own.end() :] and new not in lexicon
    return _put(earlier, old, f"the {new}" if is_bare and not old.has_article else new)


def _likeness(new: str, old: Mention) -> tuple[int, bool, bool]:
    """Shared words, else both may be people or places, else the place that a question is about."""
    is_person = Mention(new, 0).may_be_person
    return len(_words(new) & _words(old.text)), is_person == old.may_be_person, old.is_located


def _new_name(fragment: str, in_focus: Sequence[str], lexicon: Names) -> str:
    """ "the Pro" after "Aero 5" is "Aero 5 Pro"; "" for what is no name."""
    short = DETERMINER.sub("", fragment.strip())
    if short in lexicon:
        return lexicon.spelled(short)
    siblings = {
        name: max(len(_words(name) & _words(other)) for other in in_focus)
        for name in (lexicon.with_words(short.lower().split()) if in_focus else ())
    }
    best = max(siblings, key=lambda name: (siblings[name], -len(name)), default="")
    if best and any((_words(best) - _words(short)) & _words(other) for other in in_focus):
        return best
    if short != fragment.strip() and short[:1].isupper():  # "the Pro"
        longer = (f"{known} {short}" for known in in_focus if known in lexicon)
        if mentioned := next(filter(lexicon.is_mentioned, longer), ""):
            return mentioned
    # Behind "about" a capital is no mere beginning of a sentence.
    named = mentions(f"about {short}", lexicon)
    return short if len(named) == 1 and named[0].text == short else ""


def _put(text: str, old: Mention, new: str) -> str:
    """One name for another, with the ending that its owner's form takes."""
    text = text[: old.start] + new + text[old.start + len(old.text) :]
    return text if new.endswith("s") else re.sub(rf"({re.escape(new)})'(?=\s)", r"\1's", text)


def _words(text: str) -> set[str]:
    return set(text.lower().split())
