"""Read JSON, JSON Lines, YAML and XML: records become tables, other values go under their keys.

XML may be prose as well (DocBook, DITA, TEI, FB2, JATS, subtitles in TTML, drawings).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rag.documents.cleaning import clean, decode, one_line
from rag.documents.kinds import FileKind
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.sheets import CellCount, write_rows
from rag.documents.tables import typed_cell
from rag.errors import Unreadable

DEEPEST = 12  # deeper values are written as JSON
HEADINGS = 4  # levels of keys that become headings; deeper ones begin entries
FEWEST_RECORDS = 2
WIDEST = 200  # keys of a record that becomes a row


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; the kind follows from the file's name."""
    text = clean(decode(data))
    kind = next(file_kind for file_kind in FileKind if file_kind.value == outline.media_type)
    try:
        if kind is FileKind.XML:
            from defusedxml.ElementTree import fromstring

            root = fromstring(text)
            if is_prose(root):
                outline.fallback_title = outline.stem
                _write_element(root, outline, 1)
                return
            value: Any = {local_name(root.tag): _element(root, 0)}
        else:
            value = parsed(text, kind)
    except (ValueError, SyntaxError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if isinstance(error, RecursionError):
            reason = "its parts are nested too deeply"
        if type(error).__module__.startswith("defusedxml"):
            reason = "it declares entities, which are not read"
        raise Unreadable(outline.name, f"this is no valid {kind.word}: {reason}.") from error
    outline.title = outline.stem
    _DataWalk(outline, CellCount(outline.name, limits)).value(value, 1)


def write_properties(values: Mapping[str, Any], outline: Outline, limits: LoadLimits) -> None:
    """Write each value under a heading, nested values one per line."""
    _DataWalk(outline, CellCount(outline.name, limits)).mapping(values, HEADINGS)


def parsed(text: str, kind: FileKind) -> Any:
    """Parse YAML, JSON or JSON Lines. Raises ValueError and RecursionError."""
    if kind is FileKind.YAML:
        import yaml

        class WithoutAliases(yaml.SafeLoader):
            """A few lines of aliases can expand to gigabytes."""

            def compose_node(self, parent: Any, index: Any) -> Any:
                if self.check_event(yaml.events.AliasEvent):
                    raise yaml.YAMLError("it has aliases (*name), which are not read")
                return super().compose_node(parent, index)

        try:
            documents = list(yaml.load_all(text, Loader=WithoutAliases))
        except yaml.YAMLError as error:
            raise ValueError(str(error)) from error
        return documents[0] if len(documents) == 1 else documents
    if kind is FileKind.JSON_LINES:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return json.loads(text)


def _element(element: Any, depth: int) -> Any:
    """Return an element as its text, or as a mapping of its attributes and children."""
    text = one_line(element.text or "")
    if depth > DEEPEST * 4:
        raise ValueError("its elements are nested too deeply")
    if not len(element) and not element.attrib:
        return text
    results: dict[str, Any] = {local_name(name): value for name, value in element.attrib.items()}
    if text:
        results["text"] = text
    for child in element:
        inner = _element(child, depth + 1)
        name = local_name(child.tag)
        if isinstance(results.get(name), list):
            results[name].append(inner)
        else:
            results[name] = [results[name], inner] if name in results else inner
    return results


class _DataWalk:
    """Recursive descent through parsed values."""

    def __init__(self, outline: Outline, cells: CellCount) -> None:
        self.outline = outline
        self.cells = cells

    def value(self, value: Any, level: int) -> None:
        if isinstance(value, Mapping):
            self.mapping(value, level)
        elif _are_records(value):
            self.records(value)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            self.sequence(value, level)
        else:
            self.outline.paragraph(_plain(value))

    def mapping(self, value: Mapping[Any, Any], level: int) -> None:
        for key, inner in sorted(value.items(), key=lambda pair: not _is_plain(pair[1])):
            self.part(str(key), f"{key}: ", inner, level)

    def sequence(self, value: Sequence[Any], level: int) -> None:
        for number, inner in enumerate(value, start=1):
            self.part(_name_of_record(inner) or f"Entry {number}", "", inner, level)

    def part(self, heading: str, lead: str, value: Any, level: int) -> None:
        """Write a value as an entry after its lead, or under a heading."""
        if _is_plain(value):
            self.outline.entry(f"{lead}{_plain(value)}")
        elif level > HEADINGS:
            self.outline.entry(f"{lead}{_in_line(value)}")
        else:
            self.outline.heading(level, heading)
            self.value(value, level + 1)
            self.outline.end_heading(level - 1)

    def records(self, value: Sequence[Mapping[str, Any]]) -> None:
        keys = list(dict.fromkeys(key for record in value for key in record))[:WIDEST]
        rows = (
            (number, [typed_cell(_plain(cell), cell, f"record {number}") for cell in cells])
            for number, cells in enumerate((map(record.get, keys) for record in value), start=1)
        )
        counted = self.cells.counted([(1, [str(key) for key in keys]), *rows])
        write_rows(list(counted), self.outline, place="records")


def _are_records(value: Any) -> bool:
    """Return whether a list holds rows of one table: flat mappings that share most keys."""
    if not isinstance(value, list) or len(value) < FEWEST_RECORDS:
        return False
    if not all(isinstance(row, Mapping) and all(map(_is_plain, row.values())) for row in value):
        return False
    keys = {key for record in value for key in record}
    return 0 < len(keys) <= WIDEST and sum(map(len, value)) >= len(keys) * len(value) / 2


def _is_plain(value: Any) -> bool:
    return not isinstance(value, Mapping | list)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _name_of_record(value: Any) -> str:
    if not isinstance(value, Mapping):
        return ""
    names = (value.get(key) for key in ("title", "name", "id", "key"))
    return next((str(name) for name in names if isinstance(name, str | int) and str(name)), "")


def _in_line(value: Any, depth: int = 0) -> str:
    """Write nested values on one line: `name: S; values: (type: float)`."""
    if _is_plain(value):
        return one_line(_plain(value))
    if depth > DEEPEST:
        return json.dumps(value, ensure_ascii=False, default=str)
    if not isinstance(value, Mapping):
        return ", ".join(_in_line(inner, depth + 1) for inner in value)
    line = "; ".join(f"{key}: {_in_line(inner, depth + 1)}" for key, inner in value.items())
    return f"({line})" if depth else line


TITLES = ("title", "head", "heading", "h1", "h2", "h3", "h4")
UNSEEN = ("style", "script", "metadata", "binary")
DEEPEST_PROSE = 40  # deeper elements become one paragraph


def is_prose(root: Any) -> bool:
    """Return whether the XML mixes text and elements, unlike data, or is a drawing."""
    is_mixed = any((child.tail or "").strip() for element in root.iter() for child in element)
    return is_mixed or local_name(root.tag) == "svg"


def _write_element(element: Any, outline: Outline, level: int) -> None:
    name = local_name(element.tag)
    if name in UNSEEN:
        return
    has_words = any(map(str.strip, [element.text or "", *(child.tail or "" for child in element)]))
    if not has_words and level < DEEPEST_PROSE:
        for child in element:
            _write_element(child, outline, level + 1)
        return
    words = one_line("".join(element.itertext()))
    if name in TITLES:
        outline.heading(level, words)
    else:
        outline.paragraph(words)


def local_name(tag: object) -> str:
    """Return a tag without its namespace; "text" for a comment."""
    return tag.rsplit("}", 1)[-1] if isinstance(tag, str) else "text"
