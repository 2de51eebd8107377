"""What columns are besides their names: how a data dictionary describes them, and what they mean.

A data dictionary is a table whose cells name the columns of another one in the same folder.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rag.errors import ModelError
from rag.language.words import STOP_WORDS, stem
from rag.records import Table
from rag.seams.retrieval import Matrix
from rag.tables.asking.words import IDLE
from rag.tables.running.engine import Answered
from rag.tables.wordforms import normalised

LONGEST_DICTIONARY = 300  # rows
NAMES_MOST = 0.5  # of the columns, the least that a dictionary names
OF_ALL = 3  # columns whose descriptions share a word: it tells of the rows
SHORTEST_PART = 4  # letters of a word that stands at the beginning of another: "rain", "rainfall"
NEAR = 0.58  # likeness of a word and a name that mean the same
NEARER = 0.7  # of a value: "Japanese" and "Japan"
APART = 0.1  # by which the next name has to be less like it
ColumnOrValue = tuple[str, str]  # a column, and a value of it or nothing
Meaning = Callable[[Sequence[str]], Matrix]  # vectors of texts
Rows = Callable[[Table, int, int], Answered]


@dataclass
class Told:
    """What is said of one table's columns elsewhere, and how near words are to their names."""

    described: Mapping[str, str] = field(default_factory=dict)  # by column
    meaning: Meaning | None = None
    _vectors: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def _columns_of(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for column, text in self.described.items():
            words = {w for w in normalised(text).split() if w.isalpha() and len(w) > 2}
            for word in {stem(word) for word in words - IDLE - STOP_WORDS}:
                found[word].append(column)
        return dict(found)

    def columns(self, word: str) -> list[str]:
        """Those that are described with this word, where it tells them from the others."""
        said = stem(word)
        held = [said] if said in self._columns_of else []
        if not held and len(said) >= SHORTEST_PART:
            held = [each for each in self._columns_of if each.startswith(said)]
        found = list(dict.fromkeys(c for each in held for c in self._columns_of[each]))
        return found if len(found) < OF_ALL else []

    def tells_rows(self, word: str) -> bool:
        """Whether the descriptions say it of many columns: it is what the rows are."""
        return len(self._columns_of.get(stem(word), ())) >= OF_ALL

    def nearest(self, word: str, names: Mapping[str, ColumnOrValue]) -> ColumnOrValue | None:
        """What the name stands for that means the same as the word, and none else nearly so."""
        if not names or not self._learn([word, *names]):
            return None
        own = self._vectors[word]
        ranked = sorted(((float(own @ self._vectors[e]), e) for e in names), reverse=True)
        best, name = ranked[0]
        others = (score for score, each in ranked[1:] if names[each] != names[name])
        is_alone = best - next(others, 0.0) >= APART
        return names[name] if best >= (NEARER if names[name][1] else NEAR) and is_alone else None

    def _learn(self, texts: Sequence[str]) -> bool:
        """Whether what they mean is known; not where nobody can say, or not just now."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if self.meaning is None:
            return False
        try:
            self._vectors |= dict(zip(new, self.meaning(new), strict=True)) if new else {}
        except ModelError:
            return False
        return True


def descriptions(table: Table, beside: Sequence[Table], rows: Rows) -> dict[str, str]:
    """What a data dictionary beside the table says of its columns."""
    names = {normalised(column.name): column.name for column in table.columns}
    best: dict[str, str] = {}
    for other in beside:
        if other.row_count > LONGEST_DICTIONARY or len(other.columns) < 2:
            continue
        cells = [row[1:] for row in rows(other, 0, LONGEST_DICTIONARY).rows]
        for at in range(len(other.columns)):
            found = {
                names[name]: max((str(c or "") for c in row[:at] + row[at + 1 :]), key=len)
                for row in cells
                if (name := normalised(str(row[at] or ""))) in names
            }
            if len(found) > max(1, NAMES_MOST * len(names), len(best)):
                best = found
    return best
