"""The sets of questions, each with its documents and what must be shown."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.corpora import Entry, chunks_of, distractors, rows_of, section_of
from rag.documents.chunking import cut, document_id_for
from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load
from rag.documents.store_rows import StoredDocument
from rag.errors import RagError
from rag.language.words import STOP_WORDS
from rag.records import Document
from rag.seams import Embedder

HERE = Path(__file__).parent
SAMPLE_LIBRARY = HERE.parents[1] / "data"
_FIGURE = re.compile(r"\d[\d.,]*\d|\d")
_WORD = re.compile(r"[^\W_]+")
SIBLINGS = (
    "Galaxy A20",
    "Galaxy A50",
    "Galaxy Note 10+",
    "Galaxy Note 9",
    "Galaxy S8",
    "Galaxy S9",
    "Galaxy Tab S5e",
    "Galaxy Tab S6",
)
ENOUGH = 0.5  # of an answer's words, where people did not name the ones that count


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question, and how to tell whether a text answers it."""

    question: str
    group: str  # what must stay together when rules are fitted: a document
    words: tuple[str, ...] = ()  # all of these must be shown …
    answer: str = ""  # … or enough words of this
    documents: frozenset[str] = frozenset()  # where; anywhere if none is named
    answerable: bool = True

    def is_shown_by(self, text: str, document: str) -> bool:
        """Whether this text of this document answers."""
        if not self.answerable or (self.documents and document not in self.documents):
            return False
        if self.words:
            shown = _plain(text)
            return all(_plain(word) in shown for word in self.words)
        return _share(self._key_words(), text) >= ENOUGH

    def holds_a_word(self, text: str) -> bool:
        """Whether a text holds one of the words that answer."""
        shown = _plain(text)
        return any(_plain(word) in shown for word in self.words)

    def _key_words(self) -> frozenset[str]:
        told = _terms(self.answer) - _terms(self.question)
        return told or _terms(self.answer)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[*`_|\\]", " ", text).casefold().split())


def _terms(text: str) -> frozenset[str]:
    words = (word.rstrip("s") for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS)
    return frozenset(words) | frozenset(_FIGURE.findall(text))


def _share(wanted: frozenset[str], text: str) -> float:
    return len(wanted & _terms(text)) / len(wanted) if wanted else 0.0


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions over one library."""

    name: str
    questions: tuple[Wanted, ...]
    documents: Callable[[Embedder], Iterator[StoredDocument]]


# ── Where the documents come from ────────────────────────────────────────────────────────────


def of_entries(entries: Iterable[Entry], embedder: Embedder) -> Iterator[StoredDocument]:
    """Sections that a set has cut already."""
    for entry in entries:
        own_id = document_id_for(entry.id)
        chunks = chunks_of(entry, embedder)
        title = entry.product or entry.title
        yield StoredDocument(
            _record(own_id, entry.id, title, len(entry.text), len(chunks)),
            [section_of(entry)],
            [replace(chunk, document_id=own_id) for chunk in chunks],
        )


def of_files(files: Iterable[tuple[str, bytes]], embedder: Embedder) -> Iterator[StoredDocument]:
    """Files, read as an ingest reads them; what cannot be read is left out."""
    for name, data in files:
        try:
            parsed = load(name, data, limits=LoadLimits())
        except RagError:
            continue
        own_id = document_id_for(name)
        chunks = cut(
            own_id,
            name,
            parsed.title,
            parsed.sections,
            count_tokens=embedder.count_tokens,
            max_tokens=embedder.max_tokens,
        )
        record = _record(own_id, name, parsed.title, len(data), len(chunks), parsed.names)
        yield StoredDocument(record, parsed.sections, chunks)


def _record(
    own_id: str, name: str, title: str, size: int, chunks: int, names: Sequence[str] = ()
) -> Document:
    now = datetime.now(UTC)
    return Document(own_id, name, title, "text/plain", "", size, chunks, now, tuple(names))


# ── The sets ─────────────────────────────────────────────────────────────────────────────────


def judged_set(data: Path, name: str) -> QuestionSet:
    """Sections, questions, judgments and an answer that a person wrote."""
    rows = list(rows_of(data / name / "dev" / "queries.jsonl"))
    gold: dict[str, set[str]] = {}
    for line in (data / name / "dev" / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, entry, _grade = line.split("\t")[:3]
        gold.setdefault(query, set()).add(entry)
    questions = tuple(
        Wanted(
            row["text"],
            sorted(gold.get(str(row["id"]), {""}))[0],
            answer=row["answer"],
            documents=frozenset(gold.get(str(row["id"]), ())),
        )
        for row in rows
    )
    entries = [
        Entry(str(row["id"]), row.get("title", ""), row["text"], row.get("product", ""))
        for row in rows_of(next((data / name).glob("corpus.jsonl*")))
    ]
    return QuestionSet(name, questions, lambda embedder: of_entries(entries, embedder))


def site(data: Path, name: str) -> QuestionSet:
    """A project's documentation with questions of our own: `questions.jsonl` beside this."""
    rows = [row for row in rows_of(HERE / "questions.jsonl") if row["site"] == name]
    questions = tuple(Wanted(row["question"], row["path"], tuple(row["shown"])) for row in rows)

    def files() -> Iterator[tuple[str, bytes]]:
        for row in rows_of(data / "doc_sites" / f"{name}.jsonl"):
            path = row["path"]
            told = path.removesuffix("x") if path.endswith(".mdx") else path
            yield told, row["text"].encode()

    return QuestionSet(name, questions, lambda embedder: of_files(files(), embedder))


def manuals(data: Path) -> QuestionSet:
    """Manuals of sibling devices, sections as they were cut; the answer is in the one asked for."""
    rows = [row for row in rows_of(HERE / "questions.jsonl") if row["site"] == "samsung"]
    entries = [entry for entry in distractors(data) if entry.product in SIBLINGS]
    sections: dict[str, set[str]] = {}
    for entry in entries:
        sections.setdefault(entry.product, set()).add(entry.id)
    questions = tuple(
        Wanted(r["question"], r["path"], tuple(r["shown"]), "", frozenset(sections[r["path"]]))
        for r in rows
    )
    return QuestionSet("samsung", questions, lambda embedder: of_entries(entries, embedder))


def own_files(name: str, folder: str) -> QuestionSet:
    """Price lists, handbooks and the like, in English and in German."""
    rows = [row for row in rows_of(HERE / "questions.jsonl") if row["site"] == name]
    questions = tuple(Wanted(r["question"], r["path"], tuple(r["shown"])) for r in rows)
    files = [(path.name, path.read_bytes()) for path in sorted((HERE / folder).iterdir())]
    return QuestionSet(name, questions, lambda embedder: of_files(files, embedder))


def filings(data: Path) -> QuestionSet:
    """Quarterly reports: the figures of the answer, or else enough of its words."""
    folder = data / "sec10q"
    questions = []
    for row in rows_of(folder / "dev" / "queries.jsonl"):
        answer = re.split(r"\n\s*SOURCE", row["answer"])[0]
        documents = frozenset(row["docs"])
        questions.append(Wanted(row["text"], row["docs"][0], (), answer, documents))

    def files() -> Iterator[tuple[str, bytes]]:
        for path in sorted((folder / "docs").glob("*.pdf")):
            yield path.name, path.read_bytes()

    return QuestionSet("sec10q", tuple(questions), lambda embedder: of_files(files(), embedder))


def sample_library() -> QuestionSet:
    """The library that comes along."""
    rows = [row for row in rows_of(SAMPLE_LIBRARY / "questions.jsonl") if row.get("key")]
    questions = tuple(
        Wanted(row["question"], row["document"], (_said(row["key"]),)) for row in rows
    )
    folder = SAMPLE_LIBRARY / "library"

    def files() -> Iterator[tuple[str, bytes]]:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield path.relative_to(folder).as_posix(), path.read_bytes()

    return QuestionSet("sample", questions, lambda embedder: of_files(files(), embedder))


def _said(key: str) -> str:
    """Cells of a CSV file are shown apart."""
    return key.replace(",", " ") if re.search(r"\w,\w", key) else key


def paragraphs(data: Path, language: str) -> QuestionSet:
    """Paragraphs of an encyclopedia, with the words that answer."""
    rows = rows_of(data / "xquad" / "dev" / f"queries_{language}.jsonl")
    questions = tuple(Wanted(r["text"], r["doc"], (r["answers"][0],)) for r in rows)
    entries = [
        Entry(str(row["id"]), row.get("title", ""), row["text"])
        for row in rows_of(data / "xquad" / f"corpus_{language}.jsonl")
    ]
    return QuestionSet(f"xquad-{language}", questions, lambda e: of_entries(entries, e))


def long_texts(data: Path) -> QuestionSet:
    """Five long texts with the spans that answer; the first span must be shown."""
    folder = data / "chunking_spans"
    questions = tuple(
        Wanted(row["text"], f"{row['corpus']} {row['spans'][0]['start'] // 20_000}", (), s["text"])
        for row in rows_of(folder / "dev" / "queries.jsonl")
        for s in row["spans"][:1]
    )

    def files() -> Iterator[tuple[str, bytes]]:
        for path in sorted((folder / "corpora").glob("*.md")):
            yield path.name, path.read_bytes()

    return QuestionSet("chunking", questions, lambda embedder: of_files(files(), embedder))


def sets_of(data: Path) -> Mapping[str, Callable[[], QuestionSet]]:
    """By name."""
    return {
        "sample": sample_library,
        "emanual": lambda: judged_set(data, "emanual"),
        "anthropic_docs": lambda: judged_set(data, "anthropic_docs"),
        "flask": lambda: site(data, "flask"),
        "meshtastic": lambda: site(data, "meshtastic"),
        "sec10q": lambda: filings(data),
        "zmk": lambda: site(data, "zmk"),
        "prometheus": lambda: site(data, "prometheus"),
        "samsung": lambda: manuals(data),
        "own": lambda: own_files("own", "unseen"),
        "mixed": lambda: own_files("mixed", "mixed"),
        "trades": lambda: own_files("trades", "trades"),
        "xquad-en": lambda: paragraphs(data, "en"),
        "xquad-de": lambda: paragraphs(data, "de"),
        "chunking": lambda: long_texts(data),
    }
