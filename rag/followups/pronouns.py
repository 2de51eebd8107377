"""Replace pronouns by what they stand for, chosen among what the conversation talked of.

The choice is a logistic regression over signs of each mention, fitted on conversations whose
questions people made whole (`benchmarks/pronouns.py` fits it and says how it does held out).
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.followups.mentions import Mention, mentions
from rag.followups.names import Names
from rag.text.words import content_words

# "Is it possible to …": this "it" stands for nothing.
JUDGEMENTS = (
    "possible|true|necessary|worth|important|better|best|safe|legal|illegal|normal|hard|easy|"
    "difficult|ok|okay|good|bad|wise|advisable|recommended"
)
DUMMY_IT = re.compile(
    r"\bit\s+(?:take|takes|took|turns?\s+out|seems?|says?|rain\w*|snow\w*)\b"
    rf"|\bit(?:'s|\s+is|\s+was)?\s+(?:really\s+|so\s+|ever\s+)?(?:{JUDGEMENTS})\b"
    r"(?:\s+(?:to|that|if|for|idea)\b|.*\b(?:to|that|if)\b)"
    rf"|\bis\s+it\s+(?:{JUDGEMENTS})\b|\bhow\s+is\s+it\s+that\b",
    re.IGNORECASE,
)
CLAUSE = re.compile(r"[,;:]|\b(?:and|but|if|when|because|while|since|so|after|before|that)\b")
PRONOUN = re.compile(
    r"(?<![\w'’\"“])(he|him|his|she|her|hers|it|its|they|(?<!of )them|their|theirs)"
    r"(['’](?:s|re|ve|d|ll))?(?![\w’'\"”])",
    re.IGNORECASE,
)
KINDS = {
    **dict.fromkeys(("he", "him", "his", "she", "her", "hers"), "person"),
    **dict.fromkeys(("it", "its"), "it"),
}
POSSESSIVE = {"his", "hers", "its", "their", "theirs"}
ENDINGS = {"s": " is", "re": " are", "ve": " have", "d": " would", "ll": " will"}
QUOTED_LINE = re.compile(r"^>.*", re.MULTILINE)
QUESTION_HEAD, ANSWER_HEAD = 600, 400  # characters that are read for what is talked of
SURE = 0.25  # of a choice: below, the pronoun stays

SIGNS = ("one", "person", "asked", "last", "age", "located", "single", "turns", "known")
# The last, for what the library calls a product, is set by hand: the conversations know no library.
WEIGHTS: dict[str, tuple[float, ...]] = {
    "person": (-0.80, -0.80, 1.57, 0.14, -0.57, -1.34, 0.82, 1.44, 2.0),
    "it": (-1.38, 0.79, 0.89, 0.11, -1.14, -0.59, -0.27, 1.14, 2.0),
    "they": (-1.42, 0.37, 1.23, -0.13, -0.72, -1.63, 0.17, 1.38, 2.0),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a pronoun may stand for, with the signs that speak for it and against it."""

    mention: Mention
    signs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier turn: its question made whole, and its answer."""

    question: str
    answer: str

    def told(self, lexicon: Names) -> tuple[tuple[Mention, bool], ...]:
        """What it talks of, and whether the question does.

        Where a quoted passage stands says so only where the question named nothing.
        """
        asked = mentions(self.question[:QUESTION_HEAD], lexicon)
        quoted = "\n".join(QUOTED_LINE.findall(self.answer)) if asked else ""
        answered = mentions((quoted or self.answer)[:ANSWER_HEAD], lexicon)
        return (*((each, True) for each in asked), *((each, False) for each in answered))


def replace_pronouns(question: str, past: Sequence[Turn], lexicon: Names) -> str:
    """Names for the pronouns of a question."""
    if not past or DUMMY_IT.search(question):
        return question
    done: set[str] = set()

    def put(found: re.Match[str]) -> str:
        kind = KINDS.get(found[1].lower(), "they")
        if kind in done or _says_itself(question[: found.start()], kind, lexicon):
            return found[0]
        name = _chosen(kind, past, lexicon)
        if not name or name.lower() in question.lower():
            return found[0]
        done.add(kind)
        return _shaped(name, found, question[found.end() :])

    return PRONOUN.sub(put, question)


def candidates(kind: str, past: Sequence[Turn], lexicon: Names) -> list[Candidate]:
    """Each thing that was talked of and may be meant, as it was last."""
    found: dict[str, Candidate] = {}
    talked = [turn.told(lexicon) for turn in past]
    for age, told in enumerate(reversed(talked)):
        for mention, is_asked in told:
            is_product = mention.text in lexicon
            if not _may_be(kind, mention, is_product):
                continue
            key = mention.text.lower()
            often = sum(any(m.text.lower() == key for m, _ in each) for each in talked)
            signs = (
                1.0, mention.may_be_person, is_asked, age == 0, math.log1p(age),
                mention.is_located, " " not in mention.text, math.log(often),
                is_product,
            )  # fmt: skip
            found.setdefault(key, Candidate(mention, tuple(map(float, signs))))
    return list(found.values())


def _may_be(kind: str, mention: Mention, is_product: bool) -> bool:
    """No product is a person, nor several; a heading such as `Returns` is not one thing."""
    if kind == "it":
        return is_product or not mention.is_plural
    if kind == "they":
        is_model = is_product or any(map(str.isdigit, mention.text))
        return mention.is_plural or not is_model
    return mention.may_be_person and not is_product


def probability(kind: str, candidate: Candidate) -> float:
    """That the pronoun stands for it."""
    weights = WEIGHTS[kind]
    total = sum(w * sign for w, sign in zip(weights, candidate.signs, strict=True))
    return 1.0 / (1.0 + math.exp(-total))


def _chosen(kind: str, past: Sequence[Turn], lexicon: Names) -> str:
    rated = [(probability(kind, each), each.mention) for each in candidates(kind, past, lexicon)]
    sure, best = max(rated, key=lambda pair: pair[0], default=(0.0, None))
    if best is None or sure < SURE:
        return ""
    return f"the {best.text}" if best.has_article else best.text


def _says_itself(before: str, kind: str, lexicon: Names) -> bool:
    """Whether the sentence itself says, before the pronoun, what the pronoun means."""
    inside = [mention for mention in mentions(before, lexicon) if not mention.is_located]
    if kind == "person":
        return any(mention.may_be_person for mention in inside)
    if kind == "they" and any(mention.is_plural for mention in inside):
        return True
    return bool(CLAUSE.search(before)) and bool(content_words(before))


def _shaped(name: str, found: re.Match[str], after: str) -> str:
    word = found[1].lower()
    if found[2]:
        return name + ENDINGS[found[2][1:].lower()]
    is_her_own = word == "her" and after[:1] == " "  # at the end, or before a mark: an object
    if word in POSSESSIVE or is_her_own:
        return name + ("'" if name.endswith("s") else "'s")
    return name
