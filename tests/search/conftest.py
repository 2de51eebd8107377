from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import Engine

from rag.documents.store import SqlDocumentStore
from rag.records import Chunk, Document, Section
from rag.search.hybrid import HybridRetriever
from rag.search.lexical import LexicalIndex
from tests.fakes import HashEmbedder, MemoryIndex
from tests.prepared import migrated
from tests.vectors_once import computed_anew


@pytest.fixture(autouse=True)
def vectors_of_the_models() -> Iterator[None]:
    """Here is tested what computes them."""
    with computed_anew():
        yield


class Library:
    """Documents in a real database, a lexical index over it and a vector index in memory."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.store = SqlDocumentStore(engine)
        self.lexical = LexicalIndex(engine)
        self.embedder = HashEmbedder()
        self.index = MemoryIndex()
        self.retriever = HybridRetriever(self.embedder, self.index, self.lexical, self.store)

    def add(
        self,
        title: str,
        *texts: str,
        heading_path: tuple[str, ...] = (),
        name: str | None = None,
        section: str | None = None,
        collection: str = "1",
    ) -> list[Chunk]:
        """A document of one section: the given one with these texts in it, or the texts joined."""
        name = name or f"{title}.md"
        section = "\n\n".join(texts) if section is None else section
        document_id = sha256(name.encode()).hexdigest()[:32]
        chunks, end = [], 0
        for position, text in enumerate(texts):
            start = section.index(text, end)
            end = start + len(text)
            chunk_id = sha256(f"{name} {start} {text}".encode()).hexdigest()[:32]
            where = (document_id, name, title, 0, position, heading_path, "§ 1")
            chunks.append(Chunk(chunk_id, *where, text, start, end))
        document = Document(
            document_id, name, title, "text/markdown", "0" * 64, 1, len(chunks), datetime.now(UTC)
        )
        document = replace(document, collection_id=collection)
        self.store.replace(document, [Section(0, heading_path, "§ 1", section)], chunks)
        vectors = self.embedder.embed([chunk.embedded_text for chunk in chunks])
        self.index.add([chunk.id for chunk in chunks], vectors, [collection] * len(chunks))
        return chunks


@pytest.fixture
def engine_at() -> Iterator[Callable[[Path], Engine]]:
    """Databases of their own."""
    opened: list[Engine] = []

    def engine_at(path: Path) -> Engine:
        opened.append(migrated(path))
        return opened[-1]

    yield engine_at
    for engine in opened:
        engine.dispose()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = migrated(tmp_path / "test.db")
    yield engine
    engine.dispose()


@pytest.fixture
def library(engine: Engine) -> Library:
    return Library(engine)
