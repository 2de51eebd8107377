"""An answer without a model: what was found, as it stands in the documents."""

from dataclasses import dataclass

OPEN = 3  # passages of a card that are shown whole; the others are folded


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage of a source, quoted; markers in it are made harmless."""

    number: int  # of the source
    heading: str  # the document's title and the headings above it, in one line
    text: str  # reads as a section's text: tables with pipes, entries `- `, code four blanks
    marked: tuple[tuple[int, int], ...] = ()  # two sentences or one row, nearest to the question


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
    """Passages in the order of the search; `Answer.text` says the same in Markdown."""

    passages: tuple[ShownPassage, ...] = ()
    said: str = ""  # first, in our own words: that these hardly answer. Then all are folded.
    mentions: tuple[Mention, ...] = ()
    lead: str = ""  # quoted words in a fixed frame, each with its number: what answers
    perhaps: str = ""  # in our own words: documents of which one may answer, as nothing is sure
    denied: tuple[int, ...] = ()  # the numbers of a lead whose sources say different things

    @property
    def is_weak(self) -> bool:
        return bool(self.said)

    @property
    def open(self) -> tuple[ShownPassage, ...]:
        return () if self.is_weak else self.passages[:OPEN]

    @property
    def folded(self) -> tuple[ShownPassage, ...]:
        return self.passages[len(self.open) :]
