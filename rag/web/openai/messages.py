"""What clients of the OpenAI protocols send: messages, calls of tools and their results."""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rag.records import Role, ToolCall
from rag.web.api.requests import ShortText, Words

INSTRUCTION_ROLES = (Role.SYSTEM, "developer")
UNSAID_PARTS = ("thinking", "redacted_thinking", "reasoning", "tool_use", "tool_call")
TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
ROLES = (*INSTRUCTION_ROLES, Role.USER, Role.ASSISTANT, Role.TOOL, "function", "")


class ContentPart(BaseModel):
    """A part of a message; only text can be read."""

    type: ShortText
    text: Words | None = None
    refusal: Words | None = None  # in an assistant's message


ContentParts = Annotated[list[ContentPart], Field(max_length=1000)]


class ClientFunction(BaseModel):
    """What a call is of."""

    name: ShortText = ""
    arguments: Words | dict[str, Any] | None = None

    def written(self) -> str:
        """The arguments, as JSON."""
        given = self.arguments or {}
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


class ClientCall(BaseModel):
    """A call that a model made; what its server sent beside it goes back to it."""

    model_config = ConfigDict(extra="allow")

    id: ShortText = ""
    type: ShortText = ""
    function: ClientFunction = ClientFunction()


class ClientMessage(BaseModel):
    """One message of the client's transcript; items of other kinds have no role."""

    role: ShortText = ""
    content: Words | ContentParts | None = None
    type: ShortText = ""
    id: ShortText = ""  # of an item that a reference stands for
    tool_calls: Annotated[list[ClientCall], Field(max_length=1000)] | None = None
    tool_call_id: ShortText | None = None  # of a result, in chat completions
    call_id: ShortText | None = None  # of a call or a result, in responses
    name: Words | None = None
    arguments: Words | None = None
    output: Words | ContentParts | None = None

    @property
    def is_reference(self) -> bool:
        """Whether it only names what was said."""
        return self.type == "item_reference"

    def text(self) -> str:
        """All of it that is text."""
        return _text(self.content)

    def unread(self) -> set[str]:
        """The kinds of its parts that nobody here can read; thoughts are nobody's to read."""
        parts = (part for each in (self.content, self.output) for part in _parts(each))
        return {part.type for part in parts if part.type not in (*TEXT_PARTS, *UNSAID_PARTS)}

    @property
    def is_result(self) -> bool:
        """Whether it is what came of a call."""
        return self.role == Role.TOOL or self.type == "function_call_output"

    def result(self) -> str:
        """What came of a call."""
        return _text(self.content if self.output is None else self.output)

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that it makes."""
        if self.type == "function_call":
            call_id = self.call_id or self.id
            return (ToolCall(call_id, self.name or "", self.arguments or "{}"),)
        return tuple(
            ToolCall(each.id, each.function.name, each.function.written(), each.model_extra or {})
            for each in self.tool_calls or ()
            if each.function.name
        )


def _text(content: str | list[ContentPart] | None) -> str:
    """Parts that no blank divides are lines of their own."""
    text = "" if isinstance(content, list) else content or ""
    for part in _parts(content):
        told = (part.text or part.refusal or "") if part.type in TEXT_PARTS else ""
        is_divided = not (text and told) or text[-1].isspace() or told[0].isspace()
        text += told if is_divided else f"\n{told}"
    return text


def _parts(content: str | list[ContentPart] | None) -> list[ContentPart]:
    return content if isinstance(content, list) else []
