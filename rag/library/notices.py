"""What is said beside an answer that the library explains: why it may be a poor one."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, exists, select

from rag.db import documents, jobs, reading
from rag.language.languages import ENGLISH, LANGUAGES, spoken
from rag.language.names import find_names
from rag.library.mentions import files_named
from rag.records import JobState, Notice, NoticeKind, Readable, Source
from rag.seams import SessionTranscript

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
        said = other_language(question, sources) if self._knows_english_only else ""
        if said and not self._repeats(session, said):
            notices.append(Notice(NoticeKind.OTHER_LANGUAGE, said))
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
    asked = spoken(question)
    read = Counter(spoken(f"{source.document_title} {source.passage}") for source in sources)
    speech = next((language for language in LANGUAGES if language.code == asked), ENGLISH)
    if not asked or not read or (asked == "en" and read[asked]):
        return ""
    if read[asked]:
        return speech.speech["unknown_language"].format(found=speech.called[asked])
    found = read.most_common(1)[0][0]
    if not found:
        return ""
    names = {"asked": speech.called[asked], "found": speech.called[found]}
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
