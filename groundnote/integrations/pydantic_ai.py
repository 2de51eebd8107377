"""Pydantic AI: a capability that trims what a model is sent.

Agent(model, capabilities=[TrimHistory(HistoryTrimmer(max_tokens=8000))])
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)

from groundnote.integrations.turns import trimmed_turns
from rag import HistoryTrimmer

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.models import ModelRequestContext


@dataclass
class TrimHistory(AbstractCapability[Any]):
    """Sends each request a history that fits; the run keeps all its messages."""

    trimmer: HistoryTrimmer

    async def before_model_request(
        self, ctx: "RunContext[Any]", request_context: "ModelRequestContext"
    ) -> "ModelRequestContext":
        request_context.messages = trimmed_turns(
            self.trimmer,
            [one for message in request_context.messages for one in _alone(message)],
            is_question=_is_question,
            plain=_plain,
            back=_back,
        )
        return request_context

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None  # a trimmer cannot be written to a file


def _alone(message: ModelMessage) -> list[ModelMessage]:
    """Split a request with instructions and the user's text into two messages."""
    if not isinstance(message, ModelRequest):
        return [message]
    rules = [part for part in message.parts if isinstance(part, SystemPromptPart)]
    others = [part for part in message.parts if not isinstance(part, SystemPromptPart)]
    kept = {"instructions": message.instructions}
    return [ModelRequest(parts=parts, **kept) for parts in (rules, others) if parts]


def _is_question(message: ModelMessage) -> bool:
    return any(isinstance(part, UserPromptPart) for part in message.parts)


def _plain(message: ModelMessage) -> dict[str, Any]:
    texts = (part.content for part in message.parts if hasattr(part, "content"))
    content = "\n".join(text if isinstance(text, str) else str(text) for text in texts)
    if isinstance(message, ModelResponse):
        return {"role": "assistant", "content": content}
    if any(isinstance(part, SystemPromptPart) for part in message.parts):
        return {"role": "system", "content": content}
    return {"role": "user" if _is_question(message) else "tool", "content": content}


def _back(message: dict[str, Any]) -> ModelMessage:
    content = str(message["content"])
    if message["role"] == "assistant":
        return ModelResponse(parts=[TextPart(content)])
    part = SystemPromptPart(content) if message["role"] == "system" else UserPromptPart(content)
    return ModelRequest(parts=[part])
