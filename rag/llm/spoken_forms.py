"""The marks by which servers and models set apart what is no part of an answer."""

from functools import cache

import regex

_THOUGHT_NAMES = (
    r"(?:\w{1,20}:)?(?:think(?:ing|_?fast|_?on|_?off)?|thoughts?|thought_process|reasoning|"
    r"reflection|scratchpad|inner_(?:monologue|thoughts?)|analysis|cot)"
)
_OPENS = (
    rf"<{_THOUGHT_NAMES}(?:\s[^<>\n]{{0,80}})?>|\[THINK\]|\[REASONING\]|◁think▷"
    r"|<\|(?:START_THINKING|begin_of_(?:thought|thinking|reasoning)|think|thinking)\|>"
    r"|<unused94>(?:thought)?|<\|?channel>thought"
)
_CLOSES = (
    rf"</{_THOUGHT_NAMES}>|\[/THINK\]|\[/REASONING\]|◁/think▷"
    r"|<\|(?:END_THINKING|end_of_(?:thought|thinking|reasoning)|/think|/thinking)\|>"
    r"|<unused95>|<channel\|>"
)
_CHANNEL = r"<\|channel\|>(?P<header>[^<]{0,200})(?:<\|constrain\|>[^<]{0,30})?<\|message\|>"
_CALLS = (
    r"<\|?tool_calls?\|?>|<function_calls?>|<functioncall>|<function=[\w.-]{1,80}>|<\|python_tag\|>"
    r"|<invoke name=\"[\w.-]{1,80}\">|\[TOOL_CALLS\]|\[TOOL_CALL\]|<\|tool_calls?_begin\|>"
    r"|<\|tool_calls_section_begin\|>|<｜tool▁calls▁begin｜>|<｜tool▁call▁begin｜>"
    r"|<\|START_ACTION\|>|<start_function_call>|<\|tool_call>"
)
_ENDS = (
    r"<\|(?:im_end|eot_id|eom_id|end|return|endoftext|end_of_text|EOT|eot|END_RESPONSE"
    r"|END_OF_TURN_TOKEN)\|>|</s>|<end_of_turn>|<turn\|>|<eos>|<｜end▁of▁sentence｜>"
)
_HEAD = (  # of a message; without a role it is the model's own
    r"(?:<\|(?:im_start|start|start_header_id|header_start|turn)\|?>|<start_of_turn>)"
    r"(?P<role>\w{0,12})"
)
_OTHER = r"<\|(?:user|system|USER_TOKEN)\|>|<｜User｜>|\[INST\]"
_NOT_ALONE = r"(?!\|(?:channel|im_start|start|start_header_id|header_start)\|)"
_CONTROL = (
    r"<" + _NOT_ALONE + r"[|｜][^<>|｜\n]{1,60}[|｜]>|</?s>|<(?:bos|pad|unk)>|\[/INST\]|<</?SYS>>"
    r"|</?(?:answer|final_answer)>"
)

TOKENS = regex.compile(
    f"(?P<channel>{_CHANNEL})|(?P<call>{_CALLS})|(?P<opens>{_OPENS})|(?P<closes>{_CLOSES})"
    f"|(?P<ends>{_ENDS})|(?P<other>{_OTHER})|(?P<head>{_HEAD})"
    f"|(?P<control>{_CONTROL})"
)
TOKENS_AT_END = regex.compile(TOKENS.pattern.replace(_NOT_ALONE, ""))
_KINDS = ("channel", "call", "opens", "closes", "ends", "other", "head", "control")
CLOSE = regex.compile(_CLOSES)

# Thoughts whose opening mark the chat template has swallowed, or the server has stripped:
# how they begin, and where they end. Text that begins so is held back to see which it is.
_ALOUD = (
    r"(?:Okay|OK|Ok|Alright|All right|Hmm+|Let me|Let's|I need to|I should|I have to|I'll need to"
    r"|We need to|We have to|We should|The user|User (?:asks|wants|is)|First, I|Got it"
    r"|So,? the user|Der (?:Nutzer|Benutzer|User)|Die Nutzerin|L'utilisateur|El usuario)"
    r"(?=[\s,.!:;—–])"
    r"|(?:好的|嗯|用户|首先)"
)
_FINAL_CHANNEL = (
    r"(?:<\|start\|>)?assistant\s{0,2}(?:<\|channel\|>)?final(?:<\|message\|>)?"
    r"|(?<=[.!?…\n])\s{0,2}final(?=\s{0,2}\p{Lu})"
)
_ANSWER_LINE = r"(?:^|\n)\s{0,3}(?:\*\*|#{1,4} )?(?:Final )?[Aa]nswer(?:\*\*)?:(?:\*\*)?(?=[^*])"
HELD_STARTS = (
    (
        regex.compile(r"(?:analysis|commentary)\s{0,2}(?=[\p{Lu}\"'“(0-9])"),
        regex.compile(_FINAL_CHANNEL),
    ),
    (
        regex.compile(r"(?:\*\*|#{1,4} )?(?:Thoughts?|Thinking|Reasoning|Analysis)(?:\*\*)?:"),
        regex.compile(f"{_CLOSES}|{_ANSWER_LINE}"),
    ),
    (regex.compile(_ALOUD), CLOSE),
)
LEADING = regex.compile(r"assistant\s{0,2}final(?=\s{0,2}[\p{Lu}\"“])|assistant\n+|final(?=\p{Lu})")

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
