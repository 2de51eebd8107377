"""What the application's own summaries keep: python -m benchmarks.memory_application

The conversations, models and measures of benchmarks.memory, in a stored session: each turn is
imported, and what passes the high-water mark is summarised as in the background. Half way, and
before the last contexts are looked at, the server is started anew. The milliseconds are those of a
call that puts a context together. With --prefix: how much of a prompt is as in the turn before,
between summaries.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product, takewhile
from pathlib import Path

from benchmarks.conversations import Conversation, generate
from benchmarks.memory import HEADER, MODES, LossyClient, Measured, Mode, look, row
from rag.chat.context import ContextBuilder, ContextSources, MemoryRules
from rag.citations.markers import cited_numbers
from rag.db import migrate, open_engine
from rag.errors import ModelUnavailable
from rag.memory.conversation import ConversationMemory
from rag.memory.summariser import ApplicationModel, Summariser
from rag.records import ChatMessage, Chunk, ContextConfig, Hit, ImportedMessage, MessageStatus
from rag.seams import ModelDelta, ModelRequest
from rag.sessions.store import SqlConversationStore, SqlSession
from rag.tokens import count_tokens


class LossyModel:
    """The lossy client as a chat model."""

    name = "lossy"

    def __init__(self, client: LossyClient) -> None:
        self.client = client

    def stream(self, request: ModelRequest) -> Iterator[ModelDelta]:
        """The whole reply at once."""
        messages = [{"content": message.content} for message in request.messages]
        try:
            reply = self.client.create(messages=messages)
        except (RuntimeError, TimeoutError) as error:
            raise ModelUnavailable(str(error)) from error
        yield ModelDelta(reply.choices[0].message.content)


def measure(made: Conversation, window: int, mode: Mode, seed: int, url: str) -> Measured:
    """Play a conversation turn by turn, and look at the last ten contexts."""
    engine = open_engine(url)
    migrate(engine)
    client = LossyClient(mode, random.Random(seed))
    ask = ApplicationModel(LossyModel(client), 800, 0)
    summariser = None if mode.fault == "none" else Summariser(ask, "lossy", count_tokens)
    names = sorted({name for each in made.names for name in each})

    def started() -> ContextBuilder:
        remembered = ConversationMemory(
            count_tokens, names=lambda readable: names, summariser=summariser
        )
        return ContextBuilder(
            remembered, rules=MemoryRules(), window=lambda: window, count=count_tokens
        )

    memory = started()
    session = SqlConversationStore(engine).create("ada", config=ContextConfig())
    result, turns = Measured(), len(made.messages) // 2
    for turn in range(turns):
        pair = made.messages[2 * turn : 2 * turn + 2]
        session.append([ImportedMessage(m["role"], m["content"]) for m in pair], [])
        if turn in (turns // 2, turns - 10):
            memory = started()
        memory.compact(session, force=False)
        began = time.process_time()
        memory.preview(session, pair[0]["content"], "")
        result.milliseconds.append(1000 * (time.process_time() - began))
        messages, stats = memory.context(session)
        result.peak = max(result.peak, stats["tokens"])
        result.over += stats["tokens"] > stats["budget"]
        if turn >= turns - 10 and session.summaries():
            texts = [message.content for message in messages]
            gone = 2 * (turn + 1 - stats["pairs"])
            look(texts, made, gone, result, partial(_sent, memory, session))
    tokens = sum(count_tokens(message["content"]) for message in made.messages)
    result.calls_per_turn, result.prompt_share = client.calls / turns, client.tokens / tokens
    engine.dispose()
    return result


def _sent(memory: ContextBuilder, session: SqlSession, question: str) -> str:
    """What would be sent for a question, itself apart."""
    messages = memory.preview(session, question, question)
    return "\n".join(message.content for message in messages).removesuffix(question)


def shared_prefix(
    made: Conversation, window: int, folder: Path
) -> list[tuple[float, float, float]]:
    """For each turn between summaries what is as in the prompt of the turn before: the share of the
    whole, of all before the last message, and of the former prompt without its last message.
    """
    engine = open_engine(f"sqlite:///{folder / 'prefix.db'}")
    migrate(engine)
    memory = ContextBuilder(
        ConversationMemory(count_tokens),
        rules=MemoryRules(),
        window=lambda: window,
        count=count_tokens,
    )
    session = SqlConversationStore(engine).create("ada", config=ContextConfig())
    shares: list[tuple[float, float, float]] = []
    before: tuple[ChatMessage, ...] = ()
    for question, answered in zip(made.messages[::2], made.messages[1::2], strict=True):
        session.register([_hit(number) for number in cited_numbers(answered["content"])])
        turn = session.begin(question["content"])
        sources = session.sources(cited_numbers(answered["content"]))
        now = memory.prepare(session, turn, ContextSources(sources)).messages
        if before:
            same = _alike(_joined(before), _joined(now))
            shares.append(
                (
                    same / len(_joined(now)),
                    same / len(_joined(now[:-1])),
                    same / len(_joined(before[:-1])),
                )
            )
        ended = replace(turn.answer, content=answered["content"], status=MessageStatus.COMPLETE)
        session.finish(ended)
        is_summarised = memory.compact(session, force=False) is not None
        before = () if is_summarised else now
    engine.dispose()
    return shares


def _alike(one: str, other: str) -> int:
    """The characters at the beginning that two texts share."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _joined(messages: Sequence[ChatMessage]) -> str:
    return "".join(f"<{message.role}>{message.content}</>" for message in messages)


def _hit(number: int) -> Hit:
    """A passage of a usual length."""
    text = f"Passage {number} tells of this and that in some detail. " * 20
    chunk = Chunk(
        f"c{number}", "d", "m.md", "Manual", 0, number, (), f"p. {number}", text, 0, len(text)
    )
    return Hit(chunk, 1.0, text, 0, len(text))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="not used: the conversations are generated")
    parser.add_argument("--turns", type=int, nargs="*", default=[60, 300, 1000])
    parser.add_argument("--windows", type=int, nargs="*", default=[4096, 16384])
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=list(MODES))
    parser.add_argument("--wild", action="store_true", help="markers in many spellings")
    parser.add_argument("--postgres", metavar="URL", help="sessions in this database")
    parser.add_argument("--prefix", action="store_true", help="what is as in the turn before")
    chosen = parser.parse_args()
    if chosen.prefix:
        for turns, window in product(chosen.turns, chosen.windows):
            with tempfile.TemporaryDirectory() as folder:
                shares = shared_prefix(generate(turns, 0), window, Path(folder))
            whole, standing, possible = (
                statistics.mean(each) for each in zip(*shares, strict=True)
            )
            said = f"whole prompt {whole:.1%}, before the last message {standing:.1%}"
            print(f"{turns:>5} {window:>6} {said}, of the most that can be {possible:.1%}")
        return
    print(HEADER)
    for turns in chosen.turns:
        made = generate(turns, 0, wild=chosen.wild)
        for window in chosen.windows:
            for name in chosen.modes:
                with tempfile.TemporaryDirectory() as folder:
                    url = chosen.postgres or f"sqlite:///{folder}/memory.db"
                    result = measure(made, window, MODES[name], 0, url)
                print(row((turns, window, 0, name), [result]), flush=True)


if __name__ == "__main__":
    main()
