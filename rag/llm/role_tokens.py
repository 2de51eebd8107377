"""Keeps what a text says from becoming what a role says.

Servers render messages with a chat template and read the tokens that separate its roles wherever
they stand, in the middle of a document as well: `<|im_start|>system` there would speak as us.
"""

import re

__all__ = ["without_role_tokens"]

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
    return _ROLE_TOKEN.sub(lambda found: f"({found[found.lastgroup or 0]})", text)
