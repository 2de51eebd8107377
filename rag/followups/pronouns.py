"""Replace pronouns by what they stand for, chosen among what the conversation talked of.

The choice is a logistic regression over signs of each mention, fitted on conversations whose
questions people made whole (`benchmarks/pronouns.py` fits it and says how it does held out).
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag.followups.mentions import Mention, content_words, mentions, tokens
from rag.followups.names import Names
from rag.text.languages.language import words as word_set

# "Is it possible to …": this "it" stands for nothing.
JUDGEMENTS = (
    "possible|true|necessary|worth|important|better|best|safe|legal|illegal|normal|hard|easy|"
    "difficult|ok|okay|good|bad|wise|advisable|recommended"
)
DUMMY_IT = re.compile(
    r"\bit\s+(?:take|takes|took|turns?\s+out|seems?|rain\w*|snow\w*)\b"
    rf"|\bit(?:'s|\s+is|\s+was)?\s+(?:really\s+|so\s+|ever\s+)?(?:{JUDGEMENTS})\b"
    r"(?:\s+(?:to|that|if|for|idea)\b|.*\b(?:to|that|if)\b)"
    rf"|\bis\s+it\s+(?:{JUDGEMENTS})\b|\bhow\s+is\s+it\s+that\b",
    re.IGNORECASE,
)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
CLAUSE = re.compile(r"[,;:]|\b(?:and|but|if|when|because|while|since|so|after|before|that)\b")
PRONOUN = re.compile(
    r"(?<![\w'’\"“])(he|him|his|she|her|hers|it|its|they|them|their|theirs)"
    r"(['’](?:s|re|ve|d|ll))?(?![\w’'\"”])",
    re.IGNORECASE,
)
KINDS = {
    **dict.fromkeys(("he", "him", "his"), "he"),
    **dict.fromkeys(("she", "her", "hers"), "she"),
    **dict.fromkeys(("it", "its"), "it"),
}
POSSESSIVE = {"his", "hers", "its", "their", "theirs"}
ENDINGS = {"s": " is", "re": " are", "ve": " have", "d": " would", "ll": " will"}
AFTER_OBJECT = word_set(
    "to in on at for with after before when and as from by of about during while because so or if"
)
QUESTION_HEAD, ANSWER_HEAD = 600, 400  # characters that are read for what is talked of
SHORT_ANSWER_WORDS = 8
SURE = 0.25  # of a choice: below, the pronoun stays

SIGNS = (
    "one", "name", "person", "plural", "asked", "last", "age", "located", "single", "first",
    "turns", "only", "known",
)  # fmt: skip
# The last, for what the library calls a product, is set by hand: the conversations know no library.
WEIGHTS: dict[str, tuple[float, ...]] = {
    "person": (-0.74, -0.74, -0.74, -0.08, 1.29, 0.21, -0.50, -1.42, 0.88, 1.24, 0.69, -1.56, 2.0),
    "it": (-2.66, 1.0, 0.89, -0.64, 1.10, -0.03, -1.25, -0.24, -0.05, 0.84, 1.05, -0.53, 2.0),
    "they": (-3.69, 1.81, 0.51, 0.66, 1.22, 0.12, -0.68, -1.51, 0.22, 0.18, 1.12, 1.39, 2.0),
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
        """What it talks of, and whether the question does."""
        asked = mentions(self.question[:QUESTION_HEAD], lexicon)
        answered = mentions(self.answer[:ANSWER_HEAD], lexicon)
        return (*((each, True) for each in asked), *((each, False) for each in answered))


def replace_pronouns(question: str, past: Sequence[Turn], lexicon: Names) -> str:
    """Names and noun phrases for the pronouns of a question's last sentence."""
    ends = [found.end() for found in SENTENCE_END.finditer(question)]
    cut = ends[-1] if ends else 0
    head, tail = question[:cut], question[cut:]
    if not past or DUMMY_IT.search(tail):
        return question
    done: set[str] = set()

    def put(found: re.Match[str]) -> str:
        kind = KINDS.get(found[1].lower(), "they")
        if kind in done or _says_itself(tail[: found.start()], kind, lexicon):
            return found[0]
        name = _chosen(kind, past, lexicon)
        if not name or name.lower() in tail.lower():
            return found[0]
        done.add(kind)
        return _shaped(name, found, tail[found.end() :])

    return head + PRONOUN.sub(put, tail)


def model_of(kind: str) -> str:
    """The regression that chooses for a kind of pronoun."""
    return "person" if kind in {"he", "she"} else kind


def candidates(kind: str, past: Sequence[Turn], lexicon: Names) -> list[Candidate]:
    """Each thing that was talked of, as it was last; nobody but possible people for "he"."""
    found: dict[str, Candidate] = {}
    talked = [turn.told(lexicon) for turn in past]
    for age, (turn, told) in enumerate(zip(reversed(past), reversed(talked), strict=True)):
        names = [mention for mention, is_asked in told if mention.is_name and not is_asked]
        is_short = 0 < len(turn.answer.split()) <= SHORT_ANSWER_WORDS
        first = {True: True, False: True}
        for mention, is_asked in told:
            if model_of(kind) == "person" and not mention.may_be_person:
                continue
            key = mention.text.lower()
            only = not is_asked and is_short and len(names) == 1 and mention.is_name
            often = sum(any(m.text.lower() == key for m, _ in each) for each in talked)
            signs = (
                1.0, mention.is_name, mention.may_be_person, mention.is_plural, is_asked, age == 0,
                math.log1p(age), mention.is_located, " " not in mention.text, first[is_asked],
                math.log(often), only, mention.text in lexicon,
            )  # fmt: skip
            found.setdefault(key, Candidate(mention, tuple(map(float, signs))))
            first[is_asked] = False
    return list(found.values())


def probability(kind: str, candidate: Candidate) -> float:
    """That the pronoun stands for it."""
    weights = WEIGHTS[model_of(kind)]
    total = sum(w * sign for w, sign in zip(weights, candidate.signs, strict=True))
    return 1.0 / (1.0 + math.exp(-total))


def _chosen(kind: str, past: Sequence[Turn], lexicon: Names) -> str:
    rated = [(probability(kind, each), each.mention) for each in candidates(kind, past, lexicon)]
    sure, best = max(rated, key=lambda pair: pair[0], default=(0.0, None))
    if best is None or sure < SURE:
        return ""
    whole = _full_name(best, past, lexicon) if best.may_be_person else best.text
    return f"the {whole}" if best.has_article and whole == best.text else whole


def _full_name(mention: Mention, past: Sequence[Turn], lexicon: Names) -> str:
    """The longest form in which the conversation gives a name: "Borlaug" is "Norman Borlaug"."""
    return max(_forms(mention.text, past, lexicon), key=len)


def _forms(name: str, past: Sequence[Turn], lexicon: Names) -> Iterator[str]:
    yield name
    for turn in past:
        for mention, _is_asked in turn.told(lexicon):
            words = mention.text.lower().split()
            if mention.may_be_person and len(words) > 1 and name.lower() in (words[0], words[-1]):
                yield mention.text


def _says_itself(before: str, kind: str, lexicon: Names) -> bool:
    """Whether the sentence itself says, before the pronoun, what the pronoun means."""
    inside = [mention for mention in mentions(before, lexicon) if not mention.is_located]
    if model_of(kind) == "person":
        return any(mention.may_be_person for mention in inside)
    if kind == "they" and any(mention.is_plural for mention in inside):
        return True
    return bool(CLAUSE.search(before)) and bool(content_words(before))


def _shaped(name: str, found: re.Match[str], after: str) -> str:
    word = found[1].lower()
    if found[2]:
        return name + ENDINGS[found[2][1:].lower()]
    is_her_own = word == "her" and not _ends_object(after)
    if word in POSSESSIVE or is_her_own:
        return name + ("'" if name.endswith("s") else "'s")
    return name


def _ends_object(after: str) -> bool:
    """ "her" before a preposition, a mark or the end is an object, no possessive."""
    following = tokens(after)[:1]
    return not following or not following[0].is_word or following[0].lower in AFTER_OBJECT
