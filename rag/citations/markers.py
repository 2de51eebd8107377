"""Find, check and rewrite citations in text; `rag.citations.grammar` has their spellings."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from rag.citations import grammar
from rag.citations.grammar import FIGURE, Marker, MarkerGroup, Scanner
from rag.language.words import memoised, phrases

_FIGURE = re.compile(rf"[\d{grammar.SUPERSCRIPT}]")  # no citation is without one


def find_markers(text: str) -> list[Marker]:
    """Return all markers of a text, in order; `[1][2]` are two."""
    return list(_markers(text))


@memoised
def _markers(text: str) -> tuple[Marker, ...]:
    if not _FIGURE.search(text):
        return ()
    tokens = Scanner().scan(text, final=True)
    results = (token for token in tokens if isinstance(token, MarkerGroup) and not token.is_unsure)
    return tuple(marker for cited in results for marker in cited.markers if marker.numbers)


def cited_numbers(text: str) -> list[int]:
    """Return the distinct numbers of a text's markers, by their first appearance."""
    return list(dict.fromkeys(n for marker in find_markers(text) for n in marker.numbers))


def keep_markers(text: str, allowed: Callable[[int], bool]) -> str:
    """Rewrite every citation to `[n]` if its number is allowed, else remove it.

    A blank, a comma or brackets that would be left over are removed, too.
    """
    if not FIGURE.search(text):
        return text
    rewriter = Rewriter(allowed)
    return rewriter.feed(text) + rewriter.finish()


def without_markers(text: str) -> str:
    """Return a text without its citations."""
    return keep_markers(text, lambda _: False)


def marker_text(numbers: Sequence[int]) -> str:
    """Return the canonical spelling of these numbers."""
    return "".join(f"[{number}]" for number in numbers)


def replace_markers(text: str, spell: Callable[[Marker], str]) -> str:
    """Return the text with what `spell` says in the place of each marker."""
    pieces, end = [], 0
    for marker in find_markers(text):
        pieces += [text[end : marker.start], spell(marker)]
        end = marker.end
    return "".join([*pieces, text[end:]])


def renumber(text: str, numbers: Mapping[int, int]) -> str:
    """Return the text with other numbers; a number without a new one becomes `(n)`."""

    def spell(marker: Marker) -> str:
        there = [numbers[number] for number in marker.numbers if number in numbers]
        gone = [str(number) for number in marker.numbers if number not in numbers]
        return marker_text(there) + (f"({', '.join(gone)})" if gone else "")

    return replace_markers(text, spell)


# ── Documents' own markers ───────────────────────────────────────────────────────────────────

_BRACKETS = re.escape(grammar.OPENING + grammar.CLOSING)
# A bracket that is a marker or could become one, whatever is put behind it.
_CANDIDATE = re.compile(
    rf"([{re.escape(grammar.OPENING)}])([\s{grammar.INVISIBLE}]*(?:(?:[\^#s]\s*)?"
    rf"(?:\d[^{_BRACKETS}\n]{{0,200}})?|[(*_{{<^]{{1,3}}\s*\d[^{_BRACKETS}\n]{{0,200}}))"
    rf"([{re.escape(grammar.CLOSING)}]|(?=[{re.escape(grammar.OPENING)}])|\Z)",
    re.IGNORECASE,
)


_STAND_IN = "\ue000"  # of private use
# Figures in brackets, with the name that they index.
_PLAIN = re.compile(r"(?:\b[^\W\d]\w*)?(?:\[[\d,;\s–-]+\])+")


@memoised
def neutralise(text: str) -> str:
    """Make all that looks like a citation in a document harmless: `[1]` becomes `(1)`."""
    plain = text
    if "cite" in text:
        plain = grammar.FOREIGN.sub(lambda match: f"({', '.join(match.captures('number'))})", text)
    plain = _CANDIDATE.sub(_harmless, plain)
    if not _FIGURE.search(plain):
        return plain
    pieces: list[str] = []
    for token in Scanner().scan(plain, final=True):
        if isinstance(token, MarkerGroup):
            pieces.append(_in_parentheses(token))
        elif _is_apart(token):  # in a longer text it may cease to be; no fence begins within a line
            pieces.append(token[0] + neutralise(f".{token[1:]}")[1:])
        else:
            pieces.append(token)
    harmless = "".join(pieces)
    return harmless if harmless == text else neutralise(harmless)  # `[<sup>1</sup>]`: `[(1)]`


def as_it_stands(text: str) -> str:
    """Neutralise a text for people: figures in plain brackets stay, as code.

    In code nothing is a marker, wherever the text is put.
    """
    if "`" in text or _STAND_IN in text or not _PLAIN.search(text):
        return neutralise(text)
    tokens = (t if isinstance(t, str) else t.text for t in Scanner().scan(text, final=True))
    runs = [(is_apart, "".join(run)) for is_apart, run in groupby(tokens, key=_is_apart)]
    figures = iter([f for is_apart, run in runs if not is_apart for f in _PLAIN.findall(run)])
    plain = "".join(run if is_apart else _PLAIN.sub(_STAND_IN, run) for is_apart, run in runs)
    shown = re.sub(_STAND_IN, lambda _: f"`{next(figures)}`", neutralise(plain))
    is_safe = not find_markers(shown) and not find_markers(f"> {shown}")
    return shown if is_safe else neutralise(text)


def _is_apart(token: str) -> bool:
    """Whether a token is mathematics, code or a tag."""
    return token[:1] in ("$", "\\", "<") and len(token) > 2


def _harmless(match: re.Match[str]) -> str:
    _opening, inside, closing = match.groups()
    is_cut_off = match.end() == len(match.string) and not closing
    if not is_cut_off and not any(character.isdigit() for character in inside):
        return match.group()
    return f"({inside})" if closing else f"({inside}"


def _in_parentheses(cited: MarkerGroup) -> str:
    if cited.is_unsure and "](" in cited.text:
        return cited.text  # a link
    numbers = ", ".join(str(n) for marker in cited.markers for n in marker.numbers)
    return f"{cited.leaves} ({numbers})".lstrip() if cited.leaves else f"({numbers})"


# ── Rewriting ────────────────────────────────────────────────────────────────────────────────

# Figures in plain brackets, and what before them wants some: a sign, a measure, a preposition.
_VALUES = re.compile(r"\[[\d,;\s–-]+\]")
_WANTS_VALUE = re.compile(rf"(?:[=∈≈≤≥<>±~]|\b(?:CI|KI|IQR|HDI|{phrases('wants_value')}))\s*$")
# A comma or blank at the end of what is known: it goes with a marker that is removed.
_GAP = re.compile(rf"(?:[,;，、]?[{grammar.BLANKS}]|[,;，、])\Z")
# Before these, what stood in front of a removed marker goes too: "days [99]." becomes "days."
_TIGHT = re.compile(r"[.,;:!?)}»”’*_|。，；：！？）」』\n]")
_BLANK = re.compile(rf"[{grammar.BLANKS}]")
_BEFORE_ANYTHING = "([{（「『«“„\"'"
_OPENS_BLOCK = "`~-*+•◦‣–>"
_TAIL = 300  # characters of the output that may come to be read otherwise
_BEGUN = re.compile(
    rf"[{re.escape(grammar.OPENING)}<$\\^{{&]|[(（](?=\W*(?:src|ref|cit|sou|que))",
    re.IGNORECASE,
)


class Rewriter:
    """Keeps the allowed markers of a text that comes in pieces of any size.

    Removing a marker must not make a citation, an index, a link or code of the text around it:
    there a blank or "…" is left behind.
    """

    def __init__(self, allowed: Callable[[int], bool]) -> None:
        self._allowed = allowed
        self._scanner = Scanner()
        self._gap = ""  # held back
        self._line = ""  # of the output, without the gap
        self._after = ""  # `kept` or `removed`: the marker at its end
        self.removed: dict[int, None] = {}
        self.cited: dict[int, None] = {}

    def feed(self, text: str, *, final: bool = False) -> str:
        """Return the text that is decided and was not returned before."""
        return "".join(
            self._literal(token) if isinstance(token, str) else self._keep(token)
            for token in self._scanner.scan(text, final=final)
        )

    def finish(self) -> str:
        """Return the rest at the end of the text."""
        rest = self.feed("", final=True)
        return rest if self._after == "removed" else rest + self._gap

    def _literal(self, token: str) -> str:
        if self._after == "removed" and not self._line.strip():
            token = token.lstrip(": \t")  # "[99]: text" on a line of its own
            if not token:
                return ""
        text = self._joint(token[0]) + token
        gap = _GAP.search(text)
        return self._put(text[: gap.start()] if gap else text, gap=gap.group() if gap else "")

    def _put(self, text: str, *, gap: str = "", after: str = "") -> str:
        self._line = (self._line + text).rpartition("\n")[2][-_TAIL:]
        self._gap, self._after = gap, after
        return text

    def _joint(self, following: str) -> str:
        """Return what must stand between the output so far and the next literal character."""
        gap = self._gap
        if self._after != "removed":
            return gap or (" " if self._after == "kept" and following == "(" else "")
        if following in grammar.SUPERSCRIPT + "{" or self._would_join(following):
            return gap + "…"
        if _TIGHT.match(following):
            return "" if self._line[-1:] != following else "…"
        if _BLANK.match(following):
            return gap.rstrip() if self._line.strip() else ""
        is_free = not self._line.strip() or self._line[-1] in _BEFORE_ANYTHING
        return gap or ("" if is_free else " ")

    def _would_join(self, following: str) -> bool:
        """Whether the text would open a block, or be read as the unit of the figure before."""
        if not self._line.strip():
            return following in _OPENS_BLOCK
        last = self._line[-1]
        if following == "_":  # of a name, unless emphasis is open
            return last.isalnum() and self._line.count("_") % 2 == 0
        return not self._gap and last.isdigit() and following.isalpha()

    def _keep(self, cited: MarkerGroup) -> str:
        numbers = [n for marker in cited.markers for n in marker.numbers]
        allowed = {number for number in numbers if self._allowed(number)}
        if len(allowed) < len(set(numbers)) and self._wants_value(cited.text, numbers):
            self.removed.update(dict.fromkeys(n for n in numbers if n not in allowed))
            return self._literal(f"({cited.text[1:-1]})")
        if cited.is_unsure and len(allowed) < len(set(numbers)):
            return self._literal(cited.text)
        self.cited.update(dict.fromkeys(n for n in numbers if n in allowed))
        self.removed.update(dict.fromkeys(n for n in numbers if n not in allowed))
        markers = ""
        for marker, between in zip(cited.markers, cited.between, strict=True):
            spelled = marker_text([number for number in marker.numbers if number in allowed])
            markers += (between if markers else "") + spelled if spelled else ""
        if markers:
            joins = self._line.endswith(("\\", "^")) or grammar.is_index(self._line)
            lead = self._gap or (" " if joins and self._after != "kept" else "")
            return self._put(lead + markers, after="kept")
        if cited.leaves:
            return self._literal(cited.leaves)
        if self._could_become():
            return self._put(self._gap + "…")
        self._after = "removed"
        return ""

    def _wants_value(self, spelled: str, numbers: Sequence[int]) -> bool:
        """Whether the words before expect figures in brackets: `CI [9, 25]`.

        A single number is one only as a year. Words that name a source expect a source.
        """
        is_year = len(numbers) == 1 and 1900 <= numbers[0] < 2100
        if not _VALUES.fullmatch(spelled) or not (is_year or len(numbers) > 1):
            return False
        line = self._line + self._gap
        wanted = bool(_WANTS_VALUE.search(line))
        return wanted and (is_year or not grammar.INTRODUCES.match(line))

    def _could_become(self) -> bool:
        """Whether the text that follows could turn the line's end into a citation, code or
        mathematics.
        """
        line = self._line + self._gap
        if line.endswith(tuple("`~$\\")):
            return True
        for begun in _BEGUN.finditer(line):
            char = begun.group()[0]
            for pattern in filter(None, (grammar.around(char), grammar.LITERAL.get(char))):
                match = pattern.match(line, begun.start(), partial=True)
                if match and match.partial:
                    return True
        return False
