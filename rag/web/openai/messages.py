"""What clients of the OpenAI protocols send: messages, calls of tools and their results."""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rag.errors import UserError
from rag.records import Role, ToolCall
from rag.web.api.requests import ShortText, Words

INSTRUCTION_ROLES = (Role.SYSTEM, "developer")
TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
ROLES = (*INSTRUCTION_ROLES, Role.USER, Role.ASSISTANT, Role.TOOL, "function", "")


class ContentPart(BaseModel):
    """A part of a message; only text can be answered."""

    type: ShortText
    text: Words = ""
    refusal: Words = ""  # in an assistant's message


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

    def text(self, field: str) -> str:
        """Raises UserError, which names the field of the request, for what is not text."""
        return _text(self.content, field)

    @property
    def is_result(self) -> bool:
        """Whether it is what came of a call."""
        return self.role == Role.TOOL or self.type == "function_call_output"

    def result(self, field: str) -> str:
        """What came of a call. Raises UserError."""
        return _text(self.content if self.output is None else self.output, field)

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


def _text(content: str | list[ContentPart] | None, field: str) -> str:
    if not isinstance(content, list):
        return content or ""
    others = sorted({part.type for part in content if part.type not in TEXT_PARTS})
    if others:
        raise UserError(f"{field}: a part is of type {', '.join(others)}; only text is read.")
    return "".join(part.text or part.refusal for part in content)
