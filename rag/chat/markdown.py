"""A card as short Markdown with `[n]` markers: for terminals, programs and exports."""

import re
from collections.abc import Iterator

from rag.chat.prompts import DECLINE
from rag.language.sentences import cells_of
from rag.records import Card, Mention, ShownPassage
from rag.render.gate import in_words

MORE = "More passages:"
LONGEST_KEY = 60  # words of a folded passage
_ENDS_IN_STOP = re.compile(r"([.!?。！？…]+[\"'”’»)\]」』]*)$")
_NUMBERED = re.compile(r"^([ \t]*)- (?=\d{1,3}\. )")  # our own form of an entry that has a number
_RULE = re.compile(r"[\s|:-]*")  # below a table's header, or nothing


def markdown_of(card: Card) -> Iterator[str]:
    """The card's paragraphs one by one, with what stands between them."""
    separator = ""
    for paragraph in _paragraphs(card):
        yield separator + paragraph
        separator = "\n\n"


def _paragraphs(card: Card) -> Iterator[str]:
    if not card.passages:
        yield DECLINE
    if card.said or card.lead:
        yield card.said or card.lead
    if card.perhaps:
        yield in_words(card.perhaps)
    for passage in card.open:
        yield f"{in_words(passage.heading)} [{passage.number}]"
        yield _quoted(passage)
    if card.folded:
        entries = [f"- {in_words(folded.heading)}: {_short(folded)}" for folded in card.folded]
        yield "\n".join(entries if card.said else [MORE, "", *entries])
    yield from map(_mention, card.mentions)


def cited(text: str, number: int) -> str:
    """The text with its marker, before the full stop."""
    end = _ENDS_IN_STOP.search(text)
    if end is None:
        return f"{text} [{number}]"
    return f"{text[: end.start()]} [{number}]{end[0]}"


def _quoted(passage: ShownPassage) -> str:
    """The passage as a quotation; what is marked carries its number."""
    text, number = passage.text, passage.number
    for start, end in sorted(passage.marked, reverse=True):
        text = text[:start] + _marked(text[start:end], number) + text[end:]
    return "\n".join(f"> {_as_markdown(line)}".rstrip() for line in text.split("\n"))


def _as_markdown(line: str) -> str:
    """Of a passage, before the gate that all answers pass."""
    return _NUMBERED.sub(r"\1", line)


def _marked(unit: str, number: int) -> str:
    if unit.rstrip().endswith("|"):
        return f"{unit.rstrip()[:-1].rstrip()} [{number}] |"
    return cited(unit, number)


def _short(passage: ShownPassage) -> str:
    words = _as_markdown(gist(passage)).split()
    if len(words) <= LONGEST_KEY:
        return cited(" ".join(words), passage.number)
    beginning = " ".join(words[:LONGEST_KEY])
    closed = "`" if beginning.count("`") % 2 else ""  # of code that was cut
    return f"{beginning}{closed} … [{passage.number}]"


def gist(passage: ShownPassage) -> str:
    """A passage in one line: rows, entries and code without their signs."""
    lines = (line.strip() for line in passage.text.splitlines())
    return " ".join(_line_as_prose(line) for line in lines if not _RULE.fullmatch(line)).strip("; ")


def _line_as_prose(line: str) -> str:
    if line.startswith("|"):
        return " · ".join(filter(None, cells_of(line))) + ";"
    return line.removeprefix("- ")


def _mention(mention: Mention) -> str:
    links = ", ".join(
        f"[{in_words(document.title)}](/documents/{document.id})" for document in mention.documents
    )
    more = mention.count - len(mention.documents)
    rest = f" and {more} more" if more > 0 else ""
    return f"{mention.count} documents mention {in_words(mention.name)}: {links}{rest}."
