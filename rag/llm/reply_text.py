"""Reads the text of a model as it arrives: its reasoning, written calls, and answer.

A reply arrives in pieces of any size, and the result never depends on where it is cut. In code
nothing is special, so an answer may quote any mark.

Families of models write their marks in different ways, so marks are recognised by their words: for
reasoning, calls, answers and the end of a turn.

Servers render messages with a chat template and interpret the tokens that separate its roles
anywhere, even within a document: `<|im_start|>system` there would be read as the system's.

Models are trained on many forms, so a call is recognised by what all have in common: the name of an
offered tool, and then its arguments, as JSON, as elements, or as a call in Python.
"""

import ast
import json
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from rag.language.lazy_patterns import regex
from rag.records import ToolCall
from rag.seams import ModelDelta

FENCES = frozenset({"", "json", "tool_call", "tool_calls", "tool_code", "tool", "python", "xml"})
UNREADABLE = "unreadable_call"  # no tool has this name: the refusal lists the tools

_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = (
    "arguments", "parameters", "args", "input", "tool_input", "action_input", "params", "kwargs",
)  # fmt: skip
_INSIDE = ("tool_calls", "tool_call", "function_call", "function")
WrittenCalls = list[tuple[str, str]]


# ── What begins with a mark ──────────────────────────────────────────────────────────────────


def end_of(mark: str, body: str) -> "regex.Match[str] | None":
    """Find the end of a call that a mark began: its closing mark, or the end of the turn."""
    name = regex.search(
        r"(?:[\w]+:)?([\w▁]+)", regex.sub(r"｜DSML｜|open\|>|:[0-9a-f]{4,20}(?=>)", "", mark)
    )
    ends = r"<\|(?:call|end|return|im_end|eot_id|eom_id|end_of_text)\|>|</s>"
    if name is not None and not mark.startswith(("<|channel", "<|start|")):
        other = regex.sub("(?i)begin|start", "end", name[1])
        other = "END_ACTION" if name[1] == "START_ACTION" else other.replace("prefix", "suffix")
        kind = r"(?:[|｜]?\w+[:|｜])?[|｜]?"
        ends += rf"|(?:[<\[]{kind}/?{kind}|<\|close\|>){other}(?::\w+)?[|｜]?(?:[>\]]|<\|sep\|>)"
    return regex.search(ends, body)


def calls_of(mark: str, body: str, names: Collection[str]) -> list[ToolCall]:
    """Return the calls behind a mark. An unreadable one becomes a call that is refused.

    Returns none if no tool was offered.
    """
    if not names:
        return []
    match = regex.search(r"^<\|channel\|>(?P<name>[\w.-]+)", mark)
    if match is not None:
        return [ToolCall("", match["name"], body.strip())]
    calls = calls_in(mark + body, names) or _as_tool_calls(_from_json(body))
    return calls or [ToolCall("", UNREADABLE, "{}")]


def _as_tool_calls(written: Iterable[tuple[str, str]]) -> list[ToolCall]:
    return [ToolCall("", name, arguments) for name, arguments in written]


# ── What is known by its form alone ──────────────────────────────────────────────────────────


def calls_in(text: str, names: Collection[str]) -> list[ToolCall]:
    """Return the calls that a whole text consists of, in any form."""
    text = _plain_marks(text)
    results = [call for call in _from_json(text) if call[0] in names]
    any_name = "|".join(map(regex.escape, sorted(names))) or "(?!)"
    named = regex.split(rf"(\b(?:{any_name})\b)", "" if results else text)
    for name, behind in zip(named[1::2], named[2::2], strict=True):
        values = _values_behind(behind)
        if values is not None:
            results.append((name, json.dumps(values, ensure_ascii=False, default=str)))
    return _as_tool_calls(results)


def _plain_marks(text: str) -> str:
    """Return the text with plain names of elements, and quotation marks for their tokens."""
    text = regex.sub(r"<\|open\|>([^<]*)<\|sep\|>", r"<\1>", text)
    text = regex.sub(r"<\|close\|>([^<]*)<\|sep\|>", r"</\1>", text)
    text = regex.sub(r"(</?\w+):[0-9a-f]{4,20}(?=>)", r"\1", text)
    text = regex.sub(r"(</?)(?:\w{1,20}:|[|｜]\w{1,20}[|｜]|[a-z]+_(?=arg_))(?=\w)", r"\1", text)
    return regex.sub(r'<\|\\?"\|>|<escape>', '"', text)


_PAIRS = regex.compile(
    r"<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>"
    r"|<(?:param(?:eter)?|argument)(?:=| (?:name|key)=[\"'])(?P<key>[\w.-]+)[\"']?[^<>]*>"
    r"\s*(?P<value>.*?)\s*</(?:param(?:eter)?|argument)>"
    r"|<(?P<key>\w+)>\s*(?P<value>[^<]*?)\s*</\g<key>>",
    regex.DOTALL,
)
_CALL_AHEAD = regex.compile(r"[^{}()]{0,80}\(?(?=\{)")


def _values_behind(text: str) -> dict[str, Any] | None:
    """Return the arguments behind a tool's name; None if the name was only mentioned."""
    pairs = {match["key"]: _value(match["value"]) for match in _PAIRS.finditer(text)}
    if pairs and not pairs.keys() <= {*_ARGUMENTS}:
        return pairs
    if text.removeprefix(".call").startswith("("):
        return _of_python(text.removeprefix(".call"))
    begins = _CALL_AHEAD.match(text)
    if begins is not None:
        value = _decode(text[begins.end() :])[1]
        return value if isinstance(value, dict) else None
    return {} if regex.match(r"[\"'>\s]*</", text) else None


def _value(text: str) -> Any:
    """Return numbers and booleans as such; any other text unchanged."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text


def _of_python(text: str) -> dict[str, Any] | None:
    """Return the arguments in the brackets that a text begins with."""
    for end in (match.end() for match in regex.finditer(r"\)", text[:4000])):
        with suppress(SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            call = ast.parse(f"f{text[:end]}", mode="eval").body
            assert isinstance(call, ast.Call)
            values = {
                keyword.arg: ast.literal_eval(keyword.value)
                for keyword in call.keywords
                if keyword.arg
            }
            first = ast.literal_eval(call.args[0]) if call.args else {}
            return values | (first if isinstance(first, dict) else {"query": first})
    inside = text[1:].partition(")")[0].strip()
    inside = inside if inside.startswith("{") else f"{{{inside}}}"
    value = _decode(inside)[1] if ":" in inside else None
    return value if isinstance(value, dict) else None


def _from_json(text: str) -> WrittenCalls:
    start = regex.search(r"\{|\[(?=\s*[\[{])", text)
    calls: WrittenCalls = []
    rest = text[start.start() :] if start else ""
    while rest.startswith(("{", "[")):
        length, value = _decode(rest)
        if not length:
            break
        calls += calls_in_value(value)
        rest = rest[length:].lstrip(" \t\r\n,;")
    return calls


def calls_in_value(value: Any) -> WrittenCalls:
    """Return the calls in a JSON value."""
    if isinstance(value, list):
        return [call for item in value for call in calls_in_value(item)]
    if not isinstance(value, Mapping):
        return []
    inner = next((value[key] for key in _INSIDE if key in value), None)
    if isinstance(inner, list | Mapping):
        return calls_in_value(inner)
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "")
    if not name and len(value) == 1 and isinstance(next(iter(value.values())), Mapping):
        name, arguments = next(iter(value.items()))
        return [(name, json.dumps(arguments, ensure_ascii=False))]
    return [(name.removeprefix("functions."), _arguments_of(value))] if name else []


def _arguments_of(value: Mapping[str, Any]) -> str:
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if arguments is None:
        arguments = {
            key: argument for key, argument in value.items() if key not in (*_NAMES, "type", "id")
        }
    if isinstance(arguments, str) and arguments.strip() and not arguments.strip().startswith("{"):
        arguments = {"query": arguments}
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def arguments_in(text: str) -> str:
    """Return the arguments of a call as one JSON object, if they can be read as one.

    An incomplete text in them is not completed.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, str):
        return arguments_in(value)
    if isinstance(value, Mapping) or text.count('"') % 2:
        return text
    arguments: Any = None
    rest = text[text.find("{") :] if "{" in text else ""
    while rest.startswith("{"):  # an empty object may precede the arguments
        length, value = _decode(rest)
        arguments = value if isinstance(value, dict) and (value or arguments is None) else arguments
        rest = rest[length:].lstrip() if length else ""
    return text if arguments is None else json.dumps(arguments, ensure_ascii=False, default=str)


def _decode(text: str) -> tuple[int, Any]:
    """Return length and value of the JSON that a text begins with; repairs usual mistakes."""
    whole = whole_json(text)
    if whole is not None:
        return whole
    quoted = regex.sub(r"([{,]\s*)([A-Za-z_]\w*)\s*:", r'\1"\2":', text)
    single = text.replace("{{", "{").replace("}}", "}") if text.startswith("{{") else text
    straight = text.translate({ord("“"): '"', ord("”"): '"'})
    for repaired in (text, quoted, single, straight):
        for end in (m.end() for m in regex.finditer(r"[}\]]", repaired[:4000])):
            with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                return len(text), ast.literal_eval(repaired[:end])
    for forgotten in ("}", "}}", "]", "}]", '"}', '"}}'):
        with suppress(ValueError, RecursionError):
            return len(text), json.loads(text.rstrip() + forgotten, strict=False)
    return 0, None


def whole_json(text: str) -> tuple[int, Any] | None:
    """Return length and value of the JSON that a text begins with, if it is complete."""
    try:
        value, length = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return length, value


# ── At the beginning of a line, while it arrives ─────────────────────────────────────────────

_ANY = regex.compile(r"\{\s*\"name\":\s*\"\w+\",\s*\"(?:arguments|parameters)\":\s*\{")


@lru_cache(100)
def _beginning_of_calls(names: tuple[str, ...]) -> "regex.Pattern[str]":
    named = "|".join(map(regex.escape, names)) or r"(?!)"
    return regex.compile(
        r"(?P<json>\{\s*[\"']|\[\s*\{\s*[\"']|functools\s*\[)"
        r"|(?:\[|>>>|<function=|(?:commentary )?(?:to=)?functions\.)?"
        rf"(?P<name>{named})(?:\(|(?:[ ]json|=)?\s?\{{|(?P<alone>[ ]*\n))"
    )


_T = (  # words for reasoning
    r"(?:(?:\w{1,20}:)?(?:think(?:ing|_?fast|_?on|_?off)?|thoughts?|thought_process|thinking_process"
    r"|reason(?:ing(?:_\w{1,10})?)?|rationale|chain_of_thought|ant_?thinking|reflection|deliberation|scratch_?pad|planning|cot|analysis"
    r"|(?:inner|internal)_(?:monologue|thoughts?)))"
)
_A = r"(?:(?:final_?)?(?:answer|response|output|reply|result|solution)|final)"  # for the answer
_C = r"\w{0,20}(?:tool|function)\w{0,20}"  # words for calls
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
_HEAD = (  # the head of a message; without a role it is the model's own
    r"(?:<\|(?:im_start|begin|start_header_id|header_start|start_of_role|turn)\|?>|<start_of_turn>"
    r"|<\|start\|>(?!assistant\s(?:to=|(?:to?)?$)))"  # the tool's name may still follow
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
TOKENS_AT_END = _control_tokens("", r"|<[|｜][\w▁]{0,30}$")  # also an incomplete one
_KINDS = ("channel", "call", "opens", "closes", "bytes", "ends", "other", "head", "control")
CLOSE = regex.compile(rf"(?i:{_CLOSES}|</details>|<\|end\|>)")
# Some models call within their reasoning, and never close it.
CLOSE_OR_CALL = regex.compile(rf"{CLOSE.pattern}|(?P<stays><tool_call>(?=\s*[{{<]))")
THOUGHT_NAME = regex.compile(_T)

# Harmony's channels without their marks, which a server removed: how reasoning begins and ends.
# Text that begins so is held back until it is clear which it is.
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
# Another turn of the conversation, which the model invents.
NEXT_TURN = regex.compile(
    r"#{2,4} ?(?:Instruction|Human|User)(?::|[ ]*(?:\n|$))|(?:Human|User): [^\n]{1,300}\?(?:\n|$)"
)
NEXT_TURN_SO_FAR = regex.compile(NEXT_TURN.pattern.replace("$", "(?!)"))

WRAPPING_INFO = frozenset({"markdown", "md"})
BARE_INFO = frozenset({"", "text", "txt", "plain", "plaintext"})

_WORD_BEFORE = regex.compile(r"(?:[\w,:;)] |[\"'“‘«(])$")


# The end of a Harmony channel; the mark of the next channel is not consumed.
_AFTER_TURN = regex.compile(r"<\|(?:end|return|call)\|>|(?P<stays><\|channel\|>)")


def kind_of(token: "regex.Match[str]") -> str:
    """Return which group of `TOKENS` matched."""
    kind = next(kind for kind in _KINDS if token[kind] is not None)
    if kind == "head" and token["role"] not in ("", "assistant", "model"):
        return "other"
    return kind


def is_mention(before: str, following: str) -> bool:
    """Return whether a sentence mentions a mark: words stand before and behind it."""
    if not _WORD_BEFORE.search(before):
        return False
    return following in set("\"'”’».,;:)") or following == " "


# The usual shapes of tokenizers' special tokens, then tokens known only by name.
_ROLE_TOKEN = re.compile(
    r"<(?P<shape>[|｜][^<>\s]{1,60}|[^<>\s]{1,60}[|｜])>"
    r"|<(?P<name>/?(?:s|bos|eos|pad|unk|think|tools?|tool_calls?|tool_response|start_of_turn"
    r"|end_of_turn))>"
    r"|<<(?P<llama>/?SYS)>>"
    r"|\[(?P<mistral>/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT"
    r"|MODEL_SETTINGS|CALL_ID|ARGS|THINK|IMG|IMG_BREAK|IMG_END|PREFIX|MIDDLE|SUFFIX))\]"
)


def without_role_tokens(text: str) -> str:
    """Put each such token in parentheses: `[INST]` becomes `(INST)`; never longer."""
    return _ROLE_TOKEN.sub(lambda match: f"({match[match.lastgroup or 0]})", text)


TAIL = 64  # characters: no closing mark is longer
LONGEST_LINE_OF_CODE = 1_000
_PLAIN = regex.compile(r"[^<\[`◁&\n]+")
_UNWANTED = {code: None for code in range(32) if chr(code) not in "\t\n\r"} | {0xFEFF: None}
_CITES = regex.compile(r"[\w.!?)] ?\[\d{1,4}\]")
DISCARD = ModelDelta(discard=True)


class ReplyParser:
    """Turns the text of one reply into deltas of the answer, and separates written calls.

    `tools` are the names that may be called. With `holds`, this model's reasoning has no opening
    mark, so nothing may be shown before its end.
    """

    def __init__(self, tools: Collection[str] = (), *, holds: bool = False) -> None:
        self.calls: list[ToolCall] = []
        self.thought_unopened = False  # reasoning was closed that was never opened
        self.thought = False
        self._tools = tools
        self._buffer = ""
        self._final = False
        self._blank = ""  # white space that is held until a word follows
        self._text_tail = ""  # the end of the text so far, as context
        self._out: list[ModelDelta] = []
        self._orphan = False  # reasoning was shown as text, if more text follows
        self._wrapped = False
        self._close: regex.Pattern[str] | None = CLOSE if holds else None
        self._state = self._hold if holds else self._start

    def feed(self, text: str) -> list[ModelDelta]:
        """Return the deltas that are certain by now."""
        self._buffer += text.translate(_UNWANTED)
        return self._advance()

    def finish(self) -> list[ModelDelta]:
        """Return what was held back; unfinished reasoning is dropped."""
        self._final = True
        return self._advance()

    def _advance(self) -> list[ModelDelta]:
        while self._buffer and self._state():
            continue
        out, self._out = self._out, []
        return out

    # ── Where a reply begins ─────────────────────────────────────────────────────────────────

    def _start(self) -> bool:
        """Skip blanks; some first words show that reasoning follows without its opening mark."""
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
        """Hold the text until the reasoning ends; if it never does, it was the answer."""
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
        if "\n" in self._blank or not self._text_tail:
            waits = self._at_line_start()
            if waits is not None:
                return waits
        plain = _PLAIN.match(self._buffer)
        if plain is not None:
            # A line is read from its start, where a call is recognised.
            return self._say(plain.end())
        if self._buffer[0] == "`":
            return self._inline_code()
        return self._token()

    def _at_line_start(self) -> bool | None:
        """Read a fence or a call; None if it is neither."""
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
        """Read a call without any mark, as JSON or as a list of calls in Python; None if none."""
        text, length = self._buffer, 0
        begins = _beginning_of_calls(tuple(sorted(self._tools)))
        match = begins.match(text, partial=not self._final)
        if match is None:
            return None
        if match.partial:
            return False
        if match["json"]:
            start = max(0, min((text.find(c) for c in "{[" if c in text), default=0))
            whole = whole_json(text[start:])
            length = start + whole[0] if whole else 0
        else:  # it ends at a bracket at the end of a line, or before an empty line
            end = regex.search(r"\)\n|\n\n" if match[0].endswith("(") else r"\n\n", text)
            length = end.start() + 1 if end else 0
        if not length and not self._final:
            return False
        length = length or len(text)
        calls = calls_in(text[:length], self._tools)
        if match["json"] and not calls and _ANY.match(text):
            calls = _as_tool_calls(_from_json(text[:length]))
        if not calls:
            return None
        self.calls += calls
        return self._drop(length)

    def _say(self, length: int) -> bool:
        """Emit the next characters; white space waits for what follows it."""
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
            return False  # the run of backticks may continue
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
        """Emit complete lines of code as they come."""
        last = self._buffer.rfind("\n")
        self._say(last)
        self._closing = closing
        self._state = self._in_fence
        return True

    def _in_fence(self) -> bool:
        """Read code; the buffer begins with the line break before the next line."""
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
        """Remove a fence around the whole answer, which has citations and nothing after it."""
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
        self.calls += calls
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
            self.thought, self._close, self._state = True, _AFTER_TURN, self._thinking

    def _thinking(self) -> bool:
        assert self._close is not None
        match = self._close.search(self._buffer)
        if match is None or (match.end() == len(self._buffer) and not self._final):
            self._buffer = self._buffer[-TAIL:] if not self._final else ""
            return False
        is_next = match.groupdict().get("stays")  # the mark of the next channel is read again
        self._buffer = self._buffer[match.start() if is_next else match.end() :]
        self._state = self._text if self._text_tail else self._start
        return True

    def _after(self) -> bool:
        """Skip text after the end of the answer, except another part of it."""
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
        self.calls += calls_of(self._calling, body, self._tools)
        self._state = self._text
        return self._drop(end.end() if end else len(self._buffer))

    def _drop(self, length: int) -> bool:
        self._buffer = self._buffer[length:]
        return True


_FENCE = regex.compile(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>[^\n`]*)\n")
_FENCE_AT_END = regex.compile(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>[^\n`<]*)(?:\n|$|(?=<))")
_GOES_ON = regex.compile(
    r"<\|channel\|>|<\|(?:im_start|start|start_header_id)\|>\s*assistant|<start_of_turn>model"
)
