"""What a passage consists of: its sentences and rows, each with what it stands below."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rag.language.sentences import LineKind, Sentence, read_sentences

# A table's header, some of its rows, and behind a gap the header again.
_REPEATED = re.compile(r"^(\|.*\n\|[-:| ]+\n)((?:\|.*\n)+)\n+\1", re.MULTILINE)
_SIGN = re.compile(r"^(?:[-*+•◦‣–][ \t]+)?(?:\(?\d{1,3}[.)](?:[ \t]+|$))?")  # of an entry
_LEADS = re.compile(r"[:：]\s*$")
_ASKS = re.compile(r"[?？][\"'”’»)\]]*\s*$")


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch `[start, end)` of a passage that says something, and can stand alone."""

    start: int
    end: int
    kind: LineKind
    text: str
    above: str = ""  # the lead-in or the header row that it stands below


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
    """The sentences of an entry as one."""
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
