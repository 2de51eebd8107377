"""A model's replies, kept beside a conversation and given again without it.

Replies are told apart by the turn and their order in it, so that a recording outlives changes of
our prompts, and may be written by hand: `{"version": 1, "turns": {"1": [{"text": "…"}]}}`.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import Field

from rag.errors import UserError
from rag.records import ToolCall, Usage
from rag.regression.script import Strict
from rag.regression.script_file import ScriptFile, read_source, validated
from rag.seams import ChatModel, ModelDelta, ModelRequest

PIECE = 24  # characters that are given at once: whatever waits for whole markers is tried


class RecordedCall(Strict):
    """One wish of a model to call a tool."""

    id: str
    name: str
    arguments: str


class RecordedReply(Strict):
    """One reply of a model."""

    text: str = ""
    tool_calls: tuple[RecordedCall, ...] = ()
    usage: tuple[int, int] | None = None  # prompt, completion
    cut: bool = False


class Recording(Strict):
    """All replies of one conversation, by turn."""

    version: int = Field(1, ge=1, le=1)
    model: str = "recorded"
    turns: dict[str, tuple[RecordedReply, ...]]


def recording_of(script: Path) -> Path:
    """Where the replies of a conversation are kept."""
    return script.with_name(f"{script.name.split('.')[0]}.recorded.json")


class RecordedModel:
    """Gives the replies of a recording; `turn` says which turn it is."""

    takes_tools = False

    def __init__(self, path: Path) -> None:
        self._source: ScriptFile = read_source(path)
        self._recording = validated(Recording, self._source)
        self.turn = 0
        self._given: dict[int, int] = {}

    @property
    def name(self) -> str:
        return self._recording.model

    def stream(self, request: ModelRequest) -> Iterator[ModelDelta]:
        """The next reply of this turn. Raises UserError where none was recorded."""
        replies = self._recording.turns.get(str(self.turn), ())
        at = self._given.get(self.turn, 0)
        if at >= len(replies):
            raise UserError(
                f"{self._source.path} has {len(replies)} replies for turn {self.turn}; one more "
                "was asked for. Record the conversation again (--record)."
            )
        self._given[self.turn] = at + 1
        reply = replies[at]
        for start in range(0, len(reply.text), PIECE):
            yield ModelDelta(text=reply.text[start : start + PIECE])
        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in reply.tool_calls)
        usage = Usage(*reply.usage) if reply.usage else None
        if calls or usage or reply.cut:
            yield ModelDelta(tool_calls=calls, usage=usage, cut=reply.cut)


class Recorder:
    """Passes a model's replies on, and keeps them."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.turn = 0
        self._turns: dict[str, list[dict[str, Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)  # what only some models know

    def stream(self, request: ModelRequest) -> Iterator[ModelDelta]:
        """As the model does."""
        reply: dict[str, Any] = {"text": ""}
        for delta in self._model.stream(request):
            if delta.discard:
                reply["text"] = ""
            reply["text"] += delta.text
            if delta.tool_calls:
                reply["tool_calls"] = [
                    {key: asdict(call)[key] for key in ("id", "name", "arguments")}
                    for call in delta.tool_calls
                ]
            if delta.usage:
                reply["usage"] = [delta.usage.prompt_tokens, delta.usage.completion_tokens]
            if delta.cut:
                reply["cut"] = True
            yield delta
        self._turns.setdefault(str(self.turn), []).append(reply)

    def save(self, path: Path) -> None:
        """Write the replies so far beside the conversation."""
        kept = {"version": 1, "model": self._model.name, "turns": self._turns}
        path.write_text(json.dumps(kept, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
