"""Which statements a summary quotes first: by use, and as a model chose them.

The model is shown numbered statements and answers with their ids and a thread of sentences about
the user. It writes nothing that stands beside a number. What cannot be read costs nothing.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from rag.errors import ModelError, UnreadableReply
from rag.seams import TokenCounter
from rag.summaries.required import Choice, Line, Required, on_one_line
from rag.summaries.thread import thread_sentences

LONGEST_REPLY = 50_000  # characters; of a longer one nothing is read
LONGEST_QUESTION = 400  # characters of a user's message that the model is shown
NEWEST_LINES = 400  # that are looked at beside the best of each number

INSTRUCTIONS = """\
You choose what the memory of a conversation keeps word for word. You are shown statements with \
their ids, and what the user said in which turn. Answer with one JSON object and nothing else:
{"keep": [ids, the most important first], "thread": [{"turns": [turns], "text": "one sentence"}]}
keep: at most a third of the statements: what bears on what the user decides, compares, plans or \
comes back to, and whatever corrects something said before.
thread: in at most 80 words together what the user wants, has decided, has ruled out and leaves \
open, in the user's own words of the turns named; no sources, nothing from the statements."""


# ── Without a model ──────────────────────────────────────────────────────────────────────────


def ranked(required: Required) -> Iterator[Line]:
    """The lines, best first: one for each number, then the others.

    A chosen line comes before others, then the line whose number came up again most, then the
    newest; so what was corrected comes after its correction.
    """
    uses, chosen = required.uses, required.chosen

    def rank(line: Line) -> tuple[bool, int, tuple[int, int]]:
        used = max([uses.get(number, 0) for number in line.numbers])
        return line.place in chosen, used, line.place

    best = {line.place: line for line in required.best.values()}
    yield from sorted(best.values(), key=rank, reverse=True)
    newest = islice(reversed(required.lines.values()), NEWEST_LINES)
    others = {line.place: line for line in newest if line.place not in best}
    yield from sorted(others.values(), key=rank, reverse=True)


# ── With a model ─────────────────────────────────────────────────────────────────────────────


NOTHING_CHOSEN = Choice()


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
        return NOTHING_CHOSEN
    shown, prompt = choice_prompt(turns, lines, count, room=room)
    try:
        reply = read_choice(ask(INSTRUCTIONS, prompt))
    except ModelError as error:
        return Choice(calls=1, problems=(str(error)[:300],))
    ids = [each for each in reply.get("keep", []) if type(each) is int]
    kept = dict.fromkeys(each for each in ids if 1 <= each <= len(shown))
    thread, problems = thread_sentences(reply.get("thread"), turns)
    return Choice(tuple(shown[each - 1] for each in kept), thread, 1, problems)


def choice_prompt(
    turns: Sequence[str], lines: Sequence[Line], count: TokenCounter, *, room: int
) -> tuple[list[Line], str]:
    """The newest statements that fit, and the prompt that shows them."""
    asked = [
        f"Turn {turn}: {on_one_line(text[:LONGEST_QUESTION])}"
        for turn, text in enumerate(turns, start=1)
    ]
    left = room - count("\n".join(asked))
    shown: list[Line] = []
    for line in reversed(lines):
        left -= line.tokens + line.lead_in_tokens + 4
        if left < 0:
            break
        shown.insert(0, line)
    stated = [
        f"{each}. {line.lead_in} {line.text}" if line.lead_in else f"{each}. {line.text}"
        for each, line in enumerate(shown, start=1)
    ]
    return shown, "\n".join(["Statements:", *stated, "", "The user said:", *asked])


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
