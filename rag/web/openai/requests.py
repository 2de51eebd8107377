"""What clients of the OpenAI protocol ask, understood."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from flask_openapi3.types import ResponseDict
from pydantic import BaseModel, ConfigDict, Field

from rag.errors import UserError
from rag.records import Role
from rag.seams import Wishes
from rag.web.api.requests import MAX_QUESTION_CHARS, FirstWrong, ShortText, Words
from rag.web.openai.asked import ClientRequest, understood
from rag.web.openai.messages import ClientMessage
from rag.web.openai.passed_on import passed_on

MODEL = "groundnote"
MOST_TOOLS = 128  # as at OpenAI
LINKS = "links"
CITATION_FORMS = ("numbers", LINKS)
MODEL_WITH_LINKS = f"{MODEL}-{LINKS}"  # whose numbers are links, for clients that show only these
MODEL_OF_ONE = f"{MODEL}:"  # before the name of a collection: the library is that one alone

REFUSED: ResponseDict = {
    status: {
        "description": "Refused, in the shape of OpenAI's errors.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    for status in ("400", "401", "403", "404", "409", "413", "415", "429", "500", "502", "503")
}


StopWord = Annotated[str, Field(max_length=1_000)]
WhatWasSaid = Annotated[list[ClientMessage], Field(min_length=1, max_length=20_000), FirstWrong()]


class StreamOptions(BaseModel):
    """Extras of a stream."""

    include_usage: bool = False


class Metadata(BaseModel):
    """What the client attaches; `session_id` names the session to go on with."""

    model_config = ConfigDict(extra="allow")

    session_id: ShortText | None = None
    session: Annotated[Words, Field(max_length=200)] | None = None  # the client's own name of it
    collections: Annotated[list[ShortText], Field(max_length=1000)] | StopWord | None = None
    citations: ShortText | None = None  # "links": each number leads to its source

    def attached(self) -> dict[str, Any]:
        """As it came."""
        return self.model_dump(exclude_unset=True)


class AskingBody(BaseModel):
    """What a client may want of the answer; what else changes one is refused by its name."""

    model_config = ConfigDict(extra="allow")

    model: ShortText = MODEL
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    stop: StopWord | Annotated[list[StopWord], Field(max_length=4)] | None = None
    metadata: Metadata | None = None
    tools: Annotated[list[dict[str, Any]], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: StopWord | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    wait_for_judge: Annotated[float, Field(ge=0, le=600)] | None = None

    @property
    def seconds_for_judge(self) -> float:
        """How long to wait for a judge's verdicts, an extension of ours; nobody waits unasked."""
        return self.wait_for_judge or 0.0

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

    said_in: ClassVar[str] = ""  # the field that holds what was said

    def form(self) -> tuple[str, dict[str, Any] | None]:
        """The field in which a form of the answer is asked for, and that form."""
        raise NotImplementedError

    @property
    def wants_json(self) -> bool:
        """Whether the answer is no text for people."""
        wanted = self.form()[1]
        return bool(wanted) and wanted != {"type": "text"}

    def wishes(self, *, has_model: bool) -> Wishes:
        """Raises UserError, with its name, for what changes an answer and cannot be done."""
        extra = {**(self.model_extra or {})}
        if isinstance(extra.get("include"), list):
            extra["include"] = [each for each in extra["include"] if "logprobs" in str(each)]
        for name, harmless in REFUSED_UNLESS.items():
            if extra.get(name) not in harmless:
                raise UserError(f"{name}: this server cannot do that. Leave it out.")
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        limit = self.max_completion_tokens or self.max_output_tokens or self.max_tokens
        as_it_is = passed_on(
            tools=self.tools,
            choice=self.tool_choice,
            parallel=self.parallel_tool_calls,
            form=self.form(),
            has_model=has_model,
        )
        return Wishes(limit, self.temperature, tuple(each for each in stop if each), as_it_is)


# Parameters that change an answer, each with the values that ask for nothing.
REFUSED_UNLESS: dict[str, tuple[Any, ...]] = {
    "functions": (None, []),
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

    said_in = "messages"

    messages: WhatWasSaid
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1)] | None = None
    response_format: dict[str, Any] | None = None

    def form(self) -> tuple[str, dict[str, Any] | None]:
        return "response_format", self.response_format

    def asked(self) -> ClientRequest:
        """Raises UserError."""
        return understood(self.messages, self.said_in)

    def session_id(self) -> str | None:
        """Of the session to go on with, where the client names it."""
        return self.metadata.session_id if self.metadata else None


class ResponseBody(AskingBody):
    """A request for a response; `input` is the question, or the whole conversation."""

    said_in = "input"

    input: Words | WhatWasSaid
    instructions: Annotated[Words, Field(max_length=MAX_QUESTION_CHARS)] | None = None
    previous_response_id: ShortText | None = None
    store: bool | None = None
    text: dict[str, Any] | None = None

    def form(self) -> tuple[str, dict[str, Any] | None]:
        wanted = (self.text or {}).get("format")
        if wanted is not None and not isinstance(wanted, dict):
            raise UserError("text.format: it must be an object with a `type`.")
        return "text", wanted

    def items(self) -> list[ClientMessage]:
        """The question, or the whole conversation."""
        given = self.input
        return [ClientMessage(role=Role.USER, content=given)] if isinstance(given, str) else given

    def asked(
        self, resolve: Callable[[ClientMessage], ClientMessage] = lambda it: it
    ) -> ClientRequest:
        """`resolve` gives what a reference stands for. Raises UserError."""
        said = [resolve(item) if item.is_reference else item for item in self.items()]
        if self.instructions:
            said = [ClientMessage(role=Role.SYSTEM, content=self.instructions), *said]
        return understood(said, self.said_in)
