"""A question with what must be shown for it, and what was."""

import re
from dataclasses import dataclass

_LINK = re.compile(r"\]\([^)]*\)")
_SIGNS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question to a folder; the answer's own words stand in `phrase`, in `file`."""

    half: str
    kind: str
    folder: str
    question: str
    file: str = ""
    phrase: str = ""
    before: str = ""  # the question that this one follows


@dataclass(frozen=True, slots=True)
class Panel:
    """A passage as it is shown."""

    document: str
    text: str
    marks: tuple[tuple[int, int], ...]

    def is_right(self, asked: Asked) -> bool:
        """Whether it is of the file and holds the answer."""
        return self.document.endswith(asked.file) and is_held(asked.phrase, self.text)


def plain(text: str) -> str:
    """Words alone: documents are shown without the signs of their Markdown."""
    return _SIGNS.sub(" ", _LINK.sub("]", text)).strip().casefold()


def is_held(phrase: str, text: str) -> bool:
    """Whether a text holds the words of a phrase in a row."""
    return f" {plain(phrase)} " in f" {plain(text)} "


def is_marked(phrase: str, panel: Panel) -> bool:
    """Whether what is marked holds the answer, or is a whole sentence of it."""
    wanted = plain(phrase)
    marked = [plain(panel.text[start:end]) for start, end in panel.marks]
    return any(wanted in each or (len(each) > 15 and each in wanted) for each in marked)
