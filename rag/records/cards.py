"""An answer without a model: what was found, as it stands in the documents."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage of a source, quoted; markers in it are made harmless."""

    number: int  # of the source
    heading: str  # the document's title and the headings above it, in one line
    text: str  # reads as a section's text: tables with pipes, entries `- `, code four blanks
    marked: tuple[tuple[int, int], ...] = ()  # the sentences or rows that matter most, in `text`


@dataclass(frozen=True, slots=True)
class CardPart:
    """What was found for one question, or for one of several in a question."""

    asked: str  # "" where the question asks one thing
    passages: tuple[ShownPassage, ...]  # best first: the first stands open
    line: str = ""  # of the first passage, word for word, where it surely answers
    is_weak: bool = False  # nothing is claimed: these come closest


@dataclass(frozen=True, slots=True)
class DocumentLink:
    """A document to open."""

    id: str
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Mention:
    """Which documents hold a name that was asked for."""

    name: str
    count: int
    documents: tuple[DocumentLink, ...]  # some of them


@dataclass(frozen=True, slots=True)
class Card:
    """An answer in parts; `Answer.text` says the same in Markdown."""

    parts: tuple[CardPart, ...] = ()
    mentions: tuple[Mention, ...] = ()
