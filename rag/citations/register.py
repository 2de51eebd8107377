"""Give every chunk that a session shows one number, for good (C1)."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from rag.records import Hit, Source, SourceState


def assign_numbers(
    known: Mapping[str, int], chunk_ids: Iterable[str], *, taken: int = 0
) -> dict[str, int]:
    """Extend a session's numbering with new chunks; a known chunk keeps its number.

    New numbers follow the highest one without a gap, in the order in which the chunks first
    appear. `taken` is the session's highest number, for callers that know a part of it only.
    """
    numbers = dict(known)
    following = max([taken, *known.values()]) + 1
    for chunk_id in chunk_ids:
        if chunk_id not in numbers:
            numbers[chunk_id] = following
            following += 1
    return numbers


def as_source(hit: Hit, number: int = 0) -> Source:
    """What the register keeps of a hit, so that `[n]` can be opened when the document is gone."""
    chunk = hit.chunk
    return Source(
        number=number,
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        document_name=chunk.document_name,
        document_title=chunk.document_title,
        locator=chunk.locator,
        heading_path=chunk.heading_path,
        text=chunk.text,
        passage=hit.passage,
        content_hash=content_hash(hit.passage),
    )


def brought_source(number: int, text: str, name: str, **more: Any) -> Source:
    """One that somebody brings along: there is no document of it here. `more` are other fields."""
    passage = more.get("passage") or text
    defaults = {"document_id": "", "document_title": name, "locator": "", "heading_path": ()}
    content = content_hash(passage)
    unnamed = f"imported:{number}:{content[:16]}"  # what says otherwise is another source
    identity = {"chunk_id": more.get("chunk_id") or unnamed, "passage": passage}
    return Source(
        number=number,
        text=text,
        document_name=name,
        content_hash=content,
        **defaults | more | identity,
    )


def content_hash(text: str) -> str:
    """Sha256 of a text, hex; lone surrogates count as question marks."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def source_state(*, has_document: bool, has_chunk: bool) -> SourceState:
    """What became of a source: its chunk's id changes with every change of its text."""
    if has_chunk:
        return SourceState.CURRENT
    return SourceState.CHANGED if has_document else SourceState.DELETED
