"""Recognises questions about the library itself, and answers them.

A form matches the whole question, so that a question which merely contains such words remains one
for the documents.

Summaries use SumBasic (Nenkova and Vanderwende, 2005): a statement is worth as much as its words
are frequent in the text; a chosen statement lowers the worth of its words, so that the next one
says something else.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from pathlib import PurePosixPath
from urllib.parse import quote

from sqlalchemy import Engine, exists, select

from rag.chat.card import cited
from rag.chat.evidence import units_of
from rag.citations.markers import neutralise
from rag.citations.statements import depends
from rag.db import documents, jobs, reading
from rag.documents.reports import kind_in_words, size_in_words
from rag.language.lazy_patterns import re
from rag.language.names import find_names
from rag.language.words import (
    ENGLISH,
    LANGUAGES,
    Language,
    all_words,
    content_words,
    language_of,
    phrases,
    spoken,
    stem,
)
from rag.records import (
    Chunk,
    Document,
    Hit,
    JobState,
    Notice,
    NoticeKind,
    Offer,
    Readable,
    Resolution,
    Role,
    Section,
    Source,
)
from rag.render.gate import in_words
from rag.seams import (
    LIBRARY,
    DirectAnswer,
    OwnedSession,
    SessionHandle,
    SessionTranscript,
    SourceRegister,
)
from rag.search.lexical import NameMentions
from rag.search.passages import neighbourhood


class LibraryTopic(StrEnum):
    """What a question about the library asks for."""

    CONTENTS = "contents"
    NEWEST = "newest"
    MENTIONS = "mentions"
    TOPIC = "topic"  # as MENTIONS, but of the thing rather than of the word
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
# Whole messages that are no questions to the documents, with their kind.
_COURTESIES = {
    text: (kind, language)
    for language in reversed(LANGUAGES)
    for kind, texts in language.manners.items()
    for text in texts
}
LONGEST = 200  # characters; a longer question is not about the library


def courtesy(message: str) -> tuple[str, Language] | None:
    """Return the kind and language of a message that only greets, thanks, or asks for help."""
    return _COURTESIES.get(message.strip().strip("?!.,:;) ").lower())


def library_question(question: str) -> LibraryQuestion | None:
    """Return the question about the library; None for a question to the documents."""
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
    """The phrases of one language."""

    def __init__(self, language: Language = ENGLISH) -> None:
        self._words = language.speech

    def say(self, key: str, **values: object) -> str:
        return self._words[key].format(**values)

    def counted(self, one: str, count: int) -> str:
        return self._words[one] if count == 1 else self._words[f"{one}s"].format(n=f"{count:,}")

    def facts(self, document: Document, *more: str) -> str:
        """Return a document's kind, size and date, in one line."""
        when = document.ingested_at
        month = self._words["months"].split()[when.month - 1]
        date = self.say("date", day=when.day, month=month, year=when.year)
        size = size_in_words(document.size_bytes)
        return " · ".join(
            (kind_in_words(document.media_type), size, *more, self.say("added", date=date))
        )

    def listed(self, documents: Sequence[Document]) -> str:
        lines = [f"- {label_of(one)}: {self.facts(one)}" for one in documents[:MOST_LISTED]]
        rest = len(documents) - MOST_LISTED
        if rest > 0:
            lines.append(f"\n{self.say('more', n=f'{rest:,}')}")
        return "\n".join(lines)


def label_of(document: Document) -> str:
    """Return the document's title as a link, and its file's name."""
    name = "" if document.name == document.title else f" ({in_words(document.name)})"
    return f"{link(document)}{name}"


def link(document: Document, position: int | None = None, text: str = "") -> str:
    """Return a link to the document's page; its text is never a mere number, like a citation."""
    shown = in_words(text or document.title).strip()
    if shown.isdigit():
        shown = in_words(document.name) if not text else f"§ {shown}"
    place = "" if position is None else f"?at={position}"
    return f"[{shown or in_words(document.name)}](/documents/{quote(document.id)}{place})"


def kinds_of(documents: Iterable[Document]) -> str:
    """Return such as "12 PDF, 3 Word", the most frequent first."""
    counts = Counter(kind_in_words(document.media_type) for document in documents)
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())


def outline(document: Document, sections: Sequence[Section]) -> str:
    """Return the document's headings as a list with links, as deep as there is room for."""
    first: dict[tuple[str, ...], int] = {}
    for section in sections:
        for depth in range(1, len(section.heading_path) + 1):
            first.setdefault(section.heading_path[:depth], section.index)
    tops = [path for path in first if len(path) == 1]
    if len(tops) == 1 and len(first) > 1:  # it repeats the title
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
ENOUGH = 0.5  # share of a name's words that is enough


@dataclass(frozen=True, slots=True)
class DocumentStretch:
    """A document, or a part of it."""

    document: Document
    sections: Sequence[Section]
    heading: str = ""  # of the part, "" for all


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file that is not in the library, and why."""

    name: str
    reason: str  # begins with the name


def _plain_words(text: str) -> list[str]:
    return _SEPARATORS.sub(" ", text.casefold()).split()


def words_of(name: str) -> tuple[str, ...]:
    """Return the stemmed words of a name, without those such as "document" around it."""
    results = [stem(word) for word in _plain_words(name)]
    while results and results[0] in _AROUND:
        results.pop(0)
    while results and results[-1] in _AROUND:
        results.pop()
    return tuple(results)


def documents_named(subject: str, documents: Iterable[Document]) -> list[Document]:
    """Return the documents with this name; several if it is ambiguous."""
    scored = _scored(subject, documents)
    best = max((score for score, _ in scored), default=0.0)
    return [document for score, document in scored if score == best] if best >= ENOUGH else []


def documents_hinted(subject: str, documents: Iterable[Document]) -> list[Document]:
    """Return the documents whose names contain all words of the subject."""
    return [document for score, document in _scored(subject, documents) if score > 0]


def _scored(subject: str, documents: Iterable[Document]) -> list[tuple[float, Document]]:
    """Score each document: 2 for its whole name, else the share of a name that is said.

    0 with other words; none for a subject without words.
    """
    whole = words_of(subject)
    if not whole:
        return []
    words, scored = set(whole), []
    for document in documents:
        path = PurePosixPath(document.name)
        names = [words_of(name) for name in (document.title, path.stem, path.name, document.name)]
        shares = [len(words) / len(set(name)) for name in names if words <= set(name)]
        scored.append((2.0 if whole in names else max(shares, default=0.0), document))
    return scored


def files_named(text: str, files: Sequence[UnreadFile]) -> list[UnreadFile]:
    """Return the files whose names stand in a text, with their ending or without.

    `lease-scan.pdf` is named by "lease scan pdf" and "lease scan"; none by a single word.
    """
    words = f" {' '.join(_plain_words(text))} "
    results = []
    for file in files:
        path = PurePosixPath(file.name)
        names = [" ".join(_plain_words(name)) for name in (path.name, path.stem)]
        if any(" " in name and f" {name} " in words for name in names):
            results.append(file)
    return results


# ── Sections ─────────────────────────────────────────────────────────────────────────────────


def part_called(
    heading: str, document: Document, sections: Sequence[Section]
) -> DocumentStretch | None:
    """Return the sections below the heading of that number or title, or None."""
    for section in sections:
        for depth, title in enumerate(section.heading_path, start=1):
            if is_heading(heading, title):
                above = section.heading_path[:depth]
                below = [other for other in sections if other.heading_path[:depth] == above]
                return DocumentStretch(document, below, title)
    return None


def is_heading(wanted: str, heading: str) -> bool:
    """Return whether "2.1", or "refunds" of "2.1 Refunds", means this heading."""
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


class Remarks:
    """Notices about a question and the passages found for it."""

    def __init__(
        self,
        unread: Callable[[str], Sequence[UnreadFile]],
        is_held: Callable[[str, Readable], bool],
        knows_english_only: bool,
    ) -> None:
        """`is_held` says whether any text holds a word, in any form."""
        self._unread = unread
        self._is_held = is_held
        self._knows_english_only = knows_english_only

    def __call__(
        self, session: SessionTranscript, question: str, sources: Sequence[Source], *, is_sure: bool
    ) -> list[Notice]:
        """Return the notices; if the answer is not sure, also files that could hold it."""
        notices = []
        if sources and (missing := self._unnamed(question, session.readable())):
            notices.append(Notice(NoticeKind.OTHER_PRODUCT, _UNNAMED.format(missing)))
        remark = other_language(question, sources) if self._knows_english_only else ""
        if remark:
            answers = [message.answer for message in session.recent(LATELY) if message.answer]
            if not any(notice.text == remark for old in answers for notice in old.notices):
                notices.append(Notice(NoticeKind.OTHER_LANGUAGE, remark))
        if not is_sure:
            failed = files_named(question, self._unread(session.owner))
            notices += [Notice(NoticeKind.UNREAD, file.reason) for file in failed]
        return notices

    def _unnamed(self, question: str, readable: Readable) -> str:
        """Return the first name in a question of which no text holds a single word, else "".

        Names with digits and abbreviations are left out: `FY2023` may stand there as `fiscal 2023`,
        `UN` in full; so are languages that capitalise nouns, or inflect names beyond recognition by
        the index.
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
    """Return a notice if question and passages are in two languages, or in an unknown one.

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


def unread_files(engine: Engine, sees_all: Callable[[str], bool], owner: str) -> list[UnreadFile]:
    """Return the uploads that failed at their last try and that an owner may see, by name.

    `sees_all` says whether an owner may see others' uploads.
    """
    with reading(engine) as connection:
        rows = connection.execute(_UNREAD).all()
    is_all = sees_all(owner)
    return [
        UnreadFile(row.subject, row.error or row.subject)
        for row in rows
        if is_all or row.owner == owner
    ]


FEWEST_WORDS = 5
MOST_WORDS = 60
ENOUGH_WORDS = 6  # content words; a statement with fewer says less
OPENS_SECTION = 1.3  # factor for the first statement of a section, which often names its subject
LEANS = 0.4  # factor for a statement that depends on the one before it
IN_A_LIST = 0.6
REPEATED_SECTION = 0.6  # factor for a statement in a section that is already quoted


@dataclass(frozen=True, slots=True)
class QuotedStretch:
    """A stretch of a section, word for word."""

    section: int  # its index
    heading: str  # the innermost above it
    start: int
    text: str
    is_first: bool  # of its section
    is_entry: bool


def key_statements(sections: Sequence[Section]) -> list[QuotedStretch]:
    """Return at most `MOST_STATEMENTS` statements, in reading order."""
    results = [stretch for section in sections for stretch in statements_of(section)]
    words = [content_words(result.text) for result in results]
    counts = Counter(word for statement in words for word in statement)
    total = sum(counts.values()) or 1
    worth = {word: count / total for word, count in counts.items()}
    chosen: list[int] = []
    while len(chosen) < min(MOST_STATEMENTS, len(results)):
        quoted = {results[index].section for index in chosen}
        left = (index for index in range(len(results)) if index not in chosen)
        best = max(left, key=lambda index: _value(results[index], words[index], worth, quoted))
        chosen.append(best)
        for word in set(words[best]):
            worth[word] = worth[word] ** 2
    return [results[index] for index in sorted(chosen)]


def _value(
    statement: QuotedStretch, words: Sequence[str], worth: dict[str, float], quoted: set[int]
) -> float:
    mean = sum(worth[word] for word in words) / max(len(words), ENOUGH_WORDS)
    if statement.is_first:
        mean *= OPENS_SECTION
    elif depends(statement.text):
        mean *= LEANS
    if statement.is_entry:
        mean *= IN_A_LIST
    return mean * (REPEATED_SECTION if statement.section in quoted else 1.0)


def statements_of(section: Section) -> Iterator[QuotedStretch]:
    """Yield what can be quoted alone: sentences and list items, neither too short nor long."""
    is_first = True
    for unit in units_of(section.text):
        if unit.kind != "row" and FEWEST_WORDS <= len(unit.text.split()) <= MOST_WORDS:
            heading = section.heading_path[-1] if section.heading_path else ""
            is_entry = unit.kind == "entry"
            yield QuotedStretch(section.index, heading, unit.start, unit.text, is_first, is_entry)
            is_first = False


MOST_STATEMENTS = 8
MOST_CITED = 10  # documents that mention a name, each with a passage
FIRST_STATEMENTS = 2
MOST_TO_CHOOSE = 8  # documents of one name
_THIS = re.compile(phrases("this_document"), re.IGNORECASE)
_SIGN = re.compile(r"\A\(?\d{1,3}[.)]\s+")  # the number of a list item
_QUOTES = "\"'“”„‘’«»`"
_ARTICLE = re.compile(rf"(?:{phrases('articles')}) (?=\S)", re.IGNORECASE)
_EITHER = re.compile(rf" (?:{phrases('ands')}|{phrases('ors')}) ")
Unread = Callable[[str], Sequence[UnreadFile]]  # by owner


class LibraryAnswers:
    """Answers questions about the library from its database."""

    def __init__(self, mentions: NameMentions, unread: Unread, *, is_without_model: bool) -> None:
        self._mentions, self._documents = mentions, mentions.documents
        self._unread = unread
        self._is_without_model = is_without_model

    def answer(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> DirectAnswer | None:
        """Return the answer; None for a question to the documents."""
        if resolution.source_numbers:
            return None
        polite = courtesy(question) if self._is_without_model else None
        if polite is not None:
            kind, language = polite
            unchanged = Resolution(question, is_followup=False, method="unchanged")  # no search
            return replace(_direct(Phrases(language).say(kind)), resolution=unchanged)
        texts = dict.fromkeys((question, resolution.query))
        topic = next(filter(None, map(library_question, texts)), None)
        if topic is None:
            return self._empty(session, question, resolution.talk)
        speech = Phrases(topic.language)
        if topic.kind is LibraryTopic.UNREAD:
            return self._not_read(session, topic, speech)
        if self._documents.is_empty(session.readable()):
            return _direct(speech.say("empty"), declined=True)
        if topic.kind in (LibraryTopic.CONTENTS, LibraryTopic.NEWEST):
            return self._contents(session, topic, speech)
        if topic.kind in (LibraryTopic.MENTIONS, LibraryTopic.TOPIC):
            return self._mentioning(session, topic, speech)
        return self._of_document(session, topic, speech)

    def readings(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> tuple[Offer, ...]:
        return ()  # it is asked first, and has no other readings

    def _empty(self, session: OwnedSession, question: str, talk: str) -> DirectAnswer | None:
        """Answer for an empty library without a model; None otherwise.

        A model may still talk about the session.
        """
        if not self._is_without_model or not self._documents.is_empty(session.readable()):
            return None
        speech = Phrases(language_of(question, talk))
        return _direct(speech.say("empty"), declined=True)

    # ── What is in it ────────────────────────────────────────────────────────────────────────

    def _contents(
        self, session: OwnedSession, topic: LibraryQuestion, speech: Phrases
    ) -> DirectAnswer:
        documents = self._documents.documents(session.readable())
        if topic.kind is LibraryTopic.NEWEST:
            newest = sorted(documents, key=lambda document: document.ingested_at, reverse=True)
            return _direct(f"{speech.say('newest')}\n\n{speech.listed(newest[:MOST_NEWEST])}")
        size = size_in_words(sum(document.size_bytes for document in documents))
        n = speech.counted("document", len(documents))
        head = speech.say("contents", n=n, kinds=kinds_of(documents), size=size)
        paragraphs = [head, speech.listed(documents)]
        failed = self._unread(session.owner)
        if failed:
            paragraphs.append(_unread_part(failed, speech))
        return _direct("\n\n".join(paragraphs))

    def _not_read(
        self, session: OwnedSession, topic: LibraryQuestion, speech: Phrases
    ) -> DirectAnswer | None:
        failed = self._unread(session.owner)
        if topic.subject:
            failed = files_named(topic.subject, failed)
            return _direct(_reasons(failed)) if failed else None
        if not failed:
            return _direct(speech.say("all_read"))
        return _direct(_unread_part(failed, speech))

    # ── Who mentions it ──────────────────────────────────────────────────────────────────────

    def _mentioning(
        self, session: SourceRegister, topic: LibraryQuestion, speech: Phrases
    ) -> DirectAnswer | None:
        readable = session.readable()
        results = {name: self._holding(name, readable) for name in _sought_names(topic.subject)}
        if len(results) > 1 and not all(results.values()):
            results = {topic.subject: self._holding(_without_article(topic.subject), readable)}
        if topic.kind is LibraryTopic.TOPIC and not all(results.values()):
            return None
        paragraphs: list[str] = []
        sources: list[Source] = []
        for words, chunks in results.items():
            paragraph, cited_here = self._documents_holding(session, words, chunks, speech)
            paragraphs.append(paragraph)
            sources += cited_here
        return _direct("\n\n".join(paragraphs), tuple(sources), declined=not any(results.values()))

    def _holding(self, words: str, readable: Readable) -> dict[str, list[Chunk]]:
        """Return the chunks with the words, by document id, in the order of documents' names."""
        chunks = self._mentions.everywhere(words, readable)
        chunks.sort(key=lambda chunk: chunk.document_name)
        by_document = groupby(chunks, key=lambda chunk: chunk.document_id)
        return {document_id: list(of_document) for document_id, of_document in by_document}

    def _documents_holding(
        self, session: SourceRegister, words: str, chunks: dict[str, list[Chunk]], speech: Phrases
    ) -> tuple[str, list[Source]]:
        shown = in_words(words)
        if not chunks:
            return speech.say("nowhere", words=shown), []
        firsts = [of_document[0] for of_document in chunks.values()][:MOST_CITED]
        sources = self._register(session, firsts)
        markers = {source.document_id: source.marker for source in sources}
        documents = {one.id: one for one in self._documents.documents(session.readable())}
        entries = [
            f"- {label_of(documents[key])}: {speech.counted('place', len(of_document))}"
            f" {markers.get(key, '')}".rstrip()
            for key, of_document in chunks.items()
            if key in documents
        ]
        n = speech.counted("document", len(chunks))
        head = speech.say("mention_one" if len(chunks) == 1 else "mention", n=n, words=shown)
        return "\n".join([head, "", *entries]), sources

    def _register(self, session: SourceRegister, chunks: Sequence[Chunk]) -> list[Source]:
        keys = list(dict.fromkeys((chunk.document_id, chunk.section_index) for chunk in chunks))
        texts = self._documents.section_texts(keys, session.readable())
        hits = []
        for chunk in chunks:
            text = texts.get((chunk.document_id, chunk.section_index), chunk.text)
            start, end = neighbourhood(text, chunk.start, chunk.end)
            hits.append(Hit(chunk, 1.0, text[start:end], start, end, 1.0))
        return session.register(hits)

    # ── One document ─────────────────────────────────────────────────────────────────────────

    def _of_document(
        self, session: SessionHandle, topic: LibraryQuestion, speech: Phrases
    ) -> DirectAnswer | None:
        failed = files_named(topic.subject, self._unread(session.owner))
        if failed:
            return _direct(_reasons(failed), declined=True)
        stretches = self._stretches_of(session, topic)
        if not stretches or len(stretches) > MOST_TO_CHOOSE:
            return None
        if len(stretches) > 1:
            choice = speech.listed([stretch.document for stretch in stretches])
            return _direct(f"{speech.say('which')}\n\n{choice}", declined=True)
        [stretch] = stretches
        is_summary = topic.kind is LibraryTopic.SUMMARY
        summary = self._summary(session, stretch, speech) if is_summary else None
        return summary or self._about(session, stretch, speech)

    def _stretches_of(
        self, session: SessionHandle, topic: LibraryQuestion
    ) -> list[DocumentStretch]:
        """Return the documents, or sections of them, that the subject may name."""
        readable = session.readable()
        if _THIS.fullmatch(topic.subject):
            return self._whole(self._spoken_of(session), readable)
        documents = self._documents.documents(readable)
        candidates = documents_named(topic.subject, documents)
        if candidates:
            return self._whole(candidates, readable)
        part_of = _SECTION.fullmatch(topic.subject)
        if part_of is not None:  # such as "section 2 of the handbook"
            heading, document = part_of["a"] or part_of["c"], part_of["b"] or part_of["d"]
            candidates = documents_named(document, documents)
            candidates = candidates or documents_hinted(document, documents)
            if _THIS.fullmatch(document):
                candidates = self._spoken_of(session)
            parts = (
                part_called(heading, one.document, one.sections)
                for one in self._whole(candidates, readable)
            )
            return [part for part in parts if part is not None]
        if topic.kind is not LibraryTopic.SUMMARY:
            return []
        return self._whole(documents_hinted(topic.subject, documents), readable)

    def _whole(self, documents: Sequence[Document], readable: Readable) -> list[DocumentStretch]:
        return [
            DocumentStretch(document, self._documents.sections(document.id, readable))
            for document in documents
        ]

    def _spoken_of(self, session: SessionHandle) -> list[Document]:
        """Return the document that the last answer cited first; else the only one there is."""
        documents = self._documents.documents(session.readable())
        for message in reversed(session.recent(LATELY)):
            if message.role == Role.ASSISTANT and message.answer and message.answer.citations:
                number = message.answer.citations[0].number
                ids = {source.document_id for source in session.sources([number])}
                return [document for document in documents if document.id in ids]
        return documents if len(documents) == 1 else []

    def _about(
        self, session: SourceRegister, stretch: DocumentStretch, speech: Phrases
    ) -> DirectAnswer:
        document, sections = stretch.document, stretch.sections
        pages = max((section.page or 0 for section in sections), default=0)
        count = ("page", pages) if pages > 1 else ("section", len(sections))
        facts = speech.facts(document, speech.counted(*count))
        paragraphs = [f"{label_of(document)}: {facts}."]
        first = [statement for section in sections[:3] for statement in statements_of(section)]
        statements = [replace(statement, heading="") for statement in first[:FIRST_STATEMENTS]]
        quoted, sources = self._quoted(session, document, statements)
        if quoted:
            paragraphs += [speech.say("begins"), "\n".join(quoted)]
        headings = outline(document, sections)
        if headings:
            paragraphs += [speech.say("outline"), headings]
        return _direct("\n\n".join(paragraphs), sources)

    def _summary(
        self, session: SourceRegister, stretch: DocumentStretch, speech: Phrases
    ) -> DirectAnswer | None:
        statements = key_statements(stretch.sections)
        if len({statement.heading for statement in statements}) == 1:
            statements = [replace(statement, heading="") for statement in statements]
        quoted, sources = self._quoted(session, stretch.document, statements)
        if not quoted:
            return None
        title = link(stretch.document)
        if stretch.heading:
            title = speech.say("part", title=title, heading=in_words(stretch.heading))
        head = speech.say("summary", title=title)
        return _direct("\n\n".join([head, "\n".join(quoted)]), sources)

    def _quoted(
        self, session: SourceRegister, document: Document, statements: Sequence[QuotedStretch]
    ) -> tuple[list[str], tuple[Source, ...]]:
        """Return each statement as a list item, with the number of the chunk that it begins in."""
        chunks = self._documents.chunks_of(document.id, session.readable())
        placed: list[tuple[QuotedStretch, Chunk]] = []
        for statement in statements:
            for chunk in chunks:
                if chunk.section_index == statement.section and chunk.end > statement.start:
                    placed.append((statement, chunk))
                    break
        sources = self._register(session, list(dict.fromkeys(chunk for _, chunk in placed)))
        numbers = {source.chunk_id: source.number for source in sources}
        entries = [
            f"- {_cited_quotation(statement, numbers[chunk.id])}" for statement, chunk in placed
        ]
        return entries, tuple(sources)


def _direct(text: str, sources: tuple[Source, ...] = (), *, declined: bool = False) -> DirectAnswer:
    return DirectAnswer(text, sources, made_by=LIBRARY, declined=declined)


def _cited_quotation(statement: QuotedStretch, number: int) -> str:
    """Return the quotation below its heading, which may be its question."""
    words = cited(in_words(neutralise(_SIGN.sub("", statement.text))), number)
    heading = in_words(neutralise(statement.heading))
    return f"*{heading}{'' if heading.endswith('?') else ':'}* {words}" if heading else words


def _reasons(failed: Sequence[UnreadFile]) -> str:
    return "\n".join(f"- {in_words(file.reason)}" for file in failed)


def _unread_part(failed: Sequence[UnreadFile], speech: Phrases) -> str:
    head = speech.say("unread", n=speech.counted("file", len(failed)))
    return f"{head}\n\n{_reasons(failed)}"


def _sought_names(subject: str) -> list[str]:
    """Return the subject, or each of two names in it; quotes keep it whole."""
    if subject[0] in _QUOTES and not set(_QUOTES) & set(subject[1:-1]):
        return [subject.strip(_QUOTES)]
    return [_without_article(part) for part in _EITHER.split(subject)]


def _without_article(subject: str) -> str:
    return _ARTICLE.sub("", subject.strip(f" {_QUOTES}"), count=1)
