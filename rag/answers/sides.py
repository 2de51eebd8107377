"""Which of the things that a question compares a piece of a source is about."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag.answers.comparing import Comparison
from rag.answers.passages import Kind, Piece
from rag.answers.products import family, key, mentioned, unmentioned
from rag.answers.words import sequence, terms
from rag.text.names import find_names

_SUBJECTS = 2  # cells of a row that say what it is about
# Words that hold one thing against another.
_COMPARES = re.compile(
    r"\b(unlike|compared (with|to)|than|instead of|in contrast|as opposed to|while|whereas|"
    r"differ\w*|im gegensatz|im vergleich|anders als|statt|dagegen|während|hingegen|"
    r"unterscheide\w*|gegenüber|als (der|die|das|beim?))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class About:
    """Whom a piece is about, by the places of the sides in their question."""

    sides: frozenset[int] = frozenset()
    columns: tuple[tuple[int, int], ...] = ()  # of a row: a side and the column that is its own
    compares: bool = False  # says in words how they differ

    @property
    def is_joint(self) -> bool:
        """Whether it tells of several at once."""
        return len(self.sides) > 1


class Sides:
    """Tells whom pieces are about: by what they name themselves, else by what stands above them."""

    def __init__(
        self, comparison: Comparison, pieces: Sequence[Piece], lexicon: Sequence[str] = ()
    ) -> None:
        self.all = comparison.sides
        self._lexicon = lexicon
        self._keys = [key(side.name) for side in self.all]
        self._sequences = [sequence(side.name) for side in self.all]
        self._others = _longer(self._keys, pieces, lexicon)
        self._texts = [f"{piece.context}\n{piece.text}" for piece in pieces]
        self._named: dict[str, frozenset[int]] = {}
        self._about = {place_of(piece): self._read(piece) for piece in pieces}

    def about(self, piece: Piece) -> About:
        """Whom one of the pieces is about, shortened or not."""
        return self._about[place_of(piece)]

    def known(self, place: int) -> bool:
        """Whether the documents tell of it at all."""
        side = self.all[place]
        if unmentioned(side.name, self._texts):
            return False
        return any(place in about.sides for about in self._about.values())

    def is_unheard_of(self, place: int) -> bool:
        """Whether surely nothing tells of it, rather than perhaps in other words."""
        name = self.all[place].name
        if key(name) in family(name, self._lexicon):
            return False
        if unmentioned(name, self._texts):
            return True
        others = (side.name for at, side in enumerate(self.all) if at != place)
        own = terms(name) - frozenset[str]().union(*map(terms, others))
        return not any(own & terms(text) for text in self._texts)

    def spelling(self, place: int) -> str:
        """The name as the documents write it, else as it was asked."""
        name = self.all[place].name
        pattern = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
        found = (pattern.search(text) for text in self._texts)
        return next((match[0] for match in found if match), name)

    def named_in(self, text: str) -> frozenset[int]:
        """The sides that a text names; -1 stands for another product with a longer name."""
        if text not in self._named:
            names = {name for side, name in zip(self.all, self._keys, strict=True) if side.is_name}
            found = mentioned(key(text), names | self._others)
            places = {self._keys.index(name) for name in found if name in self._keys}
            places |= {-1 for name in found if name not in self._keys}
            words = sequence(text)
            self._named[text] = frozenset(places) | {
                place
                for place, side in enumerate(self.all)
                if not side.is_name and self._is_phrase_in(place, words)
            }
        return self._named[text]

    def _is_phrase_in(self, place: int, words: tuple[str, ...]) -> bool:
        wanted = self._sequences[place]
        if _is_run(wanted, words) or (len(wanted) > 1 and wanted[:-1] == words):
            return True
        return len(wanted) > 2 and _is_run(wanted[:-1], words)

    def _read(self, piece: Piece) -> About:
        if piece.kind is Kind.ROW:
            return self._read_row(piece)
        named = self.named_in(piece.text)
        above = self._above(piece)
        compares = bool(_COMPARES.search(piece.text))
        own = named - {-1}
        if not own:
            return About(above if -1 not in named else frozenset())
        if len(own) == 1 and above and not above & own and compares:
            own |= above  # `Unlike the A it …`, said below the heading of B
        if len(own) > 1 and above == frozenset() and self._is_elsewhere(piece):
            return About()
        return About(own, compares=compares)

    def _read_row(self, piece: Piece) -> About:
        columns = tuple(
            (place, at)
            for at, name in enumerate(piece.header)
            if at and at < len(piece.cells)
            for place in self.named_in(name) - {-1}
        )
        if columns:
            return About(frozenset(place for place, _ in columns), columns)
        subject = frozenset[int]().union(*map(self.named_in, piece.cells[:_SUBJECTS]))
        if subject:
            return About(subject - {-1} if len(subject) == 1 else frozenset())
        if any(self.named_in(cell) for cell in piece.cells[_SUBJECTS:]):
            return About()
        return About(self._above(piece))

    def _above(self, piece: Piece) -> frozenset[int]:
        """The side that stands nearest above, if one does and no other one with it."""
        named = next(filter(None, map(self.named_in, _levels(piece))), frozenset[int]())
        return named if len(named) == 1 and -1 not in named else frozenset()

    def _is_elsewhere(self, piece: Piece) -> bool:
        """Whether it stands below the heading of quite another product."""
        return any(-1 in self.named_in(level) for level in _levels(piece))


def place_of(piece: Piece) -> tuple[int, int]:
    """The number of its source, and its position there."""
    return piece.number, piece.position


def _levels(piece: Piece) -> Iterator[str]:
    """What stands above a piece, the nearest first."""
    return reversed(piece.context.split(" › "))


def _is_run(wanted: tuple[str, ...], words: tuple[str, ...]) -> bool:
    size = len(wanted)
    return size > 0 and any(words[at : at + size] == wanted for at in range(len(words) - size + 1))


def _longer(keys: Sequence[str], pieces: Iterable[Piece], lexicon: Sequence[str]) -> frozenset[str]:
    """Other names in which a side's own name stands: `Aero 5 Pro` holds `Aero 5`.

    Those that the documents list; of names that they do not list, what is written like one.
    """
    listed = {name for mine in keys for name in family(mine, lexicon)}
    unlisted = [mine for mine in keys if mine not in listed]
    if unlisted:
        shapes = (name for piece in pieces for name in _shapes(piece.text))
        listed |= {name for name in shapes if any(name.startswith(f"{m} ") for m in unlisted)}
    return frozenset(
        name for name in listed if name not in keys and any(mine in name for mine in keys)
    )


@lru_cache(maxsize=2048)
def _shapes(text: str) -> tuple[str, ...]:
    return tuple(key(name.text) for name in find_names(text))
