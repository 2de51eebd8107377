"""Replace pronouns by what they stand for."""

import re
from collections.abc import Sequence

from rag.followups import followup_focus as focus
from rag.followups.followup_focus import Bindings, Past
from rag.followups.followup_names import Names
from rag.followups.followup_words import mentions, tokens, word_set

# "Is it possible to …": this "it" stands for nothing.
JUDGEMENTS = (
    "possible|true|necessary|worth|important|better|best|safe|legal|illegal|normal|hard|easy|"
    "difficult|ok|okay|good|bad|wise|advisable|recommended"
)
DUMMY_IT = re.compile(
    r"\bit\s+(?:take|takes|took|turns?\s+out|seems?|rain\w*|snow\w*)\b"
    rf"|\bit(?:'s|\s+is|\s+was)?\s+(?:really\s+|so\s+|ever\s+)?(?:{JUDGEMENTS})\b"
    r"(?:\s+(?:to|that|if|for|idea)\b|.*\b(?:to|that|if)\b)"
    r"|\bhow\s+is\s+it\s+that\b",
    re.IGNORECASE,
)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
CLAUSE = re.compile(r"[,;:]|\b(?:and|but|if|when|because|while|since|so|after|before|that)\b")
PRONOUN = re.compile(
    r"(?<![\w'’\"“])(he|him|his|she|her|hers|it|its|they|them|their|theirs)"
    r"(['’](?:s|re|ve|d|ll))?(?![\w’'\"”])",
    re.IGNORECASE,
)
POSSESSIVE = {"his", "hers", "its", "their", "theirs"}
ENDINGS = {"s": " is", "re": " are", "ve": " have", "d": " would", "ll": " will"}
AFTER_OBJECT = word_set(
    "to in on at for with after before when and as from by of about during while because that "
    "again away out so or into if"
)


def replace_pronouns(question: str, past: Sequence[Past], lexicon: Names) -> tuple[str, Bindings]:
    """Names and noun phrases for the pronouns of a question's last sentence."""
    head, tail = _last_sentence(question)
    bound: dict[str, str] = {}

    def put(found: re.Match[str]) -> str:
        kind = _kind(found[1].lower())
        if kind in bound or _says_itself(tail[: found.start()], kind, lexicon):
            return found[0]
        name = _referent(kind, past, lexicon)
        if not name or name.lower() in tail.lower():
            return found[0]
        bound[kind] = name.lower()
        return _shaped(name, found, tail[found.end() :])

    text = tail if DUMMY_IT.search(tail) else PRONOUN.sub(put, tail)
    men = frozenset(name for kind, name in bound.items() if kind == "he")
    women = frozenset(name for kind, name in bound.items() if kind == "she")
    return head + text, Bindings(men, women)


def _last_sentence(question: str) -> tuple[str, str]:
    ends = [found.end() for found in SENTENCE_END.finditer(question)]
    cut = ends[-1] if ends else 0
    return question[:cut], question[cut:]


def _kind(word: str) -> str:
    if word in {"he", "him", "his"}:
        return "he"
    if word in {"she", "her", "hers"}:
        return "she"
    return "it" if word in {"it", "its"} else "they"


def _says_itself(before: str, kind: str, lexicon: Names) -> bool:
    """Whether the sentence itself says, before the pronoun, what the pronoun means."""
    inside = [mention for mention in mentions(before, lexicon) if not mention.is_located]
    if kind in {"he", "she"}:
        return any(mention.is_person for mention in inside)
    if kind == "they" and any(mention.is_plural and mention.is_name for mention in inside):
        return True
    plural = kind == "they"
    return bool(CLAUSE.search(before)) and any(m.is_plural == plural for m in inside)


def _referent(kind: str, past: Sequence[Past], lexicon: Names) -> str:
    if kind in {"he", "she"}:
        return focus.person(past, is_female=kind == "she")
    return focus.thing(past, lexicon, is_plural=kind == "they")


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
