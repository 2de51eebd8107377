"""Make a question stand alone with a language model; what it replies is checked."""

import json
import re
import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Thread

from rag.errors import ModelError
from rag.followups.searched import source_numbers
from rag.records import ChatMessage, Role
from rag.seams import ChatModel, ModelRequest

ANSWER_CHARACTERS = 600  # of each answer that the model is shown
MAX_QUERY_CHARACTERS = 400
MAX_REPLY_TOKENS = 200

INSTRUCTIONS = """\
Rewrite the user's last question so that it can be understood without the conversation. Put in \
what it leaves out: the product, the person, the attribute, the period. Change nothing else, \
answer nothing, keep the language of the question. If it can be understood alone, repeat it \
word for word. Reply with JSON only: {"question": "<the question>"}"""


def ask_model(
    model: ChatModel, question: str, turns: Sequence[tuple[str, str]], seconds: float
) -> str:
    """The model's rewrite; "" when it fails, is late, or replies in another form."""
    request = ModelRequest(
        messages=(
            ChatMessage(Role.SYSTEM, INSTRUCTIONS),
            ChatMessage(Role.USER, _transcript(question, turns)),
        ),
        max_tokens=MAX_REPLY_TOKENS,
        temperature=0.0,
        timeout_seconds=seconds,
        thinks=False,
    )
    return read_reply(_reply_in_time(model, request, seconds), question)


def _transcript(question: str, turns: Sequence[tuple[str, str]]) -> str:
    lines = []
    for asked, answer in turns:
        lines += [f"User: {asked}", f"Assistant: {answer[:ANSWER_CHARACTERS]}"]
    return "\n".join([*lines, "", f"Last question: {question}"])


def _reply_in_time(model: ChatModel, request: ModelRequest, seconds: float) -> str:
    """The reply, or "" once the time is over: a server that never answers must not hold us up."""
    replies: SimpleQueue[str] = SimpleQueue()
    deadline = time.monotonic() + seconds

    def read() -> None:
        pieces: list[str] = []
        try:
            for delta in model.stream(request):
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
        return replies.get(timeout=seconds)
    except Empty:
        return ""


def read_reply(reply: str, question: str) -> str:
    """The question in a model's reply; "" unless it is the JSON that was asked for."""
    text = re.sub(r"^```(?:json)?\s*|\s*```$", "", reply.strip())
    try:
        parsed = json.loads(text)
    except ValueError:
        return ""
    match parsed:
        case {"question": str(rewritten), **rest} if not rest and _is_sound(rewritten, question):
            return rewritten.strip()
    return ""


def _is_sound(rewritten: str, question: str) -> bool:
    """One line, not empty, not an essay, and no source number that the user did not name."""
    line = rewritten.strip()
    is_short = len(line) <= max(MAX_QUERY_CHARACTERS, 2 * len(question))
    is_line = bool(line) and "\n" not in line
    return is_line and is_short and set(source_numbers(line)) <= set(source_numbers(question))
