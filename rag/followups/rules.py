"""Resolve a follow-up by rules: carry over what it leaves out from the turns before."""

from collections.abc import Sequence

from rag.followups import slots
from rag.followups.names import NO_NAMES, Names
from rag.followups.pronouns import Turn, replace_pronouns
from rag.text.languages import words as word_set
from rag.text.words import QUESTION_WORDS, STOP_WORDS, tokens

# Openings that say: this goes on from the last question.
CUE_WORDS = (
    "what about", "how about", "and what about", "and how about", "and", "and for", "same for",
    "the same for", "or", "but", "now", "also", "then", "so",
    "und", "oder", "was ist mit", "und was ist mit", "wie ist es mit",
)  # fmt: skip
POINTING = word_set(
    "it its they them their theirs he him his she her hers this that these those one ones here "
    "former latter"
) | word_set("er sie es ihn ihm ihnen sein seine ihr ihre dieser diese dieses")
MAX_QUESTION = 400  # characters; what is longer leaves nothing out
MAX_FRAGMENT_WORDS = 7
FEW_WORDS = 3


def rewrite(
    question: str,
    past: Sequence[Turn],
    lexicon: Names = NO_NAMES,
    cue_words: Sequence[str] = CUE_WORDS,
) -> tuple[str, bool]:
    """The question made whole from the turns before, as far as it could be.

    And whether it leans on them, even where nothing could be put in.
    """
    if not past or not question.strip() or len(question) > MAX_QUESTION:
        return question, False
    text = _carried(question, past, lexicon, cue_words) or replace_pronouns(question, past, lexicon)
    if text == question and _asks_alone(question) and len(past[-1].question) <= MAX_QUESTION:
        text = f"{past[-1].question} {question}"
    return text, text != question or _leans(question, cue_words)


def recall_turns(
    history: Sequence[tuple[str, str]],
    lexicon: Names = NO_NAMES,
    cue_words: Sequence[str] = CUE_WORDS,
) -> list[Turn]:
    """The turns so far, each question resolved by those before it."""
    past: list[Turn] = []
    for question, answer in history:
        past.append(Turn(rewrite(question, past, lexicon, cue_words)[0], answer))
    return past


def _carried(question: str, past: Sequence[Turn], lexicon: Names, cue_words: Sequence[str]) -> str:
    """A fragment put into the last question, where it surely has a place there."""
    last = past[-1].question
    text = question.strip("?!.…, ")
    cue = _cue(text, cue_words)
    fragment = text[len(cue) :].strip(" ,:")
    if len(last) > MAX_QUESTION or not _is_fragment(fragment):
        return ""
    is_sure = bool(cue) or slots.is_period(fragment) or fragment in lexicon
    return slots.fill(last, fragment, lexicon) if is_sure else ""


def _cue(text: str, cue_words: Sequence[str]) -> str:
    lowered = text.lower()
    for cue in sorted(cue_words, key=len, reverse=True):
        if lowered.startswith(cue.lower()) and not lowered[len(cue) : len(cue) + 1].isalnum():
            return text[: len(cue)]
    return ""


def _is_fragment(text: str) -> bool:
    words = list(tokens(text))
    if not words or len(words) > MAX_FRAGMENT_WORDS:
        return False
    inner = [word.lowered for word in words if not (len(word.text) > 1 and word.text.isupper())]
    return slots.is_period(text) or not (QUESTION_WORDS | POINTING) & set(inner)


def _asks_alone(question: str) -> bool:
    """ "Why?", "How heavy?", "Since when?": nothing but the asking, which names nothing."""
    words = [word.lowered for word in tokens(question)]
    is_asking = bool(QUESTION_WORDS & set(words)) and set(words) <= QUESTION_WORDS | STOP_WORDS
    is_degree = len(words) == 2 and words[0] in ("how", "wie")
    return (is_asking or is_degree) and len(words) <= FEW_WORDS and not POINTING & set(words)


def _leans(question: str, cue_words: Sequence[str]) -> bool:
    """Whether a question, left as it is, still points at the turns before."""
    words = [word.lowered for word in tokens(question)]
    told = [word for word in words if word not in STOP_WORDS]
    is_opened = bool(_cue(question.strip(), cue_words)) and len(told) <= FEW_WORDS
    return is_opened or bool(POINTING & set(words)) or (0 < len(words) <= FEW_WORDS)
