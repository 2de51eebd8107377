"""Which documents hold a name."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from rag.language.names import contains_name
from rag.records import Chunk, DocumentLink, Mention, Readable
from rag.seams import DocumentStore
from rag.search.lexical import LexicalIndex

MOST_CHUNKS = 300  # looked at beside an answer; a name in more of them is not counted
ALL_CHUNKS = 20_000  # looked at where somebody asks for all
LINKED = 5


class NameMentions:
    """Counts through the word index, and reads what it finds: `Aero 5` is not in `Aero 5 Pro`."""

    def __init__(
        self,
        words: LexicalIndex,
        documents: DocumentStore,
        lexicon: Callable[[Readable], Sequence[str]] = lambda readable: (),
    ) -> None:
        self._words = words
        self.documents = documents
        self._lexicon = lexicon

    def __call__(self, name: str, readable: Readable) -> Mention | None:
        """None for a name of one document, and where there is too much to count."""
        chunks = self._chunks(name, readable, MOST_CHUNKS)
        if len(chunks) == MOST_CHUNKS:
            return None
        links = {
            chunk.document_id: DocumentLink(
                chunk.document_id, chunk.document_name, chunk.document_title
            )
            for chunk in chunks
            if _holds(chunk, name)
        }
        if len(links) < 2:
            return None
        ordered = _told_apart(sorted(links.values(), key=lambda link: link.name))
        return Mention(name, len(ordered), tuple(ordered[:LINKED]))

    def is_word(self, word: str, readable: Readable) -> bool:
        """Whether any text holds a word, in whatever form, or one that it may be meant for."""
        return self._words.is_known(word, readable)

    def everywhere(self, words: str, readable: Readable) -> list[Chunk]:
        """Every chunk that holds these words: a name as it is written, others in any form."""
        chunks = self._chunks(words, readable, ALL_CHUNKS)
        known = {name.casefold(): name for name in self._lexicon(readable)}
        name = words if words.isupper() else known.get(words.casefold())
        return chunks if name is None else [chunk for chunk in chunks if _holds(chunk, name)]

    def _chunks(self, name: str, readable: Readable, limit: int) -> list[Chunk]:
        found = self._words.holding(name, readable, limit=limit)
        return list(self.documents.chunks(found, readable).values())


def _told_apart(links: Sequence[DocumentLink]) -> list[DocumentLink]:
    """Documents of one title are called by the names of their files."""
    titles = Counter(link.title for link in links)
    return [replace(link, title=link.name) if titles[link.title] > 1 else link for link in links]


def _holds(chunk: Chunk, name: str) -> bool:
    return contains_name(f"{chunk.heading}\n{chunk.text}", name)
