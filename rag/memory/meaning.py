"""How near in meaning paragraphs are to a question, where there is an embedding model."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rag.memory.paragraphs import Paragraph

EMBEDDED_CHARACTERS = 1200  # of a text; what follows seldom changes what it is about
LEAST_MEANING = 0.25  # cosine; what is farther off was meant by nothing in the question
MOST_NEAR = 400  # paragraphs that may be found by their meaning


def embedded_text(paragraph: Paragraph, asked: str) -> str:
    """What is embedded of a paragraph."""
    return f"{asked}\n{paragraph.setting}\n{paragraph.text}".strip()[:EMBEDDED_CHARACTERS]


@dataclass(slots=True)
class Vectors:
    """The vectors of one conversation, and the paragraph of each row."""

    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    messages: set[int] = field(default_factory=set)  # of which they are known

    def add(self, found: Mapping[int, tuple[range, NDArray[np.float32]]]) -> None:
        """Those of some messages: where its paragraphs are, and a row for each."""
        self.messages.update(found)
        fits = [(places, rows) for places, rows in found.values() if len(places) == len(rows) > 0]
        if not fits:
            return
        rows = [self.rows] if len(self.places) else []
        self.places = np.concatenate([self.places, *(np.arange(p.start, p.stop) for p, _ in fits)])
        self.rows = np.concatenate([*rows, *(each for _, each in fits)])

    def cut(self, message: int, paragraph: int) -> None:
        """Forget those of this message and of all after it."""
        kept = self.places < paragraph
        self.places, self.rows = self.places[kept], self.rows[kept]
        self.messages = {each for each in self.messages if each < message}

    def near(self, asked: NDArray[np.float32]) -> dict[int, float]:
        """The nearest paragraphs, with their cosines."""
        if not len(self.places):
            return {}
        cosines = self.rows @ asked
        most = min(MOST_NEAR, len(cosines))
        best = np.argpartition(-cosines, most - 1)[:most]
        pairs = zip(self.places[best].tolist(), cosines[best].tolist(), strict=True)
        return {int(place): float(cosine) for place, cosine in pairs if cosine >= LEAST_MEANING}
