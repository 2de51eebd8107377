"""What the application's own summaries keep: python -m benchmarks.memory_application

The conversations, models and measures of benchmarks.memory, in a stored session: each turn is
imported, and what passes the high-water mark is summarised as in the background.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.conversations import Conversation, generate
from benchmarks.memory import HEADER, MODES, LossyClient, Measured, Mode, look, row
from rag.database import migrate, open_engine
from rag.errors import ModelUnavailable
from rag.memory import Memory, MemoryRules
from rag.records import ContextConfig, ImportedMessage
from rag.seams import ModelDelta, ModelRequest
from rag.sessions.recall import Recall
from rag.sessions.store import SqlConversationStore
from rag.summaries.compact import Compactor
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


def measure(made: Conversation, window: int, mode: Mode, seed: int, folder: Path) -> Measured:
    """Play a conversation turn by turn, and look at the last ten contexts."""
    engine = open_engine(f"sqlite:///{folder / 'memory.db'}")
    migrate(engine)
    client = LossyClient(mode, random.Random(seed))
    memory = Memory(
        Compactor(None if mode.fault == "none" else LossyModel(client), count_tokens),
        Recall(None),
        rules=MemoryRules(),
        window=lambda: window,
        count=count_tokens,
    )
    session = SqlConversationStore(engine).create("ada", config=ContextConfig())
    result, turns = Measured(), len(made.messages) // 2
    for turn in range(turns):
        pair = made.messages[2 * turn : 2 * turn + 2]
        session.append([ImportedMessage(m["role"], m["content"]) for m in pair], [])
        began, spent = time.process_time(), client.seconds
        if memory.compact(session, force=False) is not None:
            own = time.process_time() - began - (client.seconds - spent)
            result.milliseconds.append(1000 * own)
        messages, stats = memory.context(session)
        result.peak = max(result.peak, stats["tokens"])
        result.over += stats["tokens"] > stats["budget"]
        if turn >= turns - 10 and session.summaries():
            everything = "\n".join(message.content for message in messages)
            summary = "\n".join(summary.text for summary in session.summaries())
            look(everything, summary, made, 2 * (turn + 1 - stats["pairs"]), result)
    tokens = sum(count_tokens(message["content"]) for message in made.messages)
    result.calls_per_turn, result.prompt_share = client.calls / turns, client.tokens / tokens
    result.milliseconds = result.milliseconds or [0.0]
    engine.dispose()
    return result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="not used: the conversations are generated")
    parser.add_argument("--turns", type=int, nargs="*", default=[60, 300, 1000])
    parser.add_argument("--windows", type=int, nargs="*", default=[4096, 16384])
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=list(MODES))
    parser.add_argument("--wild", action="store_true", help="markers in many spellings")
    chosen = parser.parse_args()
    print(HEADER)
    for turns in chosen.turns:
        made = generate(turns, 0, wild=chosen.wild)
        for window in chosen.windows:
            for name in chosen.modes:
                with tempfile.TemporaryDirectory() as folder:
                    result = measure(made, window, MODES[name], 0, Path(folder))
                print(row((turns, window, 0, name), [result]), flush=True)


if __name__ == "__main__":
    main()
