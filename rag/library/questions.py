"""What a question asks of the library itself, if it does: told by its form, not by its subject.

A form matches the whole question, so that a question which merely holds such words stays one for
the documents.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Protocol, TypeVar
from urllib.parse import quote

from sqlalchemy import Engine, exists, select

from rag.db import documents, jobs, reading
from rag.documents.reports import kind_in_words, size_in_words
from rag.language.languages import ENGLISH, LANGUAGES, Language, all_words, phrases, spoken
from rag.language.lazy_patterns import re
from rag.language.names import find_names
from rag.language.words import stem
from rag.records import Document, JobState, Notice, NoticeKind, Readable, Section, Source
from rag.render.gate import in_words
from rag.seams import SessionTranscript


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
        parts = (kind_in_words(document.media_type), size_in_words(document.size_bytes), *more)
        return " · ".join((*parts, added))

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
    shown = [path for path in first if len(path) <= deepest]
    lines = [
        f"{'  ' * (len(path) - base)}- {link(document, first[path], path[-1])}"
        for path in shown[:MOST_HEADINGS]
    ]
    return "\n".join([*lines, *(["- …"] if len(shown) > MOST_HEADINGS else [])])


_SEPARATORS = re.compile(r"[\W_]+")
_AROUND = all_words("around_documents")
_SECTION = re.compile(
    rf"(?:(?:{phrases('articles')}) )?(?:{phrases('sections')}|{phrases('portions')}|§) ?(?P<a>.+)"
    rf" (?:{phrases('of_which')}) (?P<b>.+?)"
    rf"|(?P<c>.+?) (?:{phrases('sections')}) (?:{phrases('of_which')}) (?P<d>.+)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\d+(?:\.\d+)*")
ENOUGH = 0.5  # of a document's words, if not all are said
NameWords = tuple[str, ...]


class NamedDocuments(Protocol):
    """What has a file's name."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=NamedDocuments)


@dataclass(frozen=True, slots=True)
class DocumentStretch:
    """A document, or a part of it."""

    document: Document
    sections: tuple[Section, ...]
    heading: str = ""  # of the part


def words_of(name: str) -> NameWords:
    """The words of a name, stemmed, without those that say that it is a document."""
    results = [stem(word) for word in _SEPARATORS.sub(" ", name.casefold()).split()]
    while results and results[0] in _AROUND:
        results.pop(0)
    while results and results[-1] in _AROUND:
        results.pop()
    return tuple(results)


def documents_named(subject: str, documents: Iterable[Document]) -> list[Document]:
    """Those that are called so; several where it cannot be told which is meant."""
    scored = _scored(subject, documents)
    best = max((score for score, _ in scored), default=0.0)
    return [document for score, document in scored if score == best] if best >= ENOUGH else []


def documents_hinted(subject: str, documents: Iterable[Document]) -> list[Document]:
    """Those of whose names all that is said is a part."""
    return [document for score, document in _scored(subject, documents) if score > 0]


def _scored(subject: str, documents: Iterable[Document]) -> list[tuple[float, Document]]:
    wanted = words_of(subject)
    return (
        [(_share_of_name(wanted, _names_of(document)), document) for document in documents]
        if wanted
        else []
    )


def files_named(text: str, files: Sequence[N]) -> list[N]:
    """The files whose names stand in a text, with their ending or without."""
    words = f" {' '.join(_SEPARATORS.sub(' ', text.casefold()).split())} "
    return [
        file for file in files if any(f" {name} " in words for name in _spoken_names(file.name))
    ]


def _spoken_names(name: str) -> list[str]:
    """`lease-scan.pdf` is "lease scan pdf" or "lease scan"; one word alone may mean anything."""
    path = PurePosixPath(name)
    forms = [
        " ".join(_SEPARATORS.sub(" ", form.casefold()).split()) for form in (path.name, path.stem)
    ]
    return [form for form in forms if " " in form]


def _names_of(document: Document) -> list[NameWords]:
    path = PurePosixPath(document.name)
    names = (document.title, path.stem, path.name, document.name)
    return [words_of(name) for name in names]


def _share_of_name(wanted: NameWords, names: Sequence[NameWords]) -> float:
    """2 for a whole name, else the share of a name that is said, if all that is said is of it."""
    if wanted in names:
        return 2.0
    wanted_words = set(wanted)
    return max(
        (len(wanted_words) / len(set(name)) for name in names if wanted_words <= set(name)),
        default=0.0,
    )


# ── Sections ─────────────────────────────────────────────────────────────────────────────────


def section_and_document(subject: str) -> tuple[str, str] | None:
    """ "section 2 of the handbook" as its two names."""
    match = _SECTION.fullmatch(subject)
    if match is None:
        return None
    section, document = match["a"] or match["c"], match["b"] or match["d"]
    return section, document


def part_called(
    heading: str, document: Document, sections: Sequence[Section]
) -> DocumentStretch | None:
    """The sections below the heading of that number or title."""
    for section in sections:
        for depth, title in enumerate(section.heading_path, start=1):
            if is_heading(heading, title):
                above = section.heading_path[:depth]
                readable = tuple(other for other in sections if other.heading_path[:depth] == above)
                return DocumentStretch(document, readable, title)
    return None


def is_heading(wanted: str, heading: str) -> bool:
    """Whether "2.1", or "refunds" of "2.1 Refunds", means this heading."""
    number = _NUMBERED.fullmatch(wanted.strip().rstrip("."))
    match = _NUMBERED.match(heading)
    if number is not None:
        return match is not None and match[0] == number[0]
    bare = heading[match.end() :] if match else heading
    return words_of(wanted) in (words_of(bare), words_of(heading)) and bool(words_of(wanted))


_UNNAMED = (
    "No document names “{}”. What was found is about something else, or calls it by another name."
)


LATELY = 6  # messages


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file that is not in the library, and why."""

    name: str
    reason: str  # begins with the name


class Remarks:
    """Notices about a question and what was found for it."""

    def __init__(
        self,
        unread: Callable[[str], Sequence[UnreadFile]],
        is_held: Callable[[str, Readable], bool],
        knows_english_only: bool,
    ) -> None:
        """`is_held` says whether any text holds a word, in whatever form."""
        self._unread = unread
        self._is_held = is_held
        self._knows_english_only = knows_english_only

    def __call__(
        self, session: SessionTranscript, question: str, sources: Sequence[Source], *, is_sure: bool
    ) -> list[Notice]:
        """Of an answer that is not sure also the files that it may have stood in."""
        notices = []
        if sources and (missing := self._unnamed(question, session.readable())):
            notices.append(Notice(NoticeKind.OTHER_PRODUCT, _UNNAMED.format(missing)))
        remark = other_language(question, sources) if self._knows_english_only else ""
        if remark and not self._repeats(session, remark):
            notices.append(Notice(NoticeKind.OTHER_LANGUAGE, remark))
        if not is_sure:
            failed = files_named(question, self._unread(session.owner))
            notices += [Notice(NoticeKind.UNREAD, file.reason) for file in failed]
        return notices

    def _repeats(self, session: SessionTranscript, text: str) -> bool:
        """Lately: once is enough."""
        answers = (message.answer for message in session.recent(LATELY))
        return any(notice.text == text for answer in answers if answer for notice in answer.notices)

    def _unnamed(self, question: str, readable: Readable) -> str:
        """The first name in a question of which no text holds a single word.

        Names with figures and short forms are left alone: `FY2023` may stand there as `fiscal
        2023`, `UN` in full; and languages that write nouns as names, or bend names so that the
        index does not know them again.
        """
        if spoken(question) != "en":
            return ""
        for name in find_names(question):
            words = re.sub(r"['’]s?$", "", name.text).split()
            is_plain = all(word.isalpha() and word.istitle() for word in words)
            if is_plain and not any(self._is_held(word, readable) for word in words):
                return " ".join(words)
        return ""


def other_language(question: str, sources: Sequence[Source]) -> str:
    """That question and passages are in two languages, or in one that the model does not know.

    "" where that is not sure.
    """
    question_code = spoken(question)
    read = Counter(spoken(f"{source.document_title} {source.passage}") for source in sources)
    speech = next((language for language in LANGUAGES if language.code == question_code), ENGLISH)
    if not question_code or not read or (question_code == "en" and read[question_code]):
        return ""
    if read[question_code]:
        return speech.speech["unknown_language"].format(found=speech.called[question_code])
    passages_code = read.most_common(1)[0][0]
    if not passages_code:
        return ""
    names = {"asked": speech.called[question_code], "found": speech.called[passages_code]}
    return speech.speech["other_language"].format(**names)


_LATER = jobs.alias("later")
_UNREAD = (
    select(jobs.c.subject, jobs.c.error, jobs.c.owner)
    .where(
        jobs.c.kind == "ingest",
        jobs.c.state == JobState.FAILED.value,
        ~exists().where(
            _LATER.c.kind == jobs.c.kind,
            _LATER.c.subject == jobs.c.subject,
            _LATER.c.collection_id == jobs.c.collection_id,
            _LATER.c.created_at > jobs.c.created_at,
        ),
        ~exists().where(
            documents.c.name == jobs.c.subject,
            documents.c.collection_id == jobs.c.collection_id,
            documents.c.ingested_at > jobs.c.created_at,
        ),
    )
    .order_by(jobs.c.subject)
)


class UnreadFiles:
    """What failed at its last try."""

    def __init__(self, engine: Engine, sees_all: Callable[[str], bool]) -> None:
        """`sees_all` says of an owner whether others' uploads may be told of."""
        self._engine = engine
        self._sees_all = sees_all

    def __call__(self, owner: str) -> list[UnreadFile]:
        """Those that an owner may know of, by name."""
        with reading(self._engine) as connection:
            rows = connection.execute(_UNREAD).all()
        everything = self._sees_all(owner)
        return [
            UnreadFile(row.subject, row.error or row.subject)
            for row in rows
            if everything or row.owner == owner
        ]
