"""Make a question stand alone: with a language model where there is one, by rules otherwise."""

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread

from rag.errors import ModelError
from rag.followups import followup_context as context
from rag.followups.followup_names import Names
from rag.followups.followup_rules import CUE_WORDS, recall_turns, rewrite
from rag.records import ChatMessage, Resolution, Role
from rag.seams import ChatModel, ModelRequest

__all__ = ["CUE_WORDS", "FollowUps", "resolve"]

MODEL_TURNS = 3
ANSWER_CHARACTERS = 600  # of each answer that the model is shown
MAX_QUERY_CHARACTERS = 400
MAX_REPLY_TOKENS = 200

INSTRUCTIONS = """\
Rewrite the user's last question so that it can be understood without the conversation. Put in \
what it leaves out: the product, the person, the attribute, the period. Change nothing else, \
answer nothing, keep the language of the question. If it can be understood alone, repeat it \
word for word. Reply with JSON only: {"question": "<the question>"}"""


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """How long a model may take for one question."""

    model: ChatModel
    timeout_seconds: float


class FollowUps:
    """Resolves questions in the context of their conversation."""

    def __init__(
        self,
        *,
        model: ChatModel | None = None,
        lexicon: Callable[[], Sequence[str]] = tuple,
        cue_words: Sequence[str] = CUE_WORDS,
        max_turns: int = 10,
        timeout_seconds: float = 5.0,
    ) -> None:
        self._trial = ModelTrial(model, timeout_seconds) if model else None
        self._lexicon = lexicon
        self._names = Names()
        self._names_of: tuple[str, ...] = ()
        self._cue_words = tuple(cue_words)
        self._max_turns = max_turns

    def resolve(self, question: str, history: Sequence[tuple[str, str]]) -> Resolution:
        """The question standing alone; `history` is (question, answer) of turns that succeeded."""
        turns = list(history)[-self._max_turns :] if self._max_turns else []
        by_rules = _by_rules(question, turns, self._known_names(), self._cue_words)
        if self._trial is None or not by_rules.is_followup:
            return by_rules
        rewritten = ask_model(self._trial, question, turns[-MODEL_TURNS:])
        if not rewritten:
            return by_rules
        return context.model_resolution(question, rewritten, by_rules)

    def _known_names(self) -> Names:
        """The lexicon, indexed anew only when it changed."""
        lexicon = tuple(self._lexicon())
        if lexicon != self._names_of:
            self._names, self._names_of = Names(lexicon), lexicon
        return self._names


def resolve(
    question: str,
    history: Sequence[tuple[str, str]],
    *,
    lexicon: Sequence[str] = (),
    cue_words: Sequence[str] = CUE_WORDS,
) -> Resolution:
    """Resolve by rules alone."""
    return FollowUps(lexicon=lambda: lexicon, cue_words=cue_words).resolve(question, history)


def _by_rules(
    question: str,
    turns: Sequence[tuple[str, str]],
    names: Names,
    cue_words: Sequence[str],
) -> Resolution:
    past = recall_turns(turns, names, cue_words)
    return context.rules_resolution(question, rewrite(question, past, names, cue_words), past)


# ── With a model ─────────────────────────────────────────────────────────────────────────────


def ask_model(trial: ModelTrial, question: str, turns: Sequence[tuple[str, str]]) -> str:
    """The model's rewrite; "" when it fails, is late, or replies in another form."""
    request = ModelRequest(
        messages=(
            ChatMessage(Role.SYSTEM, INSTRUCTIONS),
            ChatMessage(Role.USER, _transcript(question, turns)),
        ),
        max_tokens=MAX_REPLY_TOKENS,
        temperature=0.0,
        timeout_seconds=trial.timeout_seconds,
        thinks=False,
    )
    return read_reply(_reply_in_time(trial, request), question)


def _transcript(question: str, turns: Sequence[tuple[str, str]]) -> str:
    lines = []
    for asked, answer in turns:
        lines += [f"User: {asked}", f"Assistant: {answer[:ANSWER_CHARACTERS]}"]
    return "\n".join([*lines, "", f"Last question: {question}"])


def _reply_in_time(trial: ModelTrial, request: ModelRequest) -> str:
    """The reply, or "" once the time is over: a server that never answers must not hold us up."""
    replies: SimpleQueue[str] = SimpleQueue()
    deadline = time.monotonic() + trial.timeout_seconds

    def read() -> None:
        pieces: list[str] = []
        try:
            for delta in trial.model.stream(request):
                if delta.discard:
                    pieces.clear()
                pieces.append(delta.text)
                if time.monotonic() > deadline:
                    break
        except ModelError:
            pieces = []
        replies.put("".join(pieces))

    Thread(target=read, name="follow-up", daemon=True).start()
    try:
        return replies.get(timeout=trial.timeout_seconds)
    except Empty:
        return ""


def read_reply(reply: str, question: str) -> str:
    """The question in a model's reply; "" unless it is the JSON that was asked for."""
    text = re.sub(r"^```(?:json)?\s*|\s*```$", "", reply.strip())
    try:
        parsed = json.loads(text)
    except ValueError:
        return ""
    if not isinstance(parsed, dict) or set(parsed) != {"question"}:
        return ""
    rewritten = parsed["question"]
    if not isinstance(rewritten, str) or not _is_sound(rewritten, question):
        return ""
    return rewritten.strip()


def _is_sound(rewritten: str, question: str) -> bool:
    """One line, not empty, not an essay, and no source number that the user did not name."""
    line = rewritten.strip()
    room = max(MAX_QUERY_CHARACTERS, 2 * len(question))
    if not line or len(line) > room or "\n" in line:
        return False
    return set(context.source_numbers(line)) <= set(context.source_numbers(question))
