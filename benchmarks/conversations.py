"""Generated conversations about products, whose every citation and fact is known."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

SHAPES = (
    "{a} {n}", "{a} {n} Pro", "{a} {n} Pro Max", "{a}-{n}00X", "{c}-{n}400", "{a} Link {n}E",
    "i{a} {n}", "{a}{b} {n}90 AX", "{c}{n}-B", "{a} {b}",
)  # fmt: skip
STEMS = "Aero Nova Vega Orbit Lumen Pico Terra Quill Zephyr Mistral Corvo Talon Ember Sola".split()  # noqa: SIM905
FACTS = (
    ("weighs {v} g", 80, 900), ("costs {v} euros", 30, 1900), ("lasts {v} hours", 4, 96),
    ("has a range of {v} m", 5, 400), ("draws {v} W", 2, 180), ("holds {v} GB", 8, 960),
    ("charges in {v} minutes", 20, 240), ("is rated for {v} cycles", 300, 3000),
    ("has a warranty of {v} months", 6, 60), ("does not work below {v} °C", -30, 5),
    ("pairs with up to {v} devices", 2, 64), ("needs firmware {v}.2 or later", 1, 40),
)  # fmt: skip
PLAIN_FACTS = (
    "is not waterproof", "ships with a braided cable", "supports wireless updates",
    "comes without a power adapter", "can be mounted on a wall", "uses recycled aluminium",
    "never sends data to the cloud", "has a replaceable battery", "shows the state on a dial",
)  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """One thing that one source says of one product; `key` stands in every wording of it."""

    product: str
    text: str
    number: int

    @property
    def key(self) -> str:
        return self.text.removeprefix("has a ").removeprefix("is ").removeprefix("does ")


@dataclass
class Conversation:
    """Messages, and the truth about them: for each message, its (number, fact) pairs."""

    messages: list[dict[str, str]] = field(default_factory=list)
    pairs: list[list[Fact]] = field(default_factory=list)
    names: list[set[str]] = field(default_factory=list)


PLAIN = ("[{}]", "[{}]", "[{}]", "【{}】", "［{}］")
WILD = (
    "[{}]", "[{}]", "【{}】", "［{}］", "[^{}]", "【{}†source】", "\\[{}\\]", "([{}])",
    "[Source {}]", "[ {} ]", "**[{}]**", "[[{}]]",
)  # fmt: skip


def generate(turns: int, seed: int, *, wild: bool = False) -> Conversation:
    """About one source in one turn at first, fewer later: 57 after 60 turns, 284 after 1000.

    `wild` writes markers in the spellings of many models.
    """
    return _Generator(random.Random(seed), WILD if wild else PLAIN).run(turns)


class _Generator:
    def __init__(self, chance: random.Random, spellings: Sequence[str]) -> None:
        self.chance = chance
        self.spellings = spellings
        self.products: list[str] = []
        self.facts: list[Fact] = []
        self.said = 0  # of the facts, which are told in their order

    def run(self, turns: int) -> Conversation:
        made = Conversation()
        for turn in range(turns):
            wanted = int(7.4 * (turn + 1) ** 0.5 + 0.05 * turn)
            while len(self.facts) < wanted:
                self._new_source()
            question, answer, facts = self._turn()
            named = {fact.product for fact in facts}
            made.messages += [
                {"role": "user", "content": question},
                {"role": "assistant", "content": answer},
            ]
            made.pairs += [[], facts]
            texts = (question, answer)
            made.names += [{name for name in named if name in text} for text in texts]
        return made

    def _new_source(self) -> None:
        if not self.products or self.chance.random() < 0.42:
            self.products.append(self._product())
        product = self.chance.choice(self.products[-6:])
        if self.chance.random() < 0.25:
            text = self.chance.choice(PLAIN_FACTS)
        else:
            form, low, high = self.chance.choice(FACTS)
            text = form.format(v=self.chance.randint(low, high))
        self.facts.append(Fact(product, text, len(self.facts) + 1))

    def _product(self) -> str:
        while True:
            a, b = self.chance.sample(STEMS, 2)
            shape = self.chance.choice(SHAPES)
            name = shape.format(a=a, b=b, n=self.chance.randint(2, 9), c=a[:2].upper())
            if name not in self.products:
                return name

    def _turn(self) -> tuple[str, str, list[Fact]]:
        fresh = self.facts[self.said : self.said + 3]
        count = self.chance.randint(4, 6)
        facts = [*fresh, *self.chance.choices(self.facts, k=max(1, count - len(fresh)))]
        facts = list(dict.fromkeys(facts))
        self.said += len(fresh)
        style = self.chance.choice(("prose", "prose", "bullets", "table", "bare", "many"))
        question = f"What should I know about the {facts[0].product}, please?"
        if style == "bare" and len(facts[0].text.split()) > 2:
            verb, _, value = facts[0].text.partition(" ")
            question = f"What about the {facts[0].product}: {verb} how much?"
            opening = f"{value} [{facts[0].number}]. "
            rest = " ".join(self._sentence(fact) for fact in facts[1:])
            # The fact is said across question and answer; its value is what can be looked for.
            facts[0] = Fact(facts[0].product, value, facts[0].number)
            return question, opening[:1].upper() + opening[1:] + rest + self._chatter(), facts
        return question, getattr(self, f"_{style}")(facts) + self._ending(style), facts

    def _prose(self, facts: list[Fact]) -> str:
        return " ".join(self._sentence(fact) for fact in facts)

    def _bare(self, facts: list[Fact]) -> str:
        return self._prose(facts)

    def _bullets(self, facts: list[Fact]) -> str:
        lines = [f"- **{fact.product}** {fact.text} {self._mark(fact)}" for fact in facts]
        return "Here is what the documents say:\n\n" + "\n".join(lines)

    def _table(self, facts: list[Fact]) -> str:
        rows = [f"| {fact.product} | {fact.text} | [{fact.number}] |" for fact in facts]
        return "| Product | Property | Source |\n|---|---|---|\n" + "\n".join(rows)

    def _many(self, facts: list[Fact]) -> str:
        first, rest = facts[:3], facts[3:]
        joined = ", ".join(f"the {fact.product} {fact.text} [{fact.number}]" for fact in first)
        return f"{joined[:1].upper()}{joined[1:]}. " + self._prose(rest)

    def _sentence(self, fact: Fact) -> str:
        form = self.chance.choice((
            "The {p} {t} {m}.", "The {p} {t}. {m}", "According to the manual, the {p} {t} {m}.",
            "It is worth noting that the {p} {t}, as tests in our lab have shown {m}.",
        ))  # fmt: skip
        return form.format(p=fact.product, t=fact.text, m=self._mark(fact))

    def _mark(self, fact: Fact) -> str:
        return self.chance.choice(self.spellings).format(fact.number)

    def _ending(self, style: str) -> str:
        return ("\n\n" if style in {"table", "bullets"} else "") + self._chatter()

    def _chatter(self) -> str:
        return self.chance.choice((
            "", " Let me know if you would like to compare it with another model.",
            " I hope this helps you decide.", " Tell me more about how you want to use it.",
        ))  # fmt: skip
