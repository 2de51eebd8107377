"""What is said to a model and what it says: messages and calls of tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """Who speaks, in the words of the OpenAI protocol."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool; `arguments` is JSON as the model wrote it, perhaps broken.

    What its server sent beside the call, and beside its message, goes back with it: signatures and
    thoughts, without which some refuse the result.
    """

    id: str
    name: str
    arguments: str
    beside: Mapping[str, Any] = field(default_factory=dict, hash=False)
    beside_message: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the context, as a model is sent it."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()  # on assistant messages
    tool_call_id: str | None = None  # on tool messages
