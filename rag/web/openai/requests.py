"""The requests of clients of the OpenAI protocols, and their interpretation."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from flask import request
from flask_openapi3.types import ResponseDict
from pydantic import BaseModel, ConfigDict, Field

from rag.citations.gate import calls_in_words, harmless, in_words
from rag.errors import UserError
from rag.records import ChatMessage, ImportedMessage, Message, Role, ToolCall
from rag.seams import AnswerOptions
from rag.web.api.schemas import MAX_QUESTION_CHARS, FirstWrong, ShortText, Words

INSTRUCTION_ROLES = (Role.SYSTEM, "developer")
UNSAID_PARTS = ("thinking", "redacted_thinking", "reasoning", "tool_use", "tool_call")
TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
ROLES = (*INSTRUCTION_ROLES, Role.USER, Role.ASSISTANT, Role.TOOL, "function", "")


class ContentPart(BaseModel):
    """A part of a message; only text can be read."""

    type: ShortText
    text: Words | None = None
    refusal: Words | None = None  # in an assistant's message


ContentParts = Annotated[list[ContentPart], Field(max_length=1000)]


class ClientFunction(BaseModel):
    """What a call is of."""

    name: ShortText = ""
    arguments: Words | dict[str, Any] | None = None

    @property
    def json_arguments(self) -> str:
        sent = self.arguments or {}
        return sent if isinstance(sent, str) else json.dumps(sent, ensure_ascii=False)


class ClientCall(BaseModel):
    """A call that a model made; what its server sent beside it goes back to it."""

    model_config = ConfigDict(extra="allow")

    id: ShortText = ""
    type: ShortText = ""
    function: ClientFunction = ClientFunction()


class ClientMessage(BaseModel):
    """One message of the client's transcript; items of other kinds have no role."""

    role: ShortText = ""
    content: Words | ContentParts | None = None
    type: ShortText = ""
    id: ShortText = ""  # of the item that a reference names
    tool_calls: Annotated[list[ClientCall], Field(max_length=1000)] | None = None
    tool_call_id: ShortText | None = None  # of a result, in chat completions
    call_id: ShortText | None = None  # of a call or a result, in responses
    name: Words | None = None
    arguments: Words | None = None
    output: Words | ContentParts | None = None

    def unread(self) -> set[str]:
        """Return the kinds of parts that cannot be read; reasoning is ignored."""
        lists = (content for content in (self.content, self.output) if isinstance(content, list))
        types = {part.type for parts in lists for part in parts}
        return types.difference(TEXT_PARTS, UNSAID_PARTS)

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls that the message makes."""
        if self.type == "function_call":
            call_id = self.call_id or self.id
            return (ToolCall(call_id, self.name or "", self.arguments or "{}"),)
        return tuple(
            ToolCall(
                call.id, call.function.name, call.function.json_arguments, call.model_extra or {}
            )
            for call in self.tool_calls or ()
            if call.function.name
        )


def text_of(content: str | list[ContentPart] | None) -> str:
    """Join the text parts; those that no space divides get lines of their own."""
    if not isinstance(content, list):
        return content or ""
    text = ""
    for part in content:
        line = (part.text or part.refusal or "") if part.type in TEXT_PARTS else ""
        is_divided = not (text and line) or text[-1].isspace() or line[0].isspace()
        text += line if is_divided else f"\n{line}"
    return text


UNREAD = "Parts of the conversation could not be read ({}): only text is."
GO_ON = "Continue."  # the question of a client that sends an answer last


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request, interpreted: the last question, the history, the client's instructions.

    If the question was answered by calls of the client's tools, `rounds` are these calls and their
    results, oldest first; a client that continues by a response's id may send only the results.
    """

    question: str
    history: tuple[ImportedMessage, ...]
    instructions: tuple[str, ...]
    rounds: tuple[ChatMessage, ...] = ()
    notices: tuple[str, ...] = ()  # what could not be read

    def up_to_the_calls(self) -> tuple[ImportedMessage, ...]:
        """Return the transcript as it was at the last calls of tools."""
        message = ImportedMessage(Role.USER, self.question)
        return (*self.history, message, *_answers(self.rounds))

    @property
    def called(self) -> tuple[str, ...]:
        """The ids of the calls whose results are sent now."""
        calls = [round_.tool_calls for round_ in self.rounds if round_.tool_calls]
        return tuple(call.id for call in calls[-1]) if calls else ()

    def since(self, answer: Message) -> tuple[ChatMessage, ...] | None:
        """Return the stored rounds of an answer, with the results that are sent now.

        None if none of the answer's calls waits for them.
        """
        messages = answer.answer.rounds if answer.answer else ()
        calls = [place for place, round_ in enumerate(self.rounds) if round_.tool_calls]
        results = self.rounds[calls[-1] + 1 if calls else 0 :]
        wanted = {result.tool_call_id for result in results}
        for place, message in enumerate(messages):
            if wanted and wanted <= {call.id for call in message.tool_calls}:
                return (*messages[: place + 1], *results)
        return None


def understood(messages: Sequence[ClientMessage], field: str) -> ClientRequest:
    """Interpret the messages; past parts without text are ignored. Raises UserError."""
    others = [message.role for message in messages if message.role not in ROLES]
    if others:
        raise UserError(f"{field}: there is no role {others[0][:60]!r}.")
    unread = {kind[:60] for message in messages for kind in message.unread()}
    notices = (UNREAD.format(", ".join(sorted(unread))),) if unread else ()
    if messages[-1].role in INSTRUCTION_ROLES:
        messages = _as_asked(messages)
    instructions = tuple(text_of(m.content) for m in messages if m.role in INSTRUCTION_ROLES)
    past, since = _split_at_question(messages)
    if since and since[-1].role is Role.TOOL:
        question = past.pop().content if past and past[-1].role == Role.USER else ""
        return ClientRequest(question, tuple(past), instructions, tuple(since), notices)
    if since:
        past += _answers(since)
    if past and past[-1].role == Role.ASSISTANT:
        past.append(ImportedMessage(Role.USER, GO_ON))
    if not past:
        raise UserError(f"{field}: there is no question. Send one with the role `user`.")
    question = past[-1].content
    questions = [message for message in messages if message.role == Role.USER]
    types = questions[-1].unread() if questions else set()
    if types and not question.strip():
        raise UserError(
            f"{field}: the question is of type {', '.join(sorted(types))}; only text is read. "
            "Ask in words."
        )
    return ClientRequest(question, tuple(past[:-1]), instructions, (), notices)


def _split_at_question(
    messages: Iterable[ClientMessage],
) -> tuple[list[ImportedMessage], list[ChatMessage]]:
    """Return the messages up to the last question, and those after it."""
    past: list[ImportedMessage] = []
    since: list[ChatMessage] = []
    for message in messages:
        if message.role == Role.USER:
            past += [*_answers(since), ImportedMessage(Role.USER, text_of(message.content))]
            since = []
            continue
        reply = _chat_message(message)
        if reply is None:
            continue
        if reply.tool_calls and since and since[-1].role is Role.ASSISTANT:
            # Calls in sequence, or after a text, become one message.
            last = since.pop()
            together = (*last.tool_calls, *reply.tool_calls)
            reply = replace(last, content=last.content or reply.content, tool_calls=together)
        since.append(reply)
    return past, since


def _as_asked(messages: Sequence[ClientMessage]) -> list[ClientMessage]:
    """Turn instructions after an answer, at the end, into the question."""
    *before, last = messages
    spoken = [message for message in before if message.role in (Role.USER, Role.ASSISTANT)]
    if spoken and spoken[-1].role == Role.ASSISTANT:
        last = last.model_copy(update={"role": Role.USER})
    return [*before, last]


def _chat_message(message: ClientMessage) -> ChatMessage | None:
    """Return an assistant's text or calls, or a call's result; None for anything else."""
    if message.role == Role.TOOL or message.type == "function_call_output":
        text = harmless(text_of(message.content if message.output is None else message.output))
        return ChatMessage(Role.TOOL, text, tool_call_id=message.tool_call_id or message.call_id)
    calls = message.calls()
    if calls or message.role == Role.ASSISTANT:
        return ChatMessage(Role.ASSISTANT, text_of(message.content), tool_calls=calls)
    return None


def _answers(since: Sequence[ChatMessage]) -> Iterator[ImportedMessage]:
    """Yield the answers to one question: the texts, or the calls with which it ended."""
    spoken = [round_ for round_ in since if round_.role is Role.ASSISTANT]
    for place, message in enumerate(spoken):
        if not message.tool_calls:
            yield ImportedMessage(Role.ASSISTANT, in_words(message.content))
        elif place == len(spoken) - 1:
            content = calls_in_words(message.content, message.tool_calls)
            yield ImportedMessage(Role.ASSISTANT, content)


MODEL = "groundnote"
MOST_TOOLS = 128  # as at OpenAI
LINKS = "links"
CITATION_FORMS = ("numbers", LINKS)
MODEL_WITH_LINKS = f"{MODEL}-{LINKS}"  # numbers are links, for clients that show only links
MODEL_PLAIN = f"{MODEL}-plain"  # the language model without the library, for tasks of clients
MODEL_OF_ONE = f"{MODEL}:"  # prefix of a collection's name: only that collection is searched

# Headers in which clients name the conversation of a request.
CONVERSATION_HEADERS = (
    "X-OpenWebUI-Chat-Id",
    "X-LibreChat-Conversation-Id",
    "X-Conversation-Id",
    "X-Chat-Id",
    "X-Thread-Id",
)
USER_HEADER = "X-OpenWebUI-User-Id"
LONGEST_NAME = 200


def conversation_header() -> str:
    """Return the client's name of the conversation in a header; "" if there is none."""
    named = (
        f"{header}: {request.headers[header].strip()}"
        for header in CONVERSATION_HEADERS
        if request.headers.get(header, "").strip()
    )
    return next(named, "")[:LONGEST_NAME]


REFUSED: ResponseDict = {
    status: {
        "description": "Refused, in the shape of OpenAI's errors.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    for status in ("400", "401", "403", "404", "409", "413", "415", "429", "500", "502", "503")
}


# By 0 and -1, clients of local servers mean no limit.
TokenLimit = Annotated[int, Field(ge=-1)]
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


class AskingBody(BaseModel):
    """What a client may want of the answer; what else changes one is refused by its name."""

    model_config = ConfigDict(extra="allow")

    model: ShortText = MODEL
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None
    max_output_tokens: TokenLimit | None = None
    stop: StopWord | Annotated[list[StopWord], Field(max_length=4)] | None = None
    metadata: Metadata | None = None
    user: Any = None
    safety_identifier: Any = None
    store: bool | None = None  # False: nothing of the turn is kept
    tools: Annotated[list[dict[str, Any]], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: StopWord | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    wait_for_judge: Annotated[float, Field(ge=0, le=600)] | None = None  # seconds; ours

    def collections(self) -> list[str] | None:
        """Return the collections to search, by id or name; None if none are named."""
        names = self.metadata.collections if self.metadata else None
        if isinstance(names, str):  # stock clients send only texts
            names = [part.strip() for part in names.split(",") if part.strip()]
        library, _, one = self.model.partition(":")
        return [*(names or ()), one] if one and library in (MODEL, MODEL_WITH_LINKS) else names

    @property
    def name(self) -> str:
        """The client's own name for this session; "" if it has none."""
        named = (self.metadata.session or "").strip() if self.metadata else ""
        return named or conversation_header()

    @property
    def for_whom(self) -> str:
        """The client's name of its user, which keeps its users apart."""
        return str(self.user or self.safety_identifier or request.headers.get(USER_HEADER, ""))

    @property
    def wants_links(self) -> bool:
        """Whether each number is to be a link to its source; not in JSON, which is no Markdown.

        Raises UserError.
        """
        form = self.metadata.citations if self.metadata else None
        if form not in (None, *CITATION_FORMS):
            forms = ", ".join(CITATION_FORMS)
            raise UserError(f"metadata.citations: {form[:60]!r} is not known. Known: {forms}.")
        names_links = form == LINKS or self.model.partition(":")[0] == MODEL_WITH_LINKS
        return names_links and not self.wants_json

    messages_field: ClassVar[str] = ""  # the field that holds the messages

    def form(self) -> tuple[str, dict[str, Any] | None]:
        """Return the field that asks for a form of the answer, and that form."""
        raise NotImplementedError

    @property
    def wants_json(self) -> bool:
        """Whether the answer is to be JSON."""
        wanted = self.form()[1]
        return bool(wanted) and wanted != {"type": "text"}

    def wishes(self, *, has_model: bool) -> AnswerOptions:
        """Return the options. Raises UserError for a field that cannot be honoured."""
        extra = {**(self.model_extra or {})}
        if isinstance(extra.get("include"), list):
            extra["include"] = [value for value in extra["include"] if "logprobs" in str(value)]
        for name, allowed in REFUSED_UNLESS.items():
            if extra.get(name) not in allowed:
                raise UserError(f"{name}: this server cannot do that. Leave it out.")
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        limits = (self.max_completion_tokens, self.max_output_tokens, self.max_tokens)
        limit = next((limit for limit in limits if limit is not None and limit > 0), None)
        return AnswerOptions(
            limit,
            self.temperature,
            tuple(value for value in stop if value),
            self.client_options(has_model=has_model),
        )

    def client_options(self, *, has_model: bool) -> dict[str, Any]:
        """Return tools and form as chat completions have them. Raises UserError with the field."""
        field, form = self.form()
        tools = [_tool(tool) for tool in self.tools or ()]
        if not has_model:
            if self.tool_choice not in (None, "auto", "none"):
                raise UserError(NOBODY.format("tool_choice"))
            if self.wants_json:
                raise UserError(NOBODY.format(field))
            return {}  # optional tools are ignored: many clients send some with every question
        options: dict[str, Any] = {}
        if tools:
            options["tools"] = tools
            if self.parallel_tool_calls is not None:
                options["parallel_tool_calls"] = self.parallel_tool_calls
        choice = _choice(self.tool_choice)
        if tools and choice is not None:
            options["tool_choice"] = choice
        elif choice not in (None, "auto", "none"):
            raise UserError("tool_choice: there are no tools to choose from. Send `tools` along.")
        wanted = _form(field, form)
        return options | ({} if wanted is None else {"response_format": wanted})


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

    messages_field = "messages"

    messages: WhatWasSaid
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1)] | None = None
    response_format: dict[str, Any] | None = None

    def form(self) -> tuple[str, dict[str, Any] | None]:
        return "response_format", self.response_format


class ResponseBody(AskingBody):
    """A request for a response; `input` is the question, or the whole conversation."""

    messages_field = "input"

    input: Words | WhatWasSaid
    instructions: Annotated[Words, Field(max_length=MAX_QUESTION_CHARS)] | None = None
    previous_response_id: ShortText | None = None
    text: dict[str, Any] | None = None

    def form(self) -> tuple[str, dict[str, Any] | None]:
        wanted = (self.text or {}).get("format")
        if wanted is not None and not isinstance(wanted, dict):
            raise UserError("text.format: it must be an object with a `type`.")
        return "text", wanted

    def understand(
        self, resolve: Callable[[ClientMessage], ClientMessage] = lambda it: it
    ) -> ClientRequest:
        """Interpret the request; `resolve` replaces a reference. Raises UserError."""
        items = self.input
        if isinstance(items, str):
            items = [ClientMessage(role=Role.USER, content=items)]
        messages = [resolve(item) if item.type == "item_reference" else item for item in items]
        if self.instructions:
            messages = [ClientMessage(role=Role.SYSTEM, content=self.instructions), *messages]
        return understood(messages, self.messages_field)


CHOICES = ("auto", "none", "required")
FORMS = ("text", "json_object", "json_schema")
NOBODY = "{}: no language model is set here, and without one this cannot be done. Leave it out."


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    kind = tool.get("type")
    if kind != "function":
        raise UserError(
            f"tools: one is of type {str(kind)[:60]!r}. Only functions, which you run yourself, "
            "are passed on to the model."
        )
    function = tool.get("function", {key: tool[key] for key in tool if key != "type"})
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise UserError("tools: one has no name. A function needs `name` and `parameters`.")
    return {"type": "function", "function": {k: v for k, v in function.items() if v is not None}}


def _choice(choice: object) -> object:
    if choice is None or choice in CHOICES:
        return choice
    if isinstance(choice, Mapping) and choice.get("type") == "function":
        function = choice.get("function", choice)
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            return {"type": "function", "function": {"name": function["name"]}}
    choices = ", ".join(CHOICES)
    raise UserError(f"tool_choice: it is none of {choices}, and names no function of yours.")


def _form(field: str, form: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not form or form.get("type") == "text":
        return None
    if form.get("type") not in FORMS:
        forms = ", ".join(FORMS)
        raise UserError(f"{field}: {str(form.get('type'))[:60]!r} is not known. Known: {forms}.")
    if form["type"] == "json_object" or "json_schema" in form:
        return dict(form)
    schema = {key: form[key] for key in form if key != "type" and form[key] is not None}
    return {"type": "json_schema", "json_schema": schema}
