"""What a question asks of the library itself, if it does: told by its form, not by its subject.

A form matches the whole question, so that a question which merely holds such words stays one for
the documents.
"""

from dataclasses import dataclass
from enum import StrEnum

from rag.language.languages import ENGLISH, LANGUAGES, Language, phrases
from rag.language.lazy_patterns import re


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
