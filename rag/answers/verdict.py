"""Yes or no, where one sentence of a source says it in the question's own words."""

import re

from rag.answers.evidence import Scored
from rag.answers.passages import Kind
from rag.answers.questions import Question
from rag.answers.words import sequence

_DENIES = re.compile(r"\b(?:not|no|cannot|never|neither|nor|none)\b|n['’]t\b", re.IGNORECASE)
# Words that bound a statement, so that it is neither a plain yes nor a plain no.
_BOUNDED = re.compile(
    r"\b(only|if|unless|except|but|although|though|however|should|might|may|planned|until|before|"
    r"when|while|some|most|few|rarely|often|longer|instead|too|yes|without|than)\b|[;:?]|^no\b,?",
    re.IGNORECASE,
)
_LONGEST = 25  # words of a sentence that says one thing


def verdict(question: Question, found: Scored) -> str:
    """`Yes`, `No`, or nothing unless it is plain.

    The sentence must have all the question's words in the question's order: other words might
    mean the same, but then it is for the reader to say so.
    """
    text = found.piece.text
    if found.piece.kind not in (Kind.SENTENCE, Kind.ENTRY) or found.signs.product < 0:
        return ""
    if not question.asks_whether or len(text.split()) > _LONGEST:
        return ""
    asked = sequence(question.text)
    denials = len(_DENIES.findall(text))
    if not asked or not _is_within(asked, sequence(text)) or denials > 1 or _BOUNDED.search(text):
        return ""
    return "No" if denials else "Yes"


def _is_within(asked: tuple[str, ...], told: tuple[str, ...]) -> bool:
    rest = iter(told)
    return all(term in rest for term in asked)
