"""Which documents a filter lets through, and by what there is to filter."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from rag.documents.cleaning import day_in
from rag.documents.reports import kind_in_words
from rag.errors import UserError
from rag.records import Document, Facets, Filters

FACETS = ("folder", "type", "author", "tag")
MOST_VALUES = 100  # of one facet, the most usual


def check(filters: Filters) -> None:
    """Raises UserError for a day that is none."""
    for name, value in filters.items():
        if name in ("after", "before") and day_in(value) != value:
            raise UserError(f"{name} is {value[:40]!r}; expected a day such as 2025-03-31.")


def lets_through(filters: Filters, document: Document) -> bool:
    """Whether each of them does; a document that names no day is of no time."""
    title, day = f"{document.title} {document.name}".casefold(), document.report.date
    values = {(name, value.casefold()) for name, value in _values(document)}
    expected = {
        (name, value.casefold().strip("/ ")) for name, value in filters.items() if name in FACETS
    }
    return (
        expected <= values
        and all(word in title for word in filters.title.casefold().split())
        and filters.after <= day
        and (not filters.before or "" < day < filters.before)
    )


def facets_of(documents: Iterable[Document]) -> Facets:
    """In how many documents each value is, as it is mostly written, the most usual first."""
    spellings: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for document in documents:
        values = {(name, value.casefold()): value for name, value in _values(document)}
        for key, value in values.items():
            spellings[key][value] += 1
    counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for (name, _), written in spellings.items():
        counts[name][written.most_common(1)[0][0]] = written.total()
    return {name: dict(counts[name].most_common(MOST_VALUES)) for name in FACETS}


def _values(document: Document) -> Iterator[tuple[str, str]]:
    for folder in PurePosixPath(document.name).parents:
        if folder.name:
            yield "folder", str(folder)
    yield "type", kind_in_words(document.media_type)
    if document.report.author:
        yield "author", document.report.author
    yield from (("tag", tag) for tag in document.report.tags)
