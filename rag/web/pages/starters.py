"""Questions to begin with, made from what the library holds."""

from collections.abc import Sequence
from operator import itemgetter

from rag.records import Document, Section
from rag.web.access.rights import readable
from rag.web.current import application

HOW_MANY = 3
DOCUMENTS_TRIED = 24
SECTIONS_READ = 12  # of a document, from its beginning
SHORTEST_SECTION = 60
LONGEST_HEADING = 70
WORDS_OF_A_QUESTION = 6  # fewer seldom say what they are about: "Which one do I have?"


def starters(documents: Sequence[Document]) -> list[str]:
    """Up to three questions about different documents; the same ones as long as these are."""
    ids = [document.id for document in documents]
    read = application().documents.stretches(ids, readable(), 0, SECTIONS_READ)
    found = [_starter(each, read[each.id]) for each in documents if each.id in read]
    best = dict.fromkeys(question for _, question in sorted(found, key=itemgetter(0)))
    return list(best)[:HOW_MANY]


def _starter(document: Document, sections: Sequence[Section]) -> tuple[int, str]:
    """A question behind how good it is.

    0 the document asks it, 1 on a plain heading, 2 on any other, 3 on its title.
    """
    headings = [_heading(section) for section in sections if _is_good(section, document)]
    title = document.title.strip()
    if not headings:
        return (3, f"What is “{title}” about?")
    heading = min(headings, key=_rank)  # the first of the best
    rank = _rank(heading)
    if rank == 0:
        return (0, heading)
    return (rank, f"What does “{title}” say about “{heading}”?")


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
