"""The statements that say most of what a text says, in the order in which they stand there.

SumBasic (Nenkova and Vanderwende, 2005): a statement is worth as much as its words are usual in
the text; what was said makes its words worth less, so that the next one says something else.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag.chat.highlights import units_of
from rag.citations.clauses import depends
from rag.language.words import content_words
from rag.records import Section

FEWEST_WORDS = 5
MOST_WORDS = 60
ENOUGH_WORDS = 6  # that carry meaning: what has fewer says less
OPENS_SECTION = 1.3  # times as much: the first statement of a section often says what it is about
LEANS = 0.4  # … of one that only says what it says after the one before it
IN_A_LIST = 0.6
SAID_BEFORE = 0.6  # … of one in a section that has been quoted already


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
    counts = Counter(word for each in words for word in each)
    total = sum(counts.values()) or 1
    worth = {word: count / total for word, count in counts.items()}
    chosen: list[int] = []
    while len(chosen) < min(most, len(results)):
        quoted = {results[at].section for at in chosen}
        left = (at for at in range(len(results)) if at not in chosen)
        best = max(left, key=lambda at: _value(results[at], words[at], worth, quoted))
        chosen.append(best)
        for word in set(words[best]):
            worth[word] = worth[word] ** 2
    return [results[at] for at in sorted(chosen)]


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
    return mean * (SAID_BEFORE if statement.section in quoted else 1.0)


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
