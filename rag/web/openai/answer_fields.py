"""What clients of both protocols are told of an answer that has ended."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from rag.citations.gate import markers_in_json
from rag.citations.markers import find_markers
from rag.records import (
    Answer,
    Citation,
    Event,
    Failed,
    FigureStatus,
    Finished,
    NoticeKind,
    Text,
    ToolCall,
)
from rag.render.gate import Rewritten
from rag.web.openai.requests import MODEL

DONE = "data: [DONE]\n\n"  # ends a stream of chat completions


def notices_of(answer: Answer) -> list[str]:
    """What people are told beside an answer, and how many of its statements are warned of."""
    told = [notice.text for notice in answer.notices]
    warned = len({citation.start for citation in answer.citations if citation.verdict.is_warning})
    if warned:
        are = "statement is" if warned == 1 else "statements are"
        told.append(f"{warned} {are} not what the cited source says: see `citations`.")
    if answer.unsourced:
        count = len(answer.unsourced)
        are = "statement is" if count == 1 else "statements are"
        told.append(f"{count} {are} without a source: see `unsourced`.")
    unfound = sum(figure.status is FigureStatus.UNFOUND for figure in answer.figures)
    if unfound:
        do = "figure does" if unfound == 1 else "figures do"
        told.append(f"{unfound} {do} not stand in the cited sources: see `figures`.")
    return told + ([answer.judging_failure] if answer.judging_failure else [])


def calls_of(end: Finished) -> tuple[ToolCall, ...]:
    """Those of the client's tools that it is to run now."""
    return end.message.answer.calls if end.message.answer else ()


def answer_text(end: Finished) -> str:
    """What the client is given as the text: JSON where it wanted that."""
    answer = end.message.answer
    if answer is not None and answer.calls:
        return answer.rounds[-1].content
    return answer.given if answer is not None and answer.given else end.message.content


def placed(end: Finished) -> tuple[Citation, ...]:
    """The citations, by their places in what the client is given."""
    answer = end.message.answer
    if answer is None or not answer.given:
        return answer.citations if answer else ()
    cited = sorted(answer.citations, key=lambda citation: citation.start)
    markers = markers_in_json(answer.given)
    if [each.number for each in cited] != [number for number, _, _ in markers]:
        places = {number: (start, end) for number, start, end in reversed(markers)}
        return tuple(_at(each, places.get(each.number, (0, 0))) for each in cited)
    return tuple(_at(each, marker[1:]) for each, marker in zip(cited, markers, strict=True))


def _at(citation: Citation, place: tuple[int, int]) -> Citation:
    return replace(citation, start=place[0], end=place[1])


def is_whole(end: Finished) -> bool:
    """Whether no limit cut the answer."""
    notices = end.message.answer.notices if end.message.answer else ()
    return all(notice.kind is not NoticeKind.CUT for notice in notices)


def counted(end: Finished) -> tuple[int, int]:
    """Tokens read and written, as the model server counted them; zeros when no model was called."""
    usage = end.message.answer.usage if end.message.answer else None
    return (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)


def used(read: int, written: int) -> dict[str, int]:
    """Tokens, as chat completions tell them."""
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def call_items(calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """Calls as chat completions tell them, with what their server wants back."""
    return [
        {
            **call.beside,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]


def head(kind: str, told_id: str, created: int) -> dict[str, Any]:
    """How a chat completion, and each chunk of one, begins."""
    return {"id": f"chatcmpl-{told_id}", "object": kind, "created": created, "model": MODEL}


UrlOf = Callable[[int], str]
FENCE, BLANK_LINE = "```", "\n\n"
# A word joiner before the number: Open WebUI takes a bare `[9]`, in a link too, for the ninth of a
# list of its own, and shows nothing where that is shorter. Whoever reads markers reads past it.
UNSEEN = "\u2060"


def with_links(text: str, url_of: UrlOf) -> Rewritten:
    """Each `[9]` as `[[9]](url)`; in code nothing is a marker, and nothing changes."""
    kept: list[str] = []
    shifts: list[tuple[int, int]] = []
    at = by = 0
    for marker in find_markers(text):
        links = "".join(f"[[{UNSEEN}{number}]]({url_of(number)})" for number in marker.numbers)
        kept += [text[at : marker.start], links]
        at = marker.end
        by += len(links) - (marker.end - marker.start)
        shifts.append((marker.end, by))
    return Rewritten("".join(kept) + text[at:], tuple(shifts))


def marker_links(events: Iterable[Event | None], url_of: UrlOf) -> Iterator[Event | None]:
    """Text is told paragraph by paragraph: only a whole one says what in it is code."""
    held = ""
    for event in events:
        if isinstance(event, Text):
            told, held = _whole(held + event.text)
        elif isinstance(event, Finished | Failed):
            told, held = held, ""
        else:
            told = ""
        if told:
            yield Text(with_links(told, url_of).text)
        if not isinstance(event, Text):
            yield event


def _whole(text: str) -> tuple[str, str]:
    """The paragraphs that are whole, and the rest."""
    end = text.rfind(BLANK_LINE)
    if end < 0 or text[:end].count(FENCE) % 2:
        return "", text
    end += len(BLANK_LINE)
    return text[:end], text[end:]
