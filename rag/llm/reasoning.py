"""Take a model's answer out of what it writes around it: thoughts, control tokens, tool calls.

A reply arrives in deltas, however they are cut: what is read never depends on where. In code
nothing is special, so an answer may quote any of this.
"""

from collections.abc import Collection

import regex

from rag.llm import text_tool_calls
from rag.llm.reply_marks import (
    BARE_INFO,
    CLOSE,
    CLOSE_OR_CALL,
    LEADING,
    NEXT_TURN,
    NEXT_TURN_SO_FAR,
    STRIPPED_ANSWER,
    STRIPPED_THOUGHT,
    THOUGHT_NAME,
    TOKENS,
    TOKENS_AT_END,
    WRAPPING_INFO,
    after_turn,
    is_mention,
    kind_of,
)
from rag.llm.text_tool_calls import LineCalls
from rag.records import ToolCall
from rag.seams import ModelDelta

TAIL = 64  # characters: no closing mark is longer
LONGEST_LINE_OF_CODE = 1_000
_PLAIN = regex.compile(r"[^<\[`◁&\n]+")
_UNWANTED = {code: None for code in range(32) if chr(code) not in "\t\n\r"} | {0xFEFF: None}
_CITES = regex.compile(r"[\w.!?)] ?\[\d{1,4}\]")
DISCARD = ModelDelta(discard=True)


class ReplyParser:
    """One reply: text in, deltas of the answer out; tool calls written as text are kept apart.

    `tools` are the names that may be called. `holds` says that this model's thoughts come without
    their opening mark, so that nothing may be shown before their end.
    """

    def __init__(self, tools: Collection[str] = (), *, holds: bool = False) -> None:
        self.calls: list[ToolCall] = []
        self.thought_unopened = False  # thoughts were closed that nothing had opened
        self.thought = False
        self._line_calls = LineCalls(tools)
        self._tools = tools
        self._buffer = ""
        self._final = False
        self._blank = ""  # white space that waits for a word
        self._said = ""  # the end of what was let out, for its neighbours
        self._out: list[ModelDelta] = []
        self._orphan = False  # thoughts were let out as text, if more text follows
        self._wrapped = False
        self._close: regex.Pattern[str] | None = CLOSE if holds else None
        self._state = self._hold if holds else self._start

    def feed(self, text: str) -> list[ModelDelta]:
        """What is certain by now."""
        self._buffer += text.translate(_UNWANTED)
        return self._advance()

    def finish(self) -> list[ModelDelta]:
        """What was held back; an unfinished thought is dropped."""
        self._final = True
        return self._advance()

    def _advance(self) -> list[ModelDelta]:
        while self._buffer and self._state():
            continue
        out, self._out = self._out, []
        return out

    # ── Where a reply begins ─────────────────────────────────────────────────────────────────

    def _start(self) -> bool:
        """Blanks go; some first words tell that thoughts come whose opening mark was swallowed."""
        self._buffer = self._buffer.lstrip().lstrip("\u200b\u2060")
        if self.thought:
            self._state = self._text
            return bool(self._buffer)
        stripped = STRIPPED_THOUGHT.match(self._buffer, partial=not self._final)
        if stripped is not None:
            if stripped.partial:
                return False
            self._close, self._state = STRIPPED_ANSWER, self._hold
            return True
        leading = LEADING.match(self._buffer, partial=not self._final)
        if leading is not None:
            return False if leading.partial else self._drop(leading.end())
        self._state = self._text
        return True

    def _hold(self) -> bool:
        """Until the thoughts end; if they never do, it was text."""
        assert self._close is not None
        match = self._close.search(self._buffer)
        if match is not None and self._buffer[match.end() :].strip():
            self.thought_unopened |= bool(CLOSE.fullmatch(match[0]))
            self.thought = True
            self._buffer, self._state = self._buffer[match.end() :], self._start
            return True
        if self._final:
            self._state = self._text
        return self._final

    # ── Text ─────────────────────────────────────────────────────────────────────────────────

    def _text(self) -> bool:
        if self._is_line_start():
            waits = self._at_line_start()
            if waits is not None:
                return waits
        plain = _PLAIN.match(self._buffer)
        if plain is not None:
            # A line is read from its start, so that a name that is called can be seen there.
            return self._say(plain.end())
        if self._buffer[0] == "`":
            return self._inline_code()
        return self._token()

    def _is_line_start(self) -> bool:
        return "\n" in self._blank or not self._said

    def _at_line_start(self) -> bool | None:
        """Fences and calls; None if it is neither."""
        fence = (_FENCE_AT_END if self._final else _FENCE).match(
            self._buffer, partial=not self._final
        )
        if fence is not None and fence.partial:
            return False
        if fence is not None:
            return self._fence(fence)
        if "\n\n" in self._blank and self._said:
            turn = (NEXT_TURN if self._final else NEXT_TURN_SO_FAR).match(
                self._buffer, partial=not self._final
            )
            if turn is not None:
                self._state = self._text if turn.partial else self._after
                return not turn.partial
        return self._call_in_line() if self._tools else None

    def _call_in_line(self) -> bool | None:
        call = self._line_calls.read(self._buffer, final=self._final)
        if call is None:
            return None
        if call.waits:
            return False
        self._called(list(call.calls))
        self._buffer = self._buffer[call.length :]
        return True

    def _say(self, length: int) -> bool:
        """Let the next characters out; white space waits for what follows it."""
        text, self._buffer = self._buffer[:length], self._buffer[length:]
        shown = text.rstrip()
        if not shown:
            self._blank += text
            return True
        if self._orphan:
            self._orphan = False
            self._out.append(DISCARD)
            self._blank = ""
        shown = self._blank + shown if self._said else shown.lstrip()
        self._blank = text[len(text.rstrip()) :]
        self._said = (self._said + shown)[-TAIL:]
        self._out.append(ModelDelta(text=shown))
        return True

    # ── Code ─────────────────────────────────────────────────────────────────────────────────

    def _inline_code(self) -> bool:
        ticks = len(self._buffer) - len(self._buffer.lstrip("`"))
        line = self._buffer.partition("\n")[0]
        seen = line[: LONGEST_LINE_OF_CODE + ticks]
        closed = regex.search(rf"(?<!`)`{{{ticks}}}(?!`)", seen[ticks:])
        ended = self._final or len(seen) < len(self._buffer)
        if (closed is None or ticks + closed.end() == len(line)) and not ended:
            return False  # the run of backticks may go on
        return self._say(ticks + closed.end() if closed else ticks)

    def _fence(self, opening: "regex.Match[str]") -> bool:
        info = opening["info"].strip().lower()
        is_short = len(opening["marks"]) == 3
        begins = not self._said and info in WRAPPING_INFO and is_short
        if begins or (self._wrapped and not info):
            self._wrapped = not self._wrapped
            return self._drop(opening.end())
        closing = regex.compile(rf"\n {{0,3}}{opening['marks'][0]}{{{len(opening['marks'])},}}")
        end = closing.search(self._buffer, opening.end() - 1)
        if not self._said and THOUGHT_NAME.fullmatch(info):
            self.thought = True
            return (self._final or end is not None) and self._drop(
                end.end() if end else len(self._buffer)
            )
        if not self._said and info in BARE_INFO | WRAPPING_INFO:
            return self._perhaps_wrapped(opening, end)
        if self._tools and (info in text_tool_calls.FENCES or info in self._tools):
            done = self._call_in_fence(opening, end)
            if done is not None:
                return done
        if end is None:
            return self._say(len(self._buffer)) if self._final else self._code_so_far(closing)
        if end.end() == len(self._buffer) and not self._final:
            return False
        return self._say(end.end())

    def _code_so_far(self, closing: "regex.Pattern[str]") -> bool:
        """Whole lines of code as they come."""
        last = self._buffer.rfind("\n")
        self._say(last)
        self._closing = closing
        self._state = self._in_fence
        return True

    def _in_fence(self) -> bool:
        """The buffer begins with the line break before the next line of code."""
        end = self._closing.match(self._buffer, partial=not self._final)
        if end is not None and end.partial:
            return False
        if end is not None:
            if end.end() == len(self._buffer) and not self._final:
                return False
            self._state = self._text
            return self._say(end.end())
        following = self._buffer.find("\n", 1)
        return self._say(following if following > 0 else len(self._buffer))

    def _perhaps_wrapped(self, opening: "regex.Match[str]", end: "regex.Match[str] | None") -> bool:
        """A fence around the whole answer is known by its citations, and by nothing after it."""
        if end is None and not self._final:
            return False
        inside = self._buffer[opening.end() : end.start() if end else None]
        rest = self._buffer[end.end() :] if end else ""
        follows = rest.strip()
        if not self._final and (not follows or follows.startswith("<")):
            return False
        follows = TOKENS_AT_END.sub("", follows).strip()
        if not follows and _CITES.search(inside):
            self._buffer = inside + rest
            self._state = self._text
            return True
        return self._say(end.end() if end else len(self._buffer))

    def _call_in_fence(
        self, opening: "regex.Match[str]", end: "regex.Match[str] | None"
    ) -> bool | None:
        if end is None and not self._final:
            return False
        body = self._buffer[opening.start("info") : end.start() if end else None]
        calls = text_tool_calls.calls_in(body, self._tools)
        if not calls:
            return None
        self._called(calls)
        return self._drop(end.end() if end else len(self._buffer))

    # ── Marks of thoughts, of turns, of calls ────────────────────────────────────────────────

    def _token(self) -> bool:
        tokens = TOKENS_AT_END if self._final else TOKENS
        match = tokens.match(self._buffer, partial=not self._final)
        if match is None:
            return self._say(1)
        if match.partial or (match.end() == len(self._buffer) and not self._final):
            return False
        following = self._buffer[match.end() : match.end() + 1]
        if is_mention(self._said + self._blank, following):
            return self._say(match.end())
        self._drop(match.end())
        self._meet(kind_of(match), match)
        return True

    def _meet(self, kind: str, match: "regex.Match[str]") -> None:
        match kind:
            case "opens":
                close = CLOSE_OR_CALL if self._tools else CLOSE
                self.thought, self._close, self._state = True, close, self._thinking
            case "closes":
                self.thought_unopened = self.thought = True
                self._orphan = bool(self._said)
            case "channel":
                self._enter_channel(match[0], match["header"])
            case "bytes":
                raw = bytes.fromhex(match[0].replace("<0x", "").replace(">", ""))
                self._buffer = raw.decode("utf-8", "replace") + self._buffer
            case "call":
                self._calling, self._state = match[0], self._written_call
            case "ends" if self._said:
                self._state = self._after
            case "other":
                self._state = self._after

    def _enter_channel(self, mark: str, header: str) -> None:
        called = regex.search(r"to=(?:functions\.)?([\w.-]+)", mark)
        if called is not None:
            self._calling, self._state = f"<|channel|>{called[1]}", self._written_call
        elif "final" not in header:
            self.thought, self._close, self._state = True, after_turn(), self._thinking

    def _thinking(self) -> bool:
        assert self._close is not None
        match = self._close.search(self._buffer)
        if match is None or (match.end() == len(self._buffer) and not self._final):
            self._buffer = self._buffer[-TAIL:] if not self._final else ""
            return False
        is_next = match.groupdict().get("stays")  # the next channel's own mark is read as such
        self._buffer = self._buffer[match.start() if is_next else match.end() :]
        self._state = self._text if self._said else self._start
        return True

    def _after(self) -> bool:
        """Past the end of the answer: only another part of it counts."""
        match = _GOES_ON.search(self._buffer)
        if match is None:
            self._buffer = self._buffer[-TAIL:] if not self._final else ""
            return False
        self._buffer, self._state = self._buffer[match.start() :], self._text
        return True

    def _written_call(self) -> bool:
        end = text_tool_calls.end_of(self._calling, self._buffer)
        if end is None and not self._final:
            return False
        body = self._buffer[: end.start()] if end else self._buffer
        self._called(text_tool_calls.calls_of(self._calling, body, self._tools))
        self._state = self._text
        return self._drop(end.end() if end else len(self._buffer))

    def _called(self, calls: "list[ToolCall]") -> None:
        self.calls += calls

    def _drop(self, length: int) -> bool:
        self._buffer = self._buffer[length:]
        return True


_FENCE = regex.compile(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>[^\n`]*)\n")
_FENCE_AT_END = regex.compile(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>[^\n`<]*)(?:\n|$|(?=<))")
_GOES_ON = regex.compile(
    r"<\|channel\|>|<\|(?:im_start|start|start_header_id)\|>\s*assistant|<start_of_turn>model"
)
