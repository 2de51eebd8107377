"""An answer while it is written, as HTML: what changed since it was last shown."""

import time
from dataclasses import dataclass, field
from typing import Any

from rag.citations.markers import cited_numbers
from rag.records import Discarded, Event, Source, Text
from rag.seams import SessionHandle
from rag.web.html.answers import Register, answer_html

PAUSE = 4  # times what rendering takes: so much of the time is left to others


@dataclass(slots=True)
class LiveHtml:
    """The very rendering that stands in the page afterwards, of as much as is written."""

    session: SessionHandle
    session_url: str
    _text: str = ""
    _shown: str = ""
    _sources: dict[int, Source] = field(default_factory=dict)
    _asked: set[int] = field(default_factory=set)
    _next_at: float = 0.0

    def take(self, event: Event) -> bool:
        """Whether the event is shown by `change` alone."""
        if isinstance(event, Discarded):
            self._text = ""
        if isinstance(event, Text):
            self._text += event.text
        return isinstance(event, Text)

    def change(self, *, at_once: bool = False) -> dict[str, Any] | None:
        """How many UTF-16 units of the HTML stay, and what follows them; None for no change."""
        if time.monotonic() < self._next_at and not at_once:
            return None
        began = time.monotonic()
        html = str(answer_html(self._text, Register(self.session_url, self._known())))
        self._next_at = time.monotonic() + PAUSE * (time.monotonic() - began)
        if html == self._shown:
            return None
        kept = _common(self._shown, html)
        self._shown = html
        return {"keep": len(html[:kept].encode("utf-16-le")) // 2, "html": html[kept:]}

    def _known(self) -> dict[int, Source]:
        fresh = set(cited_numbers(self._text)) - self._asked
        if fresh:
            self._asked |= fresh
            self._sources |= {
                source.number: source for source in self.session.sources(sorted(fresh))
            }
        return self._sources


def _common(first: str, second: str) -> int:
    """How long the beginning is that both texts share."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))
