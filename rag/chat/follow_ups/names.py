"""The product names that follow-ups may mean, found in any spelling of upper and lower case."""

from collections.abc import Iterable, Sequence

from rag.language.names import Lexicon, Name


class Names:
    """A lexicon for questions: people type "aero 5 pro", or only "the Pro"."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._spellings = {name.lower(): name for name in reversed(list(names)) if name.strip()}
        self._by_word: dict[str, list[str]] = {}
        for lowered, name in self._spellings.items():
            for word in set(lowered.split()):
                self._by_word.setdefault(word, []).append(name)
        self._lexicon = Lexicon(self._spellings)

    def __contains__(self, text: str) -> bool:
        return text.lower() in self._spellings

    def find(self, text: str) -> list[Name]:
        """The names in a text, with the text's own spelling."""
        # "İ" is two characters in lower case
        lowered = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
        found = self._lexicon.find(lowered)
        return [Name(text[name.start : name.end], name.start, name.end) for name in found]

    def with_words(self, words: Sequence[str]) -> list[str]:
        """The names that hold all of these words, given in lower case."""
        if not words:
            return []
        fewest = min((self._by_word.get(word, []) for word in words), key=len)
        return [name for name in fewest if set(words) <= set(name.lower().split())]
