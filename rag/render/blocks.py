"""Which lines of Markdown are code to every reader of it, and to none something else."""

import re
from dataclasses import dataclass, field

_QUOTE = re.compile(r" {0,3}>(?: |$)?")
_ITEM = re.compile(r"(?P<marker>[-*+]|\d{1,9}[.)])(?:(?P<gap> {1,4})(?=[^ ])|$)")
_FENCE = re.compile(r"(?P<run>`{3,}(?=[^`]*$)|~{3,})")
_FENCE_LIKE = re.compile(r"[\s>*+:\-\d.)]*(?:`{3}|~{3})")
# Readers disagree on how far a tab behind the sign of a quotation or an entry reaches.
_TABBED_FENCE = re.compile(r" *[>*+\-\d][ >*+\-\d.)]*\t[\s>*+\-\d.)]*(?:`{3}|~{3})")
_TELLS = re.compile(r"[\s>]*[^\s>`~]")
_MIXED = re.compile(r"[`~]{3,}[`~ ]*$")
CODE_INDENT = 4
LONGEST = 300  # characters of a line that are looked at


@dataclass(frozen=True, slots=True)
class _Fence:
    run: str
    depth: int  # quotations around it
    offset: int  # where the list's entry begins in which it stands


@dataclass(slots=True)
class Blocks:
    """Told the lines in order, says of each whether it is code.

    Readers of Markdown disagree on fences in lists and quotations that end early, and on what else
    is written against the rules. From the first such line on nothing counts as code: then a letter
    too many is escaped, and no tag is taken for code that is none.
    """

    fence: _Fence | None = None
    _in_doubt: bool = False
    _is_placed: bool = False  # it is known in which list, if any, the next line stands
    _entries: list[int] = field(default_factory=list)  # where the contents of open entries begin
    _depth: int = 0
    _after_blank: bool = True
    _is_indented: bool = False

    def is_code(self, line: str) -> bool:
        """Of the next line, without its break; a beginning is enough unless it holds a fence."""
        if self._in_doubt:
            return False
        if self.fence is None and _TABBED_FENCE.match(line):
            return self.distrust()
        line = line.expandtabs(CODE_INDENT)
        if len(line) >= LONGEST and not _TELLS.match(line):
            return self.distrust()
        if self.fence is not None:
            inside = self._inside(self.fence, line)
            if inside is not None:
                return inside
        return self._outside(line)

    # ── In a fence ───────────────────────────────────────────────────────────────────────────

    def _inside(self, fence: _Fence, line: str) -> bool | None:
        """None where it is not in the fence any more."""
        depth, body = _unquoted(line, fence.depth)
        visible = body.strip(" ")
        indent = len(body) - len(body.lstrip(" "))
        if depth < fence.depth:
            self.fence = None
            return None if not line.strip(" ") else self.distrust()
        if visible and indent < fence.offset:
            self.fence = None
            return self.distrust()
        if _MIXED.match(visible) and visible.startswith(fence.run):
            is_end = not visible.strip(fence.run[0]) and indent < fence.offset + CODE_INDENT
            self.fence = None
            return is_end or self.distrust()
        return True

    def distrust(self) -> bool:
        """Take nothing for code any more."""
        self.fence = None
        self._in_doubt = True
        return False

    # ── Outside ──────────────────────────────────────────────────────────────────────────────

    def _outside(self, line: str) -> bool:
        depth, body = _unquoted(line)
        visible = body.lstrip(" ")
        if not visible:
            self._after_blank = True
            return False
        indent = len(body) - len(visible)
        is_same = depth == self._depth
        self._enter(line, depth, indent, visible)
        if indent >= CODE_INDENT and is_same and self._is_placed and not self._entries:
            self._is_indented |= self._after_blank
        else:
            self._is_indented = False
        if self._is_indented:
            self._after_blank = False
            return True
        starts = self._starts_fence(depth, indent, visible)
        self._after_blank = False
        return starts

    def _enter(self, line: str, depth: int, indent: int, visible: str) -> None:
        """Which quotation and entry the line stands in."""
        if depth != self._depth:
            in_list = bool(self._entries) or not self._is_placed
            self._is_placed = not (in_list and line[:1] == " ")
            self._entries, self._depth = [], depth
        if indent == 0 and (self._after_blank or _ITEM.match(visible)):
            self._entries, self._is_placed = [], self._is_placed or depth == 0

    def _starts_fence(self, depth: int, indent: int, visible: str) -> bool:
        inner = [entry for entry in self._entries if entry <= indent]
        offset = inner[-1] if inner else 0
        item = _ITEM.match(visible)
        if item and indent < offset + CODE_INDENT:
            self._entries = [*inner, indent + len(item["marker"]) + len(item["gap"] or " ")]
            can_begin = self._after_blank or not item["marker"][0].isdigit()
            indent, offset = self._entries[-1], self._entries[-1]
            visible = visible[item.end() :]
        else:
            can_begin = True
            self._is_placed &= item is None and visible[0] != ":"  # some know lists of definitions
        match = _FENCE.match(visible)
        if match is None:
            return self.distrust() if _FENCE_LIKE.match(visible) else False
        is_placed = self._is_placed or indent == depth == 0
        if not (can_begin and is_placed and indent < offset + CODE_INDENT):
            return self.distrust()
        if not item:
            self._entries = inner
        self.fence = _Fence(match["run"], depth, offset)
        return True


def _unquoted(line: str, most: int = 100) -> tuple[int, str]:
    """The signs of quotation before a line, up to so many, and the line without them."""
    depth = 0
    while depth < most and (match := _QUOTE.match(line)):
        line = line[match.end() :]
        depth += 1
    return depth, line
