"""How often "what did you say about X?" brings back the turn that said it, long after.

Generated sessions in a real database: every turn tells one property of one of the products, so
that each probe has near misses in the same product and in the same property. Everything but the
last ten messages counts as evicted. Also times `search_session_history` over long sessions.

The second table goes through the memory itself: three real compactions, then the context that a
probe is given is read; the turn counts as found when it stands there word for word.
"""

import json
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from rag.database import migrate, open_engine
from rag.llm.tokens import token_counter
from rag.memory import RECALLED_TURNS, Memory, MemoryRules
from rag.records import ImportedMessage, Summary, ToolCall
from rag.retrieval.embed.local import LocalEmbedder
from rag.seams import Embedder, SessionHandle
from rag.sessions.recall import Recall
from rag.sessions.session_tools import Actions, SessionTools
from rag.sessions.store import SqlConversationStore
from rag.summaries.compact import Compactor
from rag.turns.answering import Shown

PRODUCTS = [
    f"{stem} {kind}".strip()
    for stem in ("Aero 5", "Aero 7", "Nimbus X2", "Nimbus X4", "Vega One", "Quill", "Terra Hub")
    for kind in ("", "Pro", "Lite")
]
PROPERTIES = {
    "warranty": ("How long is the {p} covered?", "The {p} has a warranty of {n} months [{c}]."),
    "battery": (
        "How long does the {p} last?",
        "Its battery lasts {n} hours; so says the {p} [{c}].",
    ),
    "weight": ("Is the {p} heavy?", "The weight of the {p} is {n} g [{c}]."),
    "price": ("How much is the {p}?", "The price is {n} euros for the {p} [{c}]."),
    "range": ("How far does the {p} reach?", "The {p} has a range of {n} m indoors [{c}]."),
    "firmware": ("Does the {p} need an update?", "Firmware {n}.2 is needed by the {p} [{c}]."),
    "delivery": ("When does the {p} come?", "Delivery of the {p} takes {n} days [{c}]."),
    "colours": ("What does the {p} look like?", "The {p} comes in {n} colours, red first [{c}]."),
}
PROBES = (
    "What did you say about the {x} of the {p}?",
    "What did you say about the {p}'s {x}?",
    "Remind me: the {x} of the {p}?",
    "Earlier you told me something about the {p} and its {x}. What was it?",
    "what was the {p} {x} again",
)
OTHER_WORDS = {
    "warranty": "What was it you said about the guarantee on the {p}?",
    "battery": "Earlier you told me how many hours the {p} runs on a charge. What was it?",
    "weight": "What did you say about how heavy the {p} is?",
    "price": "What did you tell me the {p} costs?",
    "range": "You mentioned how far away the {p} still works, what was that?",
    "firmware": "Which software version did you say the {p} requires?",
    "delivery": "What did you say about shipping time for the {p}?",
    "colours": "What did you say about the finishes one can buy the {p} in?",
}
KEPT_MESSAGES = 10
COMPACTIONS = 3


@dataclass(frozen=True)
class Told:
    """One turn: a property of a product, at an index."""

    product: str
    about: str
    index: int


def tell(session: SessionHandle, turns: int, chance: random.Random) -> list[Told]:
    """Fill a session with turns; what each of them is about."""
    topics = [(product, about) for product in PRODUCTS for about in PROPERTIES]
    messages, told = [], []
    for turn in range(turns):
        product, about = (
            topics[turn % len(topics)] if turn >= len(topics) else chance.choice(topics)
        )
        question, answer = PROPERTIES[about]
        values = {"p": product, "n": chance.randint(2, 900), "c": turn % 300 + 1}
        messages += [
            ImportedMessage("user", question.format(**values)),
            ImportedMessage("assistant", answer.format(**values)),
        ]
        told.append(Told(product, about, 2 * turn))
    session.append(messages, [])
    return told


def found_shares(
    session: SessionHandle, recall: Recall, told: Sequence[Told], seed: int
) -> tuple[float, float]:
    """The share of probes whose turn is among the first three, and among all that are recalled."""
    chance = random.Random(seed)
    before = session.read().message_count - KEPT_MESSAGES
    evicted = [turn for turn in told if turn.index < before]
    hits: list[tuple[bool, bool]] = []
    for turn in chance.sample(evicted, min(100, len(evicted))):
        probe = chance.choice(PROBES).format(x=turn.about, p=turn.product)
        right = {t.index for t in evicted if (t.product, t.about) == (turn.product, turn.about)}
        recalled = recall.relevant(session, probe, before=before, limit=RECALLED_TURNS)
        are_right = [found.question.index in right for found in recalled]
        hits.append((any(are_right[:3]), any(are_right)))
    first, every = np.mean(hits, axis=0)
    return float(first), float(every)


def compacted(
    store: SqlConversationStore, memory: Memory, turns: int, chance: random.Random
) -> tuple[SessionHandle, list[Told]]:
    """A session that was compacted three times on its way."""
    session = store.create("bench")
    told: list[Told] = []
    for _ in range(COMPACTIONS):
        first = session.read().message_count
        new = tell(session, turns // COMPACTIONS, chance)
        told += [Told(turn.product, turn.about, first + turn.index) for turn in new]
        memory.compact(session)
    assert len(told) * 2 > max(summary.end for summary in session.summaries())
    return session, told


def in_context_share(
    session: SessionHandle, memory: Memory, told: Sequence[Told], *, other_words: bool, seed: int
) -> float:
    """The share of probes in whose context the turn stands, word for word."""
    chance = random.Random(seed)
    evicted = [t for t in told if t.index < max(s.end for s in session.summaries())]
    hits = []
    for turn in chance.sample(evicted, min(60, len(evicted))):
        form = OTHER_WORDS[turn.about] if other_words else chance.choice(PROBES)
        probe = session.begin(form.format(x=turn.about, p=turn.product))
        prepared = memory.prepare(session, probe, Shown())
        sent = "\n".join(message.content for message in prepared.messages)
        same = (t for t in told if (t.product, t.about) == (turn.product, turn.about))
        hits.append(any(_shows(sent, session, other.index + 1) for other in same))
    return float(np.mean(hits))


def _shows(sent: str, session: SessionHandle, index: int) -> bool:
    return session.message(index).content.rstrip(".") in sent


def search_times(session: SessionHandle, recall: Recall) -> tuple[float, float, float]:
    """Median and 95th percentile of `search_session_history` in milliseconds, and that of CPU time.

    The second tells more where other programs keep the machine busy.
    """
    actions = Actions(
        search=lambda session, query, limit: [],
        prefer=lambda *_: None,
        summarize=_no_summary,
        recall=recall,
        query_tables=lambda session, question: "",
    )
    toolbox = SessionTools(session, actions).toolbox()
    times, worked = [], []
    for product in PRODUCTS * 5:
        for query in (product, f"{product} battery", "warranty months"):
            call = ToolCall("c", "search_session_history", json.dumps({"query": query}))
            began, began_work = time.perf_counter(), time.process_time()
            toolbox.run(call)
            times.append(1000 * (time.perf_counter() - began))
            worked.append(1000 * (time.process_time() - began_work))
    slow, slow_work = np.percentile(times, 95), np.percentile(worked, 95)
    return float(np.median(times)), float(slow), float(slow_work)


def fill_vectors(session: SessionHandle, dimensions: int) -> None:
    """Vectors of no meaning for every message: for the time that it takes to compare them."""
    rows = np.random.default_rng(0).normal(size=(session.read().message_count, dimensions))
    session.save_vectors(dict(enumerate(rows.astype(np.float32))))


def _no_summary(session: SessionHandle, start: int, end: int) -> Summary:
    raise AssertionError("The benchmark asks for no summary.")


def contexts(embedder: Embedder | None, seed: int) -> None:
    """The table of what probes find in their contexts after three compactions."""
    print("window   verbatim   in other words")
    count = token_counter("")
    for window in (2000, 4000, 8000):
        with tempfile.TemporaryDirectory() as folder:
            engine = open_engine(f"sqlite:///{Path(folder) / 'bench.db'}")
            migrate(engine)
            memory = Memory(
                Compactor(None, count, names=lambda within: PRODUCTS),
                Recall(embedder),
                rules=MemoryRules(),
                window=lambda size=window: size,
                count=count,
            )
            store = SqlConversationStore(engine)
            session, told = compacted(store, memory, 90, random.Random(seed))
            shares = [
                in_context_share(session, memory, told, other_words=other_words, seed=seed)
                for other_words in (False, True)
            ]
            engine.dispose()
        print(f"{window:6}{shares[0]:11.1%}{shares[1]:14.1%}", flush=True)


@click.command(help=__doc__)
@click.option("--turns", default="60,200,1000,10000", help="Lengths of sessions.")
@click.option("--seed", default=1)
@click.option("--meaning/--words-only", default=True, help="Whether vectors rerank the words.")
def main(turns: str, seed: int, meaning: bool) -> None:
    """Print the table."""
    embedder = LocalEmbedder() if meaning else None
    recall = Recall(embedder)
    contexts(embedder, seed)
    print("\nturns   first 3   found   search p50   p95 (ms)  CPU p95")
    for count in map(int, turns.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            engine = open_engine(f"sqlite:///{Path(folder) / 'bench.db'}")
            migrate(engine)
            session = SqlConversationStore(engine).create("bench")
            told = tell(session, count, random.Random(seed))
            if count <= 1000:
                recall.remember(session, session.messages())
            first, every = found_shares(session, recall, told, seed)
            if embedder is not None and count > 1000:
                fill_vectors(session, embedder.dimensions)
            times = search_times(session, recall)
            engine.dispose()
        print(
            f"{count:6}{first:9.1%}{every:8.1%}{times[0]:12.1f}{times[1]:11.1f}{times[2]:9.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
