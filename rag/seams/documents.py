"""The store of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rag.records import (
    NO_FILTERS,
    Chunk,
    Document,
    DocumentPage,
    FilteredDocuments,
    Filters,
    Readable,
    Section,
)

if TYPE_CHECKING:  # numpy takes longer to load than all of this package
    pass


class DocumentStore(Protocol):
    """Documents, sections and chunks in the database, which is the truth.

    What reads takes the collections that the asker may read; all else is not there (C7).
    """

    def replace(
        self, document: Document, sections: Sequence[Section], chunks: Sequence[Chunk]
    ) -> ChunkChanges:
        """Store a document, in one transaction; chunks that stayed the same are not touched."""

    def delete(self, document_id: str) -> ChunkChanges:
        """Remove a document. Raises NotFound."""

    def document(self, document_id: str, within: Readable) -> Document:
        """Raises NotFound."""

    def documents(self, within: Readable) -> list[Document]:
        """All, by name."""

    def page(
        self,
        within: Readable,
        *,
        limit: int,
        offset: int = 0,
        words: str = "",
        order: str = "name",
        filters: Filters = NO_FILTERS,
    ) -> DocumentPage:
        """Some of those that have all of these words in title or name.

        `order` is "name", "newest" or "largest".
        """

    def chunks(self, chunk_ids: Sequence[str], within: Readable) -> dict[str, Chunk]:
        """Those that exist."""

    def filtered(self, filters: Filters, within: Readable) -> FilteredDocuments:
        """The documents that all filters let through. Raises UserError."""

    def lexicon(self, within: Readable) -> tuple[str, ...]:
        """The product names of the documents, without repeats."""

    def is_empty(self, within: Readable) -> bool:
        """Whether there is no document at all."""

    def sections(self, document_id: str, within: Readable) -> list[Section]:
        """All of a document, in reading order."""

    def chunks_of(
        self, document_id: str, within: Readable, *, sections: range | None = None
    ) -> list[Chunk]:
        """All of a document, or of some of its sections, in reading order."""

    def section_texts(
        self, keys: Sequence[tuple[str, int]], within: Readable
    ) -> dict[tuple[str, int], str]:
        """Texts of sections by (document id, section index); those that exist."""


@dataclass(frozen=True, slots=True)
class ChunkChanges:
    """What a write changed: what the vector index has to follow."""

    added: tuple[Chunk, ...] = ()
    removed: tuple[str, ...] = ()
    removed_tables: tuple[str, ...] = ()  # whose rows are still to be removed
