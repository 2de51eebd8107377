"""The one gate for citations: any spelling in, `[n]` out, for streams and for whole texts."""

import json
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from typing import Any

from rag.citations.grammar import FOREIGN
from rag.citations.markers import Rewriter, cited_numbers, find_markers, neutralise
from rag.errors import UnreadableReply
from rag.language.lazy_patterns import regex
from rag.language.words import any_pattern, memoised, read_lists
from rag.records import ToolCall


def in_words(text: str) -> str:
    """Return a JSON object as a list of its entries; any other text unchanged."""
    if not text.lstrip().startswith("{"):
        return text
    with suppress(ValueError, RecursionError):
        value = json.loads(text, strict=False)
        if isinstance(value, dict):
            return "\n".join(_lines(value)) or _as_code(text)
    return text


def data_as_code(text: str) -> str:
    """Return JSON as a code block if one of its arrays would be read as citations, and no text in
    it cites.

    A list alone, such as `[1, 2]` or `[[1]]`, is how models cite, and stays.
    """
    if text.lstrip()[:1] not in ("{", "[") or '"' not in text:
        return text
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        is_data = isinstance(value, dict) or any(isinstance(entry, dict) for entry in value)
        is_cited = any(cited_numbers(string) for string in _strings(value))
        if is_data and not is_cited and cited_numbers(text):
            return _as_code(text.strip())
    return text


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict | list):
            waiting += part.values() if isinstance(part, dict) else part


def json_in_words(text: str) -> str:
    """Return JSON in words, as `in_words` does; unfinished JSON as code, where nothing is a
    citation.
    """
    words = in_words(text)
    return words if words != text else _as_code(text)


def calls_in_words(text: str, calls: Iterable[ToolCall]) -> str:
    """Return the text before tool calls, and the calls in words."""
    spoken = [f"`{call.name}` is called:\n\n{json_in_words(call.arguments)}" for call in calls]
    return "\n\n".join([text, *spoken] if text.strip() else spoken)


def harmless(text: str) -> str:
    """Return a tool's result without citations in it; JSON stays JSON."""
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict | list):
            return json.dumps(_neutral(value), ensure_ascii=False)
    return neutralise(text)


def _neutral(value: Any) -> Any:
    if isinstance(value, dict):
        return {neutralise(key): _neutral(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_neutral(entry) for entry in value]
    return neutralise(value) if isinstance(value, str) else value


def _lines(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield a line for each name or place; longer values stand below their names."""
    entries = value.items() if isinstance(value, dict) else ((None, entry) for entry in value)
    for name, entry in entries:
        label = "" if name is None else f"{' '.join(neutralise(name).split())}: "
        lead = f"{'  ' * depth}- {label}"
        if isinstance(entry, dict | list) and entry:
            yield lead.rstrip()
            yield from _lines(entry, depth + 1)
            continue
        if isinstance(entry, float) and entry.is_integer():
            entry = int(entry)  # as programs in JavaScript write it
        if not isinstance(entry, str):
            entry = "" if entry in ({}, []) else json.dumps(entry)
        yield lead + ("\n" + "  " * (depth + 1)).join(entry.splitlines())


def _as_code(text: str) -> str:
    return f"```json\n{text.replace('```', '` ` `')}\n```"


_HEAD = regex.compile(
    rf"[\s>#*_\-]*(?:{any_pattern(read_lists('citing')['headings'])})"
    r"[\s*_]*(?:[:：]?[\s*_]*$|[:：][\s*_]*(?=[\[【［(^\d]))",
    regex.IGNORECASE,
)
# Any heading that a list of sources at the end may have: what follows decides.
_TITLE = regex.compile(
    r"[\s>]*(?:#{1,6}[ \t]+[^\n\[\]]{1,60}|(?:\*\*|__)[^\n*_\[\]]{1,60}(?:\*\*|__)[:：]?)\s*$"
)
_TWO_WORDS = regex.compile(r"\s*[^\W\d_]+(?: [^\W\d_]+)?[:：]\s*$")  # after a blank line
# An entry of such a list, a title and no sentence: no full stop, no small letter first, no measure.
_ENTITLED = regex.compile(
    r"\s*(?:[-*+•>][ \t]+)?[\[【［][\[^]?(?P<number>[0-9]{1,9})[\]】］]{1,2}[:：.]?[ \t]+"
    r"(?=[\p{Lu}\p{Lo}\"“„«*_])(?P<title>[^\n]{1,160})$"
)
_STATES = regex.compile(
    r"[.!?。:：;][\s*_]*$|\d\s?(?:[a-zA-Zµ°]{1,4}\b|[%€$£°])|(?:[:：]|[\s*_][-–—])\s+\p{Ll}"
)
_RULE = regex.compile(r"\s*(?:[-*_=][ \t]*){3,}$")
_DEFINITION = regex.compile(
    r"\s*(?:[-*>][ \t]+)?[\[【［]\^?\s?(?P<number>[0-9]{1,9})[\]】］][:：]\s*"
    r"(?:(?P<address>(?:https?://|www\.)[^\n]{0,900})|(?P<title>[^\n]{0,160}))$"
)
_ENTRY = regex.compile(r"\s*(?:[-*+•>][ \t]+)?[\[【［(^]{1,2}[0-9]")
# What stands within a list that has a heading: no sentence, unless it is numbered.
_LISTED = regex.compile(
    r"\s*(?:[-*+•>][ \t]+)?(?:[\[【［(^]{1,2}[0-9]|[0-9]{1,3}[.):]|https?://)|"
    r"(?:[^.!?]|[.!?](?!\s*(?:\[[0-9]+\]\s*)?$))*$"
)
_LONGEST_LINE = 1_000
_FENCE = regex.compile(r"\s*+(?:>\s*+)?(?:```|~~~)")


class MarkerGate:
    """Passes the citations of a stream as `[n]` if their numbers are allowed.

    Joined, the outputs are the same for every split of the text. Held back is only what cannot be
    decided yet: the beginning of a citation, of code or mathematics, a comma or blank, and what may
    be the list of sources at the end, which is left out.
    """

    def __init__(self, allowed: Callable[[int], bool]) -> None:
        self._foreign = _Foreign()
        self._ending = _Ending()
        self._rewriter = Rewriter(allowed)

    def feed(self, delta: str) -> str:
        """Return the next text to show, often shorter or longer than the delta."""
        return self._rewriter.feed(self._ending.feed(self._foreign.spell(delta)))

    def finish(self) -> str:
        """Return the text that was held back, at the end of the stream."""
        rest = self._ending.feed(self._foreign.spell("", is_end=True)) + self._ending.finish()
        return self._rewriter.feed(rest) + self._rewriter.finish()

    @property
    def cited(self) -> tuple[int, ...]:
        """The allowed numbers so far, in the order of their first citation."""
        return tuple(self._rewriter.cited)

    @property
    def removed(self) -> tuple[int, ...]:
        """The numbers removed so far, in the order of their first appearance."""
        return tuple(self._rewriter.removed)


def canonical(text: str, numbers: Container[int] | None = None) -> str:
    """Return an answer with every citation spelled `[n]` and without a final list of sources.

    Numbers outside `numbers` are removed; None allows all. A JSON answer becomes a code block, in
    which no array cites.
    """
    text = data_as_code(text)
    return _with_all_markers(text) if numbers is None else gate_text(text, numbers.__contains__)


@memoised
def _with_all_markers(text: str) -> str:
    return gate_text(text, lambda _number: True)


def gate_text(text: str, allowed: Callable[[int], bool]) -> str:
    """Pass a whole text through the gate, again and again until no number is removed.

    Parts may form a citation once a number between them is removed: `see [47]Source 47`.
    """
    gate: MarkerGate | Rewriter = MarkerGate(allowed)
    while True:
        before = text
        text = gate.feed(before) + gate.finish()
        if not gate.removed or text == before:
            return text
        gate = Rewriter(allowed)  # lists at the end were looked for as a stream looks for them


class _Foreign:
    """Replaces ChatGPT's markers by ordinary ones; holds back what may begin one."""

    def __init__(self) -> None:
        self._rest = ""

    def spell(self, text: str, *, is_end: bool = False) -> str:
        text, position, done = self._rest + text, 0, []
        while match := FOREIGN.search(text, position, partial=not is_end):
            done.append(text[position : match.start()])
            position = match.start()
            if match.partial or (not is_end and match.end() == len(text)):
                break
            done += (f"[{n}]" for n in match.captures("number"))
            position = match.end()
        if match is None:
            done.append(text[position:])
            position = len(text)
        self._rest = text[position:]
        return "".join(done)


class _Ending:
    """Holds back lines that may be the list of sources at the end of an answer."""

    def __init__(self) -> None:
        self._passed: list[str] = []  # let through, to know what it cites
        self._has_cited = False  # or at least has a bracket
        self._line = ""  # from the line break before it on
        self._passes = False  # the line is none of a list
        self._lines: list[str] = []  # lines of a list, and what is blank before it
        self._is_begun = False  # something is held that is neither blank nor a rule
        self._after_rule = False
        self._kind = ""  # of the list: sure, or likely by its shape, which every line has to have
        self._in_fence = False

    def feed(self, text: str) -> str:
        return "".join(map(self._take, regex.split(r"(?=\n)", text)))

    def finish(self) -> str:
        rest = self._complete()
        is_left_out = self._kind and cited_numbers("".join(self._passed))
        return rest if is_left_out else rest + "".join(self._lines)

    def _take(self, piece: str) -> str:
        """Take a line break with the text behind it, or more of the same line."""
        before = self._complete() if piece.startswith("\n") else ""
        self._line += piece
        if self._passes:
            return before + self._pass(piece)
        may_belong = len(self._line) <= _LONGEST_LINE and any(
            pattern is _LISTED or pattern.match(self._line, partial=True)
            for pattern, _ in self._readings()
        )
        return before if may_belong else before + self._release()

    def _complete(self) -> str:
        """End the line: hold it back, or release it with all held lines."""
        released = ""
        if not self._passes and self._line:
            kind = self._kind_with(self._line)
            if kind is None:
                released = self._release()
            else:
                self._kind = kind
                self._lines.append(self._line)
                is_rule = bool(_RULE.match(self._line))
                self._after_rule |= is_rule
                self._is_begun |= bool(self._line.strip()) and not is_rule
        self._in_fence ^= bool(_FENCE.match(self._line))
        self._line, self._passes = "", False
        return released

    def _kind_with(self, line: str) -> str | None:
        """Return which kind of list the held lines and this one form; None if they form none."""
        if not line.strip():
            return self._kind
        readings = ((pattern.match(line), kind) for pattern, kind in self._readings())
        return next((kind for match, kind in readings if match and self._fits(match)), None)

    def _readings(self) -> list[tuple["regex.Pattern[str]", str]]:
        """Return the patterns of the next line, each with the kind that the lines then have."""
        if self._in_fence:
            return []
        is_begun, after_rule = self._is_begun, self._after_rule
        readings = [
            (_RULE, self._kind, True),
            (_ENTITLED, "likely", self._has_cited),
            (_HEAD, "sure", self._kind != "likely"),
            (_DEFINITION, "sure", self._kind != "likely"),
            (_ENTRY, "sure", after_rule and self._kind != "likely"),
            (_LISTED, "sure", self._kind == "sure"),
            (_TITLE, "", self._has_cited and not is_begun),
            (_TWO_WORDS, "", self._has_cited and bool(self._lines) and not is_begun | after_rule),
        ]
        return [(pattern, kind) for pattern, kind, is_possible in readings if is_possible]

    def _fits(self, match: "regex.Match[str]") -> bool:
        """Whether an entry's number was cited before, and the entry states nothing."""
        if "number" not in match.re.groupindex:
            return True
        passed = "".join(self._passed)
        is_cited = int(match["number"]) in cited_numbers(passed)
        if "address" in match.re.groupindex:
            return bool(match["address"]) or (is_cited and not _STATES.search(match["title"]))
        before = passed.rstrip().rpartition("\n")[2]
        leads_in = before.endswith((":", "：", ":**")) or _ENTITLED.match(before)
        is_led_in = leads_in and not "".join(self._lines).strip()
        return is_cited and not is_led_in and not _STATES.search(match["title"])

    def _release(self) -> str:
        released = "".join([*self._lines, self._line])
        self._lines, self._passes, self._kind = [], True, ""
        self._is_begun = self._after_rule = False
        return self._pass(released)

    def _pass(self, text: str) -> str:
        self._passed.append(text)
        self._has_cited |= any(bracket in text for bracket in "[【［")
        return text


_BEGINS = regex.compile(r"\s*(?:```(?:json)?\s*)?(?=\{)", regex.IGNORECASE)
_BETWEEN = regex.compile(r"[\s0-9.+\-eEtrufalsn]*")  # the texts: figures, true, false, null, blanks
_TEXT = regex.compile(r'"(?:[^"\\]|\\.)*+"', regex.DOTALL)
_NAME_OR_TEXT = regex.compile(rf"(?P<text>{_TEXT.pattern})(?P<colon>\s*:)?", regex.DOTALL)
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SIGN = regex.compile(rf"{_PAIR}|\\u[0-9a-fA-F]{{4}}|\\.|.", regex.DOTALL)


class JsonGate:
    """Like `MarkerGate`, for one JSON object; anything else passes as a text.

    Texts in it are released when they are complete, names as they are. Nothing follows its end.
    With `only_unknown` a text whose numbers are all known is not changed.
    """

    def __init__(self, allowed: Callable[[int], bool], *, only_unknown: bool = False) -> None:
        self._allowed = allowed
        self._only_unknown = only_unknown
        self._plain: MarkerGate | None = None
        self._buffer = ""
        self._open: list[str] = []
        self._is_begun = self._is_name = self._has_ended = False
        self._cited: list[int] = []

    def feed(self, delta: str) -> str:
        """Return the next part. Raises UnreadableReply if it is not JSON any more."""
        if self._plain is not None:
            return self._plain.feed(delta)
        self._buffer += delta
        if not self._is_begun:
            begins = _BEGINS.match(self._buffer, partial=True)
            if begins is None:
                self._plain = MarkerGate(self._allowed)
                return self._plain.feed(self._buffer)
            if begins.partial or begins.end() == len(self._buffer):
                return ""
            self._buffer, self._is_begun = self._buffer[begins.end() :], True
        return "".join(self._read())

    def finish(self) -> str:
        """Return what was held back, at the end of the stream; an unfinished text is dropped."""
        if self._plain is not None:
            return self._plain.finish()
        return ""

    @property
    def cited(self) -> tuple[int, ...]:
        """The allowed numbers so far."""
        return tuple(self._cited) if self._plain is None else self._plain.cited

    def _read(self) -> Iterator[str]:
        text, position = self._buffer, 0
        while position < len(text) and not self._has_ended:
            sign = text[position]
            if sign == '"':
                match = _TEXT.match(text, position)
                if match is None:
                    break
                yield match[0] if self._is_name else self._gated(match[0])
                position = match.end()
            elif sign in "{}[],:":
                if sign in "{[":
                    self._open.append(sign)
                elif sign in "}]":
                    self._open.pop()
                    self._has_ended = not self._open
                self._is_name = self._open[-1:] == ["{"] and sign in "{,"
                yield sign
                position += 1
            else:
                between = _BETWEEN.match(text, position)
                end = between.end() if between else position
                if end == position:
                    raise UnreadableReply("the model's reply is not the JSON that was asked for")
                yield text[position:end]
                position = end
        self._buffer = "" if self._has_ended else text[position:]

    def _gated(self, quoted: str) -> str:
        try:
            data = json.loads(quoted, strict=False)
        except ValueError as error:
            raise UnreadableReply("a text in the model's JSON cannot be read") from error
        gate = MarkerGate(self._allowed)
        passed = gate.feed(data) + gate.finish()
        if gate.removed:
            passed = gate_text(passed, self._allowed)
        self._cited += [number for number in gate.cited if number not in self._cited]
        if passed == data or (self._only_unknown and not gate.removed):
            return quoted
        return json.dumps(passed, ensure_ascii=False)


def markers_in_json(text: str) -> list[tuple[int, int, int]]:
    """Return number, start and end of each marker in the texts of JSON, in order."""
    markers = []
    for quoted in _NAME_OR_TEXT.finditer(text):
        if quoted["colon"] is None:
            start, end = quoted.span("text")
            # Where each character of the text stands, and where the text ends.
            places = [sign.start() for sign in _SIGN.finditer(text, start + 1, end - 1)] + [end - 1]
            for marker in find_markers(json.loads(quoted["text"], strict=False)):
                span = places[marker.start], places[marker.end]
                markers += [(number, *span) for number in marker.numbers]
    return markers
