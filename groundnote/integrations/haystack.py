"""Haystack: a component that trims messages on their way to a generator.

pipeline.add_component("trimmer", TrimHistory(HistoryTrimmer(max_tokens=8000)))
"""

from haystack import component
from haystack.dataclasses import ChatMessage

from groundnote.integrations.turns import trimmed_turns
from rag import HistoryTrimmer


@component
class TrimHistory:
    """Takes all messages, returns those that fit."""

    def __init__(self, trimmer: HistoryTrimmer) -> None:
        self._trimmer = trimmer

    @component.output_types(messages=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        told = trimmed_turns(
            self._trimmer,
            messages,
            is_question=lambda message: message.is_from("user"),
            plain=lambda message: {"role": message.role.value, "content": message.text or ""},
            back=_back,
        )
        return {"messages": told}


def _back(message: dict[str, str]) -> ChatMessage:
    made = {
        "system": ChatMessage.from_system,
        "user": ChatMessage.from_user,
        "assistant": ChatMessage.from_assistant,
    }
    return made[message["role"]](message["content"])
