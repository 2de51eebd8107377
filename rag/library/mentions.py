"""Which documents, and which of their sections, a person names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol, TypeVar

from rag.language.languages import all_words, phrases
from rag.language.words import stem
from rag.records import Document, Section

_SEPARATORS = re.compile(r"[\W_]+")
_AROUND = all_words("around_documents")
_SECTION = re.compile(
    rf"(?:(?:{phrases('articles')}) )?(?:{phrases('sections')}|{phrases('portions')}|§) ?(?P<a>.+)"
    rf" (?:{phrases('of_which')}) (?P<b>.+?)"
    rf"|(?P<c>.+?) (?:{phrases('sections')}) (?:{phrases('of_which')}) (?P<d>.+)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\d+(?:\.\d+)*")
ENOUGH = 0.5  # of a document's words, if not all are said
NameWords = tuple[str, ...]


class NamedDocuments(Protocol):
    """What has a file's name."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=NamedDocuments)


@dataclass(frozen=True, slots=True)
class DocumentStretch:
    """A document, or a part of it."""

    document: Document
    sections: tuple[Section, ...]
    heading: str = ""  # of the part


def words_of(name: str) -> NameWords:
    """The words of a name, stemmed, without those that say that it is a document."""
    results = [stem(word) for word in _SEPARATORS.sub(" ", name.casefold()).split()]
    while results and results[0] in _AROUND:
        results.pop(0)
    while results and results[-1] in _AROUND:
        results.pop()
    return tuple(results)


def documents_named(subject: str, documents: Iterable[Document]) -> list[Document]:
    """Those that are called so; several where it cannot be told which is meant."""
    scored = _scored(subject, documents)
    best = max((score for score, _ in scored), default=0.0)
    return [document for score, document in scored if score == best] if best >= ENOUGH else []


def documents_hinted(subject: str, documents: Iterable[Document]) -> list[Document]:
    """Those of whose names all that is said is a part."""
    return [document for score, document in _scored(subject, documents) if score > 0]


def _scored(subject: str, documents: Iterable[Document]) -> list[tuple[float, Document]]:
    wanted = words_of(subject)
    return (
        [(_likeness(wanted, _names_of(document)), document) for document in documents]
        if wanted
        else []
    )


def files_named(text: str, files: Sequence[N]) -> list[N]:
    """The files whose names stand in a text, with their ending or without."""
    said = f" {' '.join(_SEPARATORS.sub(' ', text.casefold()).split())} "
    return [file for file in files if any(f" {name} " in said for name in _spoken(file.name))]


def _spoken(name: str) -> list[str]:
    """`lease-scan.pdf` is "lease scan pdf" or "lease scan"; one word alone may mean anything."""
    path = PurePosixPath(name)
    told = [
        " ".join(_SEPARATORS.sub(" ", each.casefold()).split()) for each in (path.name, path.stem)
    ]
    return [each for each in told if " " in each]


def _names_of(document: Document) -> list[NameWords]:
    path = PurePosixPath(document.name)
    told = (document.title, path.stem, path.name, document.name)
    return [words_of(each) for each in told]


def _likeness(wanted: NameWords, names: Sequence[NameWords]) -> float:
    """2 for a whole name, else the share of a name that is said, if all that is said is of it."""
    if wanted in names:
        return 2.0
    said = set(wanted)
    return max((len(said) / len(set(name)) for name in names if said <= set(name)), default=0.0)


# ── Sections ─────────────────────────────────────────────────────────────────────────────────


def section_and_document(subject: str) -> tuple[str, str] | None:
    """ "section 2 of the handbook" as its two names."""
    match = _SECTION.fullmatch(subject)
    if match is None:
        return None
    section, document = match["a"] or match["c"], match["b"] or match["d"]
    return section, document


def part_called(
    heading: str, document: Document, sections: Sequence[Section]
) -> DocumentStretch | None:
    """The sections below the heading of that number or title."""
    for section in sections:
        for depth, title in enumerate(section.heading_path, start=1):
            if is_heading(heading, title):
                above = section.heading_path[:depth]
                readable = tuple(other for other in sections if other.heading_path[:depth] == above)
                return DocumentStretch(document, readable, title)
    return None


def is_heading(wanted: str, heading: str) -> bool:
    """Whether "2.1", or "refunds" of "2.1 Refunds", means this heading."""
    number = _NUMBERED.fullmatch(wanted.strip().rstrip("."))
    match = _NUMBERED.match(heading)
    if number is not None:
        return match is not None and match[0] == number[0]
    bare = heading[match.end() :] if match else heading
    return words_of(wanted) in (words_of(bare), words_of(heading)) and bool(words_of(wanted))
