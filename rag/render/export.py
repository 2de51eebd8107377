"""A conversation as Markdown: its questions and answers, with a footnote for each cited source."""

import re
from collections.abc import Mapping, Sequence

from rag.citations.markers import cited_numbers, find_markers, neutralise
from rag.records import Message, MessageStatus, Role, Session, Source, SourceState
from rag.render.gate import in_words, outgoing, standalone
from rag.render.warnings import with_warnings
from rag.runtime.budget import paced

STATES = {
    SourceState.CURRENT: "",
    SourceState.CHANGED: " (the document has changed since)",
    SourceState.DELETED: " (no longer in the library)",
}


def as_markdown(session: Session, messages: Sequence[Message], sources: Sequence[Source]) -> str:
    """The whole conversation. Footnotes name the session's own numbers, because some renderers
    count footnotes anew."""
    by_number = {source.number: source for source in sources}
    parts = [f"# {in_words(session.title) or 'Conversation'}"]
    if session.branch_index is not None:
        turn = session.branch_index // 2 + 1
        parts.append(f"*From question {turn} on, this is another version of a conversation.*")
    cited: set[int] = set()
    for message in paced(messages, weight=8):
        parts.append(_message(message, by_number))
        if message.role == Role.ASSISTANT:
            cited.update(cited_numbers(message.content))
    parts += [_footnote(by_number[number]) for number in sorted(cited & by_number.keys())]
    return "\n\n".join(part for part in parts if part) + "\n"


def file_name(session: Session, extension: str) -> str:
    """A name that every file system takes."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", session.title).strip("-").lower()[:60]
    return f"{words or 'conversation'}.{extension}"


def _message(message: Message, by_number: Mapping[int, Source]) -> str:
    if message.role == Role.ASSISTANT:
        said = _footnoted(standalone(with_warnings(outgoing(message))), by_number)
        return "\n\n".join(filter(None, (said, _end(message))))
    speaker = "" if message.role == Role.USER else f"**{message.role}:** "
    return _quoted(standalone(f"{speaker}{message.content}"))


def _end(message: Message) -> str:
    """Why an answer breaks off."""
    if message.status is MessageStatus.COMPLETE:
        return ""
    return f"*This answer is {message.status}. {in_words(message.error or '')}*".replace(" *", "*")


def _footnoted(text: str, by_number: Mapping[int, Source]) -> str:
    """Each marker as footnote references; numbers without a source stay as they are."""
    parts, position = [], 0
    for marker in find_markers(text):
        parts.append(text[position : marker.start])
        parts += [f"[^{n}]" if n in by_number else f"[{n}]" for n in marker.numbers]
        position = marker.end
    return "".join([*parts, text[position:]])


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
