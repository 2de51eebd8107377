"""Whether the sources answer a question at all, and what comes nearest if they do not."""

from collections.abc import Mapping, Sequence

from rag.answers.evidence import Scored, asks_the_same, share
from rag.answers.passages import LISTS
from rag.answers.questions import Question
from rag.answers.words import terms

_CLOSE = 0.66  # cosine of a piece that may answer in other words
_NEAR = 0.4  # cosine of a piece with a word of the question that is worth mentioning
_RATHER_NEAR = 0.58  # … without one
_LONGEST_HINT = 45  # words
NAMED = 1.0  # the relevance of a source that the question asks for by its number
_LONGEST_QUESTION = 15  # terms; even a rambling question must be covered in part
_WITH_VECTORS = (5.8, 2.6, 1.9, 0.1, -5.7)  # of the four signs below, and the threshold
_WITHOUT_VECTORS = (0.0, 2.8, 2.2, 0.12, -2.4)


def answers(question: Question, scored: Sequence[Scored], relevance: Mapping[int, float]) -> bool:
    """Whether the pieces answer the question at all.

    Strict where words and meaning both stay away from the question; a long question is seldom
    covered whole, so it is asked for less. A source that was asked for by its number always does.
    """
    if not scored:
        return False
    if any(relevance.get(found.piece.number) == NAMED for found in scored):
        return True
    if not question.terms:
        return False
    if any(asks_the_same(found.piece.heading, question) for found in scored):
        return True
    if _is_beside_the_point(question, scored):
        return False
    best = max(scored, key=lambda found: found.score)
    named = frozenset[str]().union(*map(terms, question.names))
    held = {
        f.piece: terms(f.piece.text) | terms(f.piece.title) | (terms(f.piece.context) & named)
        for f in scored
    }
    source = [words for piece, words in held.items() if piece.number == best.piece.number]
    signs = (
        max(found.signs.cosine for found in scored),
        share(question.terms, frozenset[str]().union(*source)),
        max(share(question.terms, words) for words in held.values()),
        min(len(question.terms), _LONGEST_QUESTION),
    )
    *weights, threshold = _WITH_VECTORS if best.vector.size else _WITHOUT_VECTORS
    return sum(w * sign for w, sign in zip(weights, signs, strict=True)) + threshold > 0


def _is_beside_the_point(question: Question, scored: Sequence[Scored]) -> bool:
    """Whether the product is found, but nothing of what is asked about it, not even in meaning."""
    if not question.aspects or not question.names:
        return False
    fitting = [found for found in scored if found.signs.product >= 0]
    held = frozenset[str]().union(
        *(terms(found.piece.text) | terms(found.piece.context) for found in fitting)
    )
    closest = max((found.signs.cosine for found in fitting), default=0.0)
    return not question.aspects & held and closest < _CLOSE


def related(
    question: Question, scored: Sequence[Scored], *, missing: Sequence[str] = ()
) -> Scored | None:
    """What comes nearest to a question that is not answered, if anything comes near it.

    Where a product is missing, only its family does: for an `Aero 6` the `Aero 5`.
    """
    families = frozenset(name.split()[0].casefold() for name in missing)
    fitting = [
        found
        for found in scored
        if len(found.piece.text.split()) <= _LONGEST_HINT
        and found.piece.kind not in LISTS
        and _is_near(question, found)
        and (_mentions(found, families) if families else found.signs.product >= 0)
    ]
    return max(fitting, key=lambda found: found.score, default=None)


def _is_near(question: Question, found: Scored) -> bool:
    """Near in meaning, or with a word of what is asked; a name alone is not enough."""
    held = terms(found.piece.text) | terms(found.piece.title)
    if not found.vector.size:
        return bool(question.aspects & held)
    return found.signs.cosine >= (_NEAR if question.aspects & held else _RATHER_NEAR)


def _mentions(found: Scored, words: frozenset[str]) -> bool:
    return bool(words & set(found.piece.text.casefold().split()))
