"""What is said of a library, as Markdown with links: in English, or in German."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from urllib.parse import quote

from rag.answers.markdown import plain
from rag.documents.storing.described import kind_in_words, size_in_words
from rag.records import Document, Section
from rag.text.languages import GERMAN

MOST_LISTED = 50
MOST_NEWEST = 10
MOST_HEADINGS = 24
_ENGLISH = {
    "empty": "The library is empty: there is no document to answer from. Add files on the page "
    "[Documents](/documents), by dropping them on any page, or with `groundnote ingest PATH`.",
    "contents": "The library holds {n} ({kinds}), {size} in all.",
    "documents": "{n} documents",
    "document": "1 document",
    "newest": "Added last:",
    "added": "added {date}",
    "more": "… and {n} more: [all documents](/documents).",
    "unread": "{n} could not be read:",
    "files": "{n} files",
    "file": "1 file",
    "all_read": "Every file that was added could be read.",
    "mention": "{n} mention “{words}”:",
    "mention_one": "1 document mentions “{words}”:",
    "places": "{n} passages",
    "place": "1 passage",
    "nowhere": "No document of the library holds “{words}”, in any form of these words.",
    "outline": "Its sections:",
    "begins": "It begins:",
    "summary": "What **{title}** says, in its own words and order:",
    "which": "Several documents are called so. Which one do you mean?",
    "part": "{title}, section “{heading}”",
    "section": "1 section",
    "sections": "{n} sections",
    "pages": "{n} pages",
    "greeting": "Hello. Ask what the documents say; “which documents do you have” lists them.",
    "thanks": "You are welcome. Ask on if there is more.",
    "help": "I show the passages of the documents that answer a question, with their numbers, each "
    "of which opens its source, and compute over tables. “Which documents do you have” lists what "
    "is here, “summarise …” tells what one of them says.",
}
_GERMAN = {
    "empty": "Die Bibliothek ist leer: Es gibt kein Dokument, aus dem sich antworten ließe. Fügen "
    "Sie Dateien auf der Seite [Documents](/documents) hinzu, indem Sie sie auf eine Seite ziehen, "
    "oder mit `groundnote ingest PATH`.",
    "contents": "In der Bibliothek: {n} ({kinds}), zusammen {size}.",
    "documents": "{n} Dokumente",
    "document": "1 Dokument",
    "newest": "Zuletzt hinzugefügt:",
    "added": "hinzugefügt am {date}",
    "more": "… und {n} weitere: [alle Dokumente](/documents).",
    "unread": "{n} nicht gelesen werden:",
    "files": "{n} Dateien konnten",
    "file": "1 Datei konnte",
    "all_read": "Alle hinzugefügten Dateien konnten gelesen werden.",
    "mention": "{n} erwähnen „{words}“:",
    "mention_one": "1 Dokument erwähnt „{words}“:",
    "places": "{n} Stellen",
    "place": "1 Stelle",
    "nowhere": "Kein Dokument der Bibliothek enthält „{words}“, in keiner Form dieser Wörter.",
    "outline": "Die Abschnitte:",
    "begins": "Es beginnt:",
    "summary": "Was **{title}** sagt, mit eigenen Worten und in seiner Reihenfolge:",
    "which": "So heißen mehrere Dokumente. Welches ist gemeint?",
    "part": "{title}, Abschnitt „{heading}“",
    "section": "1 Abschnitt",
    "sections": "{n} Abschnitte",
    "pages": "{n} Seiten",
    "greeting": "Guten Tag. Fragen Sie nach dem, was in den Dokumenten steht; „welche Dokumente "
    "gibt es“ listet sie auf.",
    "thanks": "Gern geschehen. Fragen Sie weiter, wenn noch etwas offen ist.",
    "help": "Ich zeige die Stellen der Dokumente, die eine Frage beantworten, mit ihren Nummern, "
    "von denen jede ihre Quelle öffnet, und rechne über Tabellen. „Welche Dokumente gibt es“ "
    "listet auf, was hier liegt, „fasse … zusammen“ sagt, was eines davon sagt.",
}
_MONTHS = [month.title() for month in GERMAN.meanings["months"] if len(month) > 3 or month == "mai"]


class Speech:
    """The words of one language."""

    def __init__(self, *, is_german: bool) -> None:
        self._is_german = is_german
        self._words = _GERMAN if is_german else _ENGLISH

    def say(self, key: str, **values: object) -> str:
        return self._words[key].format(**values)

    def counted(self, one: str, count: int) -> str:
        return self._words[one] if count == 1 else self._words[f"{one}s"].format(n=f"{count:,}")

    def date(self, when: datetime) -> str:
        if self._is_german:
            return f"{when.day}. {_MONTHS[when.month - 1]} {when.year}"
        return f"{when.day} {when:%B %Y}"

    def size(self, documents: Iterable[Document]) -> str:
        return size_in_words(sum(each.size_bytes for each in documents))

    def facts(self, document: Document, *more: str) -> str:
        """Its kind, size and date, in one line."""
        added = self.say("added", date=self.date(document.ingested_at))
        told = (kind_in_words(document.media_type), size_in_words(document.size_bytes), *more)
        return " · ".join((*told, added))

    def entry(self, document: Document, *more: str) -> str:
        return f"- {named(document)}: {self.facts(document, *more)}"

    def listed(self, documents: Sequence[Document], most: int = MOST_LISTED) -> str:
        entries = [self.entry(each) for each in documents[:most]]
        rest = len(documents) - most
        return "\n".join(
            [*entries, *([f"\n{self.say('more', n=f'{rest:,}')}"] if rest > 0 else [])]
        )


def named(document: Document) -> str:
    """Its title, with a link, and its file's name."""
    name = "" if document.name == document.title else f" ({plain(document.name)})"
    return f"{link(document)}{name}"


def link(document: Document, at: int | None = None, text: str = "") -> str:
    """To its page; a mere number would look like a citation."""
    shown = plain(text or document.title).strip()
    if shown.isdigit():
        shown = plain(document.name) if not text else f"§ {shown}"
    place = "" if at is None else f"?at={at}"
    return f"[{shown or plain(document.name)}](/documents/{quote(document.id)}{place})"


def kinds_of(documents: Iterable[Document]) -> str:
    """ "12 PDF, 3 Word", the most usual first."""
    counts = Counter(kind_in_words(each.media_type) for each in documents)
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
