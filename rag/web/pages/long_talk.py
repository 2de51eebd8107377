"""A long conversation replayed: each turn beside exactly what a model would be sent for it."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from flask import Blueprint, render_template, request

from rag.errors import UserError
from rag.records import SummaryReport
from rag.tokens import count_tokens
from rag.web.pages.layout import wanted_index
from rag.wiring.package_files import package_folder

long_talk = Blueprint("long_talk", __name__)
WINDOWS = (1_000, 2_000, 4_000)  # tokens of a history, to choose from
RULES = "Answer from the sources alone, each statement with its number [n]."


@dataclass(frozen=True, slots=True)
class SentTurn:
    """What one question was sent with."""

    messages: tuple[dict[str, Any], ...]  # in the protocol's form, the question last
    tokens: tuple[int, ...]  # of each
    report: SummaryReport | None  # None before anything fell out

    @property
    def total(self) -> int:
        return sum(self.tokens)

    @property
    def verbatim_from(self) -> int:
        """How many of the messages behind the first are whole turns of before."""
        return len(self.messages) - 2


@lru_cache(maxsize=1)
def read_talk() -> dict[str, Any]:
    """The talk that is shipped: its note, products, sources, and turns of question and answer."""
    talk: dict[str, Any] = json.loads(
        (package_folder("long-talk") / "talk.json").read_text(encoding="utf-8")
    )
    return talk


@lru_cache(maxsize=len(WINDOWS))
def replay(window: int) -> tuple[SentTurn, ...]:
    """Every question of the talk with what is sent for it, in order, by one trimmer."""
    from rag.memory.trimmer import HistoryTrimmer

    talk = read_talk()
    trimmer = HistoryTrimmer(
        max_tokens=window, recent_message_count=4, products=talk["products"], summarise=False
    )
    history: list[dict[str, Any]] = [{"role": "system", "content": RULES}]
    sent = []
    for turn in talk["turns"]:
        history.append({"role": "user", "content": turn["question"]})
        trimmed = trimmer.trim(history)
        messages = tuple(trimmed.messages)
        tokens = tuple(count_tokens(message["content"]) + 4 for message in messages)
        sent.append(SentTurn(messages, tokens, trimmed.report))
        history.append({"role": "assistant", "content": turn["answer"]})
    return tuple(sent)


@long_talk.get("/long-talk")
def show() -> str:
    """One turn of the talk; `turn` counts from 1, `window` is one of `WINDOWS`."""
    talk = read_talk()
    window = wanted_index("window", request.args) or WINDOWS[1]
    if window not in WINDOWS:
        choices = ", ".join(map(str, WINDOWS))
        raise UserError(f"window is {window}; one of {choices} is expected.")
    turns = replay(window)
    falls = [index for index, turn in enumerate(turns, start=1) if turn.report is not None]
    wanted = wanted_index("turn", request.args)
    turn = min(max(1, falls[0] if wanted is None and falls else wanted or 1), len(turns))
    return render_template(
        "long_talk.html",
        talk=talk,
        turn=turn,
        turns=turns,
        sent=turns[turn - 1],
        first_fall=falls[0] if falls else None,
        window=window,
        windows=WINDOWS,
    )
