"""Write answers without a model: sentences of the sources, each with its citation."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from rag.answers.choice import MOST_PIECES, choose
from rag.answers.comparing import compared_in
from rag.answers.declining import NAMED, answers, related
from rag.answers.evidence import Scored, weigh
from rag.answers.parts import Part, parts_of
from rag.answers.passages import LISTS, Piece, pieces_of
from rag.answers.products import unmentioned
from rag.answers.prompts import DECLINE, says_declined
from rag.answers.questions import Question, read_question
from rag.answers.side_by_side import Compared, Told, compare
from rag.answers.verdict import verdict
from rag.citations.markers import neutralise
from rag.seams import Embedder, ModelDelta, WriteRequest
from rag.text.sentences import split_sentences

DECLINE_PART = "The documents do not answer:"
SILENT = "The documents do not say this of"
UNKNOWN = "The documents say nothing about"
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
        pieces = [piece for source in request.sources for piece in pieces_of(source)]
        compared = self._compared(request, pieces)
        if compared is not None:
            yield from _side_by_side(compared)
            return
        missing = () if NAMED in request.relevance.values() else _unknown(request)
        whole = Part(request.question, request.question)
        parts = [whole] if missing else parts_of(request.question)
        read = [self._read(part, pieces, request) for part in parts]
        told = [part for part in read if not missing and part.is_answered(request)]
        if not told and len(parts) > 1:
            read = [self._read(whole, pieces, request)]
            told = [part for part in read if part.is_answered(request)]
        if not told:
            nearest = related(read[0].question, read[0].scored, missing=missing)
            yield from _decline(missing, nearest)
            return
        untold = (" ".join(part.asked.split()) for part in read if part not in told)
        declined = (f"{DECLINE_PART} {neutralise(asked)}" for asked in untold)
        for text in _separated(chain(_quoted(told), declined)):
            yield ModelDelta(text=text)

    def _compared(self, request: WriteRequest, pieces: Sequence[Piece]) -> Compared | None:
        comparison = compared_in(request.question, self._lexicon())
        if comparison is None:
            return None
        return compare(
            comparison,
            pieces,
            measure=read_question(request.question).measure,
            relevance=request.relevance,
            embedder=self._embedder,
            lexicon=self._lexicon(),
        )

    def _read(self, part: Part, pieces: Sequence[Piece], request: WriteRequest) -> "_Read":
        question = read_question(part.alone)
        scored = weigh(
            question,
            pieces,
            relevance=request.relevance,
            embedder=self._embedder,
            lexicon=self._lexicon(),
        )
        return _Read(part.asked, question, scored)

    def declined(self, text: str) -> bool:
        return says_declined(text)


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """One question with what may answer it."""

    asked: str
    question: Question
    scored: list[Scored]

    def is_answered(self, request: WriteRequest) -> bool:
        return answers(self.question, self.scored, request.relevance)


def _quoted(told: Sequence[_Read]) -> Iterator[str]:
    """What is quoted for each question, and nothing twice; of several each gets its share."""
    had: set[Piece] = set()
    for part in told:
        chosen = choose(part.question, part.scored)[: max(1, MOST_PIECES // len(told))]
        plain = verdict(part.question, chosen[0])
        for place, found in enumerate(_steps_in_order(chosen)):
            if found.piece not in had:
                had.add(found.piece)
                yield (f"{plain}: " if plain and not place else "") + cited(found.piece)


def _side_by_side(compared: Compared) -> Iterator[ModelDelta]:
    """What compares them first, then each side in an entry of a list of its own."""
    joint = _together(compared.joint)
    entries = "\n".join(_entry(told) for told in compared.told)
    silent = " ".join(
        [f"{SILENT} {neutralise(name)}." for name in compared.silent]
        + [f"{UNKNOWN} {neutralise(name)}." for name in compared.unknown]
    )
    paragraphs = filter(None, (joint, entries, silent))
    for place, text in enumerate(paragraphs):
        yield ModelDelta(text=("\n\n" if place else "") + text.strip())


def _entry(told: Told) -> str:
    if any(piece.kind in LISTS for piece in told.pieces):
        label = f"{neutralise(told.label)}:\n" if told.label else ""
        return label + "\n".join(map(cited, told.pieces)) + "\n"
    label = f"{neutralise(told.label)}: " if told.label else ""
    return f"- {label}{_together(told.pieces)}"


def _together(pieces: Iterable[Piece]) -> str:
    return "".join(_separated(map(cited, pieces)))


def _separated(quoted: Iterable[str]) -> Iterator[str]:
    """The texts with what goes between them: what ends in a list or in code needs a new line."""
    before = ""
    for text in quoted:
        separator = "\n" if "\n" in before + text else " "
        yield separator + text if before else text
        before = text


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
    """The same pieces, steps and code among them in the order in which they are done."""
    places = [
        at
        for at, found in enumerate(chosen)
        if found.piece.code or _NUMBERED.match(found.piece.text)
    ]
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
    if piece.code:
        return "\n".join([*lines, "```", piece.code, "```"])
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
