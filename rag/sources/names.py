"""What the documents of a source are called in their collection."""

from collections.abc import Mapping
from itertools import chain, count

from rag.records import DocumentSource


def free_name(
    name: str, source: DocumentSource, taken: Mapping[str, str], document_id: str = ""
) -> str:
    """The file's name; with the source's own before it where another document has that already.

    `taken` are the documents of the collection by name; one of `document_id` may keep its own.
    """
    numbered = (f"{source.name} ({n})/{name}" for n in count(2))
    for wanted in chain((name, f"{source.name}/{name}"), numbered):
        if taken.get(wanted, document_id or None) == (document_id or None):
            return wanted
    raise AssertionError("numbers do not end")
