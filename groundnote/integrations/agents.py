"""OpenAI Agents SDK: a filter of what a model is sent.

RunConfig(call_model_input_filter=trimmed_by(HistoryTrimmer(max_tokens=8000)))
"""

from collections.abc import Callable
from typing import Any, cast

from agents.run import CallModelData, ModelInputData

from groundnote.integrations.turns import trimmed_turns
from rag import HistoryTrimmer


def trimmed_by(trimmer: HistoryTrimmer) -> Callable[[CallModelData[Any]], ModelInputData]:
    """Return the filter; sessions and results of the SDK keep all messages."""

    def trimmed(data: CallModelData[Any]) -> ModelInputData:
        items = cast("list[dict[str, Any]]", data.model_data.input)
        rules = data.model_data.instructions
        system = [{"role": "system", "content": rules}] if rules else []
        told = trimmed_turns(
            trimmer, [*system, *items], is_question=_is_question, plain=_plain, back=dict
        )
        first = told[0]["content"] if told and told[0].get("role") == "system" else None
        return ModelInputData(
            input=cast("Any", told[1:] if first is not None else told), instructions=first
        )

    return trimmed


def _is_question(item: dict[str, Any]) -> bool:
    return item.get("role") == "user"


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    """Return a message of the chat protocol; calls of tools become text."""
    if item.get("role"):
        content = item.get("content")
        if isinstance(content, list):
            content = "".join(str(part.get("text") or "") for part in content)
        return {"role": item["role"], "content": content or ""}
    if item.get("type") == "function_call_output":
        return {"role": "tool", "content": str(item.get("output") or "")}
    return {"role": "assistant", "content": ""}
