"""The gate for outgoing Markdown: rendering it contacts no server and runs no script.

Images become links that show their target, tags and link definitions become text, and no link
surrounds a citation. Whatever Markdown renderers understand differently is escaped.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter

from rag.citations.gate import MarkerGate, gate_text
from rag.citations.grammar import MATH, MAX_MATH
from rag.language.lazy_patterns import regex
from rag.language.words import memoised
from rag.records import Message, Role

_QUOTE = re.compile(r" {0,3}>(?: |$)?")
_ITEM = re.compile(r"(?P<marker>[-*+]|\d{1,9}[.)])(?:(?P<gap> {1,4})(?=[^ ])|$)")
_FENCE = re.compile(r"(?P<run>`{3,}(?=[^`]*$)|~{3,})")
_FENCE_LIKE = re.compile(r"[\s>*+:\-\d.)]*(?:`{3}|~{3})")
# Renderers disagree on the width of a tab after a quotation or list marker.
_TABBED_FENCE = re.compile(r" *[>*+\-\d][ >*+\-\d.)]*\t[\s>*+\-\d.)]*(?:`{3}|~{3})")
_SHOWS_BLOCK = re.compile(r"[\s>]*[^\s>`~]")
_MIXED = re.compile(r"[`~]{3,}[`~ ]*$")
CODE_INDENT = 4
LONGEST = 300  # characters of a line that are examined


@dataclass(frozen=True, slots=True)
class _Fence:
    run: str
    depth: int  # depth of quotations around it
    offset: int  # the column at which its list entry begins


@dataclass(slots=True)
class Blocks:
    """Tells for each line in order whether it is code.

    Renderers disagree on fences in lists and quotations that end early, and on other violations of
    the rules. From the first such line on nothing counts as code: a character too many is escaped
    rather than a tag mistaken for code.
    """

    fence: _Fence | None = None
    _in_doubt: bool = False
    _is_placed: bool = False  # whether it is known in which list, if any, the next line is
    # The columns at which the open entries' contents begin.
    _entries: list[int] = field(default_factory=list)
    _depth: int = 0
    _after_blank: bool = True
    _is_indented: bool = False

    def is_code(self, line: str) -> bool:
        """Return whether the next line, without its break, is code.

        The beginning of a line suffices, unless it holds a fence.
        """
        if self._in_doubt:
            return False
        if self.fence is None and _TABBED_FENCE.match(line):
            return self.distrust()
        line = line.expandtabs(CODE_INDENT)
        if len(line) >= LONGEST and not _SHOWS_BLOCK.match(line):
            return self.distrust()
        if self.fence is not None:
            inside = self._inside(self.fence, line)
            if inside is not None:
                return inside
        return self._outside(line)

    # ── In a fence ───────────────────────────────────────────────────────────────────────────

    def _inside(self, fence: _Fence, line: str) -> bool | None:
        """Return whether the line is code in this fence; None if the fence has ended."""
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
        """Treat nothing as code from now on."""
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
        """Update in which quotation and list entry the line is."""
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
            # Some renderers support definition lists.
            self._is_placed &= item is None and visible[0] != ":"
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
    """Return the number of quotation markers, at most `most`, and the line without them."""
    depth = 0
    while depth < most and (match := _QUOTE.match(line)):
        line = line[match.end() :]
        depth += 1
    return depth, line


MOST = 1_000  # characters of a link, a picture, an address, or of code on one line
_DEEPEST = 50  # brackets in brackets
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
_PLAIN = re.compile(r"[^\\`!<\[\]\n]+")
_SIGNS = r"[\s>*+\-=|:_#\d.)]*"  # what may begin a line before its kind is clear
_TELLS = re.compile(rf"{_SIGNS}(?:[^\s>*+\-=|:_#\d.)`~]|`{{1,2}}[^`\n]|~{{1,2}}[^~\n])")
_URL = rf"<[^<>\n`\\\"]{{0,{MOST}}}>|(?!<)(?:[^\s()<>`\\\"]|\([^\s()<>`\\\"]*\)){{0,{MOST}}}"
_TARGET = (
    rf"\([ \t]*(?P<url>{_URL})(?:[ \t]+(?P<quote>[\"'])[^\"'\n`\\<>]{{0,300}}(?P=quote))?[ \t]*\)"
)
_LINK = regex.compile(rf"\]{_TARGET}")
_PICTURE = regex.compile(rf"!\[(?P<label>[^\[\]\n`<\\]{{0,{MOST}}})\]{_TARGET}")
# A link whose words are a number alone: it could be taken for a citation.
_NUMBERED = regex.compile(
    rf"\[(?P<label>[^\w\[\]`<\\]{{0,20}}\d[^A-Za-z\[\]`<\\]{{0,40}})\]{_TARGET}"
)
_NUMBER = regex.compile(r"\[\^?\s{0,3}\d[\d\s,;–-]{0,40}\]")
_NUMBER_ALONE = re.compile(r"[\W_]*\d[\d\W_]*")
_ADDRESS = regex.compile(rf"<(?:https?://|mailto:)[^\s<>`\[\]\"\\]{{1,{MOST}}}>")
_IN_ADDRESS = re.compile(r"(?:https?|ftp)://|www\.", re.IGNORECASE)
_LONGEST_BEGINNING = len("https://")
_BLANK = re.compile(r"\s")
_SAFE = re.compile(r"(?:https?|mailto|tel):|(?![^/?#]*[:&])", re.IGNORECASE)
# The target: a host, or the first part of a local path.
_HOST = regex.compile(
    r"(?:https?:)?//(?:[^/?#@]*@)?(?P<host>[\w.\-]+(?::\d+)?)(?=[/?#]|$)|/?(?P<host>[\d.\-]*[^\W\d_][\w.\-]*)(?=[/?#]|$)",
    regex.IGNORECASE,
)
_AROUND_CODE = ("$", "~~", "==", "^^")  # some renderers parse these before code
_RULE = re.compile(r"[\s>]*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")  # below a table's header
_MATH_BEGINS = re.compile(r"\$|\\[(\[]")
_ESCAPED = re.compile(r"([\\*_`<>~|])")
_LIVE = re.compile(r"!\[|<[A-Za-z/!?]|\][(:]")
# A text without any of these passes the gate unchanged.
_ACTED_ON = re.compile(
    rf"[\x00-\x08\x0b-\x1f\x7f-\x9f]|{_LIVE.pattern}|{_IN_ADDRESS.pattern}", re.IGNORECASE
)


class _Undecided(Exception):
    """Raised when the text still to come decides."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A text after the gate, with a map from offsets in the original."""

    text: str
    shifts: tuple[tuple[int, int], ...] = ()  # (offset in the original, shift from there on)

    def place(self, offset: int) -> int:
        """Return where an offset of the original text is now."""
        passed = bisect_right(self.shifts, offset, key=itemgetter(0))
        return offset + (self.shifts[passed - 1][1] if passed else 0)


@dataclass(slots=True)
class _Bracket:
    begins_line: bool
    has_number: bool = False  # it contains a citation


class MarkdownGate:
    """Makes streamed Markdown harmless; code is not changed.

    The joined output is the same however the text is split, and passes the gate unchanged. Only
    what cannot be decided yet is held back: an open image, tag, link or code.
    """

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._rest = ""
        self._final = False
        self._ends_in_return = False
        self._begins = True  # at the beginning of a line whose kind is not known yet
        self._is_code = False
        self._line = ""  # the line so far, as received
        self._tail = ""  # the last output, back to a blank
        self._in_address = False  # in an address that renderers link automatically
        self._context = ""  # the end of the decided text, to detect mathematics
        self._dollars = 0  # pairs of dollar signs
        self._passed = 0  # decided characters
        self.shifts: list[tuple[int, int]] = []  # as in `Rewritten`
        self._begin_paragraph()

    def feed(self, delta: str) -> str:
        """Take the next text of the stream; return what can be shown."""
        lines = delta.removeprefix("\n") if self._ends_in_return else delta
        self._ends_in_return = delta.endswith("\r") if delta else self._ends_in_return
        lines = _CONTROL.sub("", lines.replace("\r\n", "\n").replace("\r", "\n"))
        shown: list[str] = []
        # In pieces: undecided text is copied at each character.
        for start in range(0, len(lines), MOST):
            self._rest += lines[start : start + MOST]
            shown += self._decided()
        return "".join(shown)

    def finish(self) -> str:
        """Return what was held back, at the end of the stream."""
        self._final = True
        return "".join(self._decided())

    @property
    def open_fence(self) -> str:
        """The fence that closes the code in which the text ends; else ""."""
        return self._blocks.fence.run if self._blocks.fence else ""

    def _decided(self) -> Iterator[str]:
        while self._rest:
            length = len(self._rest)
            try:
                shown = self._next()
            except _Undecided:
                return
            taken = length - len(self._rest)
            self._passed += taken
            if len(shown) != taken:
                by = self.shifts[-1][1] if self.shifts else 0
                self.shifts.append((self._passed, by + len(shown) - taken))
            # An address ends only at a blank.
            *before, word = _BLANK.split(self._tail + shown)
            self._in_address = (self._in_address and not before) or bool(_IN_ADDRESS.search(word))
            self._tail = word[-_LONGEST_BEGINNING:]
            yield shown

    def _next(self) -> str:
        if self._begins:
            self._begin_line()
        sign = self._rest[0]
        if sign == "\n":
            self._end_line()
            return self._take(1)
        if self._is_code:
            return self._take(len(self._rest.partition("\n")[0]))
        plain = _PLAIN.match(self._rest)
        return self._take(plain.end()) if plain else _BY_SIGN[sign](self)

    def _take(self, length: int) -> str:
        taken, self._rest = self._rest[:length], self._rest[length:]
        self._line = (self._line + taken).rpartition("\n")[2][-MOST:]
        self._context = (self._context + taken)[-MAX_MATH:]
        return taken

    def _match(self, pattern: "regex.Pattern[str]") -> "regex.Match[str] | None":
        """Match at the beginning of the rest. Raises _Undecided where more text could match."""
        match = pattern.match(self._rest, partial=not self._final)
        if match and match.partial:
            raise _Undecided
        return match

    def _following(self, count: int) -> str:
        """Return so many characters of the rest. Raises _Undecided where more may come."""
        if len(self._rest) < count and not self._final:
            raise _Undecided
        return self._rest[:count]

    # ── Lines and paragraphs ─────────────────────────────────────────────────────────────────

    def _begin_paragraph(self) -> None:
        self._open_ticks = False  # backticks that are not closed on their line
        self._in_table = False
        self._signs = ""
        self._may_define = False  # a line begins with a bracket, as link definitions do
        self._brackets: list[_Bracket] = []

    def _begin_line(self) -> None:
        line, newline, _ = self._rest.partition("\n")
        is_told = newline or self._final or len(line) > LONGEST or _TELLS.match(line)
        if not is_told:
            raise _Undecided
        was_code = self._is_code
        self._is_code = self._blocks.is_code(line[:LONGEST])
        if self._is_code and not was_code and self._dollars % 2:
            # Some renderers support mathematics, which may end in it.
            self._is_code = self._blocks.distrust()
        self._begins, self._line = False, ""

    def _end_line(self) -> None:
        if not self._line.strip(" \t>"):
            self._begin_paragraph()
        self._in_table |= "-" in self._line and bool(_RULE.match(self._line))
        self._signs += "".join(sign for sign in _AROUND_CODE if sign in self._line)
        self._dollars += 0 if self._is_code else self._line.count("$$")
        self._begins = True

    # ── By the sign that comes next ──────────────────────────────────────────────────────────

    def _backslash(self) -> str:
        following = self._following(2)[1:]
        if following == "`":
            self._open_ticks = True  # renderers disagree on what closes it
        return self._take(1 if following in ("", "\n") or self._in_address else 2)

    def _ticks(self) -> str:
        """Take code on one line; ambiguous backticks are escaped."""
        run = self._rest[: len(self._rest) - len(self._rest.lstrip("`"))]
        line, newline, _ = self._rest.partition("\n")
        closing = re.compile(rf"(?<!`){run}(?!`)").search(line, len(run))
        if not (newline or self._final or len(line) > MOST) and (
            closing is None or closing.end() == len(line)
        ):
            raise _Undecided
        whole = line[: closing.end()] if closing else run
        if self._brackets and _NUMBER_ALONE.fullmatch(self._line.rpartition("[")[2] + whole):
            self._brackets[-1].has_number = True
        is_sure = not self._in_address and self._tail[-2:-1] != "\\"
        if not is_sure or closing is None or not self._is_span(whole):
            self._open_ticks = True
            return self._take(len(run))
        return self._take(len(whole))

    def _is_span(self, span: str) -> bool:
        """Return whether every renderer takes the span for code."""
        if self._open_ticks or len(span) > MOST or self._may_end_within(span):
            return False
        if "|" not in span or not _LIVE.search(span):
            return True
        _, _, below = self._rest.partition("\n")
        below, ended, _ = below.partition("\n")
        if not (ended or self._final or len(below) > MOST):
            raise _Undecided
        is_below_head = len(below) <= MOST and bool(_RULE.match(below))
        return not (self._in_table or is_below_head)  # a bar ends a table's cell

    def _may_end_within(self, span: str) -> bool:
        """Return whether a definition, link or formula begun before could end inside the span."""
        inside = span.strip("`")
        return (
            (self._may_define and "]:" in span)
            or (bool(self._brackets) and "`" in inside)
            or any(sign in inside and sign in self._signs + self._line for sign in _AROUND_CODE)
        )

    def _exclamation(self) -> str:
        if self._following(2) != "![":
            return self._take(1)
        picture = self._match(_PICTURE)
        link = _link_with_host(picture) if picture else None
        if picture is None or link is None or self._is_about_number:
            return self._parted("!", "[")
        self._take(picture.end())
        return f" {link}" if self._tail.endswith("!") else link

    def _less_than(self) -> str:
        sign = self._following(2)[1:]
        if not (sign.isascii() and sign.isalpha()) and sign not in ("/", "!", "?"):
            return self._take(1)
        address = self._match(_ADDRESS)
        return self._take(address.end()) if address else self._parted("", "<")

    def _opening(self) -> str:
        begins_line = not self._line.strip(" \t>*+-.)0123456789")
        self._may_define |= begins_line
        number = self._match(_NUMBER)
        if number and self._in_address:
            return self._take(number.end()).replace("[", "%5B").replace("]", "%5D")
        numbered = self._match(_NUMBERED)
        link = _link_with_host(numbered) if numbered else None
        if numbered and link and not self._is_about_number:
            self._take(numbered.end())
            return link
        is_number = bool(number or numbered)
        for bracket in self._brackets if is_number else ():
            bracket.has_number = True
        self._brackets.append(_Bracket(begins_line, has_number=is_number))
        del self._brackets[:-_DEEPEST]
        return self._take(1)

    def _closing(self) -> str:
        sign = self._following(2)[1:]
        link = self._match(_LINK) if sign == "(" else None
        bracket = self._brackets[-1] if self._brackets else None
        is_defined = bracket.begins_line if bracket else self._may_define
        is_ours = link and bracket and _is_safe(link["url"])
        if is_ours and not self._is_about_number:
            passed = self._take(link.end() if link else 1)
        elif sign == "(" or (sign == ":" and is_defined):
            passed = self._parted("]", sign)
        else:
            passed = self._take(1)
        del self._brackets[-1:]
        return passed

    @property
    def _is_about_number(self) -> bool:
        """Whether an open bracket contains a citation, which no link may surround."""
        return any(bracket.has_number for bracket in self._brackets)

    def _parted(self, before: str, sign: str) -> str:
        """Separate two characters by a backslash.

        In a formula they are separated by a blank, which has no meaning there.
        """
        is_math = self._in_math()
        self._take(len(before + sign))
        if self._in_address and sign in "<[":
            return f"{before}%{ord(sign):X}"
        return f"{before} {sign} " if is_math else f"{before}\\{sign}"

    def _in_math(self) -> bool:
        place = len(self._context)
        begun = [match.start() for match in _MATH_BEGINS.finditer(self._context)]
        if begun and len(self._rest) < MAX_MATH and not self._final:
            raise _Undecided
        text = self._context + self._rest + "\n"  # for patterns with a lookahead of one character
        formulas = (MATH[text[start]].match(text, start) for start in begun)
        return any(formula.end() > place for formula in formulas if formula)


_BY_SIGN: dict[str, Callable[[MarkdownGate], str]] = {
    "\\": MarkdownGate._backslash,
    "`": MarkdownGate._ticks,
    "!": MarkdownGate._exclamation,
    "<": MarkdownGate._less_than,
    "[": MarkdownGate._opening,
    "]": MarkdownGate._closing,
}


def _is_safe(url: str) -> bool:
    return bool(_SAFE.match(url.strip("<>")))


def _link_with_host(match: "regex.Match[str]") -> str | None:
    """Return a link that shows its target, in place of an image or a number; None if unsafe."""
    url, label = match["url"], " ".join(match["label"].split())
    host = _HOST.match(url.strip("<>"))
    where = host["host"] if host else ""
    if not _is_safe(url) or not where:
        return None
    return f"[{where}: {label}]({url})" if label else f"[{where}]({url})"


@memoised
def sanitise(text: str) -> str:
    """Pass a whole text through the gate; a text that passed already is unchanged."""
    if not _ACTED_ON.search(text):
        return text
    gate = MarkdownGate()
    return gate.feed(text) + gate.finish()


def standalone(text: str) -> str:
    """Sanitise a text and close its open code, so that following text is not part of it."""
    gate = MarkdownGate()
    shown = gate.feed(text) + gate.finish()
    return f"{shown.rstrip()}\n{gate.open_fence}" if gate.open_fence else shown


def in_words(text: str) -> str:
    """Return a title or name on one line, without Markdown."""
    plain = _ESCAPED.sub(r"\\\1", " ".join(text.split()))
    return sanitise(plain.replace("[", "(").replace("]", ")"))


def outgoing(message: Message) -> Message:
    """Sanitise an answer that was stored before the gate existed, or imported.

    A user's message is plain text.
    """
    if message.role != Role.ASSISTANT or sanitise(message.content) == message.content:
        return message
    gate = MarkdownGate()
    text = gate.feed(message.content) + gate.finish()
    answer = message.answer
    if answer is not None:
        place = Rewritten(text, tuple(gate.shifts)).place
        moved = lambda span: replace(span, start=place(span.start), end=place(span.end))  # noqa: E731
        aside = answer.set_aside
        answer = replace(
            answer,
            text=text,
            citations=tuple(map(moved, answer.citations)),
            unsourced=tuple(map(moved, answer.unsourced)),
            set_aside=aside and replace(aside, text=sanitise(aside.text)),
        )
    return replace(message, content=text, answer=answer)


class AnswerGate:
    """The gate for answers: citations are written `[n]`, and the Markdown is harmless."""

    def __init__(self, allowed: Callable[[int], bool]) -> None:
        self._allowed = allowed
        self._markers = MarkerGate(allowed)
        self._markdown = MarkdownGate()

    def feed(self, delta: str) -> str:
        """Take the next text of the answer; return what can be shown."""
        return self._markdown.feed(self._markers.feed(delta))

    def finish(self) -> str:
        """Return what was held back, at the end of the answer."""
        return self._markdown.feed(self._markers.finish()) + self._markdown.finish()

    @property
    def cited(self) -> tuple[int, ...]:
        """The allowed numbers cited so far, in order of first citation."""
        return self._markers.cited

    def settle(self, text: str) -> str:
        """Return the final text: removing one number may leave others to remove."""
        return sanitise(gate_text(text, self._allowed)) if self._markers.removed else text
