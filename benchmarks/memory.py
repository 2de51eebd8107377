"""What the history trimmer keeps, whatever its model does: python -m benchmarks.memory

With --work, what it costs instead: the trimmer's own processor time a call, models left out, as
one conversation grows: python -m benchmarks.memory --work 100 1000 10000. With --anew each call is
given new dicts, as by a server that reads the transcript from a database each time.
"""

import argparse
import copy
import json
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from benchmarks.conversations import Conversation, Fact, generate
from rag import HistoryTrimmer, Trimmed
from rag.citations.markers import cited_numbers
from rag.language.names import Lexicon
from rag.language.sentences import split_sentences
from rag.memory.summary import spelled_out
from rag.records import SummaryReport
from rag.tokens import count_tokens


@dataclass(frozen=True)
class Mode:
    """At which rates a summarising model loses things."""

    keep: float = 1.0
    drop: float = 0.0
    alter: float = 0.0
    invent: float = 0.0
    move: float = 0.0
    fault: str = ""


MODES = {
    "perfect": Mode(),
    "typical": Mode(0.5, 0.25, 0.1, 0.02, 0.05),
    "bad": Mode(0.5, 0.6, 0.4, 0.1, 0.2),
    "good": Mode(0.9, 0.05, 0.02, 0.005, 0.01),
    "empty": Mode(fault="empty"),
    "error500": Mode(fault="error500"),
    "timeout": Mode(fault="timeout"),
    "overlong": Mode(fault="overlong"),
    "markers": Mode(fault="markers"),
    "json": Mode(fault="json"),
    "extractive": Mode(fault="none"),
}
HEAD = {"role": "system", "content": "You answer from the documents and cite them."}
LISTS = ("Numbers given: ", "Names: ")  # such a line states nothing
MARKER = re.compile(r" ?(?:\[[\d, –-]+\]|【\d+】|［\d+］)")


@dataclass
class LossyClient:
    """An OpenAI client whose model keeps sentences, drops and moves markers and alters names."""

    mode: Mode
    chance: random.Random
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    seen: dict[str, int] = field(default_factory=dict)

    @property
    def chat(self) -> Any:
        return SimpleNamespace(completions=SimpleNamespace(create=self.create))

    def create(self, *, messages: list[dict[str, str]], **_: Any) -> Any:
        began = time.process_time()
        self.calls += 1
        self.tokens += sum(count_tokens(message["content"]) + 4 for message in messages)
        text = self._reply(messages[-1]["content"])
        self.seconds += time.process_time() - began
        choice = SimpleNamespace(message=SimpleNamespace(content=text))
        return SimpleNamespace(choices=[choice])

    def _reply(self, prompt: str) -> str:
        match self.mode.fault:
            case "empty":
                return ""
            case "error500":
                raise RuntimeError("Error code: 500 - internal server error")
            case "timeout":
                raise TimeoutError("Request timed out.")
            case "overlong":
                return prompt * 12
            case "markers":
                return "".join(re.findall(r"\[\d+\]", prompt)) * 3
            case "json":
                return json.dumps({"keep": prompt, "user": [{"text": prompt}]})
        return self._lossy(prompt)

    def _lossy(self, prompt: str) -> str:
        sentences = [prompt[span.start : span.end] for span in split_sentences(prompt)]
        kept = [s for s in sentences if self.chance.random() < self.mode.keep]
        markers: list[str] = []
        said = []
        for sentence in kept:
            found = MARKER.findall(sentence)
            if found and self.chance.random() < self.mode.move:
                markers += found
                sentence = MARKER.sub("", sentence)
            elif found and self.chance.random() < self.mode.drop:
                sentence = MARKER.sub("", sentence)
            if self.chance.random() < self.mode.alter:
                sentence = re.sub(r"\b(\w+) (\d)\b", r"\1 \g<2>0", sentence, count=1)
            if self.chance.random() < self.mode.invent:
                sentence = sentence.rstrip(".") + " [999]."
            if markers and not found:
                sentence = sentence.rstrip(".") + markers.pop() + "."
            said.append(sentence)
        return "\n".join(said)


@dataclass
class Measured:
    """Means over the last ten turns of one conversation, and sums over all of it."""

    citations: list[float] = field(default_factory=list)
    names: list[float] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)  # numbers beside a fact of their own
    pairs: list[float] = field(default_factory=list)
    wrong: int = 0
    invented: int = 0
    over: int = 0
    peak: int = 0
    summary_tokens: int = 0
    milliseconds: list[float] = field(default_factory=list)
    calls_per_turn: float = 0.0
    prompt_share: float = 0.0
    intact: bool = True


def context_size(messages: list[dict[str, Any]]) -> int:
    """As a stranger would count: text, and four tokens a message."""
    return sum(count_tokens(message["content"]) + 4 for message in messages) + 3


@dataclass
class Trimming:
    """One conversation that is handed to one trimmer, turn by turn."""

    messages: list[dict[str, str]]
    trimmer: HistoryTrimmer
    client: LossyClient
    anew: bool = False  # each call is given new dicts

    def turn(self, turn: int) -> tuple[Trimmed, float]:
        """What comes back for the question of a turn, and the trimmer's own milliseconds."""
        given = [HEAD, *self.messages[: 2 * turn + 1]]
        if self.anew:
            given = copy.deepcopy(given)
        spent, began = self.client.seconds, time.process_time()
        trimmed = self.trimmer.trim(given)
        own = time.process_time() - began - (self.client.seconds - spent)
        return trimmed, 1000 * own

    def recall(self, turn: int) -> Callable[[str], str]:
        """What is sent for another question in the place of that of a turn, itself apart."""
        before = [HEAD, *self.messages[: 2 * turn]]

        def sent(question: str) -> str:
            trimmed = self.trimmer.trim([*before, {"role": "user", "content": question}])
            return "\n".join(each["content"] for each in trimmed.messages).removesuffix(question)

        return sent


def trimming(made: Conversation, budget: int, mode: Mode, soft: int, seed: int) -> Trimming:
    """A new trimmer for a conversation."""
    client = LossyClient(mode, random.Random(seed))
    products = {name for each in made.names for name in each}
    options: dict[str, Any] = {"max_tokens": budget, "max_summary_tokens": soft}
    if mode.fault != "none":
        options |= {"client": client, "model": "lossy", "thread": True}
    return Trimming(made.messages, HistoryTrimmer(products=products, **options), client)


def measure(made: Conversation, budget: int, mode: Mode, soft: int, seed: int) -> Measured:
    """Play a conversation turn by turn, and look at each context."""
    playing = trimming(made, budget, mode, soft, seed)
    client = playing.client
    result = Measured()
    turns = len(made.messages) // 2
    before = copy.deepcopy(made.messages)
    for turn in range(turns):
        trimmed, own = playing.turn(turn)
        result.milliseconds.append(own)
        size = context_size(trimmed.messages)
        result.peak = max(result.peak, size)
        result.over += size > budget
        if turn >= turns - 10 and trimmed.was_trimmed:
            texts = [message["content"] for message in trimmed.messages]
            gone = 2 * turn + 2 - len(trimmed.messages)
            look(texts, made, gone, result, playing.recall(turn))
    transcript = sum(count_tokens(message["content"]) for message in made.messages)
    result.intact = before == made.messages
    result.calls_per_turn = client.calls / turns
    result.prompt_share = client.tokens / transcript
    return result


def look(
    messages: Sequence[str],
    made: Conversation,
    gone: int,
    result: Measured,
    recall: Callable[[str], str],
) -> None:
    """Compare one context with the truth about the messages that are gone from it.

    A name that it does not hold is looked for in what is sent for a question about it.
    """
    everything, summary = "\n".join(messages), messages[0]
    facts = [fact for index in range(gone) for fact in made.pairs[index]]
    required = {fact.number for fact in facts}
    present = set(cited_numbers(spelled_out(everything)))
    names = {name for index in range(gone) for name in made.names[index]}
    lines = [line for line in summary.split("\n") if not line.startswith(LISTS)]
    sentences = [line[s.start : s.end] for line in lines for s in split_sentences(line)]
    cited = [(set(cited_numbers(sentence)), sentence) for sentence in sentences]
    distinct = set(facts)
    held = {fact for fact in distinct if any(_states(s, n, fact) for n, s in cited)}
    result.citations.append(_share(len(required & present), len(required)))
    kept = Lexicon(names).whole_names(everything)
    kept |= {name for name in names - kept if name in recall(f"What about the {name}?")}
    result.names.append(_share(len(names & kept), len(names)))
    result.bound.append(_share(len({fact.number for fact in held}), len(required)))
    result.pairs.append(_share(len(held), len(distinct)))
    result.invented += len(set(cited_numbers(spelled_out(summary))) - required)
    result.wrong += _wrong(cited, facts)
    result.summary_tokens = count_tokens(summary)


def _states(sentence: str, numbers: set[int], fact: Fact) -> bool:
    return fact.number in numbers and fact.key.casefold() in sentence.casefold()


def _wrong(cited: list[tuple[set[int], str]], facts: list[Fact]) -> int:
    """Numbers in a sentence that states facts, none of them theirs."""
    by_number: dict[int, list[Fact]] = {}
    for fact in facts:
        by_number.setdefault(fact.number, []).append(fact)
    wrong = 0
    for numbers, sentence in cited:
        lowered = sentence.casefold()
        stated = {fact.number for fact in facts if fact.key.casefold() in lowered}
        if stated:
            wrong += sum(
                not any(fact.key.casefold() in lowered for fact in by_number.get(number, ()))
                for number in numbers
            )
    return wrong


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


HEADER = (
    f"{'turns':>5} {'budget':>6} {'soft':>5} {'mode':<10} {'[n]':>6} {'names':>6} {'bound':>6} "
    f"{'pairs':>6} {'wrong':>5} {'inv':>4} {'over':>4} {'peak':>6} {'summ':>5} {'calls':>6} "
    f"{'tok in':>6} {'ms':>6} {'p95':>6} {'max':>6}"
)


def row(label: tuple[int, int, int, str], results: list[Measured]) -> str:
    """One line of the table."""
    turns, budget, soft, mode = label

    def mean(name: str) -> float:
        return statistics.mean(v for r in results for v in getattr(r, name) or [1.0])

    spent = sorted(ms for r in results for ms in r.milliseconds[-max(60, turns // 5) :])
    return (
        f"{turns:>5} {budget:>6} {soft:>5} {mode:<10} {mean('citations'):>6.1%} "
        f"{mean('names'):>6.1%} {mean('bound'):>6.1%} {mean('pairs'):>6.1%} "
        f"{sum(r.wrong for r in results):>5} {sum(r.invented for r in results):>4} "
        f"{sum(r.over for r in results):>4} {max(r.peak for r in results):>6} "
        f"{max(r.summary_tokens for r in results):>5} "
        f"{statistics.mean(r.calls_per_turn for r in results):>6.3f} "
        f"{statistics.mean(r.prompt_share for r in results):>6.2f} "
        f"{statistics.mean(spent):>6.2f} {spent[int(len(spent) * 0.95)]:>6.2f} {spent[-1]:>6.1f}"
        + ("" if all(r.intact for r in results) else "  TRANSCRIPT CHANGED")
    )


# ── What it costs ────────────────────────────────────────────────────────────────────────────

ANEW_TURNS = 100  # before each length: to copy a transcript takes longer than to trim it
WORK_HEADER = (
    f"{'budget':>6} {'mode':<10} {'turns':>6} {'p50 ms':>7} {'p95 ms':>7} {'summaries':>9}"
)


def print_work(
    lengths: list[int], budgets: list[int], modes: list[str], soft: int, *, anew: bool
) -> None:
    """Own time of the calls that lead to each length: the last tenth of them, 100 at least."""
    made = generate(max(lengths), 0)
    print(WORK_HEADER)
    for budget in budgets:
        for mode in modes:
            playing = trimming(made, budget, MODES[mode], soft, 0)
            spent: list[float] = []
            reports: list[SummaryReport | None] = []
            for turn in range(max(lengths)):
                playing.anew = anew and any(0 <= length - turn <= ANEW_TURNS for length in lengths)
                trimmed, own = playing.turn(turn)
                spent.append(own)
                reports.append(trimmed.report)
                if turn + 1 in lengths:
                    count = ANEW_TURNS if anew else max(100, (turn + 1) // 10)
                    print(work_row(budget, mode, turn + 1, spent[-count:], reports[-count:]))


def work_row(
    budget: int, mode: str, turns: int, spent: list[float], reports: list[SummaryReport | None]
) -> str:
    """One line of the table of costs."""
    made = sum(one is not other for one, other in pairwise(reports))
    p50, p95 = (sorted(spent)[int(len(spent) * share)] for share in (0.5, 0.95))
    share = made / max(1, len(reports) - 1)
    return f"{budget:>6} {mode:<10} {turns:>6} {p50:>7.2f} {p95:>7.2f} {share:>9.1%}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="not used: the conversations are generated")
    parser.add_argument("--turns", type=int, nargs="*", default=[60, 300, 1000])
    parser.add_argument("--budgets", type=int, nargs="*", default=[4000, 16000])
    parser.add_argument("--soft", type=int, nargs="*", default=[800, 2400])
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=list(MODES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--wild", action="store_true", help="markers in many spellings")
    parser.add_argument("--work", type=int, nargs="+", metavar="TURNS", help="print costs instead")
    parser.add_argument("--anew", action="store_true", help="with --work: new dicts each time")
    chosen = parser.parse_args()
    if chosen.work:
        soft = chosen.soft[0]
        print_work(chosen.work, chosen.budgets, chosen.modes, soft, anew=chosen.anew)
        return
    print(HEADER)
    for turns in chosen.turns:
        made = [
            generate(turns, seed, wild=chosen.wild)
            for seed in range(chosen.seeds if turns <= 60 else 1)
        ]
        sizes = [len({f.number for p in m.pairs for f in p}) for m in made]
        print(f"# {turns} turns: {sizes} sources", file=sys.stderr)
        for budget in chosen.budgets:
            for soft in chosen.soft:
                for name in chosen.modes:
                    results = [
                        measure(each, budget, MODES[name], soft, seed)
                        for seed, each in enumerate(made)
                    ]
                    print(row((turns, budget, soft, name), results), flush=True)


if __name__ == "__main__":
    main()
