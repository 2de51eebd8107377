"""Read the small markup of data/sources: headings, paragraphs, lists, pipe tables, page breaks."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a source: `kind` is heading, paragraph, bullet, number, table, break or note."""

    kind: str
    text: str = ""
    level: int = 0  # of a heading, from 1
    rows: tuple[tuple[str, ...], ...] = ()  # of a table, the header first


def read_blocks(path: Path) -> list[Block]:
    """The blocks of a source file, in reading order; one paragraph may run over several lines."""
    return [_block(lines) for lines in _groups(path.read_text(encoding="utf-8").splitlines())]


def _groups(lines: list[str]) -> Iterator[list[str]]:
    """Lines that belong together: a table, a list entry with its continuation, a paragraph."""
    group: list[str] = []
    for line in lines:
        if group and (not line.strip() or _starts_block(line, group[-1])):
            yield group
            group = []
        if line.strip():
            group.append(line.strip())
    if group:
        yield group


def _starts_block(line: str, previous: str) -> bool:
    if previous.startswith("|"):
        return not line.startswith("|")
    if previous.startswith("#"):
        return True
    return line.startswith(("#", "- ", "|", "===", "> ")) or _is_numbered(line)


def _is_numbered(line: str) -> bool:
    return line.split(". ", 1)[0].isdigit() and ". " in line


def _block(lines: list[str]) -> Block:
    first, text = lines[0], " ".join(lines)
    if first.startswith("#"):
        level = len(first) - len(first.lstrip("#"))
        return Block("heading", text[level:].strip(), level=level)
    if first.startswith("|"):
        return Block("table", rows=tuple(_cells(line) for line in lines if not _is_rule(line)))
    for prefix, kind in (("- ", "bullet"), ("> ", "note"), ("===", "break")):
        if first.startswith(prefix):
            return Block(kind, text.removeprefix(prefix))
    if _is_numbered(first):
        return Block("number", text.split(". ", 1)[1])
    return Block("paragraph", text)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip("|").split("|"))


def _is_rule(line: str) -> bool:
    return not line.strip("|-: ")
