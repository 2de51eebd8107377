"""The marks by which servers and models set apart what is no part of an answer.

Families of models spell them in their own ways, so they are known by their words: what thinks, what
calls, what answers, what ends a turn.

Servers render messages with a chat template and read the tokens that separate its roles wherever
they stand, in the middle of a document as well: `<|im_start|>system` there would speak as us.
"""

import re
from functools import cache

from rag.language.lazy_patterns import regex

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


def _tokens(not_alone: str, half: str) -> "regex.Pattern[str]":
    control = _CONTROL.replace(_NOT_ALONE, not_alone)
    return regex.compile(
        f"(?P<channel>{_CHANNEL})|(?P<opens>(?i:{_OPENS}))|(?P<closes>(?i:{_CLOSES}))"
        f"|(?P<bytes>(?:<0x[0-9A-F]{{2}}>)+)|(?P<call>{_CALLS})"
        f"|(?P<ends>{_ENDS})|(?P<other>{_OTHER})|(?P<head>{_HEAD})|(?P<control>{control}{half})"
    )


TOKENS = _tokens(_NOT_ALONE, "")
TOKENS_AT_END = _tokens("", r"|<[|｜][\w▁]{0,30}$")  # also one that was cut
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
