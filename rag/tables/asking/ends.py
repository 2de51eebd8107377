"""Questions for rows: one end of an order, the row beside another, one of two, a look-up."""

from dataclasses import dataclass

from rag.tables.asking.choosing import (
    IN_FILE,
    pair_of,
    superlative,
)
from rag.tables.asking.question import Question, number_in
from rag.tables.asking.words import (
    ADJECTIVES,
    SUPERLATIVES,
    TOP,
)


@dataclass(frozen=True, slots=True)
class End:
    """One end of an order: "the three cheapest", "last 5", "the most expensive"."""

    word: str
    at: int
    adjective: str
    down: bool
    count: int = 0  # 0: the one at the end
    after: int = 0  # the word behind it

    @property
    def is_in_file(self) -> bool:
        """In the order of the file, where no other is said."""
        return self.word in IN_FILE


def end_of(question: Question) -> End | None:
    """The first that the question speaks of; its words are used then."""
    match = TOP.search(question.masked)
    if match is not None:
        start, end = question.at(match.start()), question.at(match.end() - 1) + 1
        question.conditions = [each for each in question.conditions if not start <= each[0] < end]
        word = match["word"] or match["word2"]
        at = question.words.index(word, start)
        goes_on = end < len(question.words) and question.words[end] in ("most", "least")
        question.use(start, end + goes_on)
        adjective, down = superlative(question, end if goes_on else at)
        count = int(number_in(match["count"] or match["count2"]) or 1)
        return End(word, at, adjective, down, count, end)
    is_of_two = "or" in question.words and pair_of(question) is not None
    said = question.masked.split()
    has_end = any(word in SUPERLATIVES for word in said)  # "which lasts the longest"
    for at, word in enumerate(said):
        if word in SUPERLATIVES or (word in IN_FILE and not has_end):
            question.use(at, at + 1)
            return End(word, at, *superlative(question, at), after=at + 1)
        if is_of_two and word in ADJECTIVES:  # "which is cheaper, A or B?"
            question.use(at, at + 1)
            return End(word, at, *ADJECTIVES[word], after=at + 1)
    return None
