"""The gate for answers that are JSON: their texts pass it, and the JSON stays as it was made."""

import json
from collections.abc import Callable, Iterator

from rag.citations.gate import MarkerGate, settled
from rag.citations.markers import find_markers
from rag.errors import UnreadableReply
from rag.language.lazy_patterns import regex

_BEGINS = regex.compile(r"\s*(?:```(?:json)?\s*)?(?=\{)", regex.IGNORECASE)
_BETWEEN = regex.compile(r"[\s0-9.+\-eEtrufalsn]*")  # the texts: figures, true, false, null, blanks
_TEXT = regex.compile(r'"(?:[^"\\]|\\.)*+"', regex.DOTALL)
_NAME_OR_TEXT = regex.compile(rf"(?P<text>{_TEXT.pattern})(?P<colon>\s*:)?", regex.DOTALL)
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SIGN = regex.compile(rf"{_PAIR}|\\u[0-9a-fA-F]{{4}}|\\.|.", regex.DOTALL)


class JsonGate:
    """Like `MarkerGate`, for one JSON object; what does not begin as one passes as a text.

    A text in it is given once it is whole, a name as it is. Behind its end nothing follows.
    With `only_unknown` a text whose numbers are all known stays to the letter.
    """

    def __init__(self, allowed: Callable[[int], bool], *, only_unknown: bool = False) -> None:
        self._allowed = allowed
        self._only_unknown = only_unknown
        self._plain: MarkerGate | None = None
        self._held = ""
        self._open: list[str] = []
        self._is_begun = self._is_name = self._has_ended = False
        self._cited: list[int] = []

    def feed(self, delta: str) -> str:
        """The next of it. Raises UnreadableReply where it is no JSON any more."""
        if self._plain is not None:
            return self._plain.feed(delta)
        self._held += delta
        if not self._is_begun:
            begins = _BEGINS.match(self._held, partial=True)
            if begins is None:
                self._plain = MarkerGate(self._allowed)
                return self._plain.feed(self._held)
            if begins.partial or begins.end() == len(self._held):
                return ""
            self._held, self._is_begun = self._held[begins.end() :], True
        return "".join(self._read())

    def finish(self) -> str:
        """What was held back, when the stream has ended: an unfinished text is not told."""
        if self._plain is not None:
            return self._plain.finish()
        return ""

    @property
    def cited(self) -> tuple[int, ...]:
        """Allowed numbers given out so far."""
        return tuple(self._cited) if self._plain is None else self._plain.cited

    def _read(self) -> Iterator[str]:
        text, at = self._held, 0
        while at < len(text) and not self._has_ended:
            if text[at] == '"':
                match = _TEXT.match(text, at)
                if match is None:
                    break
                yield match[0] if self._is_name else self._gated(match[0])
                at = match.end()
                continue
            if text[at] in "{}[],:":
                self._structure(text[at])
                at += 1
                yield text[at - 1]
                continue
            between = _BETWEEN.match(text, at)
            end = between.end() if between else at
            if end == at:
                raise UnreadableReply("the model's reply is not the JSON that was asked for")
            yield text[at:end]
            at = end
        self._held = "" if self._has_ended else text[at:]

    def _structure(self, sign: str) -> None:
        if sign in "{[":
            self._open.append(sign)
        elif sign in "}]":
            self._open.pop()
            self._has_ended = not self._open
        self._is_name = bool(self._open) and self._open[-1] == "{" and sign in "{,"

    def _gated(self, quoted: str) -> str:
        try:
            data = json.loads(quoted, strict=False)
        except ValueError as error:
            raise UnreadableReply("a text in the model's JSON cannot be read") from error
        gate = MarkerGate(self._allowed)
        passed = gate.feed(data) + gate.finish()
        if gate.removed:
            passed = settled(passed, self._allowed)
        self._cited += [number for number in gate.cited if number not in self._cited]
        if passed == data or (self._only_unknown and not gate.removed):
            return quoted
        return json.dumps(passed, ensure_ascii=False)


def markers_in_json(text: str) -> list[tuple[int, int, int]]:
    """Number, start and end of each marker in the texts of JSON, in order."""
    found = []
    for quoted in _NAME_OR_TEXT.finditer(text):
        if quoted["colon"] is None:
            places = _places(quoted["text"], quoted.start())
            for marker in find_markers(json.loads(quoted["text"], strict=False)):
                start, end = places[marker.start], places[marker.end]
                found += [(number, start, end) for number in marker.numbers]
    return found


def _places(quoted: str, position: int) -> list[int]:
    """Where each character of a text in JSON stands, and its end."""
    signs = _SIGN.finditer(quoted, 1, len(quoted) - 1)
    return [*(position + sign.start() for sign in signs), position + len(quoted) - 1]
