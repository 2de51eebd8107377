"""A short thread of what was talked about, in a model's own words: it may hold no figure at all."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rag.citations.markers import find_markers
from rag.errors import ModelUnavailable, RagError
from rag.language.sentences import split_sentences
from rag.records import ChatMessage, Role
from rag.runtime.short_calls import reply_in_time
from rag.seams import ChatModel
from rag.seams.patience import THREAD, Patience

AskModel = Callable[[str, str], str]  # instructions and text in, the reply out
LONGEST = 600  # characters of a thread
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


WriteThread = Callable[[Sequence[str]], Thread]  # of what was said


def no_thread(texts: Sequence[str]) -> Thread:
    """Nothing, where nobody wants one."""
    return Thread()


def written_thread(ask: AskModel, model: str, texts: Sequence[str]) -> Thread:
    """The thread, or why there is none; a sentence with a figure or a bracket is left out."""
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
    """What a model of the application replies; raises why it does not."""
    said, failure = reply_in_time(
        model,
        (ChatMessage(Role.SYSTEM, instructions), ChatMessage(Role.USER, text)),
        max_tokens=max_tokens,
        temperature=temperature,
        patience=patience,
    )
    if failure:
        raise failure
    return said


def client_asked(client: Any, model: str, *, max_tokens: int, temperature: float) -> AskModel:
    """The model behind an `openai.OpenAI` client that an application brings, without retries."""
    if hasattr(client, "with_options"):
        own = getattr(client, "timeout", None)
        seconds = min(own if isinstance(own, int | float) else THREAD.seconds, THREAD.seconds)
        client = client.with_options(max_retries=0, timeout=float(seconds))
    options = {"model": model, "temperature": temperature, "max_tokens": max_tokens}

    def ask(instructions: str, text: str) -> str:
        said = ((Role.SYSTEM, instructions), (Role.USER, text))
        messages = [{"role": role.value, "content": content} for role, content in said]
        try:
            response = client.chat.completions.create(messages=messages, **options)
            return str(response.choices[0].message.content or "")
        except Exception as error:  # some take neither a temperature nor this name of the limit
            if "max_completion_tokens" in str(error) and "max_tokens" in options:
                options["max_completion_tokens"] = options.pop("max_tokens")
            elif "temperature" in str(error):
                options.pop("temperature", None)
            raise ModelUnavailable(f"{type(error).__name__}: {error}"[:300]) from error

    return ask
