"""Write answers without a model: sentences of the sources, each with its citation."""

import re
from collections.abc import Iterator, Sequence

from rag.answer.evidence import Scored, answers, weigh
from rag.answer.passages import Kind, Piece, pieces_of
from rag.answer.prompts import DECLINE, says_declined
from rag.answer.questions import read_question
from rag.answer.words import terms
from rag.seams import Embedder, ModelDelta, WriteRequest
from rag.sentences import split_sentences

MOST_PIECES = 5
MOST_WORDS = 150
# A further piece must score at least this share of the best one, after the penalty for likeness.
_WORTH_ADDING = 0.6
_LIKENESS_PENALTY = 0.2
_NEAR_REPEAT = 0.75  # share of the shorter one's terms that are in the other
_NEIGHBOUR_BONUS = 0.2
_NUMBERED = re.compile(r"(?:- )?\(?\d{1,3}[.)]\s+|- ")
_STOP_AT_END = re.compile(r"([.!?。！？…]+[\"'”’»)\]」』]*)$")


class ExtractiveWriter:
    """Quotes the one to five pieces of the sources that answer best, or says that none does."""

    name = "extractive"

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder

    def write(self, request: WriteRequest) -> Iterator[ModelDelta]:
        question = read_question(request.question)
        pieces = [piece for source in request.sources for piece in pieces_of(source)]
        scored = weigh(question, pieces, relevance=request.relevance, embedder=self._embedder)
        if not answers(question, scored, request.relevance):
            yield from _decline(scored)
            return
        separator = ""
        for found in _steps_in_order(choose(scored)):
            yield ModelDelta(text=separator + cited(found.piece))
            separator = "\n" if "\n" in found.piece.text else " "

    def declined(self, text: str) -> bool:
        return says_declined(text)


def _decline(scored: Sequence[Scored]) -> Iterator[ModelDelta]:
    yield ModelDelta(text=DECLINE)
    if scored:
        nearest = max(scored, key=lambda found: found.score)
        yield ModelDelta(text=f" The nearest that they say: {cited(nearest.piece)}")


def choose(scored: Sequence[Scored]) -> list[Scored]:
    """The best piece, then others that add to it: maximal marginal relevance."""
    left = sorted(scored, key=lambda found: -found.score)
    chosen = left[:1]
    words = sum(len(found.piece.text.split()) for found in chosen)
    while left and len(chosen) < MOST_PIECES:
        left = [found for found in left if not any(_repeats(found, other) for other in chosen)]
        if not left:
            break
        best = max(left, key=lambda found: _worth(found, chosen))
        words += len(best.piece.text.split())
        if _worth(best, chosen) < _WORTH_ADDING * chosen[0].score or words > MOST_WORDS:
            break
        chosen.append(best)
    return chosen


def _steps_in_order(chosen: Sequence[Scored]) -> list[Scored]:
    """The same pieces, numbered steps among them in the order in which they are done."""
    places = [at for at, found in enumerate(chosen) if _NUMBERED.match(found.piece.text)]
    steps = sorted(
        (chosen[at] for at in places),
        key=lambda found: (found.piece.number != chosen[0].piece.number, found.piece.position),
    )
    ordered = list(chosen)
    for at, step in zip(places, steps, strict=True):
        ordered[at] = step
    return ordered


def _worth(found: Scored, chosen: Sequence[Scored]) -> float:
    likeness = max(float(found.vector @ other.vector) for other in chosen)
    is_next = any(_adjoins(found.piece, other.piece) for other in chosen)
    covered = frozenset[str]().union(*(other.products for other in chosen))
    is_new = bool(found.products - covered)  # the other one of two products that are compared
    likeness = 0.0 if is_new else likeness
    return found.score - _LIKENESS_PENALTY * likeness + _NEIGHBOUR_BONUS * is_next


def _adjoins(one: Piece, other: Piece) -> bool:
    return one.number == other.number and abs(one.position - other.position) == 1


def _repeats(one: Scored, other: Scored) -> bool:
    """Whether two pieces say nearly the same in nearly the same words."""
    if one is other or one.products != other.products:
        return one is other
    mine, theirs = terms(one.piece.text), terms(other.piece.text)
    shorter = min(len(mine), len(theirs))
    if not shorter:
        return one.piece.text == other.piece.text
    return len(mine & theirs) >= _NEAR_REPEAT * shorter


def cited(piece: Piece) -> str:
    """The piece with its marker in every sentence, before the full stop."""
    marker = f"[{piece.number}]"
    lines = [_marked(line, marker) for line in piece.text.split("\n")]
    if piece.kind in (Kind.LIST, Kind.STEPS) or not lines[0].endswith(marker):
        return "\n".join(lines)
    return f"{lines[0]}."


def _marked(line: str, marker: str) -> str:
    mark = _NUMBERED.match(line)
    start = mark.end() if mark else 0
    spans = split_sentences(line[start:])
    told = [line[start + span.start : start + span.end] for span in spans]
    return line[:start] + " ".join(_marked_sentence(sentence, marker) for sentence in told)


def _marked_sentence(sentence: str, marker: str) -> str:
    end = _STOP_AT_END.search(sentence)
    if end is None:
        return f"{sentence} {marker}"
    return f"{sentence[: end.start()]} {marker}{end[0]}"
