"""What one turn costs apart from models, as a session grows from 100 to 10,000 turns.

    python -m benchmarks.long_session [--turns 100,1000,10000] [--rounds 60]

The store is SQLite on disk; questions, recall, context, storing and the search of the transcript
are real. Vectors and models are left out. Compactions run between the turns, as the background
does, and are timed apart. Times are milliseconds; compare them within one run.
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import click
import numpy as np

from rag.conversation.compact import Compactor
from rag.conversation.recall import Recall
from rag.conversation.store import SqlConversationStore, SqlSession
from rag.database import migrate, open_engine
from rag.memory import Memory, MemoryRules
from rag.records import ImportedMessage, MessageStatus
from rag.tokens import count_tokens

PRODUCTS = ("Aero 5", "Aero 5 Pro", "Cantoro One", "pico-link s", "Lofthav Mesh")
ASPECTS = ("weight", "price", "warranty", "range", "power", "colour", "firmware")


def turn(number: int) -> tuple[str, str]:
    """A question with an answer that cites one of 200 sources."""
    product = PRODUCTS[number % len(PRODUCTS)]
    aspect = ASPECTS[number % len(ASPECTS)]
    question = f"What is the {aspect} of the {product} in region {number % 97}?"
    value = 10 + number % 389
    answer = (
        f"In region {number % 97} the {aspect} of the {product} is {value} [{1 + value % 200}]."
    )
    return question, answer


def session_of(store: SqlConversationStore, turns: int) -> SqlSession:
    """A session with this many turns."""
    session = store.create("benchmark")
    said = [
        ImportedMessage(role, text)
        for number in range(turns)
        for role, text in zip(("user", "assistant"), turn(number), strict=True)
    ]
    session.append(said, [])
    return session


def milliseconds(call: Callable[[int], object], rounds: int) -> np.ndarray:
    """The time of each round."""
    times = []
    for number in range(rounds):
        began = perf_counter()
        call(number)
        times.append(perf_counter() - began)
    return np.array(times) * 1000


def one_turn(session: SqlSession, memory: Memory, number: int) -> None:
    """A turn without retrieval and without a writer."""
    question, answer = turn(number * 7)
    opened = session.begin(question)
    memory.before_turn(session)
    memory.prepare(session, opened, ())
    ended = replace(opened.answer, content=answer, status=MessageStatus.COMPLETE)
    session.finish(ended)
    memory.after_turn(session, opened, ended)


@click.command()
@click.option("--turns", default="100,1000,10000", show_default=True)
@click.option("--rounds", default=60, show_default=True)
def main(turns: str, rounds: int) -> None:
    """Print percentiles for each length."""
    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(f"sqlite:///{Path(folder)}/groundnote.db")
        migrate(engine)
        store = SqlConversationStore(engine)
        memory = Memory(
            Compactor(None, count_tokens),
            Recall(None),
            rules=MemoryRules(),
            window=lambda: 4096,
            count=count_tokens,
        )
        due: list[SqlSession] = []
        memory.compact_later(due.append)
        print(f"{'turns':>7} {'what':>18} {'p50 ms':>8} {'p95 ms':>8}")
        for length in map(int, turns.split(",")):
            session = session_of(store, length)
            memory.compact(session)
            turn_times, compaction_times = [], []
            for _ in range(rounds):
                turn_times += list(milliseconds(lambda n, s=session: one_turn(s, memory, n), 1))
                if due:
                    due.clear()
                    compaction_times += list(
                        milliseconds(lambda _, s=session: memory.compact(s, force=False), 1)
                    )
            for what, times in (
                ("turn", np.array(turn_times)),
                ("compaction", np.array(compaction_times or [0.0])),
                (
                    "substring search",
                    milliseconds(lambda n, s=session: s.search(f"region {n % 97}"), rounds),
                ),
                (
                    "word search",
                    milliseconds(
                        lambda n, s=session: s.matching(["region", str(n)], limit=60), rounds
                    ),
                ),
            ):
                p50, p95 = np.percentile(times, [50, 95])
                print(f"{length:>7} {what:>18} {p50:>8.2f} {p95:>8.2f}")
        engine.dispose()


if __name__ == "__main__":
    main()
