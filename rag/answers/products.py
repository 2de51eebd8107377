"""Which products a question is about, which are their rivals, and which no source knows."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from rag.text.name_words import CALENDAR
from rag.text.names import find_names
from rag.text.sentences import split_sentences

_COMPARES = re.compile(
    r"\b(compared (with|to)|(un)?like|than|instead of|in contrast to|as opposed to)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:[-.'’][^\W_]+)*")
_SUBJECTS = 2  # cells of a row that say what it is about


class Products:
    """Which of the products that the sources name a question is about, and which are rivals.

    Rivals are siblings of a product asked for: `Aero 5 Pro` and `Aero 7` when it is `Aero 5`.
    """

    def __init__(self, question: str, texts: Iterable[str], lexicon: Sequence[str] = ()) -> None:
        """`lexicon`: what the documents call products, in whatever case and shape."""
        self._lexicon = _by_first_word(tuple(lexicon))
        self._listed = frozenset(mentioned(key(question), self._family(question)))
        self._is_strange: dict[str, bool] = {}
        known = {key(name) for text in texts for name in _names(text)}
        known |= {key(name) for name in _names(question)} | self._family(question)
        asked = mentioned(key(question), known)
        # Only products that could be mistaken for another one matter here.
        self._asked = frozenset(
            name for name in asked if any(_are_siblings(name, other) for other in known - {name})
        )
        self._rivals = frozenset(
            name for name in known - asked if any(_are_siblings(mine, name) for mine in self._asked)
        )

    def asked_in(self, text: str) -> frozenset[str]:
        """The products asked for that a text names itself."""
        if len(self._asked) < 2:
            return frozenset()
        return frozenset(mentioned(key(text), self._asked | self._rivals) & self._asked)

    def about(self, column: str) -> bool:
        """Whether a column of a table is about what is asked: not if its heading is a rival."""
        return key(column) not in self._rivals

    def _is_about_asked(self, context: str) -> bool:
        return bool(mentioned(key(context), self._asked | self._rivals) & self._asked)

    def fit_row(self, cells: Sequence[str]) -> float | None:
        """0 where a row names what is asked for in passing, as what it fits or comes with.

        What a row is about stands in its first cells: a code, a name. None says that this tells
        nothing.
        """
        if not self._rivals:
            return None
        known = self._asked | self._rivals
        subject, rest = (" | ".join(part) for part in (cells[:_SUBJECTS], cells[_SUBJECTS:]))
        in_subject = bool(mentioned(key(subject), known))
        return 0.0 if not in_subject and mentioned(key(rest), known) & self._asked else None

    def fit(self, text: str, context: str) -> float:
        """1 where a product asked for is named, -1 where only a rival is, else 0.

        What names both below a heading of the rival is about the rival.

        A text that names neither is about whatever stands above it, and so is one that names a
        rival in passing, after its first sentence. What stands below the name of quite another
        product of the lexicon is about that one.
        """
        if not self._rivals:
            return self._strangeness(text, context)
        known = self._asked | self._rivals
        inside = mentioned(key(text), known)
        if inside & self._asked:
            above = mentioned(key(context), known)
            is_elsewhere = bool(above) and not above & self._asked
            return -1.0 if is_elsewhere and inside - self._asked else 1.0
        for where in (_first_sentence(text), context):
            if where is not context and _COMPARES.search(where) and self._is_about_asked(context):
                continue  # `Compared with the Aero 5 it has …`, said of what stands above
            named = mentioned(key(where), known)
            if named:
                return 1.0 if named & self._asked else -1.0
        return self._strangeness(text, context)

    def _strangeness(self, text: str, context: str) -> float:
        if not self._listed or mentioned(key(text), self._listed):
            return 0.0
        if context not in self._is_strange:
            self._is_strange[context] = self._names_others_only(context)
        return -1.0 if self._is_strange[context] else 0.0

    def _names_others_only(self, context: str) -> bool:
        named = mentioned(key(context), self._family(context) | self._listed)
        asked_words = {word for name in self._listed for word in name.split()}
        return bool(named) and all(asked_words.isdisjoint(name.split()) for name in named)

    def _family(self, text: str) -> set[str]:
        return _of_first_words(text, self._lexicon)


def family(text: str, lexicon: Sequence[str]) -> list[str]:
    """Names of the lexicon whose first word a text holds, in small letters, the longest first."""
    found = _of_first_words(text, _by_first_word(tuple(lexicon)))
    return sorted(found, key=lambda name: (-len(name), name))


def _of_first_words(text: str, lexicon: Mapping[str, Sequence[str]]) -> set[str]:
    words = set(_WORD.findall(key(text)))
    return {name for word in words for name in lexicon.get(word, ())}


@lru_cache(maxsize=4)
def _by_first_word(lexicon: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """A library may name ten thousand products: only those are tried that can be meant."""
    found: dict[str, list[str]] = {}
    for name in filter(None, map(key, lexicon)):
        found.setdefault(_first_word(name), []).append(name)
    return {word: tuple(names) for word, names in found.items()}


def _first_word(name: str) -> str:
    match = _WORD.search(name)
    return match[0] if match else name


def _first_sentence(text: str) -> str:
    spans = split_sentences(text)
    return text[spans[0].start : spans[0].end] if spans else text


@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[str, ...]:
    return tuple(name.text for name in find_names(text))


def key(text: str) -> str:
    """A name as it is compared: small letters, single blanks, no signs of trade marks."""
    return " ".join(re.sub(r"[™®©]|['’]s\b", "", text).casefold().split())


def mentioned(text: str, names: Iterable[str]) -> set[str]:
    """The names in a text, longest first: within `aero 5 pro` no `aero 5` is mentioned."""
    found: set[str] = set()
    for name in sorted((name for name in names if name in text), key=len, reverse=True):
        pattern = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
        rest = re.sub(pattern, "\0", text)
        if rest != text:
            found.add(name)
            text = rest
    return found


def _are_siblings(asked: str, other: str) -> bool:
    if asked.split()[0] != other.split()[0]:
        return False
    if other.startswith(f"{asked} "):
        return True
    return any(map(str.isdigit, other)) and (
        asked.startswith(f"{other} ") or any(map(str.isdigit, asked))
    )


# ── Names that nothing mentions ──────────────────────────────────────────────────────────────

_MARKS = "[™®©]"
_VERSION = re.compile(r"\b\d+\.\d+\.\d{1,3}\b")
_WORD_AND_NUMBER = re.compile(r"(?<![\w-])([^\W\d_]+(?:-[^\W\d_]+)*) \d+[^\W_]*(?![^\W_])")
_PARTS = re.compile(r"[^\W\d_]+|\d+|\+")


def unmentioned(question: str, texts: Sequence[str]) -> tuple[str, ...]:
    """The models, codes and versions of a question that stand in none of the texts.

    Only names with a figure: `Aero 6` is another product than `Aero 5`, whereas a name in words
    may be meant by other words.
    """
    if not texts:
        return ()
    whole = "\n".join(texts)
    folded = whole.casefold()
    candidates = [name for name in _models(question) if not _is_ordinary(name, whole)]
    candidates += _VERSION.findall(question)
    candidates += _unknown_siblings(question, whole)
    told = [_without_ordinary_end(name, whole) for name in candidates]
    missing = [name for name in told if name and not _spelling(name).search(folded)]
    return tuple(
        name
        for place, name in enumerate(missing)
        if not any(name.casefold() in other.casefold() for other in missing[:place])
    )


def _models(question: str) -> list[str]:
    return [name for name in _names(question) if any(map(str.isdigit, name))]


def _is_ordinary(name: str, whole: str) -> bool:
    """`Step 3`, `Level 2`: a word that the texts use in small letters, too."""
    first = name.split()[0]
    return first.isalpha() and re.search(rf"\b{re.escape(first.lower())}\b", whole) is not None


def _without_ordinary_end(name: str, whole: str) -> str:
    """`Aero 5 Warranty` without the warranty, if the texts write the word in small letters."""
    words = name.removesuffix("'s").removesuffix("’s").split()
    while len(words) > 1 and words[-1].isalpha() and _is_ordinary(words[-1], whole):
        words.pop()
    return " ".join(words) if any(map(str.isdigit, "".join(words))) else ""


def _unknown_siblings(question: str, whole: str) -> list[str]:
    """`aero 6` in small letters, where the texts know an `Aero 5`."""
    pairs = _WORD_AND_NUMBER.finditer(question)
    return [match[0] for match in pairs if _is_family(match[1], whole)]


def _is_family(word: str, whole: str) -> bool:
    """Whether figures follow it in the texts, as in names: `Aero 5`, `e-strand 2400`."""
    if word.capitalize() in CALENDAR or _is_ordinary(word, whole):
        return False
    spellings = {word, word.capitalize(), word.upper()} - ({word} if word.isalpha() else set())
    family = "|".join(map(re.escape, spellings))
    return re.search(rf"(?<![\w-])(?:{family}){_MARKS}? \d", whole) is not None


@lru_cache(maxsize=256)
def _spelling(name: str) -> re.Pattern[str]:
    """The name in any spelling: `Aero5`, `aero-5`, `S10 Plus` for `S10+`."""
    parts = [
        r"(?:\+|plus)" if part in ("+", "plus") else re.escape(part)
        for part in _PARTS.findall(name.casefold())
    ]
    joint = r"[\W_]{0,3}"
    return re.compile(r"(?<![^\W_])" + joint.join(parts) + r"(?![^\W_])")
