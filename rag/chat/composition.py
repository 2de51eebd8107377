"""Answers that are put together by rules: cards, what stands above another, what is told beside."""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rag.chat.decision import NOTHING, decide
from rag.chat.draft import Draft
from rag.chat.evidence import EvidenceReader
from rag.chat.tool_loop import sent_tokens
from rag.citations.comparison.figures import are_siblings, same_name
from rag.citations.comparison.parser import read, read_source
from rag.citations.gate import JsonGate, calls_in_words, json_in_words
from rag.citations.markers import find_markers, keep_markers
from rag.errors import TooLarge, UnreadableReply
from rag.language.figures import read_figures
from rag.language.names import Lexicon
from rag.language.words import language_of
from rag.llm.windows import TokenBudget
from rag.records import (
    Answer,
    Card,
    ChatMessage,
    Citation,
    Judging,
    Notice,
    NoticeKind,
    Role,
    SetAside,
    Source,
    ToolCall,
    Verdict,
)
from rag.render.gate import sanitise
from rag.seams import AnswerOptions, Embedder, TokenCounter

MODEL_ANSWER = "The model said:"


def quoted(draft: Draft, card: Card, shown: Sequence[Source]) -> Answer:
    """A card: what it says stands in its sources word for word, so nothing is left to check."""
    text = draft.preface + draft.text
    citations = tuple(
        replace(citation, verdict=Verdict.OPEN) if citation.number in card.denied else citation
        for citation in all_cited(text, Verdict.SUPPORTED)
    )
    notices = (*draft.notices, *_of_sibling(draft, text, shown))
    return Answer(
        text, citations, declined=card.is_weak, model=draft.model, card=card, notices=notices
    )


def set_aside(answer: Answer, text: str, card: Card, reason: str) -> Answer:
    """A card with what a model said below it, as a quotation."""
    whole = text.rstrip() + quotation(answer.text, reason)
    of_card = all_cited(text, Verdict.SUPPORTED)
    below = all_cited(whole, Verdict.OPEN)[len(of_card) :]
    if len(below) == len(answer.citations):
        pairs = zip(answer.citations, below, strict=True)
        below = tuple(
            replace(citation, start=place.start, end=place.end) for citation, place in pairs
        )
    return replace(
        answer,
        text=whole,
        citations=(*of_card, *below),
        unsourced=(),
        figures=(),
        card=card,
        judging=Judging.OFF,
        set_aside=SetAside(answer.text, reason),
    )


def quotation(text: str, reason: str) -> str:
    """What a model said, to stand below the passages."""
    lines = (f"> {line}".rstrip() for line in text.splitlines())
    return "\n\n".join(["", f"**{MODEL_ANSWER}** {reason}", "\n".join(lines)])


def all_cited(text: str, verdict: Verdict) -> tuple[Citation, ...]:
    """Every number of a text that was made by rules, with the one verdict on it."""
    return tuple(
        Citation(number, marker.start, marker.end, verdict)
        for marker in find_markers(text)
        for number in marker.numbers
    )


def notices_beside(
    draft: Draft, text: str, sources: Sequence[Source], embedder: Embedder | None
) -> tuple[Notice, ...]:
    """What people are told beside a model's answer: also where sources disagree, or it is off."""
    query = draft.resolution.query if draft.resolution else ""
    lead = NOTHING
    if embedder is not None:
        names = {
            n for source in sources for n in read_source(source).lexicon.names if _tells_apart(n)
        }
        reader = EvidenceReader(query, sorted(names))
        lead = decide(reader.read(sources, embedder.embed), sources, language_of(query))
    notices = [Notice(NoticeKind.DISAGREEMENT, lead.text)] if lead.is_denied else []
    return (*draft.notices, *notices, *_of_sibling(draft, text, sources))


def _of_sibling(draft: Draft, text: str, sources: Sequence[Source]) -> list[Notice]:
    query = draft.resolution.query if draft.resolution else ""
    remark = other_product(query, text, sources)
    return [Notice(NoticeKind.OTHER_PRODUCT, remark)] if remark else []


def other_product(question: str, answer: str, sources: Sequence[Source]) -> str:
    """What to say of an answer that names only a sibling of the product that was asked about."""
    named = (word for word in question.split()[1:] if word.strip(".,?!") != "I")
    if not any(any(map(str.isupper, word)) for word in named) and not re.search(r"\d", question):
        return ""  # it names nothing, and no source is read for it
    lexicon = Lexicon(n for source in sources for n in read_source(source).lexicon.names)
    wanted, products = (_product_names(text, lexicon) for text in (question, answer))
    if len(wanted) != 1 or any(same_name(wanted[0], name) for name in products):
        return ""
    sibling = next((name for name in products if are_siblings(wanted[0], name)), None)
    if sibling is None or read_figures(answer[: answer.lower().find(sibling)]):
        return ""  # something was said before, of what `it` stands for
    spelled = {name.lower(): name for name in lexicon.names}
    about = spelled.get(wanted[0], wanted[0])
    return f"You asked about the {about}; this speaks of the {spelled.get(sibling, sibling)}."


def _product_names(text: str, lexicon: Lexicon) -> list[str]:
    return [name for name in read(text, lexicon, language_of(text)).names if _tells_apart(name)]


def _tells_apart(name: str) -> bool:
    return any(letter.isdigit() or letter in " +" for letter in name)


LEAST_TOKENS = 512  # that a question needs beside what came with it
_NO_ID = re.compile(r"(call[_-]?)?\d{0,5}")  # counted anew in each reply: others have it, too


def is_for_a_program(draft: Draft) -> bool:
    """Whether the writer's text is no text for people."""
    return bool(draft.calls) or draft.wishes.wants_json


def unchecked(draft: Draft, allowed: Callable[[int], bool]) -> Answer:
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
    visible = sanitise(keep_markers(text, allowed).text)
    return Answer(
        visible,
        model=draft.model,
        usage=draft.usage,
        notices=notices,
        given=json_text,
        rounds=rounds,
    )


def _gated(call: ToolCall, allowed: Callable[[int], bool]) -> ToolCall:
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
        usable = call if not _NO_ID.fullmatch(call.id) and call.id not in taken else None
        identified = usable or replace(call, id=secrets.token_hex(5)[:9])
        taken.add(identified.id)
        yield identified


def room_beside(
    budget: TokenBudget, wishes: AnswerOptions, reserved: int, count: TokenCounter
) -> TokenBudget:
    """The budget where a program brings its own tools, forms or results: ours are not offered.

    Raises TooLarge where they leave no room for a question.
    """
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
