"""A short thread of what was talked about, in a model's own words: it may hold no figure at all."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rag.citations.markers import find_markers
from rag.errors import ModelUnavailable, RagError
from rag.limits.patience import THREAD, Patience
from rag.records import ChatMessage, Role
from rag.seams import ChatModel, ModelRequest
from rag.text.sentences import split_sentences

Ask = Callable[[str, str], str]  # instructions and text in, the reply out
LONGEST = 600  # characters of a thread
LONGEST_REPLY = 20_000  # characters of which it is taken
MOST_SHOWN = 12_000  # characters of the turns that a model is shown
INSTRUCTIONS = (
    "Say in at most three plain sentences what this conversation was about and where it stands. "
    "Write no figure, no number, no name of a product and no citation."
)
_FIGURE = re.compile(r"[\d\[\]【】［］⁰¹²³⁴⁵⁶⁷⁸⁹]")


@dataclass(frozen=True, slots=True)
class Thread:
    """What a model wrote besides, or why it is not taken."""

    text: str = ""
    model: str = ""
    problems: tuple[str, ...] = ()


def written_thread(ask: Ask | None, model: str, texts: Sequence[str]) -> Thread:
    """The thread, or why there is none; a sentence with a figure or a bracket is left out."""
    if ask is None:
        return Thread()
    try:
        reply = ask(INSTRUCTIONS, "\n".join(texts)[-MOST_SHOWN:])
    except RagError as error:
        return Thread(problems=(str(error)[:300],))
    sentences = [reply[start:end] for start, end in split_sentences(reply[: 4 * LONGEST])]
    plain = [" ".join(each.split()) for each in sentences if not _FIGURE.search(each)]
    text = "".join(" ".join(plain)[:LONGEST].rpartition(".")[:2])
    if not text or find_markers(text):
        return Thread(problems=("The model's thread held nothing but figures, or nothing at all.",))
    return Thread(text, model)


def asked(
    model: ChatModel,
    instructions: str,
    text: str,
    *,
    max_tokens: int,
    temperature: float,
    patience: Patience = THREAD,
) -> str:
    """What a model of the application replies."""
    messages = (ChatMessage(Role.SYSTEM, instructions), ChatMessage(Role.USER, text))
    request = ModelRequest(
        messages=messages, max_tokens=max_tokens, temperature=temperature, patience=patience
    )
    reply = ""
    for delta in model.stream(request):
        reply += delta.text
        if len(reply) > LONGEST_REPLY:
            break
    return reply


class ClientModel:
    """The model behind an `openai.OpenAI` client that an application brings, without retries."""

    def __init__(self, client: Any, model: str, *, max_tokens: int, temperature: float) -> None:
        if hasattr(client, "with_options"):
            own = getattr(client, "timeout", None)
            seconds = min(own if isinstance(own, int | float) else THREAD.seconds, THREAD.seconds)
            client = client.with_options(max_retries=0, timeout=float(seconds))
        self.name, self._client = model, client
        self._options = {"model": model, "temperature": temperature, "max_tokens": max_tokens}

    def ask(self, instructions: str, text: str) -> str:
        """The reply. Raises ModelUnavailable, whatever the client raised."""
        messages = [
            {"role": "system", "content": instructions},
            {"role": "user", "content": text},
        ]
        try:
            completions = self._client.chat.completions
            response = completions.create(messages=messages, **self._options)
            content = response.choices[0].message.content
        except Exception as error:  # some take neither a temperature nor this name of the limit
            if "max_completion_tokens" in str(error) and "max_tokens" in self._options:
                self._options["max_completion_tokens"] = self._options.pop("max_tokens")
            elif "temperature" in str(error):
                self._options.pop("temperature", None)
            raise ModelUnavailable(f"{type(error).__name__}: {error}"[:300]) from error
        return content if isinstance(content, str) else ""
