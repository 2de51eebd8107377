"""What is said beside an answer that the library explains: why it may be a poor one."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from rag.language.languages import ENGLISH, LANGUAGES, spoken
from rag.language.names import find_names
from rag.library.mentions import files_named
from rag.library.unread_files import UnreadFile
from rag.records import Notice, NoticeKind, Readable, Source
from rag.seams import SessionHandle

_UNNAMED = (
    "No document names “{}”. What was found is about something else, or calls it by another name."
)


LATELY = 6  # messages


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
        self, session: SessionHandle, question: str, sources: Sequence[Source], *, is_sure: bool
    ) -> list[Notice]:
        """Of an answer that is not sure also the files that it may have stood in."""
        told = []
        if sources and (missing := self._unnamed(question, session.within())):
            told.append(Notice(NoticeKind.OTHER_PRODUCT, _UNNAMED.format(missing)))
        said = other_language(question, sources) if self._knows_english_only else ""
        if said and not self._was_told(session, said):
            told.append(Notice(NoticeKind.OTHER_LANGUAGE, said))
        if not is_sure:
            failed = files_named(question, self._unread(session.owner))
            told += [Notice(NoticeKind.UNREAD, each.reason) for each in failed]
        return told

    def _was_told(self, session: SessionHandle, text: str) -> bool:
        """Lately: once is enough."""
        answers = (each.answer for each in session.recent(LATELY))
        return any(notice.text == text for answer in answers if answer for notice in answer.notices)

    def _unnamed(self, question: str, within: Readable) -> str:
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
            if is_plain and not any(self._is_held(word, within) for word in words):
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
