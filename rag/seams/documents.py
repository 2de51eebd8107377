"""The store of documents, embedding, finding chunks, and where documents come from."""

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

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

    def document(self, document_id: str, readable: Readable) -> Document:
        """Raises NotFound."""

    def documents(self, readable: Readable) -> list[Document]:
        """All, by name."""

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
        """Some of those that have all of these words in title or name.

        `order` is "name", "newest" or "largest".
        """

    def chunks(self, chunk_ids: Sequence[str], readable: Readable) -> dict[str, Chunk]:
        """Those that exist."""

    def filtered(self, filters: Filters, readable: Readable) -> FilteredDocuments:
        """The documents that all filters let through. Raises UserError."""

    def lexicon(self, readable: Readable) -> tuple[str, ...]:
        """The product names of the documents, without repeats."""

    def is_empty(self, readable: Readable) -> bool:
        """Whether there is no document at all."""

    def sections(self, document_id: str, readable: Readable) -> list[Section]:
        """All of a document, in reading order."""

    def chunks_of(
        self, document_id: str, readable: Readable, *, sections: range | None = None
    ) -> list[Chunk]:
        """All of a document, or of some of its sections, in reading order."""

    def section_texts(
        self, keys: Sequence[tuple[str, int]], readable: Readable
    ) -> dict[tuple[str, int], str]:
        """Texts of sections by (document id, section index); those that exist."""


@dataclass(frozen=True, slots=True)
class ChunkChanges:
    """What a write changed: what the vector index has to follow."""

    added: tuple[Chunk, ...] = ()
    removed: tuple[str, ...] = ()
    removed_tables: tuple[str, ...] = ()  # whose rows are still to be removed


Matrix: TypeAlias = "NDArray[np.float32]"


class Embedder(Protocol):
    """Texts to vectors. Loaded at the first call, never on construction."""

    @property
    def name(self) -> str:
        """Stored with the index: another name needs `groundnote reindex`."""

    @property
    def dimensions(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """Longer texts would be cut by the model, so chunks never exceed it."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text as the model sees it, its special tokens included."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row per text, in order: float32, shape (len(texts), dimensions), each of length 1.

        Raises:
            ModelUnavailable: the embedding server cannot be reached.
        """


class ChunkIndex(Protocol):
    """Nearest chunks by vector. An index over the database that can always be rebuilt from it."""

    def check(self) -> None:
        """Open it, with all that is to be loaded for it. Raises IndexMismatch for other vectors."""

    def add(self, chunk_ids: Sequence[str], vectors: Matrix, collections: Sequence[str]) -> None:
        """Add or overwrite; each chunk is in one collection."""

    def move(self, collections: Mapping[str, str]) -> None:
        """Say in which collection chunks are now; ids that are not there are no error."""

    def remove(self, chunk_ids: Sequence[str]) -> None:
        """Remove; ids that are not there are no error."""

    def nearest(
        self, vectors: Matrix, readable: Readable, *, limit: int
    ) -> list[list[tuple[str, float]]]:
        """For each row chunk ids with their cosine similarity (-1 to 1), best first."""

    def vectors(self, chunk_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Those that are there."""

    def chunk_ids(self, among: Sequence[str] | None = None) -> set[str]:
        """Of all that are there; or those of some, which costs no more memory than these."""

    def count(self) -> int: ...

    def clear(self) -> None:
        """Forget everything, the embedding model's name and dimension too."""

    def close(self) -> None:
        """Let another process open it; it is opened again at the next use."""


@runtime_checkable
class Renewable(Protocol):
    """An index that answers while its successor is filled, be that of another model."""

    def successor(self, dimensions: int) -> ChunkIndex:
        """Of the settings' model; what was begun of it in these dimensions goes on."""

    def take_over(self, one_writer: Callable[[], AbstractContextManager[object]]) -> None:
        """From now on the successor's vectors are those of the index.

        In that moment, which may take several tries, nobody else is to write vectors.
        """


class Reranker(Protocol):
    """Scores texts for a query by reading both together."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score per text, in order; higher is better."""


class Retriever(Protocol):
    """Finds the chunks that may answer. Called once per turn."""

    def search(
        self,
        query: str,
        readable: Readable,
        *,
        before: EarlierTopics = NO_EARLIER_TOPICS,
        limit: int = 8,
        filters: Filters = NO_FILTERS,
    ) -> list[Hit]:
        """Best first, near-duplicates folded, each with its neighbourhood; [] when nothing fits.

        What was said `before` leads the search, by its weights; how relevant a hit is says the
        question alone. Of documents that the `filters` do not let through nothing is found.

        Raises:
            UserError: a filter is none.
            ModelUnavailable, SetupError: the embedding server or the vector index is away.
        """

    def confidence(self, query: str, readable: Readable) -> Confidence:
        """Whether the documents answer a query at all, and which of its codes nobody has."""

    def by_words(
        self,
        query: str,
        readable: Readable,
        *,
        before: EarlierTopics = NO_EARLIER_TOPICS,
        limit: int = 8,
    ) -> list[Hit]:
        """The same by words alone, which needs the database only."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as its source lists it, not yet read."""

    name: str  # within the source, with forward slashes; each name is listed once
    mark: str  # the source's own for this version (time and size, ETag, commit); "" has none
    size: int | None = None  # bytes, where the source says so
    url: str = ""  # where people open it; "" where that is nowhere
    is_settled: bool = True  # False while it is being written to: it is looked at again soon
    # What the source says of it, where the file itself says nothing.
    author: str = ""
    date: str = ""  # a day, "2025-03-31"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What whoever adds a source may say besides its address."""

    include: tuple[str, ...] = ()  # globs of names; none: all
    exclude: tuple[str, ...] = ()
    depth: int = 3  # of links that are followed from a page
    most_files: int = 20_000
    max_bytes: int = 64 * 1024 * 1024  # of one file
    private_hosts: tuple[str, ...] = ()  # of this network, that may be asked all the same
    aside: Path | None = None  # a folder of this source alone, for what it keeps between two syncs
    last_look: str = ""  # when one ended: what was left before it is not gone on with
    # What of the address is secret, each with its name in {}: kept and told is the name alone.
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class Connector(Protocol):
    """A folder, a share, a repository, a site: it is listed, and read file by file."""

    def listed(self) -> Iterator[ListedFile]:
        """All there is now, in any order. Raises SourceAway.

        Where it cannot be seen whole it raises, at the latest at its end: what was not listed is
        taken for removed.
        """

    def read(self, file: ListedFile) -> bytes:
        """The bytes of a file that was listed. Raises UserError, and SourceAway."""

    def close(self) -> None:
        """Let go of connections and of what was put aside."""


@runtime_checkable
class Resumable(Protocol):
    """A connector whose listing takes long: who opens it again after `keep` lists on from there."""

    is_replaying: bool  # what is listed now was listed before `keep`: nothing is gained by leaving

    def keep(self) -> None:
        """Leave what was listed so far, when it is closed, to the next who opens it."""


OpenSource = Callable[[str, SourceOptions], Connector]  # of an address; raises UserError
