"""Which documents hold a name."""

from rag.records import DocumentLink, Mention
from rag.retrieval.lexical import LexicalIndex
from rag.seams import DocumentStore
from rag.text.names import contains_name

MOST_CHUNKS = 300  # looked at; a name in more of them is not counted
LINKED = 5


class NameMentions:
    """Counts through the word index, and reads what it finds: `Aero 5` is not in `Aero 5 Pro`."""

    def __init__(self, words: LexicalIndex, documents: DocumentStore) -> None:
        self._words = words
        self._documents = documents

    def __call__(self, name: str) -> Mention | None:
        """None for a name of one document, and where there is too much to count."""
        found = [chunk_id for chunk_id, _ in self._words.search(name, limit=MOST_CHUNKS)]
        if len(found) == MOST_CHUNKS:
            return None
        links = {
            chunk.document_id: DocumentLink(
                chunk.document_id, chunk.document_name, chunk.document_title
            )
            for chunk in self._documents.chunks(found).values()
            if contains_name(f"{chunk.heading}\n{chunk.text}", name)
        }
        if len(links) < 2:
            return None
        ordered = sorted(links.values(), key=lambda link: link.name)
        return Mention(name, len(ordered), tuple(ordered[:LINKED]))
