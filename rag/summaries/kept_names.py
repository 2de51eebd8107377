"""Tell which of many names a text holds, without reading known lines again."""

from bisect import bisect_right
from collections.abc import Collection, Iterable
from itertools import accumulate, islice

from rag.text.names import Lexicon

REMEMBERED_LINES = 256  # at least; and twice as many as the text just read has


class KeptNames:
    """Which of some names a text of many lines holds whole; see `Lexicon.kept`.

    Names may come, none goes. A new one changes what a line keeps only where it occurs in it, so
    all other lines that were read stay known.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._lexicon = Lexicon(())
        self._learned = 0
        self._by_line: dict[str, set[str]] = {}
        self._go_over_lines = False
        self.learn(dict.fromkeys(names))

    def learn(self, names: Collection[str]) -> None:
        """All the names, those known before first, in the same order."""
        new = list(islice(names, self._learned, None))
        if not new:
            return
        self._learned += len(new)
        fresh = Lexicon(new)
        self._lexicon = self._lexicon.joined(fresh)
        self._go_over_lines |= any("\n" in name for name in fresh.names)
        for line in _lines_with(fresh, list(self._by_line)):
            self._by_line.pop(line, None)

    def kept(self, text: str) -> set[str]:
        """The names that stand in the text."""
        if self._go_over_lines:
            return self._lexicon.kept(text)
        lines = text.split("\n")
        kept = set[str]().union(*map(self._kept_in_line, lines))
        if len(self._by_line) > max(REMEMBERED_LINES, 2 * len(lines)):
            self._by_line = {line: self._by_line[line] for line in lines}
        return kept

    def _kept_in_line(self, line: str) -> set[str]:
        known = self._by_line.get(line)
        if known is None:
            known = self._by_line[line] = self._lexicon.kept(line)
        return known


def _lines_with(lexicon: Lexicon, lines: list[str]) -> set[str]:
    """The lines in which one of the names occurs, whole or not."""
    ends = list(accumulate(len(line) + 1 for line in lines))
    places = lexicon.places("\n".join(lines))
    return {lines[bisect_right(ends, start)] for start in places}
