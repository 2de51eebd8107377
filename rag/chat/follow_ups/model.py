"""Make a question stand alone with a language model; what it replies is checked."""

from collections.abc import Sequence

from rag.citations.markers import cited_numbers
from rag.records import ChatMessage, Role
from rag.runtime.cancellation import json_object, reply_soon
from rag.seams import ChatModel
from rag.seams.patience import Patience

ANSWER_CHARACTERS = 600  # of each answer that the model is shown
MAX_QUERY_CHARACTERS = 400
MAX_REPLY_TOKENS = 200

INSTRUCTIONS = """\
Rewrite the user's last question so that it can be understood without the conversation. Put in \
what it leaves out: the product, the person, the attribute, the period. Change nothing else, \
answer nothing, keep the language of the question. If it can be understood alone, repeat it \
word for word. Reply with JSON only: {"question": "<the question>"}"""


def ask_model(
    model: ChatModel, question: str, turns: Sequence[tuple[str, str]], patience: Patience
) -> str:
    """The model's rewrite; "" when it fails, is late, or replies in another form."""
    messages = (
        ChatMessage(Role.SYSTEM, INSTRUCTIONS),
        ChatMessage(Role.USER, _transcript(question, turns)),
    )
    reply = reply_soon(model, messages, max_tokens=MAX_REPLY_TOKENS, patience=patience)
    return read_reply(reply, question)


def _transcript(question: str, turns: Sequence[tuple[str, str]]) -> str:
    lines = []
    for asked, answer in turns:
        lines += [f"User: {asked}", f"Assistant: {answer[:ANSWER_CHARACTERS]}"]
    return "\n".join([*lines, "", f"Last question: {question}"])


def read_reply(reply: str, question: str) -> str:
    """The question in a model's reply; "" unless it is the JSON that was asked for."""
    match json_object(reply):
        case {"question": str(rewritten), **rest} if not rest and _is_sound(rewritten, question):
            return rewritten.strip()
    return ""


def _is_sound(rewritten: str, question: str) -> bool:
    """One line, not empty, not an essay, and no source number that the user did not name."""
    line = rewritten.strip()
    is_short = len(line) <= max(MAX_QUERY_CHARACTERS, 2 * len(question))
    is_line = bool(line) and "\n" not in line
    return is_line and is_short and set(cited_numbers(line)) <= set(cited_numbers(question))
