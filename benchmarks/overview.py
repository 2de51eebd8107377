"""Whether a model that is asked for an overview has what it needs: python -m benchmarks.overview

Talks in which a person tells of himself and gets answers, then asks about many other things, and at
last for a summary (overview.json: openings, questions, needed facts and one summary of each are
written by hand; the turns between are made of one form a talk). Met is a fact that stands in what
is sent. In one run: the last turns, plain BM25, the trimmer without a model, that summary
unverified with the last turns, and the trimmer with a model that writes it (and repeats the
sentences that it is shown when it is asked to write failed clauses again).
"""

import argparse
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.probes import Messages, Sent, last_turns, plain
from rag import HistoryTrimmer
from rag.tokens import count_tokens

TALKS = Path(__file__).with_suffix(".json")
Way = Callable[[dict[str, Any], Messages, int], Sent]


def messages_of(talk: dict[str, Any]) -> Messages:
    """The opening, then a turn for each topic; what the user tells later stands between."""
    messages: Messages = []
    later = talk.get("later", {})
    number = len(talk["turns"]) + len(later) + 2
    pairs = list(talk["turns"])
    forms = [talk["filler"], *talk.get("fillers", [])]
    for place, topic in enumerate(talk["topics"].split()):
        question, answer = forms[place % len(forms)]
        pairs += [later[str(place)]] if str(place) in later else []
        pairs.append([question.format(x=topic), answer.format(x=topic, a=number, b=number + 1)])
        number += 2
    for asked, answered in pairs:
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    return messages


class ScriptedClient:
    """Writes the summary, and copies the sentences of failed clauses."""

    def __init__(self, summary: str) -> None:
        self.chat = self.completions = self
        self._summary = summary

    def create(self, *, messages: Sequence[dict[str, str]], **options: Any) -> Any:
        """As the client of `openai`."""
        shown = messages[-1]["content"]
        failed = re.findall(r"^C(\d+): .*\n   sentence: (.*)$", shown, re.MULTILINE)
        again = "\n".join(f"C{number}: {sentence}" for number, sentence in failed)
        message = SimpleNamespace(content=again or self._summary)
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])


def _ours(talk: dict[str, Any], messages: Messages, budget: int) -> Sent:
    trimmer = HistoryTrimmer(max_tokens=budget)
    return lambda question: trimmer.trim([*messages, _asked(question)]).messages


def _written(talk: dict[str, Any], messages: Messages, budget: int) -> Sent:
    client = ScriptedClient(talk["summary"])
    trimmer = HistoryTrimmer(client=client, model="scripted", max_tokens=budget)
    return lambda question: trimmer.trim([*messages, _asked(question)]).messages


def _unverified(talk: dict[str, Any], messages: Messages, budget: int) -> Sent:
    summary = talk["summary"]
    return lambda question: [
        {"role": "system", "content": summary},
        *last_turns(messages, max(50, budget - count_tokens(summary) - 4))(question),
    ]


def _asked(question: str) -> dict[str, str]:
    return {"role": "user", "content": question}


WAYS: dict[str, Way] = {
    "last turns": lambda talk, messages, budget: last_turns(messages, budget),
    "plain BM25": lambda talk, messages, budget: plain(messages, budget),
    "ours": _ours,
    "unverified": _unverified,
    "ours, written": _written,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budgets", type=int, nargs="*", default=[1000, 1500, 4000])
    chosen = parser.parse_args()
    talks = json.loads(TALKS.read_text(encoding="utf-8"))
    print(f"{'talk':<32} {'budget':>6} {'facts':>5} " + " ".join(f"{w:>13}" for w in WAYS))
    totals: dict[int, dict[str, list[bool]]] = {}
    for talk in talks:
        messages = messages_of(talk)
        for budget in chosen.budgets:
            met = {name: _met(talk, way(talk, messages, budget)) for name, way in WAYS.items()}
            _print(talk["name"], budget, met)
            for name, each in met.items():
                totals.setdefault(budget, {}).setdefault(name, []).extend(each)
    for budget, met in totals.items():
        _print("all", budget, met)


def _met(talk: dict[str, Any], send: Sent) -> list[bool]:
    """Of each needed fact whether it stands in what is sent for its question."""
    met: list[bool] = []
    for question, facts in talk["questions"]:
        sent = "\n".join(message["content"] for message in send(question))
        met += [fact in sent for fact in facts]
    return met


def _print(name: str, budget: int, met: dict[str, list[bool]]) -> None:
    count = len(next(iter(met.values())))
    row = " ".join(f"{sum(each) / count:>13.2f}" for each in met.values())
    print(f"{name:<32} {budget:>6} {count:>5} {row}", flush=True)


if __name__ == "__main__":
    main()
