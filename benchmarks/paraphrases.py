"""Whether an earlier answer is recalled by a person's paraphrase: python -m benchmarks.paraphrases

All conversations of a set (canard, mtrag, inscit) are one long history. Each question, as a person
wrote it anew to stand alone, is then asked again at the end; it is met if a statement of its
answer is among what fits 400 tokens. By words alone. Neither half of the conversations is held
out: both were counted while the weights were chosen. With --answers-only what was asked at the
time is not known, so that the answer's own words have to do.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from benchmarks.corpora import data_dir, rows_of
from rag.summaries.recall import RecallIndex
from rag.summaries.required import stated_lines
from rag.tokens import count_tokens

ROOM = 400  # tokens, a tenth of a window of 4,000
LINES = 24
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


def shares(turns: list[Turn], *, knows_questions: bool) -> list[float]:
    """The share that is met of each half of the conversations."""
    index = RecallIndex()
    for place, (_, question, answer, _) in enumerate(turns):
        asked = question if knows_questions else ""
        index.add(stated_lines(2 * place + 1, answer, asked, count_tokens), asked)
    stated = {line.message for line in index.lines}
    met: list[list[bool]] = [[], []]
    for place, (conversation, _, _, probe) in enumerate(turns):
        if probe and 2 * place + 1 in stated:
            half = met[crc32(conversation.encode()) % 2]
            half.append(2 * place + 1 in _shown(index, probe))
    return [sum(half) / len(half) for half in met]


def _shown(index: RecallIndex, probe: str) -> set[int]:
    left, shown = ROOM, set()
    for line in index.best(probe, before=10**9, limit=LINES):
        left -= line.tokens + line.lead_in_tokens
        if left < 0:
            break
        shown.add(line.message)
    return shown


def main() -> None:
    """Print one line for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--answers-only", action="store_true")
    chosen = parser.parse_args()
    data = chosen.data or data_dir()
    if data is None:
        parser.error("Expected the folder of the data sets: --data DIR.")
    for read in (canard, mtrag, inscit):
        turns = list(read(data))
        a, b = shares(turns, knows_questions=not chosen.answers_only)
        print(f"{read.__name__:<8} {len(turns):>5} turns  half a {a:.3f}  half b {b:.3f}")


if __name__ == "__main__":
    main()
