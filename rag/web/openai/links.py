"""Numbers as links, for clients that show nothing of a citation but what stands in the text."""

from collections.abc import Callable, Iterable, Iterator

from rag.citations.markers import find_markers
from rag.records import Event, Failed, Finished, Text
from rag.render.gate import Rewritten

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
