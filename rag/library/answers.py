"""Questions about the library itself, answered from the database: see `rag.seams.DirectAnswers`.

SumBasic (Nenkova and Vanderwende, 2005): a statement is worth as much as its words are usual in
the text; what was said makes its words worth less, so that the next one says something else.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rag.chat.evidence import units_of
from rag.chat.markdown import cited
from rag.citations.markers import neutralise
from rag.citations.statements import depends
from rag.language.languages import phrases
from rag.language.words import content_words, language_of
from rag.library.questions import (
    MOST_LISTED,
    MOST_NEWEST,
    DocumentStretch,
    LibraryQuestion,
    LibraryTopic,
    Phrases,
    UnreadFile,
    courtesy,
    documents_hinted,
    documents_named,
    files_named,
    kinds_of,
    label_of,
    library_question,
    link,
    outline,
    part_called,
    section_and_document,
)
from rag.records import Chunk, Document, Hit, Offer, Readable, Resolution, Role, Section, Source
from rag.render.gate import in_words
from rag.seams import LIBRARY, DirectAnswer, OwnedSession, SessionHandle, SourceRegister
from rag.search.identifiers import NameMentions
from rag.search.passages import neighbourhood

FEWEST_WORDS = 5
MOST_WORDS = 60
ENOUGH_WORDS = 6  # that carry meaning: what has fewer says less
OPENS_SECTION = 1.3  # times as much: the first statement of a section often says what it is about
LEANS = 0.4  # … of one that only says what it says after the one before it
IN_A_LIST = 0.6
REPEATED_SECTION = 0.6  # … of one in a section that has been quoted already


@dataclass(frozen=True, slots=True)
class QuotedStretch:
    """A stretch of a section, word for word."""

    section: int  # its index
    heading: str  # the innermost above it
    start: int
    end: int
    text: str
    is_first: bool  # of its section
    is_entry: bool


def key_statements(sections: Sequence[Section], most: int) -> list[QuotedStretch]:
    """At most so many, in reading order."""
    results = [stretch for section in sections for stretch in statements_of(section)]
    words = [content_words(result.text) for result in results]
    counts = Counter(word for statement in words for word in statement)
    total = sum(counts.values()) or 1
    worth = {word: count / total for word, count in counts.items()}
    chosen: list[int] = []
    while len(chosen) < min(most, len(results)):
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
    """What can be quoted alone: sentences and entries, neither too short nor too long."""
    is_first = True
    for unit in units_of(section.text):
        if unit.kind != "row" and FEWEST_WORDS <= len(unit.text.split()) <= MOST_WORDS:
            heading = section.heading_path[-1] if section.heading_path else ""
            yield QuotedStretch(
                section.index,
                heading,
                unit.start,
                unit.end,
                unit.text,
                is_first,
                unit.kind == "entry",
            )
            is_first = False


MOST_STATEMENTS = 8
MOST_CITED = 10  # documents that mention something, each with a passage that does
FIRST_STATEMENTS = 2
MOST_TO_CHOOSE = 8  # documents of one name
_THIS = re.compile(phrases("this_document"), re.IGNORECASE)
_SIGN = re.compile(r"\A\(?\d{1,3}[.)]\s+")  # of an entry
_QUOTES = "\"'“”„‘’«»`"
_ARTICLE = re.compile(rf"(?:{phrases('articles')}) (?=\S)", re.IGNORECASE)
_EITHER = re.compile(rf" (?:{phrases('ands')}|{phrases('ors')}) ")
Unread = Callable[[str], Sequence[UnreadFile]]  # of an owner


class LibraryAnswers:
    """Tells what is in the library, from the library."""

    def __init__(
        self,
        mentions: NameMentions,
        unread: Unread,
        *,
        is_without_model: bool,
    ) -> None:
        self._mentions, self._documents = mentions, mentions.documents
        self._unread = unread
        self._is_without_model = is_without_model

    def answer(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> DirectAnswer | None:
        """The answer; None for a question to the documents."""
        if resolution.source_numbers:
            return None
        polite = courtesy(question) if self._is_without_model else None
        if polite is not None:
            kind, language = polite
            unchanged = Resolution(
                question, is_followup=False, method="unchanged"
            )  # nothing is searched
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
        return ()  # it is asked first, and what it says of itself it computes from nothing

    def _empty(self, session: OwnedSession, question: str, talk: str) -> DirectAnswer | None:
        """A model may still speak of the conversation; without one there is nothing to say."""
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
        size = speech.size(documents)
        n = speech.counted("document", len(documents))
        paragraphs = [speech.say("contents", n=n, kinds=kinds_of(documents), size=size)]
        paragraphs.append(speech.listed(documents))
        failed = self._unread(session.owner)
        if failed:
            paragraphs += [
                speech.say("unread", n=speech.counted("file", len(failed))),
                _reasons(failed),
            ]
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
        head = speech.say("unread", n=speech.counted("file", len(failed)))
        return _direct(f"{head}\n\n{_reasons(failed)}")

    # ── Who mentions it ──────────────────────────────────────────────────────────────────────

    def _mentioning(
        self, session: SourceRegister, topic: LibraryQuestion, speech: Phrases
    ) -> DirectAnswer | None:
        readable = session.readable()
        results = {
            asked_for: self._holding(asked_for, readable)
            for asked_for in _sought_names(topic.subject)
        }
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
        """By the id of their document, in the order of its names."""
        chunks_found = sorted(
            self._mentions.everywhere(words, readable), key=lambda chunk: chunk.document_name
        )
        of_each = groupby(chunks_found, key=lambda chunk: chunk.document_id)
        return {document_id: list(chunks) for document_id, chunks in of_each}

    def _documents_holding(
        self,
        session: SourceRegister,
        words: str,
        chunks: dict[str, list[Chunk]],
        speech: Phrases,
    ) -> tuple[str, list[Source]]:
        shown = in_words(words)
        if not chunks:
            return speech.say("nowhere", words=shown), []
        firsts = [chunk[0] for chunk in chunks.values()][:MOST_CITED]
        sources = self._register(session, firsts)
        numbers = {source.document_id: source.marker for source in sources}
        documents = {
            document.id: document for document in self._documents.documents(session.readable())
        }
        entries = [
            f"- {label_of(documents[key])}: {speech.counted('place', len(those))}"
            f" {numbers.get(key, '')}".rstrip()
            for key, those in chunks.items()
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
        if not stretches:
            return None
        if len(stretches) > 1:
            if len(stretches) > MOST_TO_CHOOSE:
                return None
            choice = speech.listed([stretch.document for stretch in stretches], MOST_LISTED)
            return _direct(f"{speech.say('which')}\n\n{choice}", declined=True)
        if topic.kind is LibraryTopic.SUMMARY:
            return self._summary(session, stretches[0], speech) or self._about(
                session, stretches[0], speech
            )
        return self._about(session, stretches[0], speech)

    def _stretches_of(
        self, session: SessionHandle, topic: LibraryQuestion
    ) -> list[DocumentStretch]:
        """The documents, or sections of them, that the subject may be."""
        readable = session.readable()
        if _THIS.fullmatch(topic.subject):
            return self._whole(self._spoken_of(session), readable)
        documents = self._documents.documents(readable)
        named = documents_named(topic.subject, documents)
        if named:
            return self._whole(named, readable)
        both = section_and_document(topic.subject)
        if both is not None:
            heading, document = both
            named = documents_named(document, documents) or documents_hinted(document, documents)
            if _THIS.fullmatch(document):
                named = self._spoken_of(session)
            parts = (part_called(heading, *self._read(candidate, readable)) for candidate in named)
            return [part for part in parts if part is not None]
        if topic.kind is not LibraryTopic.SUMMARY:
            return []
        return self._whole(documents_hinted(topic.subject, documents), readable)

    def _whole(self, documents: Sequence[Document], readable: Readable) -> list[DocumentStretch]:
        return [DocumentStretch(*self._read(document, readable)) for document in documents]

    def _read(self, document: Document, readable: Readable) -> tuple[Document, tuple[Section, ...]]:
        return document, tuple(self._documents.sections(document.id, readable))

    def _spoken_of(self, session: SessionHandle) -> list[Document]:
        """The document that the last answer cited first; the only one there is."""
        documents = self._documents.documents(session.readable())
        for message in reversed(session.recent(6)):
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
        quoted, sources = self._quoted(
            session,
            document,
            [replace(statement, heading="") for statement in first[:FIRST_STATEMENTS]],
        )
        if quoted:
            paragraphs += [speech.say("begins"), "\n".join(quoted)]
        headings = outline(document, sections)
        if headings:
            paragraphs += [speech.say("outline"), headings]
        return _direct("\n\n".join(paragraphs), sources)

    def _summary(
        self, session: SourceRegister, stretch: DocumentStretch, speech: Phrases
    ) -> DirectAnswer | None:
        statements = key_statements(stretch.sections, MOST_STATEMENTS)
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
        """Each as an entry of a list, with the number of the chunk that it begins in."""
        chunks = self._documents.chunks_of(document.id, session.readable())
        places = [(statement, _chunk_at(chunks, statement)) for statement in statements]
        placed = [(quotable, chunk) for quotable, chunk in places if chunk is not None]
        sources = self._register(session, list(dict.fromkeys(chunk for _, chunk in placed)))
        numbers = {source.chunk_id: source.number for source in sources}
        entries = [
            f"- {_cited_quotation(quotable, numbers[chunk.id])}" for quotable, chunk in placed
        ]
        return entries, tuple(sources)


def _direct(text: str, sources: tuple[Source, ...] = (), *, declined: bool = False) -> DirectAnswer:
    return DirectAnswer(text, sources, made_by=LIBRARY, declined=declined)


def _cited_quotation(statement: QuotedStretch, number: int) -> str:
    """Below its heading, which may be the question that it answers; without the list's sign."""
    words = cited(in_words(neutralise(_SIGN.sub("", statement.text))), number)
    heading = in_words(neutralise(statement.heading))
    return f"*{heading}{'' if heading.endswith('?') else ':'}* {words}" if heading else words


def _reasons(failed: Sequence[UnreadFile]) -> str:
    return "\n".join(f"- {in_words(file.reason)}" for file in failed)


def _sought_names(subject: str) -> list[str]:
    """What is looked for: the subject, or each of two that are named; quotes hold it together."""
    if subject[0] in _QUOTES and not set(_QUOTES) & set(subject[1:-1]):
        return [subject.strip(_QUOTES)]
    return [_without_article(part) for part in _EITHER.split(subject)]


def _without_article(subject: str) -> str:
    return _ARTICLE.sub("", subject.strip(f" {_QUOTES}"), count=1)


def _chunk_at(chunks: Sequence[Chunk], statement: QuotedStretch) -> Chunk | None:
    of_section = (chunk for chunk in chunks if chunk.section_index == statement.section)
    return next((candidate for candidate in of_section if candidate.end > statement.start), None)
