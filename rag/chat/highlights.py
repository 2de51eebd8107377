"""What is marked in a passage: at most two sentences, or a row, nearest to the question."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from rag.errors import ModelError
from rag.language.names import Lexicon
from rag.language.sentences import LineKind, Sentence, read_sentences
from rag.language.words import is_function_word, stem, tokens
from rag.seams import Matrix

EmbedTexts = Callable[[Sequence[str]], Matrix]
MarkedSpans = tuple[tuple[int, int], ...]
NO_NAMES = Lexicon(())

MOST = 2  # sentences of one passage
WORDS = 0.25  # what all words of the question count beside a likeness of 1
LEAST = 0.25  # of a unit that is marked


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch `[start, end)` of a passage that says something, and can stand alone."""

    start: int
    end: int
    kind: LineKind
    text: str
    above: str = ""  # the lead-in or the header row that it stands below


def marked_in(
    question: str, passages: Sequence[str], embed: EmbedTexts, names: Lexicon = NO_NAMES
) -> tuple[list[MarkedSpans], float]:
    """For each passage what is marked in it; and how near its nearest statement is by meaning.

    Nothing is marked where nothing stands out, nor what names others than the question does.
    """
    asked, named = _words(question), _names_in(question, names)
    read = [
        [u for u in units_of(passage) if not _words(u.text) <= asked and _is_about(named, u, names)]
        for passage in passages
    ]
    shared = [[_shared(asked, unit) for unit in units] for units in read]
    alike = _alike(question, [_in_words(unit) for units in read for unit in units], embed)
    scores = iter(alike or list(chain.from_iterable(shared)))
    marks = [
        _marks([(next(scores) + share, unit) for share, unit in zip(*both, strict=True)])
        for both in zip(shared, read, strict=True)
    ]
    return marks, max(alike, default=0.0)


def once(embed: EmbedTexts) -> EmbedTexts:
    """Each text is embedded once, however often it is asked for."""
    known: dict[str, Any] = {}

    def embedded(texts: Sequence[str]) -> Matrix:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, embed(new), strict=True))
        return np.array([known[text] for text in texts])

    return embedded


def _names_in(text: str, names: Lexicon) -> frozenset[str]:
    return frozenset(name.text.casefold() for name in names.find(text))


def _is_about(named: frozenset[str], unit: Unit, names: Lexicon) -> bool:
    """`Aero 5 Pro` is another than `Aero 5`; what names none may be about any."""
    others = _names_in(unit.text, names) if named else frozenset()
    return not others or not named.isdisjoint(others)


def _in_words(unit: Unit) -> str:
    """A row or an entry with what it stands below."""
    return unit.text if unit.kind == "sentence" else f"{unit.above}: {unit.text}"


def _alike(question: str, texts: Sequence[str], embed: EmbedTexts) -> list[float]:
    """How near each is by meaning; nothing where the model is away."""
    if not texts:
        return []
    try:
        rows = embed([question, *texts])
    except ModelError:
        return []
    return [float(cosine) for cosine in rows[1:] @ rows[0]]


def _shared(asked: frozenset[str], unit: Unit) -> float:
    return WORDS * len(asked & _words(_in_words(unit))) / max(1, len(asked))


def _marks(scored: Sequence[tuple[float, Unit]]) -> MarkedSpans:
    ordered = sorted(scored, key=lambda pair: -pair[0])[:MOST]
    best = [unit for score, unit in ordered if score >= LEAST]
    chosen = best[:1] if "row" in (unit.kind for unit in best) else best
    return tuple(sorted((unit.start, unit.end) for unit in chosen))


def _words(text: str) -> frozenset[str]:
    told = (token.lowered for token in tokens(text))
    return frozenset(stem(each) for each in told if not is_function_word(each))


# A table's header, some of its rows, and behind a gap the header again.
_REPEATED = re.compile(r"^(\|.*\n\|[-:| ]+\n)((?:\|.*\n)+)\n+\1", re.MULTILINE)
_SIGN = re.compile(r"^(?:[-*+•◦‣–][ \t]+)?(?:\(?\d{1,3}[.)](?:[ \t]+|$))?")  # of an entry
_LEADS = re.compile(r"[:：]\s*$")
_ASKS = re.compile(r"[?？][\"'”’»)\]]*\s*$")


def units_of(passage: str) -> Iterator[Unit]:
    """The statements of a passage, in reading order."""
    above = ""
    for entry in _with_whole_entries(read_sentences(passage)):
        text = passage[entry.start : entry.end]
        if entry.kind == "head" or (entry.kind == "sentence" and _LEADS.search(text)):
            above = " ".join(text.split())
        elif entry.kind in ("sentence", "entry", "row"):
            said = _SIGN.sub("", text) if entry.kind == "entry" else text
            if not _ASKS.search(said):
                yield Unit(entry.end - len(said), entry.end, entry.kind, said, above)


def _with_whole_entries(sentences: Sequence[Sentence]) -> list[Sentence]:
    told: list[Sentence] = []
    for sentence in sentences:
        if told and sentence.kind == told[-1].kind == "entry" and not sentence.begins:
            told[-1] = replace(told[-1], end=sentence.end)
        else:
            told.append(sentence)
    return told


def with_tables_joined(passage: str) -> str:
    """Without the header that a long table has again in each part, so that parts meet as one."""
    joined = _REPEATED.sub(r"\1\2", passage)
    return joined if joined == passage else with_tables_joined(joined)
