"""Which words of a library share a part with a word: `Restmülltonne` with `Müll` and `Tonne`.

For languages that write compounds as one word. Nothing is known of a language but its endings: a
part is what the library itself has as a word, or what was asked for.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

from rag.language.words import stem_of
from rag.search.normalisation import plain

PART_LETTERS = 4  # at least, of a part
REST_LETTERS = 3  # … of what stands before it
ENDING_LETTERS = 3  # at most
MOST_WORDS = 6  # that hold a part


class Compounds:
    """Over the words of a library, as its index holds them."""

    def __init__(self, words: Iterable[str]) -> None:
        self._written = {plain(word): word for word in words}
        self._words = sorted(self._written)
        self._joined = "\n".join(("", *self._words, ""))

    def forms(self, word: str, rules: str) -> list[str]:
        """The word with other endings, by the stemmer of this name."""
        root = stem_of(plain(word), rules)
        return self._beginning(root) if len(root) >= PART_LETTERS else []

    def sharing(self, word: str, rules: str) -> list[str]:
        """Words that the word is a part of, the shortest first, and those that are part of it."""
        whole = plain(word)
        root = stem_of(whole, rules)
        part = root if len(root) >= PART_LETTERS else whole
        longer = sorted(set(self._holding(part)) if len(part) >= PART_LETTERS else (), key=len)
        found = dict.fromkeys((*longer[:MOST_WORDS], *self._head(whole, rules)))
        known = {self._written.get(whole, ""), *self.forms(word, rules)}
        return [each for each in found if each not in known]

    def _beginning(self, root: str) -> list[str]:
        """Words that are this, but for an ending."""
        at = bisect_left(self._words, root)
        begun = takewhile(lambda each: each.startswith(root), islice(self._words, at, None))
        return [self._written[each] for each in begun if len(each) <= len(root) + ENDING_LETTERS]

    def _holding(self, part: str) -> Iterator[str]:
        position = self._joined.find(part)
        while position >= 0:
            begin, end = (
                self._joined.rfind("\n", 0, position) + 1,
                self._joined.find("\n", position),
            )
            if position == begin or position - begin >= REST_LETTERS:
                yield self._written[self._joined[begin:end]]
            position = self._joined.find(part, end)

    def _head(self, whole: str, rules: str) -> list[str]:
        """The longest word that it ends with."""
        for cut in range(REST_LETTERS, len(whole) - PART_LETTERS + 1):
            root = stem_of(whole[cut:], rules)
            found = self._beginning(root) if len(root) >= PART_LETTERS else []
            if found:
                return found
        return []
