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
from rag.citations.markers import cited_numbers
from rag.citations.statements import Clause, read_statements
from rag.memory.history import History
from rag.memory.summariser import ModelReply, Summariser
from rag.memory.summary import NO_SUMMARY_DRAFT
from rag.records import LineMark
from rag.runtime.budget import HangUp
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
    parser.add_argument("--clauses", action="store_true", help="what becomes of clauses, instead")
    chosen = parser.parse_args()
    talks = json.loads(TALKS.read_text(encoding="utf-8"))
    if chosen.clauses:
        _print_clauses(talks)
        return
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


def _print_clauses(talks: Sequence[dict[str, Any]]) -> None:
    """Of clauses with a number how many are written, and how many with one thing changed."""
    print(f"{'summaries':<12} {'clauses':>7} {'at once':>8} {'rewritten':>9} {'changed':>8} stand")
    by = (("by hand", _by_hand), ("fresh eyes", _by_fresh_eyes), ("by template", _by_template))
    for name, summary in by:
        clauses, at_once, rewritten, changed, stand = 0, 0, 0, 0, 0
        for talk, text in ((talk, summary(talk)) for talk in talks if summary(talk)):
            clauses += sum(len(part.numbers) > 0 for part in _parts(text))
            at_once += _written_clauses(talk, text, rewrites=False)
            rewritten += _written_clauses(talk, text, rewrites=True)
            for line in filter(re.compile(r"\d(?!\d*\])").search, text.splitlines()):
                if not cited_numbers(line):
                    continue
                lie = re.sub(r"(?<![\[\d])\d+(?!\d*\])", _one_more, line, count=1)
                changed += 1
                stand += any(lie in own for own in _lines(talk, f"Answered:\n{lie}", False))
        print(
            f"{name:<12} {clauses:>7} {at_once / clauses:>8.2f} {rewritten / clauses:>9.2f} "
            f"{changed:>8} {stand:>5}"
        )

    _print_lies([(talk, *lie) for talk in talks for lie in talk.get("lies", ())])


def _print_lies(lies: Sequence[tuple[dict[str, Any], str, str]]) -> None:
    """Of statements with one typed thing changed how many stand, by kind."""
    standing: list[tuple[str, str]] = []
    for talk, kind, text in lies:
        if any(cited_numbers(line) for line in _lines(talk, f"Answered:\n{text}", False)):
            standing.append((kind, text))
    print(f"{'one thing changed':<20} {len(lies)} of {len({kind for _, kind, _ in lies})} kinds")
    for kind, text in standing:
        print(f"  stands: {kind}: {text}")


def _by_fresh_eyes(talk: dict[str, Any]) -> str:
    return str(talk.get("fresh", ""))


def _by_hand(talk: dict[str, Any]) -> str:
    return str(talk["summary"])


def _by_template(talk: dict[str, Any]) -> str:
    """In the third person, by a form that knows of no rule: questions and answers are one line."""
    pairs = [*talk["turns"], *talk.get("later", {}).values()]
    lines = (f"The user asks: {asked} The assistant says: {said}" for asked, said in pairs)
    return "Answered:\n" + "\n".join(line.replace(" I ", " they ") for line in lines)


def _one_more(match: re.Match[str]) -> str:
    return str(int(match[0]) + 1)


def _parts(text: str) -> list[Clause]:
    return [
        part
        for line in text.splitlines()
        for statement in read_statements(line)
        for part in statement.parts
    ]


def _written_clauses(talk: dict[str, Any], summary: str, *, rewrites: bool) -> int:
    return sum(len(_parts(line)) for line in _lines(talk, summary, rewrites) if cited_numbers(line))


def _lines(talk: dict[str, Any], summary: str, rewrites: bool) -> list[str]:
    """The lines of a summary that stand as written."""
    history = History(count_tokens)
    for message in messages_of(talk):
        history.read(message["role"], message["content"], count_tokens(message["content"]))
    client = ScriptedClient(summary)

    def ask(instructions: str, text: str, hang_up: HangUp) -> ModelReply:
        if text.startswith("C1:") and not rewrites:
            return ModelReply("")
        messages = [{"role": "user", "content": text}]
        return ModelReply(client.create(messages=messages).choices[0].message.content)

    summariser = Summariser(ask, "scripted", count_tokens, lambda: 1_000_000)
    draft = summariser.write(history.evidence(0, len(history.parsed)), NO_SUMMARY_DRAFT)
    return [line.text for line in draft.lines if line.mark is LineMark.WRITTEN]


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
