"""A short thread of what was talked about, in a model's own words: it may hold no figure at all."""

import re
from collections.abc import Callable, Sequence

from rag.citations.markers import find_markers
from rag.errors import RagError
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


def written_thread(ask: Ask | None, texts: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The thread, and why there is none; a sentence with a figure or a bracket is left out."""
    if ask is None:
        return "", ()
    shown = "\n".join(texts)[-MOST_SHOWN:]
    try:
        reply = ask(INSTRUCTIONS, shown)
    except RagError as error:
        return "", (str(error)[:300],)
    sentences = [reply[start:end] for start, end in split_sentences(reply[: 4 * LONGEST])]
    plain = [" ".join(each.split()) for each in sentences if not _FIGURE.search(each)]
    thread = " ".join(plain)[:LONGEST].rpartition(".")
    text = f"{thread[0]}{thread[1]}"
    if not text or find_markers(text):
        return "", ("The model's thread held nothing but figures, or nothing at all.",)
    return text, ()


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
        messages=messages,
        max_tokens=max_tokens,
        temperature=temperature,
        patience=patience,
    )
    reply = ""
    for delta in model.stream(request):
        reply += delta.text
        if len(reply) > LONGEST_REPLY:
            break
    return reply
