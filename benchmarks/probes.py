"""Whether an earlier claim comes back when it is asked for: python -m benchmarks.probes

Generated conversations about the things and rules of invented houses (a hostel, a workshop, a
clinic), each fact said once or several times with its number. Then every one of 100 probes asks,
in other words, for one fact that fell out of the context; it is met if a statement with the fact
and its number stands in what is sent: by the trimmer or, with --application, by a stored session,
where sources fill their room. With --described the probes do not even name the thing, but say
other words for it and for where it stands; with --unseen so, in a vocabulary that was written
after all rules stood. With --chooser: how many probes the summary alone answers, with a model that
chooses what will be asked, none, and one that chooses at random.
"""

import argparse
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from rag import HistoryTrimmer
from rag.citations.markers import cited_numbers
from rag.database import migrate, open_engine
from rag.memory import Memory, MemoryRules
from rag.records import ImportedMessage, Source
from rag.seams import Embedder, SessionHandle
from rag.sessions.recall import Recall
from rag.sessions.store import SqlConversationStore
from rag.settings import Settings
from rag.summaries.compact import Compactor
from rag.tokens import count_tokens
from rag.turns.answering import Shown
from rag.wiring.parts import open_embedder

# What is said of a thing, what is asked for it in other words, and the range of its figure.
THINGS = (
    ("weighs {v} kg", "How heavy is the {p}?", 2, 400),
    ("costs {v} crowns a day to hire", "What is the daily rental fee of the {p}?", 5, 900),
    ("has to be oiled every {v} weeks", "How often does the {p} need lubrication?", 2, 40),
    ("stops by itself at {v} °C", "At which temperature does the {p} switch off?", -30, 90),
    ("is {v} cm wide", "What is the width of the {p}?", 20, 300),
    ("may be lent for {v} nights at most", "How long can a guest keep the {p}?", 2, 60),
    ("was last inspected {v} days ago", "When did somebody check the {p}?", 3, 700),
    ("holds {v} litres", "What volume fits into the {p}?", 2, 500),
    ("draws {v} W when idle", "What is the standby consumption of the {p}?", 1, 90),
    ("is loud: {v} dB at one metre", "How noisy is the {p}?", 30, 110),
    ("takes {v} minutes to warm up", "How much time does heating up the {p} take?", 2, 90),
    ("must not carry more than {v} people", "How many persons may use the {p} at once?", 2, 30),
)
RULES = (
    ("Guests in the {p} must be back by {v} minutes past ten", "When is curfew in the {p}?", 1, 59),
    ("The {p} is closed for {v} days each spring", "How long is the {p} shut in spring?", 2, 60),
    ("A lost key to the {p} is charged at {v} crowns", "What is the fee for a missing {p} key?",
     10, 400),
    ("Dogs in the {p} stay on a lead of {v} cm", "How long a leash do pets need in the {p}?",
     50, 300),
)  # fmt: skip
FIRST = "Amber Birch Cobalt Dune Elm Fjord Garnet Heath Ivory Juniper Kestrel Larch Marble".split()  # noqa: SIM905
KINDS = "Winch Loft Lathe Ferry Kiln Sauna Loom Barn Crane Annex Press Cabin Boiler Studio".split()  # noqa: SIM905
FORMS = (
    "{c} [{n}].",
    "{c} [{n}].",
    "As the house book says, {c} [{n}].",
    "{c}. [{n}]",
    "- {c} [{n}]\n",
)
SMALL_TALK = (
    "Do tell me if anything is unclear.", "That much I found.", "Have a pleasant stay.", "",
    "There is more on this in the house book.",
)  # fmt: skip


# With two words for each thing, place and property: the first in answers, the second in probes.
OBJECTS = (
    ("sofa", "couch"), ("lamp", "light"), ("cupboard", "cabinet"), ("rug", "carpet"),
    ("heater", "radiator"), ("fridge", "refrigerator"), ("television", "TV set"),
    ("bicycle", "bike"), ("mirror", "looking glass"), ("vacuum cleaner", "hoover"),
    ("kettle", "water boiler"), ("bin", "waste basket"), ("painting", "picture"),
    ("fan", "ventilator"),
)  # fmt: skip
PLACES = (
    ("in the attic", "under the roof"), ("in the cellar", "in the basement"),
    ("in the kitchen", "where we cook"), ("in the nursery", "in the children's room"),
    ("in the study", "in the home office"), ("in the hallway", "by the entrance"),
    ("in the garage", "where the car is parked"), ("in the garden", "outdoors behind the house"),
    ("in the bathroom", "where one takes a shower"), ("in the guest room", "for visitors"),
)  # fmt: skip
ASPECTS = (
    ("was bought for {v} euros", "What did we pay for the {p}?", 20, 900),
    ("weighs {v} kg", "How heavy is the {p}?", 2, 90),
    ("is {v} cm tall", "What is the height of the {p}?", 20, 240),
    ("was repaired {v} months ago", "When did somebody fix the {p}?", 2, 70),
    ("is insured for {v} crowns", "How much would the insurer give us for the {p}?", 100, 9000),
)

# The same of a farm, written when all rules of recall stood: none may be fitted to it.
UNSEEN_OBJECTS = (
    ("tractor", "farm vehicle"), ("cow", "milk cattle"), ("fence", "barrier"),
    ("well", "water hole"), ("dog", "watchful hound"), ("ladder", "steps"),
    ("seed bag", "sack of grain"), ("pump", "compressor"), ("shovel", "spade"),
    ("wagon", "cart"), ("saw", "blade for wood"), ("oven", "stove"), ("contract", "agreement"),
    ("laptop", "portable computer"),
)  # fmt: skip
UNSEEN_PLACES = (
    ("by the river", "along the stream"), ("in the barn", "in the stable"),
    ("on the hill", "up on the slope"), ("in the village", "in the settlement"),
    ("at the office", "where the clerks sit"), ("in the orchard", "among the apple trees"),
    ("in the shop", "at the store"), ("near the road", "beside the highway"),
    ("in the forest", "in the woods"), ("at the market", "where produce is sold"),
)  # fmt: skip
UNSEEN_ASPECTS = (
    ("is rented for {v} francs", "What is the lease of the {p}?", 20, 900),
    ("is {v} years old", "What is the age of the {p}?", 2, 90),
    ("was cleaned {v} days ago", "When was the {p} last washed?", 2, 240),
    ("may be used {v} hours a week", "For how long can one employ the {p}?", 2, 70),
    ("needs {v} watts", "How much electricity does the {p} consume?", 100, 9000),
)


@dataclass(frozen=True)
class Known:
    """A fact with its number, and the question that asks for it in other words."""

    words: str
    number: int
    probe: str


@dataclass
class House:
    """A conversation, and for each answer the facts that it states."""

    messages: list[dict[str, str]] = field(default_factory=list)
    facts: list[list[Known]] = field(default_factory=list)


def house(turns: int, seed: int, *, described: bool = False, unseen: bool = False) -> House:
    """About one new fact a turn at first, fewer later; old ones are said again."""
    described = described or unseen
    chance = random.Random(seed)
    made, known = House(), []
    described_facts = _described(random.Random(seed), unseen=unseen)
    for turn in range(turns):
        wanted = int(6 * (turn + 1) ** 0.55)
        fresh = [
            described_facts[len(known) + step]
            if described
            else _fact(chance, len(known) + step + 1)
            for step in range(wanted - len(known))
        ][:3]
        known += fresh
        again = chance.sample(known, min(len(known), chance.randint(1, 3)))
        said = list(dict.fromkeys([*fresh, *again]))
        text = " ".join(_said(chance, fact) for fact in said)
        asked = f"{said[0].probe} And what else should I know?"
        asked = "Tell me more about what we have, please." if described else asked
        made.messages += [
            {"role": "user", "content": asked},
            {"role": "assistant", "content": f"{text} {chance.choice(SMALL_TALK)}".strip()},
        ]
        made.facts.append(said)
    return made


def _fact(chance: random.Random, number: int) -> Known:
    # Several facts share a thing: a name alone does not tell which is meant.
    thing = f"{FIRST[number // 15 % 13]} {KINDS[number // 15 % 13]} {2 + number // 40}"
    is_rule = chance.random() < 0.25
    form, probe, low, high = chance.choice(RULES if is_rule else THINGS)
    words = form.format(p=thing, v=chance.randint(low, high))
    return Known(words if is_rule else f"the {thing} {words}", number, probe.format(p=thing))


def _described(chance: random.Random, *, unseen: bool) -> list[Known]:
    """A fact about every thing in every place."""
    objects, places, aspects = (
        (UNSEEN_OBJECTS, UNSEEN_PLACES, UNSEEN_ASPECTS) if unseen else (OBJECTS, PLACES, ASPECTS)
    )
    every = [(*each, aspect) for each in product(objects, places) for aspect in aspects]
    chance.shuffle(every)
    return [
        Known(
            f"the {thing[0]} {place[0]} {form.format(v=chance.randint(low, high))}",
            number,
            probe.format(p=f"{thing[1]} {place[1]}"),
        )
        for number, (thing, place, (form, probe, low, high)) in enumerate(every, start=1)
    ]


def _said(chance: random.Random, fact: Known) -> str:
    said = chance.choice(FORMS).format(c=fact.words, n=fact.number)
    return said[:1].upper() + said[1:]


def holds(text: str, fact: Known) -> bool:
    """Whether a line states the fact with its number."""
    return any(
        fact.words.casefold() in line.casefold() and fact.number in cited_numbers(line)
        for line in re.split(r"\n|(?<=\])\. |(?<=\.) (?=[A-Z])|(?<=\]\.) ", text)
    )


# ── Models that choose ───────────────────────────────────────────────────────────────────────


@dataclass
class Chooser:
    """An OpenAI client whose model keeps the statements that `wanted` says."""

    wanted: Callable[[str], bool]
    calls: int = 0
    characters: int = 0

    @property
    def chat(self) -> Any:
        return SimpleNamespace(completions=SimpleNamespace(create=self.create))

    def create(self, *, messages: list[dict[str, str]], **_: Any) -> Any:
        """Ids of the statements in the prompt, as JSON."""
        self.calls += 1
        prompt = messages[-1]["content"]
        self.characters += sum(len(message["content"]) for message in messages)
        shown = re.findall(r"^(\d+)\. (.*)$", prompt, re.MULTILINE)
        kept = [number for number, line in shown if self.wanted(line)]
        content = f'{{"keep": [{", ".join(kept)}], "user": []}}'
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=content))])


# ── Measure ──────────────────────────────────────────────────────────────────────────────────


def play(made: House, trimmer: HistoryTrimmer) -> list[dict[str, Any]]:
    """What is sent for the last question of a conversation."""
    messages: list[dict[str, Any]] = []
    for turn in range(0, len(made.messages), 2):
        messages += made.messages[turn : turn + 2]
        trimmed = trimmer.trim([*messages, {"role": "user", "content": "Go on."}])
    return trimmed.messages


def evicted(made: House, sent: list[dict[str, Any]]) -> list[Known]:
    """The facts that are in no turn that is still sent word for word."""
    kept = "\n".join(m["content"] for m in sent[1:])
    every = {fact: None for facts in made.facts for fact in facts}
    return [fact for fact in every if fact.words.casefold() not in kept.casefold()]


def trimmed_probe(
    made: House, budget: int, embedder: Embedder | None, chance: random.Random
) -> tuple[float, float]:
    """The shares of probes that are met by what the library sends, and by its summary alone."""
    embed = (lambda texts: embedder.embed(list(texts))) if embedder else None
    trimmer = HistoryTrimmer(max_tokens=budget, embed=embed)
    gone = evicted(made, play(made, trimmer))

    def sent(question: str) -> list[str]:
        asked = [*made.messages, {"role": "user", "content": question}]
        return [message["content"] for message in trimmer.trim(asked).messages]

    return shares_met(gone, sent, chance)


def stored_probe(
    made: House, window: int, embedder: Embedder | None, chance: random.Random
) -> tuple[float, float]:
    """The same of the application: sources take what room they are given."""
    with TemporaryDirectory() as folder:
        memory, session = stored(made, window, embedder, Path(folder))
        context = memory.context(session)[0]
        gone = evicted(made, [{"content": message.content} for message in context])
        sources = [_source(number) for number in range(8)]

        def sent(question: str) -> list[str]:
            turn = session.begin(question)
            return [m.content for m in memory.prepare(session, turn, Shown(sources)).messages]

        return shares_met(gone, sent, chance)


def stored(
    made: House, window: int, embedder: Embedder | None, folder: Path
) -> tuple[Memory, SessionHandle]:
    """A session that was summarised as it grew."""
    engine = open_engine(f"sqlite:///{folder / 'probes.db'}")
    migrate(engine)
    memory = Memory(
        Compactor(None, count_tokens),
        Recall(embedder),
        rules=MemoryRules(),
        window=lambda: window,
        count=count_tokens,
    )
    session = SqlConversationStore(engine).create("ada")
    for turn in range(0, len(made.messages), 2):
        pair = [ImportedMessage(m["role"], m["content"]) for m in made.messages[turn : turn + 2]]
        session.append(pair, [])
        memory.compact(session, force=False)
    return memory, session


def _source(number: int) -> Source:
    """One that says nothing of the house, and is longer than there is room for."""
    text = "The harbour wall of a town by the sea was built of stone that ships had brought. " * 30
    return Source(9_000 + number, f"c{number}", "d", "h.md", "Harbours", "", (), text, text, "")


def shares_met(
    gone: list[Known], sent: Callable[[str], list[str]], chance: random.Random
) -> tuple[float, float]:
    """Of 100 facts, the shares that what is sent holds, and that its first message does."""
    asked = chance.sample(gone, min(100, len(gone)))
    contexts = [(fact, sent(fact.probe)) for fact in asked]
    met = sum(any(holds(text, fact) for text in context) for fact, context in contexts)
    by_summary = sum(holds(context[0], fact) for fact, context in contexts)
    return met / len(asked), by_summary / len(asked)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="not used: the conversations are generated")
    parser.add_argument("--turns", type=int, nargs="*", default=[60, 300, 1000])
    parser.add_argument("--budgets", type=int, nargs="*", default=[4000])
    parser.add_argument("--seeds", type=int, nargs="*", default=[11, 12])
    parser.add_argument("--embed", action="store_true", help="with the application's embedder, too")
    parser.add_argument("--chooser", action="store_true", help="what a choosing model is worth")
    parser.add_argument("--described", action="store_true", help="probes do not name the thing")
    parser.add_argument("--unseen", action="store_true", help="the same in words of a farm")
    parser.add_argument("--application", action="store_true", help="a stored session instead")
    chosen = parser.parse_args()
    for turns in chosen.turns:
        for budget in chosen.budgets:
            for seed in chosen.seeds:
                made = house(turns, seed, described=chosen.described, unseen=chosen.unseen)
                label = f"{turns:>5} turns {budget:>6} tokens seed {seed}"
                if chosen.chooser:
                    worth(made, label, budget, seed)
                else:
                    met(made, label, budget, seed, chosen.embed, chosen.application)


def met(made: House, label: str, budget: int, seed: int, embed: bool, application: bool) -> None:
    """One line: the share of probes that are met."""
    asked = stored_probe if application else trimmed_probe
    embedders = [None, open_embedder(Settings())] if embed else [None]
    shares = [asked(made, budget, embedder, random.Random(seed)) for embedder in embedders]
    said = " ".join(
        f"{context:>6.1%} ({summary:.1%} by the summary)" for context, summary in shares
    )
    print(f"{label}: {said}", flush=True)


def worth(made: House, label: str, budget: int, seed: int) -> None:
    """What the summary alone answers, of questions about facts that users come back to."""
    facts = list({fact: None for said in made.facts for fact in said})
    asked = set(random.Random(seed).sample(facts, max(1, len(facts) // 3)))
    chance = random.Random(seed + 1)
    models = {
        "perfect": Chooser(
            lambda line: any(fact.words.casefold() in line.casefold() for fact in asked)
        ),
        "none": None,
        "random": Chooser(lambda line: chance.random() < 1 / 3),
    }
    for name, client in models.items():
        options = {"client": client, "model": name} if client else {}
        trimmer = HistoryTrimmer(max_tokens=budget, **options)
        sent = play(made, trimmer)
        gone = [fact for fact in evicted(made, sent) if fact in asked]
        share = sum(holds(sent[0]["content"], fact) for fact in gone) / max(1, len(gone))
        cost = f"{client.calls} calls, {client.characters // 4:,} tokens" if client else ""
        print(f"{label} {name:<8} {share:>6.1%} {cost}")


if __name__ == "__main__":
    main()
