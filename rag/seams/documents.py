"""The Protocols of document store, embedder, chunk index, retriever and connector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from rag.records import (
    NO_EARLIER_TOPICS,
    NO_FILTERS,
    Chunk,
    Confidence,
    Document,
    DocumentPage,
    EarlierTopics,
    FilteredDocuments,
    Filters,
    Hit,
    Readable,
    Section,
)

if TYPE_CHECKING:  # numpy takes longer to load than all of this package
    import numpy as np
    from numpy.typing import NDArray


class DocumentStore(Protocol):
    """Documents, sections and chunks in the database, which all indexes are rebuilt from.

    Methods that read take the collections that the caller may read, and return nothing outside them
    (C7).
    """

    def replace(
        self, document: Document, sections: Sequence[Section], chunks: Sequence[Chunk]
    ) -> ChunkChanges:
        """Store a document in one transaction; unchanged chunks are not written."""

    def delete(self, document_id: str) -> ChunkChanges:
        """Delete a document. Raises NotFound."""

    def document(self, document_id: str, readable: Readable) -> Document:
        """Return a document. Raises NotFound."""

    def documents(self, readable: Readable) -> list[Document]:
        """Return all documents, by name."""

    def page(
        self,
        readable: Readable,
        *,
        limit: int,
        offset: int = 0,
        words: str = "",
        order: str = "name",
        filters: Filters = NO_FILTERS,
    ) -> DocumentPage:
        """Return a page of the documents that have all of these words in title or name.

        `order` is "name", "newest" or "largest".
        """

    def chunks(self, chunk_ids: Sequence[str], readable: Readable) -> dict[str, Chunk]:
        """Return the chunks with these ids; unknown ids are left out."""

    def filtered(self, filters: Filters, readable: Readable) -> FilteredDocuments:
        """Return the documents that pass all filters. Raises UserError."""

    def lexicon(self, readable: Readable) -> tuple[str, ...]:
        """Return the product names of the documents, without repeats."""

    def is_empty(self, readable: Readable) -> bool:
        """Return whether there is no document at all."""

    def sections(self, document_id: str, readable: Readable) -> list[Section]:
        """Return all sections of a document, in reading order."""

    def chunks_of(
        self, document_id: str, readable: Readable, *, sections: range | None = None
    ) -> list[Chunk]:
        """Return the chunks of a document, or of some of its sections, in reading order."""

    def section_texts(
        self, keys: Sequence[tuple[str, int]], readable: Readable
    ) -> dict[tuple[str, int], str]:
        """Return texts of sections by (document id, section index); unknown keys are left out."""


@dataclass(frozen=True, slots=True)
class ChunkChanges:
    """What a write changed in the database, and the vector index has to follow."""

    added: tuple[Chunk, ...] = ()
    removed: tuple[str, ...] = ()
    removed_tables: tuple[str, ...] = ()  # tables whose rows are still to be removed


Matrix: TypeAlias = "NDArray[np.float32]"


class Embedder(Protocol):
    """Turns texts into vectors. Loads its model at the first call, never on construction."""

    @property
    def name(self) -> str:
        """The name stored with the index: another name needs `groundnote reindex`."""

    @property
    def dimensions(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """The most tokens of a text: the model cuts longer ones, so no chunk is longer."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text as the model sees it, with its special tokens."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a row per text, in order: float32, shape (len(texts), dimensions), length 1.

        Raises:
            ModelUnavailable: the embedding server cannot be reached.
        """


class ChunkIndex(Protocol):
    """Finds the nearest chunks by vector. It can always be rebuilt from the database."""

    def check(self) -> None:
        """Open the index and load all that it needs. Raises IndexMismatch for other vectors."""

    def add(self, chunk_ids: Sequence[str], vectors: Matrix, collections: Sequence[str]) -> None:
        """Add or overwrite the vectors of chunks; each chunk is in one collection."""

    def move(self, collections: Mapping[str, str]) -> None:
        """Store the collection that each chunk is in now; unknown ids are no error."""

    def remove(self, chunk_ids: Sequence[str]) -> None:
        """Remove the chunks; unknown ids are no error."""

    def nearest(
        self, vectors: Matrix, readable: Readable, *, limit: int
    ) -> list[list[tuple[str, float]]]:
        """Return for each row ids of chunks with their cosine similarity (-1 to 1), best first."""

    def vectors(self, chunk_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors of these chunks; unknown ids are left out."""

    def chunk_ids(self, among: Sequence[str] | None = None) -> set[str]:
        """Return all ids in the index, or those of `among` in it (memory grows with these only)."""

    def count(self) -> int: ...

    def clear(self) -> None:
        """Delete everything, also the embedding model's name and dimension."""

    def close(self) -> None:
        """Close the index so that another process can open it; the next use opens it again."""


@runtime_checkable
class Renewable(Protocol):
    """An index that answers while its successor is filled, perhaps with another model."""

    def successor(self, dimensions: int) -> ChunkIndex:
        """Return the successor for the settings' model; continue one begun in these dimensions."""

    def take_over(self, one_writer: Callable[[], AbstractContextManager[object]]) -> None:
        """Replace the index's vectors by the successor's.

        While `one_writer` is entered, perhaps several times, no other process may write vectors.
        """


class Reranker(Protocol):
    """Scores texts for a query by reading both together."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score per text, in order; higher is better."""


class Retriever(Protocol):
    """Finds the chunks that may answer a question. Called once per turn."""

    def search(
        self,
        query: str,
        readable: Readable,
        *,
        before: EarlierTopics = NO_EARLIER_TOPICS,
        limit: int = 8,
        filters: Filters = NO_FILTERS,
    ) -> list[Hit]:
        """Return hits, best first, near-duplicates folded, each with its neighbourhood.

        Returns [] when nothing fits. The texts of `before` influence the search by their weights;
        the relevance of a hit depends on the question alone. Only documents that pass the `filters`
        are found.

        Raises:
            UserError: a filter is not valid.
            ModelUnavailable, SetupError: the embedding server or the vector index is away.
        """

    def confidence(self, query: str, readable: Readable) -> Confidence:
        """Return whether the documents answer a query at all, and which of its codes none has."""

    def by_words(
        self,
        query: str,
        readable: Readable,
        *,
        before: EarlierTopics = NO_EARLIER_TOPICS,
        limit: int = 8,
    ) -> list[Hit]:
        """Return hits by words alone, which needs only the database."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as its connector lists it, not yet read."""

    name: str  # within the source, with forward slashes; unique
    mark: str  # identifies this version (time and size, ETag, commit); "" if the source has none
    size: int | None = None  # bytes, if the source says
    url: str = ""  # where people open it; "" if nowhere
    is_settled: bool = True  # False while it is being written to: it is listed again soon
    # From the source, where the file itself names none.
    author: str = ""
    date: str = ""  # a day, "2025-03-31"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a source besides its address."""

    include: tuple[str, ...] = ()  # globs of names; none: all
    exclude: tuple[str, ...] = ()
    depth: int = 3  # of links that are followed from a page
    most_files: int = 20_000
    max_bytes: int = 64 * 1024 * 1024  # of one file
    private_hosts: tuple[str, ...] = ()  # hosts of the private network that may be read
    aside: Path | None = None  # this source's own folder, for data between two syncs
    last_look: str = ""  # when the last sync ended: an older interrupted listing is not continued
    # Secrets in the address, by their names in {}: only the name is stored and shown.
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class Connector(Protocol):
    """A folder, a share, a repository or a site whose files are listed and read."""

    def listed(self) -> Iterator[ListedFile]:
        """Yield all files that exist now, in any order. Raises SourceAway.

        Raises, at the latest at its end, if not all could be listed: files that are not listed
        count as removed.
        """

    def read(self, file: ListedFile) -> bytes:
        """Return the bytes of a listed file. Raises UserError, and SourceAway."""

    def close(self) -> None:
        """Close connections and delete temporary files."""


@runtime_checkable
class Resumable(Protocol):
    """A connector with a long listing: after `keep`, the next one opened continues it."""

    is_replaying: bool  # what is listed now was listed before `keep`, so a stop saves nothing

    def keep(self) -> None:
        """Save the listing so far, when it is closed, for the next connector that is opened."""


OpenSource = Callable[[str, SourceOptions], Connector]  # opens an address; raises UserError
