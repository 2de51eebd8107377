"""What the conversation is about now: the referents of pronouns and the topic of fragments."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rag.followups.followup_names import Names
from rag.followups.followup_words import (
    LIGHT_NOUNS,
    STOPWORDS,
    VERBS,
    Mention,
    mentions,
    tokens,
)

SHORT_ANSWER_WORDS = 8
QUESTION_HEAD = 600  # characters of a question that are read for what it is about
ANSWER_HEAD = 400  # characters of an answer that are read for names
# How strongly a name suggests itself as the person meant.
ASKED, TOLD, SINGLE_WORD, FADING, SAME_AS_BEFORE, AGAIN = 3.0, 1.0, 0.6, 0.95, 4.0, 1.0


@dataclass(frozen=True, slots=True)
class Past:
    """One earlier turn: its question made whole, and its answer."""

    question: str  # resolved
    answer: str
    asked: tuple[Mention, ...]  # mentions of the question
    told: tuple[Mention, ...]  # mentions of the answer's beginning
    men: frozenset[str] = frozenset()  # referents of "he" so far, lower case
    women: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Bindings:
    """Who "he" and "she" turned out to be in one question."""

    men: frozenset[str] = field(default_factory=frozenset)
    women: frozenset[str] = field(default_factory=frozenset)


def remember(
    question: str, answer: str, past: Sequence[Past], bindings: Bindings, lexicon: Names
) -> Past:
    """The turn as later questions will look back on it."""
    before = past[-1] if past else None
    told = [mention for mention in mentions(answer[:ANSWER_HEAD], lexicon) if mention.is_solid]
    return Past(
        question,
        answer,
        asked=tuple(mentions(question[:QUESTION_HEAD], lexicon)),
        told=tuple(told),
        men=bindings.men | (before.men if before else frozenset()),
        women=bindings.women | (before.women if before else frozenset()),
    )


def is_short(answer: str) -> bool:
    """Whether an answer only names something."""
    return 0 < len(answer.split()) <= SHORT_ANSWER_WORDS


def person(past: Sequence[Past], *, is_female: bool) -> str:
    """Who "he" or "she" is; "" when nobody fits."""
    last = past[-1]
    others = last.men if is_female else last.women
    own = last.women if is_female else last.men
    scores = _salience(past, lambda mention: mention.is_person)
    for name in scores:
        scores[name] += SAME_AS_BEFORE * (name.lower() in own)
    fitting = [name for name in scores if name.lower() not in others]
    return max(fitting, key=lambda name: scores[name], default="")


def _salience(past: Sequence[Past], fits: Callable[[Mention], bool]) -> dict[str, float]:
    """How strongly each name suggests itself: asked about, told of, lately, again and again."""
    scores: dict[str, float] = {}
    for age, turn in enumerate(reversed(past)):
        for mention in (*turn.asked, *turn.told):
            if not mention.is_name or mention.is_located or not fits(mention):
                continue
            name = full_name(mention.text, past)
            weight = ASKED if mention in turn.asked else TOLD
            weight *= 1.0 if " " in name else SINGLE_WORD
            scores[name] = scores.get(name, 0.0) + weight * FADING**age
    for name in scores:
        scores[name] += AGAIN * _turns_with(name.split()[-1], past)
    return scores


def _turns_with(word: str, past: Sequence[Past]) -> int:
    """In how many answers a name comes up, a surname alone being enough."""
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    return sum(bool(pattern.search(turn.answer[:ANSWER_HEAD])) for turn in past)


def full_name(name: str, past: Sequence[Past]) -> str:
    """The longest form in which the conversation gives a name: "Borlaug" is "Norman Borlaug"."""
    known = [m for turn in past for m in (*turn.asked, *turn.told) if m.is_person]
    longer = [m.text for m in known if _extends(m.text, name)]
    return max(longer, key=len, default=name)


def _extends(longer: str, name: str) -> bool:
    words = longer.lower().split()
    return len(words) > 1 and len(words) <= 3 and name.lower() in (words[0], words[-1])


def thing(past: Sequence[Past], lexicon: Names, *, is_plural: bool) -> str:
    """What "it" or "they" is; "" when nothing fits."""
    answered = _named_by_answer(past[-1], lexicon, is_plural=is_plural)
    if answered:
        return answered
    fits = _fits_plural if is_plural else _fits_singular
    for turn in reversed(past):
        found = [mention for mention in turn.asked if mention.is_solid and fits(mention)]
        if found:
            best = min(found, key=_rank)
            return f"the {best.text}" if best.has_article else best.text
    return _group(past) if is_plural else ""


def _group(past: Sequence[Past]) -> str:
    """The name that "they" may mean where nothing plural was said: a band, a company, a product."""
    scores = _salience(past, lambda mention: not mention.is_person or " " not in mention.text)
    return max(scores, key=lambda name: scores[name], default="")


def _named_by_answer(turn: Past, lexicon: Names, *, is_plural: bool) -> str:
    """ "What was his first film?" "The Birds." makes "it" The Birds."""
    if not re.match(r"\W*(?:and |so |but )?(what|which|who)\b", turn.question, re.IGNORECASE):
        return ""
    products = {mention.text: mention for mention in turn.told if mention.text in lexicon}
    if not any(mention.text in lexicon for mention in turn.asked) and len(products) == 1:
        return "" if is_plural else next(iter(products))
    names = [mention for mention in turn.told if mention.is_name]
    if not is_short(turn.answer) or len(names) != 1:
        return ""
    fits = _fits_plural(names[0]) if is_plural else not names[0].is_person or names[0].is_quoted
    return names[0].text if fits else ""


def _fits_singular(mention: Mention) -> bool:
    return mention.is_name or not mention.is_plural


def _fits_plural(mention: Mention) -> bool:
    return mention.is_plural or mention.is_group


def _rank(mention: Mention) -> tuple[bool, bool, bool]:
    return (mention.is_located, not mention.is_name, mention.is_person)


def longer_phrase(noun: str, past: Sequence[Past]) -> str:
    """The latest phrase that says which one "the album" is: "live album"; "" when none does."""
    if noun in STOPWORDS | LIGHT_NOUNS | VERBS:
        return ""
    for turn in reversed(past[-2:]):
        for mention in (*reversed(turn.told), *reversed(turn.asked)):
            words = mention.words
            if mention.is_solid and 2 <= len(words) <= 4 and words[-1].lower() == noun:
                return mention.text
    return ""


def topic(past: Sequence[Past]) -> str:
    """The name that the conversation is about; "" when its questions agree on none."""
    counts: dict[str, float] = {}
    for turn in past:
        for mention in turn.asked:
            if mention.is_name and not mention.is_located:
                name = full_name(mention.text, past)
                counts[name] = counts.get(name, 0.0) + 1.0
    best = max(counts, key=lambda name: counts[name], default="")
    return best if best and (counts[best] >= 2 or len(past) == 1) else ""


def content_words(text: str) -> list[str]:
    """Words that carry meaning, in lower case."""
    return [
        word
        for mention in mentions(text)
        for word in (token.lower for token in tokens(mention.text) if token.is_word)
        if word not in LIGHT_NOUNS
    ]
