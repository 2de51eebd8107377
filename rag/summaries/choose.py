"""Which statements a summary quotes first: by use, and as a model chose them.

The model is shown numbered statements, and sentences of the user, and answers with their ids: it
writes nothing. What cannot be read costs nothing.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rag.errors import ModelError, UnreadableReply
from rag.seams import TokenCounter
from rag.summaries.required import Line, Required, quotable
from rag.text.sentences import split_sentences

LONGEST_REPLY = 50_000  # characters; of a longer one nothing is read
LONGEST_MESSAGE = 2_000  # characters of a user's message whose sentences a model is shown
ID_TOKENS = 4
SAID_SHARE = 0.3  # of what it is shown at most for these
NEWEST_LINES = 400  # that are looked at beside the best of each number

INSTRUCTIONS = """\
You choose what the memory of a conversation keeps word for word. You are shown statements and \
what the user said, each with its id. Answer with one JSON object and nothing else:
{"keep": [ids, the most important first], "user": [ids]}
keep: at most a third of the statements: what bears on what the user decides, compares, plans or \
comes back to, and whatever corrects something said before.
user: the few sentences, of at most 80 words together, that tell what the user wants, has \
decided, has ruled out and leaves open."""


# ── Without a model ──────────────────────────────────────────────────────────────────────────


def ranked(required: Required) -> Iterator[Line]:
    """The lines, best first: one for each number, then the others.

    A chosen line comes before others, then the line whose number came up again most, then the
    newest; so what was corrected comes after its correction.
    """

    def rank(line: Line) -> tuple[bool, int, tuple[int, int]]:
        used = max([required.uses.get(number, 0) for number in line.numbers])
        return line.place in required.chosen, used, line.place

    # Of statements that begin with the same words the longest, which holds the others.
    every = sorted(required.best.values(), key=lambda line: len(line.text))
    best = {line.place: line for line in every}
    yield from sorted(best.values(), key=rank, reverse=True)
    newest = islice(reversed(required.lines.values()), NEWEST_LINES)
    others = {line.place: line for line in newest if line.place not in best}
    yield from sorted(others.values(), key=rank, reverse=True)


# ── With a model ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Choice:
    """What a model chose of a stretch of turns."""

    lines: tuple[Line, ...] = ()
    said: tuple[str, ...] = ()  # sentences of the user
    calls: int = 0
    problems: tuple[str, ...] = ()


def ask_to_choose(
    ask: Callable[[str, str], str],
    turns: Sequence[str],
    lines: Sequence[Line],
    *,
    count: TokenCounter,
    room: int,
) -> Choice:
    """One request for a stretch; `turns` are the user's, `ask` is given instructions and prompt."""
    if not lines:
        return Choice()
    said, left = _newest(_sentences(turns), count, int(SAID_SHARE * room))
    stated = [f"{line.lead_in} {line.text}".lstrip() for line in lines]
    stated, _ = _newest(stated, count, room - int(SAID_SHARE * room) + left)
    shown = lines[len(lines) - len(stated) :]
    listed = [f"{each}. {text}" for each, text in enumerate([*stated, *said], start=1)]
    listed.insert(len(shown), "\nThe user said:")
    try:
        reply = read_choice(ask(INSTRUCTIONS, "\n".join(["Statements:", *listed])))
    except ModelError as error:
        return Choice(calls=1, problems=(str(error)[:300],))
    kept, wanted = (_ids(reply.get(name)) for name in ("keep", "user"))
    return Choice(
        tuple(shown[each] for each in kept if each < len(shown)),
        tuple(said[each - len(shown)] for each in wanted if 0 <= each - len(shown) < len(said)),
        1,
    )


def _sentences(turns: Sequence[str]) -> list[str]:
    """What a user said, in whole sentences that could not be read as citing anything."""
    found: list[str] = []
    for turn in turns:
        begun = turn[:LONGEST_MESSAGE]
        spans = split_sentences(begun)
        whole = spans if begun == turn else spans[:-1]
        found += filter(None, (quotable(begun[span.start : span.end]) for span in whole))
    return found


def _newest(texts: Sequence[str], count: TokenCounter, room: int) -> tuple[list[str], int]:
    """The last of them that fit with their ids, and what they leave."""
    kept: list[str] = []
    for text in reversed(texts):
        cost = count(text) + ID_TOKENS
        if cost > room:
            break
        kept.insert(0, text)
        room -= cost
    return kept, room


def _ids(given: Any) -> list[int]:
    """Each once, from 0."""
    every = given if isinstance(given, list) else []
    return list(dict.fromkeys(each - 1 for each in every if type(each) is int and each > 0))


def read_choice(reply: str) -> dict[str, Any]:
    """The JSON object in a reply. Raises UnreadableReply for anything else."""
    if len(reply) > LONGEST_REPLY:
        raise UnreadableReply(
            f"Expected JSON, the model answered with {len(reply)} characters "
            f"(at most {LONGEST_REPLY})."
        )
    found = re.search(r"\{.*\}", reply, re.DOTALL)
    try:
        read = json.loads(found[0]) if found else None
    except (ValueError, RecursionError) as error:
        raise UnreadableReply(f"Expected JSON: {error}.") from error
    if not isinstance(read, dict) or not isinstance(read.get("keep", []), list):
        raise UnreadableReply(f"Expected JSON with ids to keep, the model said {reply[:60]!r}.")
    return read
