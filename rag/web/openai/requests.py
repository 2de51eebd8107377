"""What clients of the OpenAI protocol ask, understood."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from flask_openapi3.types import ResponseDict
from pydantic import BaseModel, ConfigDict, Field

from rag.errors import UserError
from rag.records import ImportedMessage, Role
from rag.seams import Wishes
from rag.web.api.requests import MAX_QUESTION_CHARS, Place, Words

MODEL = "groundnote"
LINKS = "links"
CITATION_FORMS = ("numbers", LINKS)
MODEL_WITH_LINKS = f"{MODEL}-{LINKS}"  # whose numbers are links, for clients that show only these
MODEL_OF_ONE = f"{MODEL}:"  # before the name of a collection: the library is that one alone
INSTRUCTION_ROLES = (Role.SYSTEM, "developer")
TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
ROLES = (*INSTRUCTION_ROLES, Role.USER, Role.ASSISTANT, Role.TOOL, "function", "")

REFUSED: ResponseDict = {
    status: {
        "description": "Refused, in the shape of OpenAI's errors.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    for status in ("400", "401", "403", "404", "409", "413", "415", "429", "500", "502", "503")
}


Stop = Annotated[str, Field(max_length=1_000)]


class ContentPart(BaseModel):
    """A part of a message; only text can be answered."""

    type: Place
    text: Words = ""
    refusal: Words = ""  # in an assistant's message


class ClientMessage(BaseModel):
    """One message of the client's transcript; items of other kinds have no role."""

    role: Place = ""
    content: Words | Annotated[list[ContentPart], Field(max_length=1000)] | None = None
    type: Place = ""
    id: Place = ""  # of an item that a reference stands for

    @property
    def is_reference(self) -> bool:
        """Whether it only names what was said."""
        return self.type == "item_reference"

    def text(self, field: str) -> str:
        """Raises UserError, which names the field of the request, for what is not text."""
        if not isinstance(self.content, list):
            return self.content or ""
        others = sorted({part.type for part in self.content if part.type not in TEXT_PARTS})
        if others:
            raise UserError(f"{field}: a part is of type {', '.join(others)}; only text is read.")
        return "".join(part.text or part.refusal for part in self.content)


class StreamOptions(BaseModel):
    """Extras of a stream."""

    include_usage: bool = False


class Metadata(BaseModel):
    """What the client attaches; `session_id` names the session to go on with."""

    model_config = ConfigDict(extra="allow")

    session_id: Place | None = None
    session: Annotated[Words, Field(max_length=200)] | None = None  # the client's own name of it
    collections: Annotated[list[Place], Field(max_length=1000)] | Stop | None = None
    citations: Place | None = None  # "links": each number leads to its source

    def attached(self) -> dict[str, Any]:
        """As it came."""
        return self.model_dump(exclude_unset=True)


class AskingBody(BaseModel):
    """What a client may want of the answer; what else changes one is refused by its name."""

    model_config = ConfigDict(extra="allow")

    model: Place = MODEL
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    stop: Stop | Annotated[list[Stop], Field(max_length=4)] | None = None
    metadata: Metadata | None = None
    wait_for_judge: Annotated[float, Field(ge=0, le=600)] | None = None

    def seconds_for_judge(self, usual: float) -> float:
        """How long to wait for a judge's verdicts, an extension of ours."""
        return usual if self.wait_for_judge is None else self.wait_for_judge

    def collections(self) -> list[str] | None:
        """Those that are to be asked, by id or name; None where nothing is said of them."""
        told = self.metadata.collections if self.metadata else None
        if isinstance(told, str):  # stock clients take nothing but texts
            told = [each.strip() for each in told.split(",") if each.strip()]
        _, _, one = self.model.partition(":")
        return [*(told or ()), one] if one and self.names_us else told

    @property
    def name(self) -> str:
        """The client's own for this conversation; "" where it has none."""
        return (self.metadata.session or "").strip() if self.metadata else ""

    @property
    def names_us(self) -> bool:
        """Whether the model is the library, however its numbers are written."""
        return self.model.partition(":")[0] in (MODEL, MODEL_WITH_LINKS)

    @property
    def wants_links(self) -> bool:
        """Whether each number is to lead to its source. Raises UserError."""
        told = self.metadata.citations if self.metadata else None
        if told not in (None, *CITATION_FORMS):
            known = ", ".join(CITATION_FORMS)
            raise UserError(f"metadata.citations: {told[:60]!r} is not known. Known: {known}.")
        return told == LINKS or self.model.partition(":")[0] == MODEL_WITH_LINKS

    def wishes(self) -> Wishes:
        """Raises UserError, with its name, for what changes an answer and cannot be done."""
        extra = {**(self.model_extra or {})}
        if extra.get("tool_choice") == "none":
            extra["tools"] = None
        if isinstance(extra.get("text"), Mapping):
            extra["text"] = extra["text"].get("format")
        if isinstance(extra.get("include"), list):
            extra["include"] = [each for each in extra["include"] if "logprobs" in str(each)]
        for name, harmless in REFUSED_UNLESS.items():
            if extra.get(name) not in harmless:
                raise UserError(f"{name}: this server cannot do that. Leave it out.")
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        limit = self.max_completion_tokens or self.max_output_tokens or self.max_tokens
        return Wishes(limit, self.temperature, tuple(each for each in stop if each))


# Parameters that change an answer, each with the values that ask for nothing.
REFUSED_UNLESS: dict[str, tuple[Any, ...]] = {
    "response_format": (None, {"type": "text"}),
    "text": (None, {"type": "text"}),
    "tools": (None, []),
    "functions": (None, []),
    "tool_choice": (None, "auto", "none"),
    "function_call": (None, "auto", "none"),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "include": (None, []),
    "logit_bias": (None, {}),
    "web_search_options": (None,),
    "modalities": (None, ["text"]),
    "audio": (None,),
    "background": (None, False),
    "conversation": (None,),
    "prompt": (None,),
}


class ChatBody(AskingBody):
    """A chat completion."""

    messages: Annotated[list[ClientMessage], Field(min_length=1, max_length=20_000)]
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1)] | None = None

    def asked(self) -> "Asked":
        """Raises UserError."""
        return understood(self.messages, "messages")

    def session_id(self) -> str | None:
        """Of the session to go on with, where the client names it."""
        return self.metadata.session_id if self.metadata else None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, understood: the last question, what was said before, the client's instructions."""

    question: str
    past: tuple[ImportedMessage, ...]
    instructions: tuple[str, ...]


def understood(messages: Sequence[ClientMessage], field: str) -> Asked:
    """Raises UserError, which names the field of the request."""
    others = [message.role for message in messages if message.role not in ROLES]
    if others:
        raise UserError(f"{field}: there is no role {others[0][:60]!r}.")
    instructions = tuple(m.text(field) for m in messages if m.role in INSTRUCTION_ROLES)
    spoken = [
        ImportedMessage(message.role, message.text(field))
        for message in messages
        if message.role in (Role.USER, Role.ASSISTANT)
    ]
    if not spoken or spoken[-1].role != Role.USER:
        raise UserError(f"{field}: the last one must be the user's question.")
    return Asked(spoken[-1].content, tuple(spoken[:-1]), instructions)


class ResponseBody(AskingBody):
    """A request for a response; `input` is the question, or the whole conversation."""

    input: Words | Annotated[list[ClientMessage], Field(min_length=1, max_length=20_000)]
    instructions: Annotated[Words, Field(max_length=MAX_QUESTION_CHARS)] | None = None
    previous_response_id: Place | None = None
    store: bool | None = None

    def items(self) -> list[ClientMessage]:
        """The question, or the whole conversation."""
        given = self.input
        return [ClientMessage(role=Role.USER, content=given)] if isinstance(given, str) else given

    def asked(self, resolve: Callable[[ClientMessage], ClientMessage] = lambda it: it) -> Asked:
        """`resolve` gives what a reference stands for. Raises UserError."""
        said = [resolve(item) if item.is_reference else item for item in self.items()]
        if self.instructions:
            said = [ClientMessage(role=Role.SYSTEM, content=self.instructions), *said]
        return understood(said, "input")
