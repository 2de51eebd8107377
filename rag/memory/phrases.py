"""What stands around a summary and around what is brought back, in the language of the talk.

The fence and the title are the same in every language, so that our own output is known again.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from rag.language.languages import read_lists, spoken

OPENS, CLOSES = "<earlier_turns>", "</earlier_turns>"
_TAG = re.compile(r"<(?=\s*/?\s*earlier_turns)", re.IGNORECASE)
READ = 2_000  # characters that tell the language


@dataclass(frozen=True, slots=True)
class SummaryPhrases:
    """The scaffolding of one language."""

    notes: str
    about: str
    answered: str
    open: str
    sources: str
    products: str
    earlier: str
    user: str
    assistant: str
    against: str

    def label(self, role: str) -> str:
        """Who speaks."""
        return {"user": self.user, "assistant": self.assistant}.get(role, role)


@cache
def all_phrases() -> dict[str, SummaryPhrases]:
    """By the code of their language."""
    return {code: SummaryPhrases(**texts) for code, texts in read_lists("memory").items()}


def phrases_of(texts: Iterable[str]) -> SummaryPhrases:
    """Those of the language that some texts are surely in, else English ones."""
    every = all_phrases()
    return every.get(spoken("\n".join(texts)[:READ]), every["en"])


def fenced(text: str) -> str:
    """Between tags that nothing in it opens or closes."""
    return f"{OPENS}\n{unfenced(text).rstrip()}\n{CLOSES}\n"


def unfenced(text: str) -> str:
    """Without our tags, whoever wrote them."""
    return _TAG.sub("‹", text)
