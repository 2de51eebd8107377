"""What one turn costs apart from models, as a session grows from 100 to 10,000 turns.

    python -m benchmarks.long_session [--turns 100,1000,10000] [--rounds 60] [--through 2000]

The store is SQLite on disk; the question, recall with vectors, the context, the answer and the
search of the transcript are real. Embedding is replaced by fixed vectors. `turn` is all of it but
retrieval, follow-ups and the check of the answer; `whole turn` has these too, with eight sources
that are given instead of searched. Compactions run between the turns, as the background does, and
are timed apart. Times are milliseconds; compare them within one run. `CPU` leaves out waiting, and
what other processes do meanwhile. `SQL` is the number of statements. `--through` asks so many
questions in one session instead, and tells what the process holds of memory meanwhile.
"""

import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import click
import numpy as np
from sqlalchemy import Engine, event

from rag.chat.answers import Answering
from rag.chat.assistant import Assistant, TurnLimits
from rag.chat.context import ContextBuilder, ContextSources, MemoryRules
from rag.chat.follow_ups import FollowUps
from rag.db import migrate, open_engine
from rag.llm.windows import token_counter
from rag.memory.conversation import ConversationMemory
from rag.records import Chunk, Hit, ImportedMessage, MessageStatus, Readable
from rag.seams import Matrix, ModelDelta, WriteRequest
from rag.sessions.store import SqlConversationStore, SqlSession

PRODUCTS = ("Aero 5", "Aero 5 Pro", "Cantoro One", "pico-link s", "Lofthav Mesh")
ASPECTS = ("weight", "price", "warranty", "range", "power", "colour", "firmware")
SOURCES = 8  # of one answer
CHUNKS = 200
DIMENSIONS = 384
FILLER = "Whatever else the manual says about this region is of no interest here. " * 4


def turn(number: int) -> tuple[str, str]:
    """A question with an answer that cites one of 200 sources."""
    product = PRODUCTS[number % len(PRODUCTS)]
    aspect = ASPECTS[number % len(ASPECTS)]
    question = f"What is the {aspect} of the {product} in region {number % 97}?"
    value = 10 + number % 389
    answer = (
        f"In region {number % 97} the {aspect} of the {product} is {value} [{1 + value % CHUNKS}]."
    )
    return question, answer


def session_of(store: SqlConversationStore, turns: int) -> SqlSession:
    """A session with this many turns, and vectors of them."""
    session = store.create("benchmark")
    said = [
        ImportedMessage(role, text)
        for number in range(turns)
        for role, text in zip(("user", "assistant"), turn(number), strict=True)
    ]
    if not said:
        return session
    session.append(said, [])
    session.save_vectors(dict(enumerate(FixedVectors().embed([text.content for text in said]))))
    return session


class FixedVectors:
    """An embedder that takes no time."""

    name, dimensions, max_tokens = "fixed", DIMENSIONS, 256

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) // 4 for text in texts]

    def embed(self, texts: Sequence[str]) -> Matrix:
        return np.full((len(texts), DIMENSIONS), DIMENSIONS**-0.5, dtype=np.float32)


@dataclass(slots=True)
class GivenSources:
    """A retriever that is told what it finds."""

    number: int = 0

    def search(self, query: str, readable: Readable, **_: Any) -> list[Hit]:
        return [self._hit(self.number * SOURCES + place) for place in range(SOURCES)]

    def _hit(self, number: int) -> Hit:
        text = f"{turn(number)[1].partition(' [')[0]}. {FILLER}"
        place = number % CHUNKS
        chunk = Chunk(
            f"c{place}", "d", "m.md", "Manual", 0, place, (), f"§ {place}", text, 0, len(text)
        )
        return Hit(chunk, 1.0, text, 0, len(text), relevance=0.9)


class FirstSentence:
    """A writer that takes no time: the first sentence of the best source, word by word."""

    name = "first sentence"

    def write(self, request: WriteRequest) -> Iterator[ModelDelta]:
        best = request.sources[0]
        for word in f"{best.text.partition('. ')[0]} {best.marker}.".split(" "):
            yield ModelDelta(f"{word} ")

    def declined(self, text: str) -> bool:
        return False


def one_turn(session: SqlSession, memory: ContextBuilder, number: int) -> None:
    """A turn without retrieval and without a writer."""
    question, answer = turn(number * 7)
    opened = session.begin(question)
    state, _ = memory.before_turn(session, opened)
    memory.prepare(session, opened, ContextSources(), state)
    ended = session.finish(replace(opened.answer, content=answer, status=MessageStatus.COMPLETE))
    memory.after_turn(session, opened, ended, state)


@dataclass(slots=True)
class Stopwatch:
    """Times and statements of what is done again and again."""

    engine: Engine
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    statements: list[int] = field(default_factory=list)

    def time(self, call: Callable[[], object]) -> None:
        """Do it, and take down what it cost."""
        asked: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            asked.append(statement)

        event.listen(self.engine, "before_cursor_execute", note)
        began, cpu_began = perf_counter(), process_time()
        call()
        self.wall.append(1000 * (perf_counter() - began))
        self.cpu.append(1000 * (process_time() - cpu_began))
        event.remove(self.engine, "before_cursor_execute", note)
        self.statements.append(len(asked))

    def row(self) -> str:
        """Percentiles."""
        if not self.wall:
            return "       –"
        times = [*np.percentile(self.wall, [50, 95]), *np.percentile(self.cpu, [50, 95])]
        return " ".join(f"{time:>8.2f}" for time in times) + f" {np.median(self.statements):>5.0f}"


@click.command(help=__doc__)
@click.option("--turns", default="100,1000,10000", show_default=True)
@click.option("--rounds", default=60, show_default=True)
@click.option("--through", type=int, help="turns of one session")
def main(turns: str, rounds: int, through: int | None) -> None:
    """Print percentiles for each length."""
    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(f"sqlite:///{Path(folder)}/groundnote.db")
        migrate(engine)
        if through:
            grown(engine, through)
            return
        columns = ("p50 ms", "p95 ms", "CPU p50", "CPU p95")
        print(f"{'turns':>7} {'what':>18} {' '.join(f'{c:>8}' for c in columns)} {'SQL':>5}")
        for length in map(int, turns.split(",")):
            for what, watch in watched(engine, length, rounds).items():
                print(f"{length:>7} {what:>18} {watch.row()}", flush=True)
        engine.dispose()


def grown(engine: Engine, through: int) -> None:
    """Print what a session costs as it goes on, compactions included."""
    one, step, began = _Session(engine, 0), through // 20, process_time()
    for number in range(1, through + 1):
        one.ask(number)
        if one.due:
            one.compact()
        if number % step == 0:
            cpu = 1000 * (process_time() - began) / step
            print(f"{number:>6} turns {cpu:>7.1f} ms CPU a turn, {resident():>5.0f} MB", flush=True)
            began = process_time()


def resident() -> float:
    """Megabytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


class _Session:
    """One session of some length, and what asks in it."""

    def __init__(self, engine: Engine, length: int) -> None:
        count = token_counter("")
        self.remembered = ConversationMemory(count, FixedVectors())
        self.due: list[object] = []
        self.memory = ContextBuilder(
            self.remembered,
            rules=MemoryRules(),
            window=lambda: 4096,
            count=count,
            later=self.due.append,
        )
        self.session = session_of(SqlConversationStore(engine), length)
        self._sources = GivenSources()
        self._assistant = Assistant(
            self._sources,
            FollowUps(lexicon=lambda readable: PRODUCTS),
            self.memory,
            Answering(FirstSentence()),
            limits=TurnLimits(),
        )

    def ask(self, number: int) -> None:
        """A whole turn."""
        self._sources.number = number
        list(self._assistant.ask(self.session, turn(number * 7)[0]))

    def compact(self) -> None:
        """What was put off until after the answer."""
        self.due.clear()
        self.memory.compact(self.session, force=False)


def watched(engine: Engine, length: int, rounds: int) -> dict[str, Stopwatch]:
    """What everything costs in a session of this length."""
    one = _Session(engine, length)
    session, memory = one.session, one.memory
    memory.compact(session)
    watches: dict[str, Stopwatch] = {}
    for what, call in {
        "turn": lambda number: one_turn(session, memory, number),
        "whole turn": one.ask,
        "substring search": lambda number: session.search(f"region {number % 97}"),
        "word search": lambda number: one.remembered.search(session, f"region {number}", 20),
    }.items():
        watch = watches.setdefault(what, Stopwatch(engine))
        for number in range(rounds):
            watch.time(lambda call=call, number=number: call(number))
            if one.due:
                compaction = watches.setdefault("compaction", Stopwatch(engine))
                compaction.time(one.compact)
    return watches


if __name__ == "__main__":
    main()
