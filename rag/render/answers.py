"""Answers as safe HTML: sanitised Markdown in which each citation marker links to its evidence.

Markers and statements are known by their offsets in the answer's text. They are replaced by
placeholders before the Markdown is rendered and sanitised, and become links afterwards, only in
text between tags; so a model's text can produce neither such a link nor any tag.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

from rag.citations.markers import cited_numbers, find_markers
from rag.records import CheckedFigure, Citation, Discarded, Event, Source, Text, Unsourced, Verdict
from rag.render.statements import (
    StatementWarning,
    missing_in_words,
    statement_end,
    unfound_in,
    verdict_in_words,
    warnings_in,
)
from rag.seams import SessionHandle

# Punctuation like a marker's brackets, so that emphasis opens and closes as beside them.
OPEN, CLOSE = "⸢", "⸣"
PLACEHOLDER = re.compile(f"{OPEN}([0-9]+){CLOSE}")
TAG_OR_TEXT = re.compile(r'<[^"<>]*(?:"[^"]*"[^"<>]*)*>|[^<]+|<')
BLOCK_SIGNS = re.compile(
    r"(?:[ \t>]*(?:[-*+•](?=[ \t])|\d{1,3}[.)](?=[ \t])|#{1,6}(?=[ \t])|\|))*[\s>]*"
)
FENCE = re.compile(r"[ \t]*(?:`{3}|~{3})")
NO_BREAK = "\u00a0"
MAX_RENDERED_CHARS = 60_000
ATTRIBUTED = "Added by comparing the sentence with the source."
UNFOUND = Markup(' <span class="unfound">{}</span>')
NO_SOURCE = Markup(' <span class="no-source">no source</span>')
CARRIED = (Verdict.SUPPORTED, Verdict.COMPUTED)
PAUSE = 4  # pause after rendering, in multiples of its duration


@dataclass(frozen=True, slots=True)
class Register:
    """The links of a session's source numbers."""

    session_url: str
    sources: Mapping[int, Source]
    answer: int | None = None  # the index of the answer whose statements are marked in the sources

    def url(self, number: int, marker_start: int | None = None) -> str:
        """Return the link to a source, for one marker's statement or, without it, all of the
        answer's.
        """
        where = "" if self.answer is None else f"?m={self.answer}"
        if where and marker_start is not None:
            where += f"&c={marker_start}"
        return f"{self.session_url}/sources/{number}{where}#passage"

    def label(self, number: int) -> str:
        source = self.sources[number]
        place = f", {source.locator}" if source.locator else ""
        return f"{source.document_title}{place}"


@dataclass(slots=True)
class _WithPlaceholders:
    """A text with placeholders, and the HTML that each stands for."""

    stands_for: list[Markup] = field(default_factory=list)
    opens: dict[int, int] = field(default_factory=dict)  # a statement's start to its end
    # Placeholders of warnings, which must not be lost.
    warnings: list[int] = field(default_factory=list)

    def hold(self, made: Markup) -> str:
        self.stands_for.append(made)
        return f"{OPEN}{len(self.stands_for) - 1}{CLOSE}"


def answer_html(
    text: str,
    register: Register,
    *,
    citations: Sequence[Citation] = (),
    unsourced: Sequence[Unsourced] = (),
    figures: Sequence[CheckedFigure] = (),
) -> Markup:
    """Render an answer, or any Markdown with markers, such as a summary."""
    from rag.render.html import rendered

    warned = warnings_in(text, citations)
    if len(text) > MAX_RENDERED_CHARS:
        cut = plain_html(text[:MAX_RENDERED_CHARS] + " …", register)
        notes = (Markup("<p>{}</p>").format(_warning(warning, register)) for warning in warned)
        return Markup("").join([cut, *notes])
    flags = {(citation.number, citation.start): citation for citation in citations}
    draft = _WithPlaceholders()
    places = [*_markers(text, register, flags, draft), *_statements(text, unsourced, draft)]
    for figure in unfound_in(figures):
        note = draft.hold(UNFOUND.format(missing_in_words(figure)))
        places.append((figure.end, figure.end, note))
    for warning in warned:
        places.append((warning.end, warning.end, draft.hold(_warning(warning, register))))
        draft.warnings.append(len(draft.stands_for) - 1)
    return _filled(rendered(_with_placeholders(text, places, draft)), draft)


def plain_html(text: str, register: Register) -> Markup:
    """Render a text as it is, such as a question; only its markers become links."""
    draft = _WithPlaceholders()
    marked = _with_placeholders(text, _markers(text, register, {}, draft), draft, joint=" ")
    return _filled(str(escape(marked)), draft)


# ── Before rendering ────────────────────────────────────────────────────────────────────────

Replaced = tuple[int, int, str]  # text[start:end] is replaced by a placeholder


def _markers(
    text: str,
    register: Register,
    flags: Mapping[tuple[int, int], Citation],
    draft: _WithPlaceholders,
) -> list[Replaced]:
    places = []
    for marker in find_markers(text):
        chips = [
            _chip(number, marker.start, register, flags.get((number, marker.start)))
            for number in marker.numbers
            if number in register.sources
        ]
        if chips:
            cites = Markup('<span class="cites">{}</span>').format(Markup("").join(chips))
            places.append((marker.start, marker.end, draft.hold(cites)))
    return places


def _statements(
    text: str, unsourced: Sequence[Unsourced], draft: _WithPlaceholders
) -> list[Replaced]:
    places = []
    for statement in unsourced:
        stated = text[statement.start : statement.end]
        signs = BLOCK_SIGNS.match(stated)
        start = statement.start + (signs.end() if signs else 0)
        if text[start - 1 : start + 1] == "![":  # keeps the `!` of an image with its bracket
            start -= 1
        end = statement_end(text, statement.start, statement.end)
        if FENCE.match(stated) or end <= start:
            continue
        opening = draft.hold(Markup(""))
        closing = draft.hold(NO_SOURCE)
        number = len(draft.stands_for) - 1
        draft.opens[number - 1] = number
        places += [(start, start, opening), (end, end, closing)]
    return places


def _warning(warned: StatementWarning, register: Register) -> Markup:
    return Markup(' <span class="warning"{}><span class="hidden">Warning: </span>{}</span>').format(
        _id(register, f"w{warned.end}"), str(warned)
    )


def _id(register: Register, place: str) -> Markup | str:
    if register.answer is None:
        return ""
    return Markup(' id="m{}{}"').format(register.answer, place)


def _with_placeholders(
    text: str, places: Sequence[Replaced], draft: _WithPlaceholders, *, joint: str = NO_BREAK
) -> str:
    """Insert the placeholders; existing text that looks like one is kept as text.

    A joint keeps a number on the line of the word that it belongs to.
    """
    parts, position = [], 0
    for start, end, placeholder in sorted(places, key=lambda place: place[:2]):
        if start < position:
            continue  # a statement that begins or ends inside a marker
        before = _hold_placeholders(text[position:start], draft)
        if start < end and re.search(r"\S $", before):
            before = before[:-1] + joint
        parts += [before, placeholder]
        position = end
    return "".join([*parts, _hold_placeholders(text[position:], draft)])


def _hold_placeholders(text: str, draft: _WithPlaceholders) -> str:
    return re.sub(f"[{OPEN}{CLOSE}]", lambda match: draft.hold(escape(match.group())), text)


# ── After sanitising ────────────────────────────────────────────────────────────────────────


def _filled(html: str, draft: _WithPlaceholders) -> Markup:
    shown = {int(number) for number in PLACEHOLDER.findall(html)}
    # Statements whose beginning and end both survived the rendering.
    pairs = [pair for pair in draft.opens.items() if shown.issuperset(pair)]
    whole = {number for pair in pairs for number in pair}
    parts: list[str] = []
    is_open = False
    for token in TAG_OR_TEXT.findall(html):
        if token.startswith("<"):
            parts.append(token)
            continue
        for index, piece in enumerate(PLACEHOLDER.split(token)):
            if index % 2 == 0:
                is_unsourced = is_open and piece.strip()
                parts.append(f'<span class="unsourced">{piece}</span>' if is_unsourced else piece)
                continue
            number = int(piece)
            if number in whole:
                is_open = number in draft.opens
            if number < len(draft.stands_for):
                parts.append(draft.stands_for[number])
    lost = [draft.stands_for[warning] for warning in draft.warnings if warning not in shown]
    # Every piece is sanitised output or escaped here.
    return Markup("".join([*parts, *(Markup("<p>{}</p>").format(warning) for warning in lost)]))


# ── Chips ───────────────────────────────────────────────────────────────────────────────────


def _chip(number: int, start: int, register: Register, citation: Citation | None) -> Markup:
    style, note = _flag(citation)
    label = register.label(number)
    return Markup(
        '<a class="cite{style}"{id} href="{url}" data-n="{number}" title="{title}" '
        'aria-label="Source {number}: {label}{note}">[{number}]</a>'
    ).format(
        style=style,
        id=_id(register, f"c{start}n{number}"),
        url=register.url(number, start),
        number=number,
        title=f"{label}\n{note}" if note else label,
        label=label,
        note=f". {note}" if note else "",
    )


def _flag(citation: Citation | None) -> tuple[str, str]:
    """Return the chip's class and tooltip; empty for a citation that was not checked."""
    if citation is None:
        return "", ""
    is_carried = citation.verdict in CARRIED
    style = " is-warned" if citation.verdict.is_warning else " is-supported" * is_carried
    note = "" if citation.verdict is Verdict.OPEN else verdict_in_words(citation)
    if citation.attributed:
        return f"{style} is-attributed", f"{ATTRIBUTED} {note}".rstrip()
    return style, note


# ── While it is written ───────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class LiveHtml:
    """Renders an answer while it is written, exactly as the finished page shows it."""

    session: SessionHandle
    session_url: str
    _text: str = ""
    _html: str = ""
    _sources: dict[int, Source] = field(default_factory=dict)
    _numbers: set[int] = field(default_factory=set)
    _next_at: float = 0.0

    def take(self, event: Event) -> bool:
        """Take an event; return whether it is shown only by `change`."""
        if isinstance(event, Discarded):
            self._text = ""
        if isinstance(event, Text):
            self._text += event.text
        return isinstance(event, Text)

    def change(self, *, at_once: bool = False) -> dict[str, Any] | None:
        """Return how many UTF-16 units of the HTML stay, and what follows; None for no change."""
        if time.monotonic() < self._next_at and not at_once:
            return None
        began = time.monotonic()
        fresh = set(cited_numbers(self._text)) - self._numbers
        if fresh:
            self._numbers |= fresh
            sources = self.session.sources(sorted(fresh))
            self._sources |= {source.number: source for source in sources}
        html = str(answer_html(self._text, Register(self.session_url, self._sources)))
        self._next_at = time.monotonic() + PAUSE * (time.monotonic() - began)
        if html == self._html:
            return None
        pairs = enumerate(zip(self._html, html, strict=False))
        shared = next((i for i, (a, b) in pairs if a != b), min(len(self._html), len(html)))
        self._html = html
        return {"keep": len(html[:shared].encode("utf-16-le")) // 2, "html": html[shared:]}
