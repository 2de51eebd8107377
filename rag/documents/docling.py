"""Turn a reading server's reply (a DoclingDocument, as JSON) into sections.

The reply is as untrusted as the file, so it is read in the sandbox like a file.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rag.documents.limits import LoadLimits
from rag.documents.outline import Mark, Outline, Run, marks_of, written
from rag.documents.readers import markdown
from rag.documents.sandbox_worker import answered, serve, to_json
from rag.documents.tables import Spanning, spread
from rag.errors import Unreadable

DEEPEST = 60  # groups and lists inside each other
PARTS = ("texts", "tables", "groups", "pictures", "key_value_items", "form_items")
BOXES = {"checkbox_selected": "☑", "checkbox_unselected": "☐"}
SCRIPTS = {"super": Mark.RAISED, "sub": Mark.LOWERED}
Node = Mapping[str, Any]


def read(message: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from the server's reply. Raises Unreadable where the reply is malformed."""
    try:
        reply = json.loads(message)
        document = reply["document"].get("json_content")
        if document:
            _DoclingWalk(document, outline).children(document["body"], 0)
        else:
            markdown.read((reply["document"].get("md_content") or "").encode(), outline, limits)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unreadable(
            outline.name, f"the reading server sent what is no document ({error!r:.100})."
        ) from error
    for fault in reply.get("errors") or ():
        outline.left_out.append(f"the reading server: {fault.get('error_message', fault)!s:.200}")


class _DoclingWalk:
    """Recursive descent over the references of a DoclingDocument, in reading order."""

    def __init__(self, document: Node, outline: Outline) -> None:
        self.outline = outline
        self.nodes: dict[str, Node] = {
            node["self_ref"]: node for part in PARTS for node in document.get(part) or ()
        }
        self.page = 0
        outline.pages = len(document.get("pages") or ())
        outline.pictures = len(document.get("pictures") or ())

    def below(self, node: Node, name: str = "children") -> Iterator[Node]:
        """Yield the parts that a node refers to, each once in the whole document."""
        for reference in node.get(name) or ():
            part = self.nodes.pop(reference["$ref"], None)
            if part is not None and part.get("content_layer", "body") == "body":
                yield part

    def children(self, node: Node, depth: int) -> None:
        for part in self.below(node) if depth < DEEPEST else ():
            self.part(part, depth)

    def part(self, part: Node, depth: int) -> None:
        """Add a text, a table, a picture with its caption, or a group of parts."""
        self.turn_to(part)
        label = part.get("label", "")
        for caption in self.below(part, "captions"):
            self.outline.paragraph(_text(caption))
        if label == "inline":
            self.outline.paragraph(self.inline(part))
        elif "data" in part and "table_cells" in part["data"]:
            self.outline.table(_rows(part["data"]))
        elif label == "list_item":
            mark = part.get("marker") if part.get("enumerated") else ""
            self.outline.begin_entry(f"- {mark}" if mark else "-")
            self.outline.paragraph(_text(part) or self.inline(part))
            self.children(part, depth + 1)
            self.outline.end_entry()
            return
        elif "text" in part:
            self.text(part, label)
        self.children(part, depth + 1)

    def text(self, part: Node, label: str) -> None:
        text = _text(part)
        if label in ("title", "section_header"):
            self.outline.heading(1 if label == "title" else part.get("level", 1) + 1, text)
        elif label == "code":
            self.outline.code(part["text"])
        else:
            self.outline.paragraph(f"{BOXES[label]} {text}" if label in BOXES else text)

    def inline(self, group: Node) -> str:
        """Join the runs of one paragraph; a super- or subscript follows its word without blank."""
        runs: list[Run] = []
        for run in (run for part in self.below(group) for run in _runs(part)):
            is_moved = run.marks & {Mark.RAISED, Mark.LOWERED}
            runs += [Run(" "), run] if runs and not is_moved else [run]
        return written(runs)

    def turn_to(self, part: Node) -> None:
        """Begin a section where the part is on a new page."""
        page = next((place["page_no"] for place in part.get("prov") or ()), self.page)
        if page != self.page:
            self.page = page
            self.outline.place(f"page {page}", page=page)


def _text(part: Node) -> str:
    return written(_runs(part))


def _runs(part: Node) -> list[Run]:
    formatting = part.get("formatting") or {}
    struck = Mark.STRUCK if formatting.get("strikethrough") else None
    marks = marks_of(SCRIPTS.get(formatting.get("script") or ""), struck)
    return [Run(part.get("text") or "", marks)]


def _rows(data: Node) -> list[list[str]]:
    rows: list[list[Spanning]] = [[] for _row in range(min(int(data["num_rows"]), 100_000))]
    heads = 1
    cells = sorted(data["table_cells"], key=lambda cell: cell["start_col_offset_idx"])
    for cell in cells:
        row, text = cell["start_row_offset_idx"], cell.get("text") or ""
        rows[row].append((text, cell.get("col_span", 1), cell.get("row_span", 1)))
        if cell.get("column_header"):
            heads = max(heads, row + 1)
    return spread(rows, heads=heads)


def _answer(name: str, message: bytes, limits: LoadLimits) -> bytes:
    media_type, _, reply = message.partition(b"\n")

    def work() -> bytes:
        outline = Outline(
            name, media_type=media_type.decode(), max_characters=limits.max_characters
        )
        read(reply, outline, limits)
        return to_json(outline.finish())

    return answered(name, limits, work)


if __name__ == "__main__":
    serve(_answer)
