"""An answer that a program reads: calls of its own tools, or JSON in the form that it wants."""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rag.chat.draft import Draft
from rag.chat.tool_loop import sent_tokens
from rag.citations.json_gate import JsonGate
from rag.citations.json_text import calls_in_words, json_in_words
from rag.citations.markers import keep_markers
from rag.errors import TooLarge, UnreadableReply
from rag.llm.windows import TokenBudget
from rag.records import Answer, ChatMessage, Role, ToolCall
from rag.render.gate import sanitise
from rag.seams import AnswerOptions, TokenCounter

LEAST_TOKENS = 512  # that a question needs beside what came with it
_NO_ID = re.compile(r"(call[_-]?)?\d{0,5}")  # counted anew in each reply: others have it, too


def is_for_a_program(draft: Draft) -> bool:
    """Whether the writer's text is no text for people."""
    return bool(draft.calls) or draft.wishes.wants_json


def given(draft: Draft, allowed: Callable[[int], bool]) -> Answer:
    """The answer as it is given, and what it says to people; nothing is added to it."""
    rounds, text, json_text = draft.wishes.rounds, draft.preface + draft.text, ""
    if draft.calls:
        calls = tuple(_gated(call, allowed) for call in _identified(draft.calls, rounds))
        rounds = (*rounds, ChatMessage(Role.ASSISTANT, text, tool_calls=calls))
        text = calls_in_words(text, calls)
    elif text.startswith("{"):
        text, json_text = json_in_words(text), text
    notices = tuple(draft.notices)
    # What was code in a text alone may be none in a list of them.
    told = sanitise(keep_markers(text, allowed).text)
    return Answer(
        told, model=draft.model, usage=draft.usage, notices=notices, given=json_text, rounds=rounds
    )


def _gated(call: ToolCall, allowed: Callable[[int], bool]) -> ToolCall:
    """Its arguments without a number that nobody gave."""
    gate = JsonGate(allowed, only_unknown=True)
    try:
        arguments = gate.feed(call.arguments) + gate.finish()
        json.loads(arguments)
    except (UnreadableReply, ValueError, RecursionError):
        arguments = "{}"  # which the program's own check refuses, and the model is told
    return replace(call, arguments=arguments)


def _identified(calls: Sequence[ToolCall], rounds: Sequence[ChatMessage]) -> Iterator[ToolCall]:
    """Each with an id that no other call of the turn has, as every server takes it."""
    taken = {call.id for message in rounds for call in message.tool_calls}
    for call in calls:
        own = call if not _NO_ID.fullmatch(call.id) and call.id not in taken else None
        found = own or replace(call, id=secrets.token_hex(5)[:9])
        taken.add(found.id)
        yield found


def room_beside(
    budget: TokenBudget, wishes: AnswerOptions, reserved: int, count: TokenCounter
) -> TokenBudget:
    """The budget where a program brings its own tools, forms and results: ours are not offered.

    Raises TooLarge where they leave no room for a question.
    """
    if not wishes.needs_model:
        return budget
    taken = count(json.dumps(dict(wishes.passed_on), ensure_ascii=False))
    taken += sum(sent_tokens(message, count) for message in wishes.rounds)
    beside = replace(budget, reserved=reserved + taken, tools=0)
    if beside.input_tokens < min(LEAST_TOKENS, budget.input_tokens // 2):
        raise TooLarge(
            f"The tools and forms that came with the question need {taken:,} tokens, and the model "
            f"can be sent {budget.input_tokens:,}. Send fewer of them, or set "
            "`llm.context_window`, if the model takes more."
        )
    return beside
