"""What a question asks of the library itself, if it does: told by its form, not by its subject.

A form matches the whole question, so that a question which merely holds such words stays one for
the documents.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from urllib.parse import quote

from rag.documents.reports import kind_in_words, size_in_words
from rag.language.languages import ENGLISH, LANGUAGES, Language, phrases
from rag.language.lazy_patterns import re
from rag.records import Document, Section
from rag.render.gate import in_words


class LibraryTopic(StrEnum):
    """What is asked."""

    CONTENTS = "contents"
    NEWEST = "newest"
    MENTIONS = "mentions"
    TOPIC = "topic"  # as mentions, but of the thing rather than of the word
    ABOUT = "about"
    SUMMARY = "summary"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class LibraryQuestion:
    """A question about the library."""

    kind: LibraryTopic
    subject: str = ""  # as written: what is mentioned, or the name of a document or section
    language: Language = ENGLISH


_FORMS = [
    (LibraryTopic(kind), re.compile(form, re.IGNORECASE), language)
    for language in LANGUAGES
    for kind, forms in language.forms.items()
    for form in forms
]
_POLITE = phrases("polite")
_OPENS = re.compile(rf"(?:(?:{phrases('opens')})(?: (?:{_POLITE}))*[,.!:]* )+", re.IGNORECASE)
_ENDS = re.compile(rf"[\s?!.。？…]*(?:,? (?:{_POLITE}))?[\s?!.。？…]*$", re.IGNORECASE)
# Whole messages that ask nothing of the documents, and what each is.
_COURTESIES = {
    text: (kind, language)
    for language in reversed(LANGUAGES)
    for kind, texts in language.manners.items()
    for text in texts
}
LONGEST = 200  # characters of a question that is looked at


def courtesy(message: str) -> tuple[str, Language] | None:
    """What a message is that only greets, thanks, or asks what can be done here."""
    return _COURTESIES.get(message.strip().strip("?!.,:;) ").lower())


def library_question(question: str) -> LibraryQuestion | None:
    """What a question asks of the library; None for a question to the documents."""
    text = " ".join(question.replace("’", "'").split())
    if len(text) > LONGEST:
        return None
    opened = _OPENS.match(text)
    bare = _ENDS.sub("", text[opened.end() :] if opened else text)
    for kind, form, language in _FORMS:
        match = form.fullmatch(bare)
        if match is not None:
            subject = next(filter(None, match.groupdict().values()), "")
            return LibraryQuestion(kind, subject.strip(), language)
    return None


MOST_LISTED = 50
MOST_NEWEST = 10
MOST_HEADINGS = 24


class Phrases:
    """The words of one language."""

    def __init__(self, language: Language = ENGLISH) -> None:
        self._words = language.speech

    def say(self, key: str, **values: object) -> str:
        return self._words[key].format(**values)

    def counted(self, one: str, count: int) -> str:
        return self._words[one] if count == 1 else self._words[f"{one}s"].format(n=f"{count:,}")

    def date(self, when: datetime) -> str:
        month = self._words["months"].split()[when.month - 1]
        return self.say("date", day=when.day, month=month, year=when.year)

    def size(self, documents: Iterable[Document]) -> str:
        return size_in_words(sum(document.size_bytes for document in documents))

    def facts(self, document: Document, *more: str) -> str:
        """Its kind, size and date, in one line."""
        added = self.say("added", date=self.date(document.ingested_at))
        told = (kind_in_words(document.media_type), size_in_words(document.size_bytes), *more)
        return " · ".join((*told, added))

    def entry(self, document: Document, *more: str) -> str:
        return f"- {label_of(document)}: {self.facts(document, *more)}"

    def listed(self, documents: Sequence[Document], most: int = MOST_LISTED) -> str:
        entries = [self.entry(document) for document in documents[:most]]
        rest = len(documents) - most
        return "\n".join(
            [*entries, *([f"\n{self.say('more', n=f'{rest:,}')}"] if rest > 0 else [])]
        )


def label_of(document: Document) -> str:
    """Its title, with a link, and its file's name."""
    name = "" if document.name == document.title else f" ({in_words(document.name)})"
    return f"{link(document)}{name}"


def link(document: Document, position: int | None = None, text: str = "") -> str:
    """To its page; a mere number would look like a citation."""
    shown = in_words(text or document.title).strip()
    if shown.isdigit():
        shown = in_words(document.name) if not text else f"§ {shown}"
    place = "" if position is None else f"?at={position}"
    return f"[{shown or in_words(document.name)}](/documents/{quote(document.id)}{place})"


def kinds_of(documents: Iterable[Document]) -> str:
    """ "12 PDF, 3 Word", the most usual first."""
    counts = Counter(kind_in_words(document.media_type) for document in documents)
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())


def outline(document: Document, sections: Sequence[Section]) -> str:
    """Its headings as a list with links, as deep as there is room for."""
    first: dict[tuple[str, ...], int] = {}
    for section in sections:
        for depth in range(1, len(section.heading_path) + 1):
            first.setdefault(section.heading_path[:depth], section.index)
    tops = [path for path in first if len(path) == 1]
    if len(tops) == 1 and len(first) > 1:  # the title once more
        del first[tops[0]]
    base = min(map(len, first), default=1)
    deepest = max(map(len, first), default=1)
    while deepest > base and sum(len(path) <= deepest for path in first) > MOST_HEADINGS:
        deepest -= 1
    kept = [path for path in first if len(path) <= deepest]
    lines = [
        f"{'  ' * (len(path) - base)}- {link(document, first[path], path[-1])}"
        for path in kept[:MOST_HEADINGS]
    ]
    return "\n".join([*lines, *(["- …"] if len(kept) > MOST_HEADINGS else [])])
