"""Judges for open statements: a language model, or a cross-encoder for inference on this disk."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from rag.records import ChatMessage, Role, Verdict
from rag.seams import ChatModel
from rag.seams.judging import OpenStatement, Opinion
from rag.short_calls import json_object, reply_soon

MAX_TOKENS_EACH = 60
MAX_STATEMENTS = 20
SURE = 0.7  # of a cross-encoder's probability
INSTRUCTIONS = """You check whether excerpts carry statements. Use the excerpts alone.
For each statement answer one of: "supported" (the excerpts say it, in whatever words),
"contradicted" (they say otherwise), "unrelated" (they do not speak of it), "unclear".
Reply with JSON only: {"verdicts": [{"id": 1, "verdict": "supported", "reason": "…"}]}.
A reason is one short sentence about what the excerpts say."""
_VERDICTS = {
    "supported": Verdict.SUPPORTED,
    "contradicted": Verdict.CONTRADICTED,
    "unrelated": Verdict.OFF_SUBJECT,
}


class ModelJudge:
    """Asks a language model once; a reply that cannot be read leaves all open."""

    def __init__(self, model: ChatModel, *, timeout_seconds: float = 10) -> None:
        self._model = model
        self._timeout = timeout_seconds

    @property
    def name(self) -> str:
        return self._model.name

    def judge(self, statements: Sequence[OpenStatement]) -> Sequence[Opinion | None]:
        asked = statements[:MAX_STATEMENTS]
        messages = (
            ChatMessage(Role.SYSTEM, INSTRUCTIONS),
            ChatMessage(Role.USER, "\n\n".join(map(_described, range(1, 99), asked))),
        )
        tokens = MAX_TOKENS_EACH * len(asked) + 50
        reply = reply_soon(self._model, messages, max_tokens=tokens, seconds=self._timeout)
        found = _opinions(reply)
        return [found.get(at) for at in range(1, len(statements) + 1)]


def _described(number: int, statement: OpenStatement) -> str:
    excerpts = "\n".join(f"- {each}" for each in statement.evidence)
    return f"Statement {number}: {statement.text}\nExcerpts:\n{excerpts}"


def _opinions(reply: str) -> dict[int, Opinion]:
    """What can be read of a reply; nothing of one that is no JSON of the form asked for."""
    listed = (json_object(reply) or {}).get("verdicts")
    opinions: dict[int, Opinion] = {}
    for each in listed if isinstance(listed, list) else ():
        verdict = _VERDICTS.get(str(each.get("verdict"))) if isinstance(each, dict) else None
        if verdict is not None and isinstance(each.get("id"), int):
            opinions[each["id"]] = Opinion(verdict, str(each.get("reason") or "")[:300])
    return opinions


class InferenceJudge:
    """A cross-encoder that tells entailment from contradiction; loaded at the first question."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        return self._folder.name

    @cached_property
    def _encoder(self) -> Any:
        from sentence_transformers import CrossEncoder

        return CrossEncoder(str(self._folder), local_files_only=True)

    def judge(self, statements: Sequence[OpenStatement]) -> Sequence[Opinion | None]:
        pairs = [(" ".join(each.evidence), each.text) for each in statements]
        try:
            scores = self._encoder.predict(pairs, apply_softmax=True)
            named = self._encoder.config.id2label
            labels = {at: str(label).lower() for at, label in named.items()}
        except (OSError, ValueError, RuntimeError):
            return [None] * len(statements)
        return [_of_scores({labels[i]: float(s) for i, s in enumerate(row)}) for row in scores]


def _of_scores(probabilities: dict[str, float]) -> Opinion | None:
    if probabilities.get("entailment", 0.0) >= SURE:
        return Opinion(Verdict.SUPPORTED)
    if probabilities.get("contradiction", 0.0) >= SURE:
        return Opinion(Verdict.CONTRADICTED, "The source says something else.")
    return None
