"""Questions to begin with, made from what the library holds."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag.errors import NotFound
from rag.records import Document, Section
from rag.web.access.rights import readable
from rag.web.current import application

HOW_MANY = 3
DOCUMENTS_TRIED = 24
SECTIONS_READ = 12  # of a document, from its beginning
SHORTEST_SECTION = 60
LONGEST_HEADING = 70
WORDS_OF_A_QUESTION = 6  # fewer seldom say what they are about: "Which one do I have?"


@dataclass(frozen=True, slots=True, order=True)
class Starter:
    """A question with how good it is: the lower, the better."""

    rank: int  # 0 the document asks it, 1 on a plain heading, 2 on any other, 3 on its title
    at: int
    question: str


def starters(documents: Sequence[Document]) -> list[str]:
    """Up to three questions about different documents; the same ones as long as these are."""
    found = [_starter(at, document) for at, document in enumerate(documents)]
    best: dict[str, None] = {}
    for starter in sorted(each for each in found if each is not None):
        best.setdefault(starter.question)
    return list(best)[:HOW_MANY]


def _starter(at: int, document: Document) -> Starter | None:
    try:
        sections = application().documents.neighbourhood(
            document.id, 0, readable(), reach=SECTIONS_READ
        )
    except NotFound:  # deleted meanwhile, or without text
        return None
    headings = [_heading(section) for section in sections if _is_good(section, document)]
    title = document.title.strip()
    if not headings:
        return Starter(3, at, f"What is “{title}” about?")
    heading = min(headings, key=_rank)  # the first of the best
    rank = _rank(heading)
    if rank == 0:
        return Starter(0, at, heading)
    return Starter(rank, at, f"What does “{title}” say about “{heading}”?")


def _rank(heading: str) -> int:
    if heading.endswith("?"):
        return 0 if len(heading.split()) >= WORDS_OF_A_QUESTION else 2
    is_dated = any(char.isdigit() for char in heading)
    return 2 if is_dated or heading.isupper() else 1


def _heading(section: Section) -> str:
    return " ".join(section.heading_path[-1].split()) if section.heading_path else ""


def _is_good(section: Section, document: Document) -> bool:
    heading = _heading(section)
    is_own = heading.casefold() != document.title.casefold()
    is_short = 3 < len(heading) <= LONGEST_HEADING
    return is_own and is_short and len(section.text) >= SHORTEST_SECTION
