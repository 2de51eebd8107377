"""Export a conversation as Markdown, with a footnote for each cited source, or as a test."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from rag.citations.markers import cited_numbers, neutralise, replace_markers, without_markers
from rag.citations.statements import read_statements
from rag.records import Message, MessageStatus, Role, Session, Source, SourceState
from rag.render.gate import in_words, outgoing, standalone
from rag.render.statements import with_warnings
from rag.runtime.budget import paced
from rag.seams import SessionHandle
from rag.tables.result import result_from

STATES = {
    SourceState.CURRENT: "",
    SourceState.CHANGED: " (the document has changed since)",
    SourceState.DELETED: " (no longer in the library)",
}
FIGURE = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?: ?%| [^\W\d_]{1,12})?")
MOST_FIGURES = 3  # from one answer
NAME = "documents"  # the documents folder that an exported test names


def as_markdown(session: Session, messages: Sequence[Message], sources: Sequence[Source]) -> str:
    """Export the whole conversation.

    Footnotes name the session's own numbers, because some renderers number footnotes anew.
    """
    by_number = {source.number: source for source in sources}
    parts = [f"# {in_words(session.title) or 'Conversation'}"]
    if session.branch_index is not None:
        turn = session.branch_index // 2 + 1
        parts.append(f"*From question {turn} on, this is another version of a conversation.*")
    cited: set[int] = set()
    for message in paced(messages, weight=8):
        parts.append(_exported_message(message, by_number))
        if message.role == Role.ASSISTANT:
            cited.update(cited_numbers(message.content))
    parts += [_footnote(by_number[number]) for number in sorted(cited & by_number.keys())]
    return "\n\n".join(part for part in parts if part) + "\n"


def file_name(session: Session, extension: str) -> str:
    """Return a file name that every file system accepts."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", session.title).strip("-").lower()[:60]
    return f"{words or 'conversation'}.{extension}"


def _exported_message(message: Message, by_number: Mapping[int, Source]) -> str:
    if message.role == Role.ASSISTANT:
        text = _footnoted(standalone(with_warnings(outgoing(message))), by_number)
        if message.status is MessageStatus.COMPLETE:
            return text
        why = f"*This answer is {message.status}. {in_words(message.error or '')}*"
        return "\n\n".join(filter(None, (text, why.replace(" *", "*"))))
    speaker = "" if message.role == Role.USER else f"**{message.role}:** "
    return _quoted(standalone(f"{speaker}{message.content}"))


def _footnoted(text: str, by_number: Mapping[int, Source]) -> str:
    """Replace markers by footnote references; numbers without a source stay as they are."""
    return replace_markers(
        text,
        lambda marker: "".join(f"[^{n}]" if n in by_number else f"[{n}]" for n in marker.numbers),
    )


def _footnote(source: Source) -> str:
    place = f", {in_words(source.locator)}" if source.locator else ""
    name = in_words(source.document_name)
    title = in_words(source.document_title) or name
    head = f"[^{source.number}]: {source.marker} {title}{place} ({name}){STATES[source.state]}"
    quoted = "\n".join(
        f"    {line}" for line in _quoted(standalone(neutralise(source.text))).splitlines()
    )
    return f"{head}\n\n{quoted}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


# ── As a test ─────────────────────────────────────────────────────────────────────────────────────


def as_conversation(handle: SessionHandle) -> dict[str, Any]:
    """Export a scripted conversation: each answer's documents, figures and numbers, one compaction.

    Imported messages are imported again, with their sources.
    """
    script = _ScriptSoFar(handle)
    pairs = _pairs(handle.messages())
    for is_brought, group in groupby(pairs, key=lambda pair: pair[1].answer is None):
        if is_brought:
            script.bring([message for pair in group for message in pair])
            continue
        for pair in group:
            script.ask(*pair)
    script.compress()
    return {
        "version": 1,
        "title": handle.read().title.strip() or "A kept conversation",
        "documents": NAME,
        "turns": script.turns,
    }


class _ScriptSoFar:
    def __init__(self, handle: SessionHandle) -> None:
        self._handle = handle
        self._sources = {source.number: source for source in handle.sources()}
        self._first: dict[int, int] = {}
        self.turns: list[dict[str, Any]] = []

    def bring(self, messages: Sequence[Message]) -> None:
        turn: dict[str, Any] = {
            "import": [{"role": message.role, "content": message.content} for message in messages]
        }
        numbers = sorted({n for message in messages for n in self._numbers(message.content)})
        if not self.turns and numbers == list(range(1, len(numbers) + 1)):
            turn["sources"] = [
                {"n": s.number, "document": s.document_name, "text": s.text, "place": s.locator}
                for s in map(self._sources.__getitem__, numbers)
            ]
        self.turns.append(turn)

    def ask(self, question: Message, answer: Message) -> None:
        turn: dict[str, Any] = {"ask": question.content}
        numbers = self._numbers(answer.content)
        documents = dict.fromkeys(self._sources[number].document_name for number in numbers)
        if answer.answer is not None and answer.answer.declined:
            self.turns.append(turn | {"declines": True})
            return
        if documents:
            turn["cites"] = list(documents)
        turn |= self._expectations(answer)
        again = next((number for number in numbers if number in self._first), None)
        if again is not None:
            source = self._sources[again].document_name
            turn["same_number_as"] = {"turn": self._first[again], "source": source}
        self.turns.append(turn)
        for number in numbers:
            self._first.setdefault(number, len(self.turns))

    def compress(self) -> None:
        """Summarise all but the newest turns, and expect their source numbers to be kept."""
        cited = sorted({turn for turn in self._first.values() if turn < len(self.turns)})
        if cited:
            self.turns.append({"compress": True, "keeps_sources_of": cited})

    def _expectations(self, answer: Message) -> dict[str, Any]:
        """Return the answer's figures, and the question as it was understood."""
        number = answer.answer.result if answer.answer else None
        stored = self._handle.result(number) if number else None
        table = result_from(stored) if stored else None
        first = table.cells(table.rows[0]) if table and table.rows else []
        values, figures = list(filter(None, first)), figures_of(answer.content)
        seen: dict[str, Any] = {}
        if values:
            seen["computes"] = values[-1]
        elif figures:
            seen["says"] = figures
        if answer.is_followup and answer.resolved_query:
            seen["follow_up"] = True
            if not values:
                seen["resolves_to"] = answer.resolved_query
        return seen

    def _numbers(self, text: str) -> list[int]:
        return [number for number in cited_numbers(text) if number in self._sources]


def figures_of(text: str) -> list[str]:
    """Return the first figures, with units, of statements that cite."""
    stated = (text[s.start : s.end] for s in read_statements(text) if s.numbers)
    figures = (f.strip() for part in stated for f in FIGURE.findall(without_markers(part)))
    return list(dict.fromkeys(figures))[:MOST_FIGURES]


def _pairs(messages: Sequence[Message]) -> list[tuple[Message, Message]]:
    """Return questions with their complete answers."""
    return [
        (one, other)
        for one, other in pairwise(messages)
        if one.role == Role.USER
        and other.role == Role.ASSISTANT
        and other.status is MessageStatus.COMPLETE
    ]
