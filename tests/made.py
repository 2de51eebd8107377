"""Records as tests want them, where only a few of their fields matter."""

from rag.records import Chunk, Hit, Source


def made_chunk(chunk_id, text, **more):
    """All of its section, in the only document."""
    plain = {
        "document_id": "d",
        "document_name": "manual.md",
        "document_title": "Manual",
        "section_index": 0,
        "position": 0,
        "heading_path": (),
        "locator": "",
        "start": 0,
        "end": len(text),
    }
    return Chunk(id=chunk_id, text=text, **plain | more)


def made_hit(chunk, passage="", **more):
    """With the passage around it, or as it stands."""
    passage = passage or chunk.text
    return Hit(chunk, 1.0, passage, 0, len(passage), **more)


def made_source(number, text="text", **more):
    """What the register keeps of a chunk of that document."""
    plain = {
        "chunk_id": f"c{number}",
        "document_id": "d",
        "document_name": "manual.md",
        "document_title": "Manual",
        "locator": "",
        "heading_path": (),
        "passage": text,
        "content_hash": "hash",
    }
    return Source(number=number, text=text, **plain | more)
