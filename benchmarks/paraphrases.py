"""Whether an earlier answer is recalled by a person's paraphrase: python -m benchmarks.paraphrases

All conversations of a set (canard, mtrag, inscit, cast) are one long history. Each question, as a
person wrote it anew to stand alone, is then asked again at the end; it is met if a statement of its
answer is among what fits 400 tokens. By words alone. With --application the history is a stored
session, whose turns are searched in the database first. With --answers-only what was asked at the
time is not known, so that the answer's own words have to do. Each set is told in halves of its
conversations. Both halves of canard, mtrag and inscit were in sight when
the weights were chosen; cast was not, and no rule may be fitted to it.
"""

import argparse
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

from sqlalchemy import Engine

from benchmarks.corpora import data_dir, rows_of
from rag.database import migrate, open_engine
from rag.memory import RECALLED_TURNS
from rag.records import ImportedMessage
from rag.sessions.recall import Recall
from rag.sessions.store import SqlConversationStore
from rag.summaries.recall import RecallIndex, index_of, put_back
from rag.summaries.required import stated_lines
from rag.tokens import count_tokens

ROOM = 400  # tokens, a tenth of a window of 4,000
Turn = tuple[str, str, str, str]  # conversation, question, answer, the question to stand alone


def canard(data: Path) -> Iterator[Turn]:
    """The answer to a question stands in the history of the next."""
    by_turn = {
        (r["conversation"], r["turn"]): r for r in rows_of(data / "canard/dev/rewrites.jsonl")
    }
    for (conversation, turn), row in by_turn.items():
        following = by_turn.get((conversation, turn + 1))
        if following is not None:
            answer = following["history"][-1]["text"]
            yield conversation, row["question"], answer, row["rewrite"]


def mtrag(data: Path) -> Iterator[Turn]:
    """Answers are in the conversations, the questions anew among the queries."""
    queries = (
        r for d in ("cloud", "clapnq") for r in rows_of(data / f"mtrag/dev/{d}/queries.jsonl")
    )
    anew = {row["text"].strip(): row["rewrite"] for row in queries}
    for row in rows_of(data / "mtrag/dev/conversations.jsonl"):
        turns = row["turns"]
        for asked, answered in zip(turns[::2], turns[1::2], strict=False):
            question = asked["text"].strip()
            yield row["id"], question, answered["text"], anew.get(question, "")


def inscit(data: Path) -> Iterator[Turn]:
    """Questions were not written anew: they are asked as they were."""
    for row in rows_of(data / "inscit/dev/turns.jsonl"):
        said = [each["response"] for each in row["labels"] if each["type"] == "directAnswer"]
        if said:
            yield row["conversation"], row["question"], said[0], row["question"]


def cast(data: Path) -> Iterator[Turn]:
    """Of the year in which answers were given: each stands in the histories of later turns."""
    rows = [r for r in rows_of(data / "cast/dev/rewrites.jsonl") if r["year"] == "2022"]
    anew = {(r["conversation"], r["question"]): r["rewrite"] for r in rows}
    said: dict[tuple[str, str], str] = {}
    for row in rows:
        for asked, answered in pairwise(row["history"]):
            if (asked["role"], answered["role"]) == ("user", "assistant"):
                said[row["conversation"], asked["text"]] = answered["text"]
    for (conversation, question), answer in said.items():
        yield conversation, question, answer, anew.get((conversation, question), "")


Shown = Callable[[str], set[int]]  # of a probe: the answers that are put back


def shares(turns: list[Turn], shown: Shown) -> list[float]:
    """The share that is met of each half of the conversations."""
    met: list[list[bool]] = [[], []]
    for place, (conversation, _, answer, probe) in enumerate(turns):
        if probe and stated_lines(2 * place + 1, answer, "", count_tokens):
            met[crc32(conversation.encode()) % 2].append(2 * place + 1 in shown(probe))
    return [sum(half) / len(half) for half in met]


def of_the_library(turns: list[Turn], *, knows_questions: bool) -> Shown:
    """By one index of all statements."""
    index = RecallIndex()
    for place, (_, question, answer, _) in enumerate(turns):
        asked = question if knows_questions else ""
        index.add(stated_lines(2 * place + 1, answer, asked, count_tokens), asked)
    return lambda probe: _put_back(index, probe)


def of_a_session(turns: list[Turn], engine: Engine, *, knows_questions: bool) -> Shown:
    """By the database, and an index of the turns that it finds."""
    session = SqlConversationStore(engine).create("ada")
    said = [
        ((question if knows_questions else "") or "?", answer) for _, question, answer, _ in turns
    ]
    pairs = [(("user", asked), ("assistant", answer or "?")) for asked, answer in said]
    session.append([ImportedMessage(*each) for pair in pairs for each in pair], [])
    recall = Recall()

    def shown(probe: str) -> set[int]:
        found = recall.relevant(session, probe, before=2 * len(turns), limit=RECALLED_TURNS)
        return _put_back(index_of(found, count_tokens, probe), probe)

    return shown


def _put_back(index: RecallIndex, probe: str) -> set[int]:
    _, lines = put_back(index, probe, before=10**9, room=ROOM, count=count_tokens)
    return {line.message for line in lines}


def main() -> None:
    """Print one line for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--answers-only", action="store_true")
    parser.add_argument("--application", action="store_true", help="a stored session")
    chosen = parser.parse_args()
    data = chosen.data or data_dir()
    if data is None:
        parser.error("Expected the folder of the data sets: --data DIR.")
    for read in (canard, mtrag, inscit, cast):
        turns = list(read(data))
        with TemporaryDirectory() as folder:
            engine = open_engine(f"sqlite:///{folder}/paraphrases.db")
            migrate(engine)
            known = {"knows_questions": not chosen.answers_only}
            stored = chosen.application
            shown = (
                of_a_session(turns, engine, **known) if stored else of_the_library(turns, **known)
            )
            a, b = shares(turns, shown)
            engine.dispose()
        print(f"{read.__name__:<8} {len(turns):>5} turns  half a {a:.3f}  half b {b:.3f}")


if __name__ == "__main__":
    main()
