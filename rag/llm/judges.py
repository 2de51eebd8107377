"""Judges of statements: a language model, or a local cross-encoder for inference (NLI)."""

import json
import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from rag.errors import ModelUnavailable, RagError, SetupError, UnreadableReply, needs_extra
from rag.records import ChatMessage, Role, Verdict
from rag.runtime.budget import reply_in_time
from rag.seams import ChatModel
from rag.seams.models import JUDGEMENT, JudgeVerdict, OpenStatement, Patience

log = logging.getLogger(__name__)
BATCH = 8  # statements in one call: a reply that is cut off loses few
MOST_CALLS = 12  # for one answer
MAX_TOKENS_EACH = 120
THINKING_TOKENS = 1500  # for the reasoning before a reply
SURE = 0.7  # least probability of a cross-encoder's verdict
UNLIKE = 0.1  # with only a score of support: below it, the source does not state it
INSTRUCTIONS = """You check whether excerpts carry statements. Use the excerpts alone.
For each statement answer one of: "supported" (the excerpts say all of it, in whatever words),
"partly" (they say a part of it and nothing against the rest), "contradicted" (they say otherwise),
"unrelated" (they do not speak of it), "unclear".
Reply with JSON only: {"verdicts": [{"id": 1, "verdict": "supported", "reason": "…"}]}.
A reason is one short sentence about what the excerpts say."""
PARTLY = "The source carries a part of this."
_VERDICTS = {
    "support": Verdict.SUPPORTED,
    "entail": Verdict.SUPPORTED,
    "contradict": Verdict.CONTRADICTED,
    "refut": Verdict.CONTRADICTED,
    "unrelated": Verdict.OFF_SUBJECT,
    "off_subject": Verdict.OFF_SUBJECT,
    "part": Verdict.OPEN,
}  # by the beginning of the model's word
_OBJECT = re.compile(r"\{[^{}]*\}")  # verdicts are not nested


class ModelJudge:
    """Asks a language model about several statements at a time, and again about omitted ones."""

    def __init__(self, model: ChatModel, *, patience: Patience = JUDGEMENT) -> None:
        self._model = model
        self._patience = patience

    @property
    def name(self) -> str:
        return self._model.name

    def judge(self, statements: Sequence[OpenStatement]) -> Sequence[JudgeVerdict | None]:
        verdicts: dict[int, JudgeVerdict | None] = {}
        failures: list[RagError] = []
        calls = 0
        for _ in range(2):
            waiting = [position for position in range(len(statements)) if position not in verdicts]
            for start in range(0, len(waiting), BATCH):
                places = waiting[start : start + BATCH]
                if calls < MOST_CALLS and not (failures and not verdicts):
                    calls += 1
                    verdicts |= self._verdicts_of_call(places, statements, failures)
        if failures and not verdicts:
            raise failures[0]
        return [verdicts.get(position) for position in range(len(statements))]

    def _verdicts_of_call(
        self,
        places: Sequence[int],
        statements: Sequence[OpenStatement],
        failures: list[RagError],
    ) -> dict[int, JudgeVerdict | None]:
        """Return the verdicts of one call, by the place of the statement."""
        described = (_described(n, statements[place]) for n, place in enumerate(places, 1))
        messages = (
            ChatMessage(Role.SYSTEM, INSTRUCTIONS),
            ChatMessage(Role.USER, "\n\n".join(described)),
        )
        tokens = THINKING_TOKENS + MAX_TOKENS_EACH * len(places)
        reply, failure = reply_in_time(
            self._model, messages, max_tokens=tokens, patience=self._patience
        )
        verdicts = _verdicts(reply)
        if not verdicts:
            log.warning("a judge replied in another form", extra={"reply": reply.strip()[:80]})
            text = f"{self.name} did not answer in the form that was asked for."
            failures.append(failure or UnreadableReply(text))
        return {places[n - 1]: verdict for n, verdict in verdicts.items() if 0 < n <= len(places)}


def _described(number: int, statement: OpenStatement) -> str:
    excerpts = "\n".join(f"- {excerpt}" for excerpt in statement.evidence)
    return f"Statement {number}: {statement.text}\nExcerpts:\n{excerpts}"


def _verdicts(reply: str) -> dict[int, JudgeVerdict | None]:
    """Return all complete verdicts of a reply, in any wrapping; None for an unclear one.

    A verdict without an id is about the statement in its place.
    """
    results: dict[int, JudgeVerdict | None] = {}
    for place, object_ in enumerate(_objects(reply), 1):
        label = str(object_.get("verdict") or object_.get("label") or "").strip().lower()
        if not label:
            continue
        number = re.search(r"\d+", str(object_.get("id", place)))
        verdict = next((v for word, v in _VERDICTS.items() if label.startswith(word)), None)
        reason = str(object_.get("reason") or "")[:300]
        if verdict is Verdict.OPEN:
            reason = reason or PARTLY
        judged = None if verdict is None else JudgeVerdict(verdict, reason)
        results.setdefault(int(number[0]) if number else place, judged)
    return results


def _objects(reply: str) -> Iterator[Mapping[str, Any]]:
    for text in _OBJECT.findall(reply):
        try:
            data = json.loads(text)
        except ValueError:
            continue
        if isinstance(data, Mapping):
            yield data


# ── A cross-encoder ──────────────────────────────────────────────────────────────────────────

_LABELS = {
    Verdict.SUPPORTED: ("entail", "support", "consistent", "faithful"),
    Verdict.CONTRADICTED: ("contradict", "refut", "inconsistent"),
}
_NOT = ("not", "non", "un", "in", "hallucinat")


def labels_of(folder: Path) -> dict[int, Verdict] | None:
    """Return the verdict of each label of a cross-encoder; None for one with a single score.

    Raises:
        SetupError: it does not exist, or the meaning of its labels is unknown.
    """
    expected = "Set checks.nli_model to the folder of a cross-encoder for inference (NLI)."
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SetupError(
            f"The judge {str(folder)!r} cannot be read ({error}). {expected}"
        ) from error
    named = config.get("id2label") or {}
    if len(named) == 1 or config.get("num_labels") == 1:
        return None
    meanings = {int(index): _meaning(str(label).lower()) for index, label in named.items()}
    verdicts = {index: verdict for index, verdict in meanings.items() if verdict is not None}
    if Verdict.SUPPORTED not in verdicts.values():
        labels = ", ".join(map(str, named.values())) or "none"
        raise SetupError(
            f"The judge {str(folder)!r} has the labels {labels}; one of them has to say "
            f"“entailment”. {expected}"
        )
    return verdicts


def _meaning(label: str) -> Verdict | None:
    if label.startswith(_NOT) and "inconsistent" not in label:
        return None
    results = (v for v, words in _LABELS.items() if any(label.startswith(word) for word in words))
    return next(results, None)


class InferenceJudge:
    """A cross-encoder that tells entailment from contradiction; loads at the first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        return self._folder.name

    @cached_property
    def _labels(self) -> dict[int, Verdict] | None:
        return labels_of(self._folder)

    @cached_property
    def _encoder(self) -> Any:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            what = f"The judge {self.name} (checks.nli_model)"
            raise ModelUnavailable(needs_extra(what, "models")) from error
        return CrossEncoder(str(self._folder), device="cpu", local_files_only=True)

    def judge(self, statements: Sequence[OpenStatement]) -> Sequence[JudgeVerdict | None]:
        labels = self._labels  # raises if the folder holds no judge
        pairs = [(" ".join(statement.evidence), statement.text) for statement in statements]
        try:
            rows = self._encoder.predict(pairs, apply_softmax=labels is not None)
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            raise ModelUnavailable(f"The judge {self.name} does not work: {error}") from error
        if labels is None:
            return [_of_one(float(row)) for row in rows]
        return [_of_scores([float(score) for score in row], labels) for row in rows]


def _of_one(score: float) -> JudgeVerdict | None:
    support = score if 0 <= score <= 1 else 1 / (1 + math.exp(-score))  # it may be a logit
    if support >= SURE:
        return JudgeVerdict(Verdict.SUPPORTED)
    if support < UNLIKE:
        return JudgeVerdict(Verdict.OFF_SUBJECT, "The source does not carry this.")
    return None


def _of_scores(scores: Sequence[float], labels: Mapping[int, Verdict]) -> JudgeVerdict | None:
    by_verdict: dict[Verdict, float] = {}
    for position, verdict in labels.items():
        by_verdict[verdict] = by_verdict.get(verdict, 0.0) + (
            scores[position] if position < len(scores) else 0
        )
    if by_verdict.get(Verdict.SUPPORTED, 0.0) >= SURE:
        return JudgeVerdict(Verdict.SUPPORTED)
    if by_verdict.get(Verdict.CONTRADICTED, 0.0) >= SURE:
        return JudgeVerdict(Verdict.CONTRADICTED, "The source says something else.")
    return None
