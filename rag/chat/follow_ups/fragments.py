"""Put a fragment ("What about Q4?", "and the Pro?") in the place of its like in a question.

A figure takes the place of the figure behind the same word, and a name that of a name. What else a
fragment may be has no sure place.
"""

import re

from rag.chat.follow_ups.names import Names
from rag.language.languages import phrases
from rag.language.names import Name
from rag.language.words import language_of

_PREPOSITION = re.compile(rf"^(?:{phrases('opens_fragments')})\s+", re.IGNORECASE)
_DETERMINER = re.compile(rf"^(?:{phrases('articles')})\s+", re.IGNORECASE)
_FIGURE = re.compile(r"(?:(\w+)\s+)?(\d+(?:[.,]\d+)*)")
_BARE = re.compile(r"\d+(?:[.,]\d+)*")
# Words written large within a sentence; in German that is every noun.
_CAPITALISED = re.compile(r"(?<=[\w,;] )(?!I\b)(?=\w*[A-ZÀ-Þ])[\w.-]+(?: [A-ZÀ-Þ0-9][\w.-]*)*")


def filled(earlier: str, fragment: str, names: Names) -> str:
    """The earlier question with the fragment in the place of its like; "" where none surely is."""
    bare = _PREPOSITION.sub("", fragment.strip())
    return _figure(earlier, bare) or _name(earlier, bare, names)


def _figure(earlier: str, fragment: str) -> str:
    """ "grade 16" in the place of "grade 12", "13" in that of the only figure."""
    match = _FIGURE.fullmatch(fragment)
    if match is None:
        return ""
    word, new = match.groups()
    if word is None:
        places = list(_BARE.finditer(earlier))
    else:
        places = list(re.finditer(rf"(?<=\b{re.escape(word)} )\d[\d.,]*\b", earlier, re.IGNORECASE))
    if len(places) != 1:
        return ""
    return earlier[: places[0].start()] + new + earlier[places[0].end() :]


def _name(earlier: str, fragment: str, names: Names) -> str:
    """A name in the place of the one that is most like it."""
    places = _names_in(earlier, names)
    new = _meant(_DETERMINER.sub("", fragment), [place.text for place in places], names)
    if not new or not places:
        return ""
    old = max(places, key=lambda each: _likeness(new, each))
    return earlier[: old.start] + new + earlier[old.end :]


def _likeness(new: str, old: Name) -> tuple[int, bool, int]:
    """By the words that both have, then as they are written, then the last one."""
    return len(_words(new) & _words(old.text)), new.isupper() == old.text.isupper(), old.start


def _names_in(text: str, names: Names) -> list[Name]:
    known = names.find(text)
    if language_of(text).capitalises_nouns:
        return known
    taken = {at for each in known for at in range(each.start, each.end)}
    others = (Name(m[0], m.start(), m.end()) for m in _CAPITALISED.finditer(text))
    return [*known, *(other for other in others if taken.isdisjoint(range(other.start, other.end)))]


def _meant(short: str, in_focus: list[str], names: Names) -> str:
    """ "the Pro" after "Aero 5" is "Aero 5 Pro"; "" for what is no name."""
    if short in names:
        return short
    longer = names.with_words(short.lower().split()) if in_focus else []
    rated = {n: max(len(_words(n) & _words(o)) for o in in_focus) for n in longer}
    best = max(rated, key=lambda name: (rated[name], -len(name)), default="")
    if best and rated[best]:
        return best
    is_name = bool(_CAPITALISED.fullmatch(f"x {short}", 2))
    return short if is_name and not all(each in names for each in in_focus) else ""


def _words(text: str) -> set[str]:
    return set(text.lower().split())
