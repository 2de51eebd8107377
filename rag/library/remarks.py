"""What is said beside an answer that the library explains: why it may be a poor one."""

from collections import Counter
from collections.abc import Callable, Sequence

from rag.library.naming import files_named
from rag.library.unread import UnreadFile
from rag.records import Notice, NoticeKind, Source
from rag.text.languages.spoken import spoken

LANGUAGES = {
    "en": ("English", "Englisch"),
    "de": ("German", "Deutsch"),
    "fr": ("French", "Französisch"),
    "es": ("Spanish", "Spanisch"),
    "it": ("Italian", "Italienisch"),
    "nl": ("Dutch", "Niederländisch"),
    "pt": ("Portuguese", "Portugiesisch"),
}
_OTHER_LANGUAGE = (
    "The question is in {asked}, the passages that were found are in {found}. The packaged "
    "embedding model knows English only, so that they were found by the words and names that both "
    "have. Ask in {found}, or set a multilingual embedding.model (in the settings).",
    "Die Frage ist auf {asked}, die gefundenen Stellen sind auf {found}. Das mitgelieferte "
    "Embedding-Modell kennt nur Englisch; gefunden wird so nur über gemeinsame Wörter und Namen. "
    "Fragen Sie auf {found}, oder setzen Sie ein mehrsprachiges embedding.model (Einstellungen).",
)


class Remarks:
    """Notices about a question and what was found for it."""

    def __init__(
        self, unread: Callable[[str], Sequence[UnreadFile]], knows_english_only: bool
    ) -> None:
        self._unread = unread
        self._knows_english_only = knows_english_only

    def __call__(
        self, owner: str, question: str, sources: Sequence[Source], *, is_sure: bool
    ) -> list[Notice]:
        """Of an answer that is not sure also the files that it may have stood in."""
        told = []
        if self._knows_english_only and (said := other_language(question, sources)):
            told.append(Notice(NoticeKind.OTHER_LANGUAGE, said))
        if not is_sure:
            failed = files_named(question, self._unread(owner))
            told += [Notice(NoticeKind.UNREAD, each.reason) for each in failed]
        return told


def other_language(question: str, sources: Sequence[Source]) -> str:
    """That question and passages are in different languages; "" where that is not sure."""
    asked = spoken(question)
    read = Counter(spoken(f"{each.document_title} {each.passage}") for each in sources)
    if not asked or not read or read[asked]:
        return ""
    found = read.most_common(1)[0][0]
    if not found:
        return ""
    in_german = asked == "de"
    names = {key: LANGUAGES[key][in_german] for key in (asked, found)}
    return _OTHER_LANGUAGE[in_german].format(asked=names[asked], found=names[found])
