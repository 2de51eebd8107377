"""Say what went wrong with a model server, in words that help and never hold the key."""

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from rag.errors import (
    ContextTooLong,
    ModelError,
    ModelInterrupted,
    ModelUnavailable,
    UnreadableReply,
)
from rag.seams.patience import Patience

# Wordings of OpenAI, vLLM, SGLang, llama.cpp, Ollama, OpenRouter, Mistral, Gemini, Anthropic, TGI,
# TensorRT, ExLlama, LM Studio, Cohere, Kimi, Qwen and xAI.
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|(maximum|max) context (length|size)"
    r"|maximum model length|(exceed\w*|larger than|longer than|over) (the |its |this model's )?"
    r"(available |maximum |max |model'?s? )*(context|input token limit)"
    r"|context (length|size|window) (is |was )?exceeded|model is loaded with context length"
    r"|context the overflows|context overflow|prompt is too long|input is too long|n_keep"
    r"|greater than the context length"
    r"|(prompt|input|sequence)\b.{0,60}?(exceed\w*|(great|long)er than).{0,40}?(max|length|cache)"
    r"|reduce the length of the (messages|prompt|input)|ContextWindowExceeded|context length is"
    r"|(maximum prompt|range of input) length|model token limit|too many tokens(?! per)"
    r"|inputs?\W{0,3}must have less|too large for \S+ model\. max size"
    r"|tokens.{0,30}max_new_tokens.{0,20}must be|request too large for model",
    re.IGNORECASE,
)
_FITS = re.compile(
    r"(?:maximum|max\b|available|allowed|only|limit:?|n_ctx|must be|cannot exceed|less than"
    r"|max_seq_len|cache size|context length|range of input length[^\d]*1,)[^\d,.]{0,40}(\d{3,8})\b"
    r"|\b(\d{3,8})(?: tokens?)? (?:maximum|max\b|limit)",
    re.IGNORECASE,
)
LEAST_WINDOW = 512  # tokens: a smaller number is not what a window takes
_KEY_LIKE = re.compile(r"\b(sk|pk|rk|key|hf|gsk)[-_][\w*.-]{6,}|\bBearer\s+\S+", re.IGNORECASE)
_TAGS = re.compile(r"<(style|script|head)\b.*?</\1\s*>|<[!/a-z][^<>]*>", re.IGNORECASE | re.DOTALL)
LEAST_KEY = 8  # characters: what is shorter is no secret, and stands in many words
KEY_ADVICE = "Set OPENAI_API_KEY, or the variable that llm.api_key_env names, to a valid key."


def message_in(error: Any) -> str:
    """A server's message alone, where its refusal has one; else all of it."""
    body = error.body
    if isinstance(body, dict):
        told = body.get("message") or body.get("detail") or body.get("error") or body
        behind = body.get("metadata")  # what the provider behind a router said
        if isinstance(behind, dict) and behind.get("raw"):
            told = f"{told}: {behind['raw']}"
        body = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
    return str(body or error.message)


def unread_call(error: Any) -> str:
    """What the model wrote where its server, such as Groq's, could make no tool call of it."""
    body = error.body if isinstance(error.body, dict) else {}
    written = body.get("failed_generation")
    return written if isinstance(written, str) else ""


def says_too_long(text: str) -> bool:
    """Whether an error text of a server says that the messages do not fit."""
    return bool(_TOO_LONG.search(text))


def tokens_that_fit(text: str) -> int | None:
    """The window that a refusal of too long messages tells."""
    results = (int(each[1] or each[2]) for each in _FITS.finditer(text))
    return next((number for number in results if number >= LEAST_WINDOW), None)


@dataclass(frozen=True, slots=True)
class Server:
    """Which server and model an error is about."""

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """The URL without user, password and query, fit to be shown."""
        parts = urlsplit(self.base_url)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}".rstrip("/")

    def quote(self, text: str, *, limit: int = 200) -> str:
        """What the server said, short, on one line, and without anything that looks like a key."""
        if self.api_key and len(self.api_key) >= LEAST_KEY:
            text = text.replace(self.api_key, "…")
        text = " ".join(_KEY_LIKE.sub("…", _TAGS.sub(" ", text)).split())
        return text if len(text) <= limit else text[: limit - 1] + "…"

    def unreachable(self) -> ModelError:
        return ModelUnavailable(
            f"No model server answers at {self.address}. "
            "Start it, or set llm.base_url to the address of one that runs."
        )

    def silent(self, patience: Patience, *, wrote: bool) -> ModelError:
        """It came to its end."""
        what = f"The model server at {self.address} sent nothing for {patience.seconds:g} seconds"
        if wrote:
            return ModelInterrupted(f"{what} in the middle of its reply. Ask again.")
        return ModelUnavailable(f"{what}. {patience.advice}")

    def broken_off(self, reason: str) -> ModelError:
        return ModelInterrupted(
            f"The reply of {self.model} broke off: {self.quote(reason)}. Ask again."
        )

    def unreadable(self, reason: str) -> ModelError:
        return UnreadableReply(
            f"{self.address} answered, but not in the OpenAI protocol: {self.quote(reason)}. "
            "Check llm.base_url; it often ends in /v1."
        )

    def refused(self, status: int | None, text: str, *, code: str = "") -> ModelError:
        """What an error reply means; status None for an error within a reply that began well."""
        if says_too_long(f"{text} {code}"):
            return ContextTooLong(
                f"{self.model} says that the messages are too long for it: {self.quote(text)}"
            )
        said = f"(HTTP {status}: {self.quote(text)})" if status else f"(error: {self.quote(text)})"
        what, advice = _REFUSED.get(status or 0, ("refused the request", ""))
        if status is not None and status >= 500:
            what, advice = "failed", "Ask again; if it stays so, look into its log."
        what = what.format(model=self.model)
        return ModelUnavailable(f"{self.address} {what} {said}. {advice}".strip())


_REFUSED = {  # what a status means, and what helps
    401: (_KEY := "refuses the key, or what is asked with it", KEY_ADVICE),
    403: (_KEY, KEY_ADVICE),
    402: ("wants to be paid first", "Add credit there, or lower llm.max_tokens."),
    404: (
        "knows no model {model!r} or no chat completions",
        "Check llm.model and llm.base_url.",
    ),
    429: ("allows no more requests for now", "Wait a little and ask again."),
}
