"""Whether what was said earlier is sent again when it is asked for: python -m benchmarks.probes

People's own questions about earlier turns. locomo: a chat of two people is read to the user, one
turn an answer with its number, and then each human question is asked; user and uncited: the same
talk, in which one of the two is the user, and nothing has a number: what he said, and what the
assistant did; inscit and cast: all conversations of the set are one history, and each question is
asked again as it stands alone; user_facts and uncited_facts: all talks of mtrag without numbers,
and 20 statements in them of users and of assistants, asked for in other words (facts.json, written
before any was measured). Met is a probe if the sentence that answers stands in what is sent, with
its number at most 500 characters behind it. In one
run: the last turns alone, plain BM25 over the paragraphs of all messages, and the trimmer.
"""

import argparse
import json
import math
import random
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpora import data_dir, rows_of
from rag import HistoryTrimmer
from rag.language.sentences import split_sentences
from rag.language.words import is_function_word, stem
from rag.tokens import count_tokens

MOST_TURNS = 1_200  # of canard
BEHIND = 500  # characters, in which the number of a sentence stands
Messages = list[dict[str, str]]
Sent = Callable[[str], Sequence[dict[str, Any]]]  # a question in, what is sent for it out
Way = Callable[[Messages, int], Sent]


@dataclass(frozen=True)
class Probe:
    """A question, and the sentences any of which answers it; numbers with them, if they have."""

    question: str
    gold: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Talk:
    """A history, and what is asked about it."""

    messages: Messages
    probes: tuple[Probe, ...]


# ── The data ─────────────────────────────────────────────────────────────────────────────────


def words_of(text: str) -> list[str]:
    """In lower case."""
    return re.findall(r"\w+", text.lower())


def stems_of(text: str) -> list[str]:
    """Of the words that carry meaning."""
    return [stem(word) for word in words_of(text) if not is_function_word(word)]


def sentences_of(text: str) -> list[str]:
    """As the text spells them."""
    return [text[start:end] for start, end in split_sentences(text)]


def nearest(text: str, answer: str) -> str:
    """The sentence that shares most words with an answer."""
    wanted = set(words_of(answer))
    return max(sentences_of(text), key=lambda each: len(wanted & set(words_of(each))))


def numbered(text: str, number: int, form: str) -> str:
    """A message as models cite: at its end, or behind each sentence."""
    if form == "end":
        return f"{text} [{number}]"
    return " ".join(f"{sentence} [{number}]" for sentence in sentences_of(text))


def locomo(data: Path, form: str) -> Iterator[Talk]:
    """One turn of the chat is one answer."""
    for row in rows_of(data / "locomo/dev/conversations.jsonl"):
        said = [turn for session in row["sessions"] for turn in session["turns"]]
        said = [turn for turn in said if turn["text"].strip()]
        numbers = {turn["id"]: number for number, turn in enumerate(said, start=1)}
        messages: Messages = []
        for turn in said:
            text = f"{turn['speaker']}: {turn['text']}"
            messages.append({"role": "user", "content": "Read on."})
            text = numbered(text, numbers[turn["id"]], form)
            messages.append({"role": "assistant", "content": text})
        texts = {turn["id"]: turn["text"] for turn in said}
        yield Talk(messages, tuple(_asked(row["qa"], texts, numbers)))


def _asked(
    questions: Sequence[dict[str, Any]], texts: dict[str, str], numbers: dict[str, int]
) -> Iterator[Probe]:
    """Those that have an answer; what answers is the sentence of all evidence nearest to it."""
    for each in questions:
        evidence = [turn for turn in each["evidence"] if turn in texts]
        if each["kind"] == "unanswerable" or not evidence:
            continue
        answer = str(each["answer"])
        nearest_of = {turn: nearest(texts[turn], answer) for turn in evidence}
        wanted = set(words_of(answer))
        best = max(evidence, key=lambda turn: len(wanted & set(words_of(nearest_of[turn]))))
        yield Probe(each["question"], ((nearest_of[best], numbers[best]),))


def _dialogue(data: Path, form: str, role: str) -> Iterator[Talk]:
    """The first speaker is the user, the other the assistant; nobody gives numbers."""
    for row in rows_of(data / "locomo/dev/conversations.jsonl") if form == "end" else ():
        said = [turn for session in row["sessions"] for turn in session["turns"]]
        said = [turn for turn in said if turn["text"].strip()]
        roles = {turn["id"]: _role(turn, row) for turn in said}
        messages = [{"role": roles[turn["id"]], "content": turn["text"]} for turn in said]
        texts = {turn["id"]: turn["text"] for turn in said}
        probes = _asked(row["qa"], texts, dict.fromkeys(texts, 0))
        own = {s for turn, text in texts.items() if roles[turn] == role for s in sentences_of(text)}
        yield Talk(messages, tuple(each for each in probes if each.gold[0][0] in own))


def _role(turn: dict[str, Any], row: dict[str, Any]) -> str:
    return "user" if turn["speaker"] == row["speakers"][0] else "assistant"


def user(data: Path, form: str) -> Iterator[Talk]:
    """What the user said."""
    return _dialogue(data, form, "user")


def uncited(data: Path, form: str) -> Iterator[Talk]:
    """What the assistant said without a number."""
    return _dialogue(data, form, "assistant")


def _facts(data: Path, form: str, role: str) -> Iterator[Talk]:
    """All conversations of mtrag as one, without numbers, and sentences of them asked for."""
    if form != "end":
        return
    turns = {row["id"]: row["turns"] for row in rows_of(data / "mtrag/dev/conversations.jsonl")}
    said = ((_side(turn["role"]), turn["text"]) for own in turns.values() for turn in own)
    messages = [{"role": side, "content": text} for side, text in said]
    probes = []
    for each in json.loads(FACTS.read_text())[role]:
        sentences = sentences_of(turns[each["talk"]][each["turn"]]["text"])
        gold = next(one for one in sentences if one.startswith(each["begins"]))
        probes.append(Probe(each["question"], ((gold, 0),)))
    yield Talk(messages, tuple(probes))


def _side(role: str) -> str:
    return "user" if role == "user" else "assistant"


def user_facts(data: Path, form: str) -> Iterator[Talk]:
    """What users stated between their questions."""
    return _facts(data, form, "user")


def uncited_facts(data: Path, form: str) -> Iterator[Talk]:
    """Sentences of answers."""
    return _facts(data, form, "assistant")


def inscit(data: Path, form: str) -> Iterator[Talk]:
    """What answers is the sentence nearest to another person's answer, else to the question."""
    messages: Messages = []
    probes: list[Probe] = []
    for row in rows_of(data / "inscit/dev/turns.jsonl"):
        said = [each["response"] for each in row["labels"] if each["type"] == "directAnswer"]
        if said and said[0].strip():
            number = len(probes) + 1
            messages.append({"role": "user", "content": row["question"]})
            messages.append({"role": "assistant", "content": numbered(said[0], number, form)})
            gold = nearest(said[0], said[1] if len(said) > 1 else row["question"])
            probes.append(Probe(row["question"], ((gold, number),)))
    yield Talk(messages, tuple(probes))


def cast(data: Path, form: str) -> Iterator[Talk]:
    """The answers of 2022; what answers is the sentence nearest to the question, as a person
    wrote it anew to stand alone."""
    rows = rows_of(data / "cast/dev/rewrites.jsonl")
    yield _rewritten([row for row in rows if row["year"] == "2022"], form)


def canard(data: Path, form: str) -> Iterator[Talk]:
    """As cast; short answers to questions about people."""
    yield _rewritten(list(rows_of(data / "canard/dev/rewrites.jsonl"))[:MOST_TURNS], form)


def _rewritten(rows: Sequence[dict[str, Any]], form: str) -> Talk:
    anew = {(row["conversation"], row["question"]): row["rewrite"] for row in rows}
    said: dict[tuple[str, str], str] = {}
    for row in rows:
        for asked, answered in zip(row["history"], row["history"][1:], strict=False):
            if (asked["role"], answered["role"]) == ("user", "assistant"):
                said[row["conversation"], asked["text"]] = answered["text"]
    messages: Messages = []
    probes: list[Probe] = []
    for number, ((conversation, question), answer) in enumerate(said.items(), start=1):
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": numbered(answer, number, form)})
        rewrite = anew.get((conversation, question))
        if rewrite and answer.strip():
            probes.append(Probe(rewrite, ((nearest(answer, rewrite), number),)))
    return Talk(messages, tuple(probes))


def mtrag(data: Path, form: str) -> Iterator[Talk]:
    """Conversations of people with a system whose answers they mended; the first question of each
    is asked again, and what answers is the sentence nearest to it."""
    by_domain: dict[str, list[Any]] = {}
    for row in rows_of(data / "mtrag/dev/conversations.jsonl"):
        by_domain.setdefault(row["domain"], []).append(row["turns"])
    for conversations in by_domain.values():
        messages: Messages = []
        probes: list[Probe] = []
        for turns in conversations:
            for at, (asked, answered) in enumerate(zip(turns[::2], turns[1::2], strict=False)):
                number = len(messages) // 2 + 1
                text = numbered(answered["text"], number, form)
                messages.append({"role": "user", "content": asked["text"]})
                messages.append({"role": "assistant", "content": text})
                if at == 0 and asked["answerability"] == "ANSWERABLE":
                    gold = nearest(answered["text"], asked["text"])
                    probes.append(Probe(asked["text"], ((gold, number),)))
        yield Talk(messages, tuple(probes))


FACTS = Path(__file__).with_name("facts.json")  # where they stand, and what is asked
DIALOGUES = (user, uncited, user_facts, uncited_facts)
SETS = {each.__name__: each for each in (locomo, inscit, cast, canard, mtrag, *DIALOGUES)}


def is_met(sent: Sequence[dict[str, Any]], probe: Probe) -> bool:
    """Whether a sentence that answers stands there with its number."""
    text = " ".join(" ".join(message["content"].split()) for message in sent)
    bare = re.sub(r" ?\[\d+\]", "", text)
    for sentence, number in probe.gold:
        wanted = " ".join(sentence.split())
        if not number and wanted in bare:
            return True
        for found in re.finditer(re.escape(wanted), text) if number else ():
            if f"[{number}]" in text[found.end() : found.end() + BEHIND]:
                return True
    return False


# ── What is compared ─────────────────────────────────────────────────────────────────────────


class Plain:
    """BM25 over the paragraphs of all messages, as simple as it can be; the newest turns first."""

    def __init__(self, messages: Messages, budget: int, share: float = 0.25) -> None:
        self.messages, self.budget, self.share = messages, budget, share
        self.paragraphs = [
            (at, paragraph)
            for at, message in enumerate(messages)
            for paragraph in re.split(r"\n\s*\n", message["content"])
        ]
        self.counts = [Counter(stems_of(text)) for _, text in self.paragraphs]
        self.lengths = [sum(count.values()) for count in self.counts]
        self.mean = statistics.mean(self.lengths)
        self.holders = Counter(word for count in self.counts for word in count)

    def sent(self, question: str) -> Sequence[dict[str, Any]]:
        """The last turns within their share, then the best paragraphs as long as there is room."""
        left = self.budget - 3 - _cost(question)
        first, last = len(self.messages), []
        most = self.share * left
        while first and sum(map(_cost, last)) + _cost(self.messages[first - 1]["content"]) <= most:
            first -= 1
            last.insert(0, self.messages[first]["content"])
        left -= sum(map(_cost, last))
        words = set(stems_of(question))
        scores = [self.score(at, words) for at in range(len(self.paragraphs))]
        recalled = []
        for at in sorted(range(len(scores)), key=lambda at: -scores[at]):
            message, text = self.paragraphs[at]
            if scores[at] > 0 and message < first and _cost(text) <= left:
                recalled.append(text)
                left -= _cost(text)
        return [{"content": text} for text in [*recalled, *last, question]]

    def score(self, at: int, words: set[str]) -> float:
        """BM25 with the usual constants."""
        total, length = 0.0, 1.2 * (0.25 + 0.75 * self.lengths[at] / self.mean)
        for word in words & self.counts[at].keys():
            held, count = self.holders[word], self.counts[at][word]
            rarity = math.log(1 + (len(self.counts) - held + 0.5) / (held + 0.5))
            total += rarity * count * 2.2 / (count + length)
        return total


def plain(messages: Messages, budget: int) -> Sent:
    """Plain BM25."""
    return Plain(messages, budget).sent


def last_turns(messages: Messages, budget: int) -> Sent:
    """Nothing but the newest messages."""

    def sent(question: str) -> Sequence[dict[str, Any]]:
        left, kept = budget - 3 - _cost(question), [{"content": question}]
        for message in reversed(messages):
            left -= _cost(message["content"])
            if left < 0:
                break
            kept.insert(0, message)
        return kept

    return sent


def ours(messages: Messages, budget: int, embed: Any = None) -> Sent:
    """The trimmer."""
    trimmer = HistoryTrimmer(max_tokens=budget, embed=embed)

    def sent(question: str) -> Sequence[dict[str, Any]]:
        return trimmer.trim([*messages, {"role": "user", "content": question}]).messages

    return sent


def _cost(text: str) -> int:
    return count_tokens(text) + 4


def with_embedder() -> Callable[[Messages, int], Sent]:
    """The trimmer with the packaged embedding model."""
    from benchmarks.corpora import packaged

    embedder = packaged()
    return lambda messages, budget: ours(
        messages, budget, lambda texts: embedder.embed(list(texts))
    )


def shares(talks: Sequence[Talk], budget: int, way: Callable[[Messages, int], Sent]) -> list[bool]:
    """Of each probe whether it is met; what is over the budget does not count."""
    met: list[bool] = []
    for talk in talks:
        send = way(talk.messages, budget)
        for probe in talk.probes:
            sent = send(probe.question)
            fits = sum(_cost(message["content"]) for message in sent) + 3 <= budget
            met.append(fits and is_met(sent, probe))
    return met


LABELS = re.compile(r"^(?:User:|Assistant:|- |…) ?")


def room_of(talks: Sequence[Talk], budget: int) -> tuple[float, float]:
    """Means of what the trimmer uses of the budget, and of what in it was said word for word."""
    used, said = [], []
    for talk in talks:
        every = "\n".join(" ".join(each["content"].split()) for each in talk.messages)
        send = ours(talk.messages, budget)
        for probe in talk.probes:
            sent = send(probe.question)
            lines = [line for message in sent for line in message["content"].split("\n")]
            own = [line for line in lines if " ".join(LABELS.sub("", line).split()) in every]
            used.append((sum(_cost(message["content"]) for message in sent) + 3) / budget)
            said.append((count_tokens("\n".join(own)) + 4 * len(sent)) / budget)
    return statistics.mean(used), statistics.mean(said)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--budgets", type=int, nargs="*", default=[1500, 4000, 16000])
    parser.add_argument("--forms", nargs="*", default=["end", "each"], choices=["end", "each"])
    parser.add_argument("--sample", type=int, help="probes of each talk at most")
    parser.add_argument("--room", action="store_true", help="what fills the budget, instead")
    parser.add_argument("--embed", action="store_true", help="ours with the embedding model, too")
    chosen = parser.parse_args()
    data = chosen.data or data_dir()
    if data is None:
        parser.error("Expected the folder of the data sets: --data DIR.")
    ways: dict[str, Way] = {"last turns": last_turns, "plain BM25": plain, "ours": ours}
    if chosen.embed:
        ways["ours + embedder"] = with_embedder()
    every: dict[str, list[float]] = {name: [] for name in ways}
    print(
        f"{'set':<9} {'form':<5} {'budget':>6} {'probes':>6} " + " ".join(f"{w:>15}" for w in ways)
    )
    cells = (
        (name, form, [_sampled(talk, chosen.sample) for talk in SETS[name](data, form)])
        for name in chosen.sets
        for form in chosen.forms
    )
    for name, form, talks in cells:
        for budget in chosen.budgets if talks else ():
            told = f"{name:<9} {form:<5} {budget:>6}"
            if chosen.room:
                print("{} used {:.1%}, said {:.1%}".format(told, *room_of(talks, budget)))
                continue
            figures = {
                label: statistics.mean(shares(talks, budget, way)) for label, way in ways.items()
            }
            for label, figure in figures.items():
                every[label].append(figure)
            count = sum(len(talk.probes) for talk in talks)
            row = " ".join(f"{figure:>15.3f}" for figure in figures.values())
            print(f"{told} {count:>6} {row}", flush=True)
    means = " ".join(f"{statistics.mean(each or [0]):>15.3f}" for each in every.values())
    print(f"{'mean':<29} {means}")


def _sampled(talk: Talk, most: int | None) -> Talk:
    if most is None or most >= len(talk.probes):
        return talk
    return Talk(talk.messages, tuple(random.Random(0).sample(talk.probes, most)))


if __name__ == "__main__":
    main()
