"""Write answers without a model: sentences of the sources, each with its citation."""

import re
from collections.abc import Callable, Iterator, Sequence

from rag.answer.choice import choose
from rag.answer.declining import NAMED, answers, related
from rag.answer.evidence import Scored, weigh
from rag.answer.passages import LISTS, Piece, pieces_of
from rag.answer.products import unmentioned
from rag.answer.prompts import DECLINE, says_declined
from rag.answer.questions import read_question
from rag.answer.verdict import verdict
from rag.citations.markers import neutralise
from rag.seams import Embedder, ModelDelta, WriteRequest
from rag.sentences import split_sentences

_NUMBERED = re.compile(r"(?:- )?\(?\d{1,3}[.)]\s+|- ")
_STOP_AT_END = re.compile(r"([.!?。！？…]+[\"'”’»)\]」』]*)$")


class ExtractiveWriter:
    """Quotes the one to five pieces of the sources that answer best, or says that none does."""

    name = "extractive"

    def __init__(
        self, embedder: Embedder | None, *, lexicon: Callable[[], Sequence[str]] = tuple
    ) -> None:
        """`lexicon` gives the product names of all documents, as they are at each question."""
        self._embedder = embedder
        self._lexicon = lexicon

    def write(self, request: WriteRequest) -> Iterator[ModelDelta]:
        question = read_question(request.question)
        pieces = [piece for source in request.sources for piece in pieces_of(source)]
        scored = weigh(
            question,
            pieces,
            relevance=request.relevance,
            embedder=self._embedder,
            lexicon=self._lexicon(),
        )
        missing = () if NAMED in request.relevance.values() else _unknown(request)
        if missing or not answers(question, scored, request.relevance):
            yield from _decline(missing, related(question, scored, missing=missing))
            return
        chosen = choose(question, scored)
        plain = verdict(question, chosen[0])
        if plain:
            yield ModelDelta(text=f"{plain}: ")
        before = ""
        for found in _steps_in_order(chosen):
            text = cited(found.piece)
            separator = "\n" if "\n" in before + text else " "
            yield ModelDelta(text=separator + text if before else text)
            before = text

    def declined(self, text: str) -> bool:
        return says_declined(text)


def _unknown(request: WriteRequest) -> tuple[str, ...]:
    """The models, codes and versions of the question that none of its sources mentions."""
    texts = [
        "\n".join((source.document_title, *source.heading_path, source.passage))
        for source in request.sources
    ]
    return unmentioned(request.question, texts)


def _decline(missing: Sequence[str], nearest: Scored | None) -> Iterator[ModelDelta]:
    yield ModelDelta(text=DECLINE)
    if missing:
        names = " or ".join(neutralise(name) for name in missing)
        yield ModelDelta(text=f" Nothing that was found in them mentions {names}.")
    if nearest is not None:
        yield ModelDelta(text=f" The nearest that they say: {cited(nearest.piece)}")


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


def cited(piece: Piece) -> str:
    """The piece with its marker in every sentence, before the full stop."""
    marker = f"[{piece.number}]"
    lines = [_marked(line, marker) for line in piece.text.split("\n")]
    if piece.kind in LISTS or not lines[0].endswith(marker):
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
