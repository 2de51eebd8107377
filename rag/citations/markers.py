"""Find, check and rewrite `[n]` markers in text; their grammar is in rag.citations.grammar."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag.citations.glued import find_glued, set_off
from rag.citations.grammar import BLANK, CANDIDATE, IDENTIFIER, INSIDE, OPENING, Marker, Scanner


@dataclass(frozen=True, slots=True)
class Kept:
    """A text with the allowed markers only, and the numbers that were taken out of it."""

    text: str
    removed: tuple[int, ...]


# Before these, the blank in front of a removed marker goes too: "days [99]." becomes "days."
_TIGHT = re.compile(r"[\s.,;!?)}»”’。，；！？）」』]")


def find_markers(text: str) -> list[Marker]:
    """All markers of a text, in order; adjacent ones such as `[1][2]` are two."""
    return [token for token in Scanner().scan(text, final=True) if isinstance(token, Marker)]


def cited_numbers(text: str) -> list[int]:
    """The distinct numbers of a text's markers, in the order in which they first appear."""
    return list(dict.fromkeys(n for marker in find_markers(text) for n in marker.numbers))


def keep_markers(text: str, allowed: Callable[[int], bool]) -> Kept:
    """Rewrite every marker to `[n]` or `[n, m]` with its allowed numbers.

    A marker without any is removed together with the blank before it.
    """
    rewriter = Rewriter(allowed)
    kept = rewriter.feed(text) + rewriter.finish()
    return Kept(kept, tuple(rewriter.removed))


def marker_text(numbers: Sequence[int]) -> str:
    """The canonical marker for these numbers; several brackets where one would be too long."""
    groups = [numbers[at : at + 50] for at in range(0, len(numbers), 50)]
    return "".join("[" + ", ".join(map(str, group)) + "]" for group in groups)


# ── Documents' own markers ───────────────────────────────────────────────────────────────────


def neutralise(text: str) -> str:
    """Make what looks like a marker in a document's own text harmless: `[1]` becomes `(1)`.

    Directly after an identifier or a bracket, where it may be an index, it becomes `[ 1 ]`. The
    result holds no marker and no beginning of one, whatever is put before or after it.
    """
    return CANDIDATE.sub(_harmless, text)


def _harmless(found: re.Match[str]) -> str:
    opening, numbers, closing = found.groups()
    if closing and not numbers:
        return found.group()
    before = found.string[found.start() - 1 : found.start()] if found.start() else ""
    if opening == "[" and numbers and (IDENTIFIER.match(before) or before in ("]", ")")):
        return f"[ {numbers} ]" if closing else f"[ {numbers}"
    return f"({numbers})" if closing else f"({numbers}"


# ── Rewriting ────────────────────────────────────────────────────────────────────────────────


class Rewriter:
    """Keeps the allowed markers of a text that comes in pieces of any size.

    Taking a marker out must not make a marker, an index, a link or code out of what stood around
    it: in such places a blank or "…" is left behind. One blank is held back at the end of what
    is known, because it goes with a marker that is removed.
    """

    def __init__(self, allowed: Callable[[int], bool]) -> None:
        self._allowed = allowed
        self._scanner = Scanner()
        self._gap = ""  # the blank held back
        self._pending = False  # a marker was removed at the end of the output
        self._last = ""  # last character of the output, without the gap
        self._begun = False  # the output ends with what may become a marker: "[1, "
        self._line_is_blank = True  # so far
        self._index = False  # a `[` at the end of the output would be an index
        self._marker = ""  # "line" or "text" if the output ends with a marker: where that stands
        self.removed: dict[int, None] = {}
        self.cited: dict[int, None] = {}

    def feed(self, text: str, *, final: bool = False) -> str:
        """What of the text so far is decided and was not given out yet."""
        return "".join(
            self._keep(token) if isinstance(token, Marker) else self._literal(token)
            for token in self._scanner.scan(text, final=final)
        )

    def finish(self) -> str:
        """The rest: the text has ended."""
        rest = self.feed("", final=True)
        gap = "" if self._pending else self._gap
        self._gap = ""
        return rest + gap

    def _literal(self, token: str) -> str:
        text = self._before(token[0]) + token
        self._gap = token[-1] if BLANK.match(token[-1]) else ""
        text = text[: len(text) - len(self._gap)]
        self._last = text[-1:] or self._last
        self._begun = token in OPENING or (self._begun and bool(INSIDE.fullmatch(token)))
        self._index = self._scanner.after_index
        self._line_is_blank = self._scanner.line_is_blank
        self._marker = ""
        self._pending = False
        return text

    def _before(self, char: str) -> str:
        """What stands between the output so far and the next character of literal text."""
        if self._gap:
            tight = _TIGHT.match(char) or (char == ":" and not self._marker)
            return "" if self._pending and tight else self._gap
        if self._pending and char == self._last and char in "`~":
            return "…"
        is_link = bool(self._marker) and char == "("
        is_definition = self._marker == "line" and char == ":"
        is_index = self._pending and self._index and char == "["
        return " " if is_link or is_definition or is_index else ""

    def _keep(self, marker: Marker) -> str:
        allowed = [number for number in marker.numbers if self._allowed(number)]
        kept = set(allowed)
        self.cited.update(dict.fromkeys(allowed))
        self.removed.update(dict.fromkeys(n for n in marker.numbers if n not in kept))
        return self._write(marker_text(allowed)) if allowed else self._remove()

    def _write(self, marker: str) -> str:
        lead = self._gap or (" " if self._index else "")
        self._marker = "line" if self._line_is_blank else "text"
        self._gap, self._last, self._begun, self._index = "", "]", False, False
        self._pending = self._line_is_blank = False
        return lead + marker

    def _remove(self) -> str:
        self._scanner.drop()
        if not self._begun:
            self._pending = True
            return ""
        left, self._gap = self._gap + "…", ""
        self._last, self._begun, self._index, self._marker = "…", False, False, ""
        return left


def canonical(text: str) -> str:
    """The text with every marker as `[n]`; those directly after a word of prose are citations."""
    text = set_off(text, find_glued(text, range(1, 10_000)))
    return keep_markers(text, lambda number: True).text
