"""What clients of the OpenAI protocols send: messages, calls of tools and their results."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rag.citations.gate import calls_in_words, harmless, in_words
from rag.errors import UserError
from rag.records import ChatMessage, ImportedMessage, Message, Role, ToolCall
from rag.web.api.requests import ShortText, Words

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

    def written(self) -> str:
        """The arguments, as JSON."""
        given = self.arguments or {}
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


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
    id: ShortText = ""  # of an item that a reference stands for
    tool_calls: Annotated[list[ClientCall], Field(max_length=1000)] | None = None
    tool_call_id: ShortText | None = None  # of a result, in chat completions
    call_id: ShortText | None = None  # of a call or a result, in responses
    name: Words | None = None
    arguments: Words | None = None
    output: Words | ContentParts | None = None

    @property
    def is_reference(self) -> bool:
        """Whether it only names what was said."""
        return self.type == "item_reference"

    def text(self) -> str:
        """All of it that is text."""
        return _text(self.content)

    def unread(self) -> set[str]:
        """The kinds of its parts that nobody here can read; thoughts are nobody's to read."""
        parts = (part for each in (self.content, self.output) for part in _parts(each))
        return {part.type for part in parts if part.type not in (*TEXT_PARTS, *UNSAID_PARTS)}

    @property
    def is_result(self) -> bool:
        """Whether it is what came of a call."""
        return self.role == Role.TOOL or self.type == "function_call_output"

    def result(self) -> str:
        """What came of a call."""
        return _text(self.content if self.output is None else self.output)

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that it makes."""
        if self.type == "function_call":
            call_id = self.call_id or self.id
            return (ToolCall(call_id, self.name or "", self.arguments or "{}"),)
        return tuple(
            ToolCall(call.id, call.function.name, call.function.written(), call.model_extra or {})
            for call in self.tool_calls or ()
            if call.function.name
        )


def _text(content: str | list[ContentPart] | None) -> str:
    """Parts that no blank divides are lines of their own."""
    text = "" if isinstance(content, list) else content or ""
    for part in _parts(content):
        told = (part.text or part.refusal or "") if part.type in TEXT_PARTS else ""
        is_divided = not (text and told) or text[-1].isspace() or told[0].isspace()
        text += told if is_divided else f"\n{told}"
    return text


def _parts(content: str | list[ContentPart] | None) -> list[ContentPart]:
    return content if isinstance(content, list) else []


GO_ON = "Continue."  # what a client means that sends an answer last


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request, understood: the last question, what was said before, the client's instructions.

    Where the question was answered by calls of the client's tools, `rounds` are these and what came
    of them, oldest first; who goes on by a response's id may send the results alone.
    """

    question: str
    past: tuple[ImportedMessage, ...]
    instructions: tuple[str, ...]
    rounds: tuple[ChatMessage, ...] = ()
    notices: tuple[str, ...] = ()  # what of it could not be read

    def up_to_the_calls(self) -> tuple[ImportedMessage, ...]:
        """The transcript as it was when the tools were called last."""
        message = ImportedMessage(Role.USER, self.question)
        return (*self.past, message, *_answers(self.rounds))

    @property
    def called(self) -> tuple[str, ...]:
        """The ids of the calls whose results came now."""
        calls = [round_.tool_calls for round_ in self.rounds if round_.tool_calls]
        return tuple(call.id for call in calls[-1]) if calls else ()

    def since(self, answer: Message) -> tuple[ChatMessage, ...] | None:
        """The rounds as we kept them with an answer of ours, and the results that came now.

        None where none of its calls waits for them.
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
    """Parts of the past that are no text are passed over. Raises UserError, with the field."""
    others = [message.role for message in messages if message.role not in ROLES]
    if others:
        raise UserError(f"{field}: there is no role {others[0][:60]!r}.")
    messages, notices = _as_asked(messages), _notices(messages)
    instructions = tuple(m.text() for m in messages if m.role in INSTRUCTION_ROLES)
    past, since = _told(messages)
    if since and since[-1].role is Role.TOOL:
        question = past.pop().content if past and past[-1].role == Role.USER else ""
        return ClientRequest(question, tuple(past), instructions, tuple(since), notices)
    past += _answers(since)
    if past and past[-1].role == Role.ASSISTANT:
        past.append(ImportedMessage(Role.USER, GO_ON))
    if not past:
        raise UserError(f"{field}: there is no question. Send one with the role `user`.")
    question = past[-1].content
    if not question.strip() and (unread := _last_unread(messages)):
        raise UserError(
            f"{field}: the question is of type {', '.join(sorted(unread))}; only text is read. "
            "Ask in words."
        )
    return ClientRequest(question, tuple(past[:-1]), instructions, (), notices)


def _told(messages: Iterable[ClientMessage]) -> tuple[list[ImportedMessage], list[ChatMessage]]:
    """What was said up to the last question, and what came since."""
    past: list[ImportedMessage] = []
    since: list[ChatMessage] = []
    for message in messages:
        if message.role == Role.USER:
            past += [*_answers(since), ImportedMessage(Role.USER, message.text())]
            since = []
        elif (said := _said(message)) is not None:
            since = _with(since, said)
    return past, since


def _as_asked(messages: Sequence[ClientMessage]) -> list[ClientMessage]:
    """Instructions that come last, behind an answer, are what is asked."""
    *before, last = messages
    spoken = [message for message in before if message.role in (Role.USER, Role.ASSISTANT)]
    if last.role in INSTRUCTION_ROLES and spoken and spoken[-1].role == Role.ASSISTANT:
        last = last.model_copy(update={"role": Role.USER})
    return [*before, last]


def _notices(messages: Iterable[ClientMessage]) -> tuple[str, ...]:
    unread = sorted({kind[:60] for message in messages for kind in message.unread()})
    if not unread:
        return ()
    return (f"Parts of the conversation could not be read ({', '.join(unread)}): only text is.",)


def _last_unread(messages: Sequence[ClientMessage]) -> set[str]:
    asked = [message for message in messages if message.role == Role.USER]
    return asked[-1].unread() if asked else set()


def _said(message: ClientMessage) -> ChatMessage | None:
    """What an assistant said or called, or what came of a call; None for anything else."""
    if message.is_result:
        text = harmless(message.result())
        return ChatMessage(Role.TOOL, text, tool_call_id=message.tool_call_id or message.call_id)
    calls = message.calls()
    if calls or message.role == Role.ASSISTANT:
        return ChatMessage(Role.ASSISTANT, message.text(), tool_calls=calls)
    return None


def _with(since: list[ChatMessage], message: ChatMessage) -> list[ChatMessage]:
    """Calls that follow each other, or what was said before them, are one message."""
    if message.tool_calls and since and since[-1].role is Role.ASSISTANT:
        last = since[-1]
        together = (*last.tool_calls, *message.tool_calls)
        return [
            *since[:-1],
            replace(last, content=last.content or message.content, tool_calls=together),
        ]
    return [*since, message]


def _answers(since: Sequence[ChatMessage]) -> Iterator[ImportedMessage]:
    """What was answered to one question: the texts, or the calls with which it ended."""
    spoken = [each for each in since if each.role is Role.ASSISTANT]
    for place, message in enumerate(spoken):
        if not message.tool_calls:
            yield ImportedMessage(Role.ASSISTANT, in_words(message.content))
        elif place == len(spoken) - 1:
            said = calls_in_words(message.content, message.tool_calls)
            yield ImportedMessage(Role.ASSISTANT, said)
