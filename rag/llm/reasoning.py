"""Take a model's answer out of what it writes around it: thoughts, control tokens, tool calls.

A reply arrives in deltas, however they are cut: what is read never depends on where. In code
nothing is special, so an answer may quote any of this.

Families of models spell them in their own ways, so they are known by their words: what thinks, what
calls, what answers, what ends a turn.

Servers render messages with a chat template and read the tokens that separate its roles wherever
they stand, in the middle of a document as well: `<|im_start|>system` there would speak as us.
"""

import re
from collections.abc import Collection
from functools import cache

from rag.language.lazy_patterns import regex
from rag.llm.text_tool_calls import FENCES, LineCalls, calls_in, calls_of, end_of
from rag.records import ToolCall
from rag.seams import ModelDelta

_T = (  # words for thoughts
    r"(?:(?:\w{1,20}:)?(?:think(?:ing|_?fast|_?on|_?off)?|thoughts?|thought_process|thinking_process"
    r"|reason(?:ing(?:_\w{1,10})?)?|rationale|chain_of_thought|ant_?thinking|reflection|deliberation|scratch_?pad|planning|cot|analysis"
    r"|(?:inner|internal)_(?:monologue|thoughts?)))"
)
_A = r"(?:(?:final_?)?(?:answer|response|output|reply|result|solution)|final)"  # for the answer
_C = r"\w{0,20}(?:tool|function)\w{0,20}"  # for calls
_LT, _GT, _BAR = r"(?:<|&lt;|<\|open\|>)", r"(?:>|&gt;|<\|sep\|>)", r"[|｜]"
_CLOSE_LT = r"(?:</|&lt;/|<\|close\|>)"
_B, _E = r"(?:begin|start)", r"end"
_OF = r"[_▁]of[_▁]"

_OPENS = (
    rf"{_LT}{_T}(?:\s[^<>\n]{{0,80}})?{_GT}|\[(?:THINK|THOUGHTS?|REASONING|thinking|think|reasoning)\](?!\()"
    rf"|◁think▷|<{_BAR}(?:{_B}_|{_B}{_OF})?(?:{_T}|inner)(?:_{_B}|_prefix)?{_BAR}>"
    r"|<details\s[^<>\n]{0,60}type=\"reasoning\"[^<>\n]{0,60}>|<unused94>(?:thought)?"
    r"|<\|?channel>thought"
)
_CLOSES = (
    rf"{_CLOSE_LT}{_T}\s?{_GT}|\[/(?:THINK|THOUGHTS?|REASONING|thinking|think|reasoning)\]|◁/think▷"
    rf"|<{_BAR}(?:/|{_E}_|{_E}{_OF}){_T}{_BAR}>|<{_BAR}(?:{_T}|inner)_(?:{_E}|suffix){_BAR}>"
    r"|<unused95>|<channel\|>"
)
_CHANNEL = (
    r"(?:<\|start\|>assistant\s?(?:to=[\w.]{1,60})?)?<\|channel\|>(?P<header>[^<\n]{0,200})"
    r"(?:<\|constrain\|>[^<]{0,30})?(?:<\|message\|>|(?<=analysis|commentary|final)\n)"
)
_CALLS = (
    rf"(?:<(?:{_BAR}?\w{{1,20}}[:|｜])?|<\|open\|>)(?:{_BAR}?{_C}(?::\w{{1,20}})?\|?|invoke(?=\s)"
    rf"|execute_\w{{1,20}})(?:[\s=][^<>\n]{{1,80}})?(?:>|<\|sep\|>)"
    r"|\[TOOL_CALLS?\]|<TOOLCALL>"
    rf"|<{_BAR}(?:\w{{0,20}}(?i:(?:tool|action|function)[\w▁]{{0,20}}(?:{_B}|prefix))"
    rf"|python_tag|START_ACTION|tool_calls?){_BAR}>"
)
_ENDS = (
    rf"<{_BAR}(?:im_end|e[no][a-z]_id|eo[mst]|EO[MST]|end|return|end(?:▁)?of[\w▁]{{0,20}}|end_of_(?!box|role)\w{{1,20}}"
    rf"|assistant_end|role_end|END_\w{{1,20}}){_BAR}>"
    r"|\[\|end\w{0,12}\|\]|</s>|<end_of_\w{1,12}>|<turn\|>|<eo[sdt]>|<sep>|\[EOS\]|<extra_id_\d{1,3}>"
)
_HEAD = (  # of a message; without a role it is the model's own
    r"(?:<\|(?:im_start|begin|start_header_id|header_start|start_of_role|turn)\|?>|<start_of_turn>"
    r"|<\|start\|>(?!assistant\s(?:to=|(?:to?)?$)))"  # who is called may yet follow
    r"(?P<role>\w{0,12})"
)
_OTHER = r"<\|(?:user|system|USER_TOKEN)\|>|<｜User｜>|\[INST\]|\[\|(?:user|system)\|\]"
_NOT_ALONE = r"(?!\|(?:channel|im_start|start|start_header_id|header_start|open|close)\|)"
_CONTROL = (
    rf"(?:</?|<\|(?:open|close)\|>)(?i:{_A})(?:\s[^<>\n]{{0,60}})?(?:>|<\|sep\|>)"
    rf"|<{_NOT_ALONE}[|｜][^<>|｜\n]{{1,60}}[|｜]>|</?s>|<(?:bos|pad|unk|SPECIAL_\d{{1,4}})>"
    r"|\[/INST\]|<</?SYS>>|</?sources?>|<role>\w{1,12}</role>|\[\|[a-z]\w{0,20}\|\]"
)


def _control_tokens(not_alone: str, half: str) -> "regex.Pattern[str]":
    control = _CONTROL.replace(_NOT_ALONE, not_alone)
    return regex.compile(
        f"(?P<channel>{_CHANNEL})|(?P<opens>(?i:{_OPENS}))|(?P<closes>(?i:{_CLOSES}))"
        f"|(?P<bytes>(?:<0x[0-9A-F]{{2}}>)+)|(?P<call>{_CALLS})"
        f"|(?P<ends>{_ENDS})|(?P<other>{_OTHER})|(?P<head>{_HEAD})|(?P<control>{control}{half})"
    )


TOKENS = _control_tokens(_NOT_ALONE, "")
TOKENS_AT_END = _control_tokens("", r"|<[|｜][\w▁]{0,30}$")  # also one that was cut
_KINDS = ("channel", "call", "opens", "closes", "bytes", "ends", "other", "head", "control")
CLOSE = regex.compile(rf"(?i:{_CLOSES}|</details>|<\|end\|>)")
# Some models call in the middle of a thought, and never end it.
CLOSE_OR_CALL = regex.compile(rf"{CLOSE.pattern}|(?P<stays><tool_call>(?=\s*[{{<]))")
THOUGHT_NAME = regex.compile(_T)

# Harmony's channels whose marks a server has stripped: how thoughts begin, and where they end.
# Text that begins so is held back to see which it is.
STRIPPED_THOUGHT = regex.compile(
    r"(?:assistant)?(?:analysis|commentary)\s{0,2}(?=[\p{Lu}\"'“(0-9])"
)
STRIPPED_ANSWER = regex.compile(
    r"(?:<\|start\|>)?assistant\s{0,2}(?:<\|channel\|>)?final(?:<\|message\|>)?"
    r"|(?<=[.!?…\n])\s{0,2}final(?=\s{0,2}\p{Lu})"
)
LEADING = regex.compile(
    r"assistant\s{0,2}final(?=\s{0,2}[\p{Lu}\"“])|assistant\n+|final(?=\p{Lu})"
    r"|(?:GPT4 Correct )?(?:Assistant|ASSISTANT): |\*\*Assistant:\*\* "
    r"|### (?:Response|Assistant|Answer):?[ \n]"
)
# Another turn of the conversation, which the model goes on to make up.
NEXT_TURN = regex.compile(
    r"#{2,4} ?(?:Instruction|Human|User)(?::|[ ]*(?:\n|$))|(?:Human|User): [^\n]{1,300}\?(?:\n|$)"
)
NEXT_TURN_SO_FAR = regex.compile(NEXT_TURN.pattern.replace("$", "(?!)"))

WRAPPING_INFO = frozenset({"markdown", "md"})
BARE_INFO = frozenset({"", "text", "txt", "plain", "plaintext"})

_WORD_BEFORE = regex.compile(r"(?:[\w,:;)] |[\"'“‘«(])$")


@cache
def after_turn() -> "regex.Pattern[str]":
    """Where a Harmony channel ends; the mark of the next one is left to be read."""
    return regex.compile(r"<\|(?:end|return|call)\|>|(?P<stays><\|channel\|>)")


def kind_of(token: "regex.Match[str]") -> str:
    """Which group of `TOKENS` matched."""
    kind = next(kind for kind in _KINDS if token[kind] is not None)
    if kind == "head" and token["role"] not in ("", "assistant", "model"):
        return "other"
    return kind


def is_mention(before: str, following: str) -> bool:
    """Whether a sentence speaks of a mark: words go on behind it as they came before it."""
    if not _WORD_BEFORE.search(before):
        return False
    return following in set("\"'”’».,;:)") or following == " "


# The shapes that tokenizers give their own tokens, then those that are known by name only.
_ROLE_TOKEN = re.compile(
    r"<(?P<shape>[|｜][^<>\s]{1,60}|[^<>\s]{1,60}[|｜])>"
    r"|<(?P<name>/?(?:s|bos|eos|pad|unk|think|tools?|tool_calls?|tool_response|start_of_turn"
    r"|end_of_turn))>"
    r"|<<(?P<llama>/?SYS)>>"
    r"|\[(?P<mistral>/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT"
    r"|MODEL_SETTINGS|CALL_ID|ARGS|THINK|IMG|IMG_BREAK|IMG_END|PREFIX|MIDDLE|SUFFIX))\]"
)


def without_role_tokens(text: str) -> str:
    """The text with each such token in parentheses: `[INST]` becomes `(INST)`; never longer."""
    return _ROLE_TOKEN.sub(lambda match: f"({match[match.lastgroup or 0]})", text)


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
        self._text_tail = ""  # the end of what was let out, for its neighbours
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
        return "\n" in self._blank or not self._text_tail

    def _at_line_start(self) -> bool | None:
        """Fences and calls; None if it is neither."""
        fence = (_FENCE_AT_END if self._final else _FENCE).match(
            self._buffer, partial=not self._final
        )
        if fence is not None and fence.partial:
            return False
        if fence is not None:
            return self._fence(fence)
        if "\n\n" in self._blank and self._text_tail:
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
        shown = self._blank + shown if self._text_tail else shown.lstrip()
        self._blank = text[len(text.rstrip()) :]
        self._text_tail = (self._text_tail + shown)[-TAIL:]
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
        begins = not self._text_tail and info in WRAPPING_INFO and is_short
        if begins or (self._wrapped and not info):
            self._wrapped = not self._wrapped
            return self._drop(opening.end())
        closing = regex.compile(rf"\n {{0,3}}{opening['marks'][0]}{{{len(opening['marks'])},}}")
        end = closing.search(self._buffer, opening.end() - 1)
        if not self._text_tail and THOUGHT_NAME.fullmatch(info):
            self.thought = True
            return (self._final or end is not None) and self._drop(
                end.end() if end else len(self._buffer)
            )
        if not self._text_tail and info in BARE_INFO | WRAPPING_INFO:
            return self._perhaps_wrapped(opening, end)
        if self._tools and (info in FENCES or info in self._tools):
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
        calls = calls_in(body, self._tools)
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
        if is_mention(self._text_tail + self._blank, following):
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
                self._orphan = bool(self._text_tail)
            case "channel":
                self._enter_channel(match[0], match["header"])
            case "bytes":
                raw = bytes.fromhex(match[0].replace("<0x", "").replace(">", ""))
                self._buffer = raw.decode("utf-8", "replace") + self._buffer
            case "call":
                self._calling, self._state = match[0], self._written_call
            case "ends" if self._text_tail:
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
        self._state = self._text if self._text_tail else self._start
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
        end = end_of(self._calling, self._buffer)
        if end is None and not self._final:
            return False
        body = self._buffer[: end.start()] if end else self._buffer
        self._called(calls_of(self._calling, body, self._tools))
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
