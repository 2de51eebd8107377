"""AutoGen: a model context that trims what an agent's model is sent.

AssistantAgent(name, model_client, model_context=TrimmedContext(HistoryTrimmer(max_tokens=8000)))
"""

from typing import Any

from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import AssistantMessage, LLMMessage, SystemMessage, UserMessage

from groundnote.integrations.turns import trimmed_turns
from rag import HistoryTrimmer


class TrimmedContext(ChatCompletionContext):
    """Keeps all messages; returns those that fit."""

    def __init__(
        self, trimmer: HistoryTrimmer, initial_messages: list[LLMMessage] | None = None
    ) -> None:
        super().__init__(initial_messages)
        self._trimmer = trimmer

    async def get_messages(self) -> list[LLMMessage]:
        return trimmed_turns(
            self._trimmer,
            list(self._messages),
            is_question=lambda message: isinstance(message, UserMessage),
            plain=_plain,
            back=_back,
        )


def _plain(message: LLMMessage) -> dict[str, Any]:
    """Return a message of the chat protocol; calls of tools and their results become empty."""
    roles = {SystemMessage: "system", UserMessage: "user", AssistantMessage: "assistant"}
    said = message.content if isinstance(message.content, str) else ""
    return {"role": roles.get(type(message), "tool"), "content": said}


def _back(message: dict[str, Any]) -> LLMMessage:
    text = message["content"]
    if message["role"] == "system":
        return SystemMessage(content=text)
    made = UserMessage if message["role"] == "user" else AssistantMessage
    return made(content=text, source=message["role"])
