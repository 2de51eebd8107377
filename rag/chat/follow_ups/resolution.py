"""What of a conversation leads the search for its next question; the rule is one for all.

The last question and what its answer cited lead, unless a question names a product itself. A
fragment takes the last question with its part replaced; what points back stands behind the
question that it points back to. A pronoun is never replaced by a guess.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag.chat.follow_ups.fragments import filled
from rag.chat.follow_ups.model import ask_model
from rag.chat.follow_ups.names import Names
from rag.citations.markers import cited_numbers, keep_markers
from rag.language.languages import all_expressions, all_words, phrases
from rag.language.words import QUESTION_WORDS, STOP_WORDS, tokens
from rag.records import NO_EARLIER_TOPICS, EarlierTopics, Readable, Resolution
from rag.seams import ChatModel
from rag.seams.patience import FOLLOW_UP, Patience

# Openings that say: this goes on from the last question.
CUE_WORDS = all_expressions("cues")
POINTING = all_words("pointing")
_COMMON = STOP_WORDS | QUESTION_WORDS | POINTING
NAMED_SOURCE = re.compile(
    rf"\b(?:{phrases('named_sources')})\s+(?:n[or°]\.?\s*|#)?([1-9]\d{{0,4}})\b", re.IGNORECASE
)
# What worked on conversations about several kinds of documents; anything near does as well.
MEANING, WORDS = 0.3, 0.3  # of the last question
MAX_QUESTION = 400  # characters; what is longer leaves nothing out
MAX_CONTEXT = 600  # characters of an earlier question
FEW = 3  # words that hardly stand alone
MODEL_TURNS = 3
LEXICONS_KEPT = 64  # for so many sets of collections


@dataclass(frozen=True, slots=True)
class Turn:
    """A question as it is understood after those before it, and what it is about."""

    query: str  # with the question that it points back to
    searched: str  # without
    topic: str  # what is asked on from
    leans: bool = False


class FollowUps:
    """Resolves questions in the context of their conversation."""

    def __init__(
        self,
        *,
        model: ChatModel | None = None,
        lexicon: Callable[[Readable], Sequence[str]] = lambda within: (),
        is_word: Callable[[str, Readable], bool] = lambda word, within: True,
        cue_words: Sequence[str] = CUE_WORDS,
        max_turns: int = 10,
        patience: Patience = FOLLOW_UP,
    ) -> None:
        """`is_word` says whether any text holds a word, or one that it may be meant for."""
        self._model, self._patience = model, patience
        self._lexicon, self._is_word = lexicon, is_word
        self._cues = sorted((cue.lower() for cue in cue_words), key=len, reverse=True)
        self._max_turns = max_turns

    def resolve(
        self, question: str, history: Sequence[tuple[str, str]], within: Readable
    ) -> Resolution:
        """The question standing alone; `history` is (question, answer) of turns that succeeded."""
        turns = list(history)[-self._max_turns :] if self._max_turns else []
        past: list[Turn] = []
        for asked, _ in [turn for turn in turns if cited_numbers(turn[1])] or turns:
            if not self._is_unheard_of(asked, within):
                past.append(self._turn(asked, past, within))
        own = self._turn(question, past, within)
        stands_alone = not own.leans and bool(_names(tuple(self._lexicon(within))).find(question))
        leading = () if stands_alone else past
        by_rule = _resolution(question, own, past, leading, "rules")
        if self._model is None or not by_rule.is_followup:
            return by_rule
        query = ask_model(self._model, question, turns[-MODEL_TURNS:], self._patience)
        own = Turn(query, query, query, leans=query != question)
        return _resolution(question, own, past, past, "model") if query else by_rule

    def _turn(self, question: str, past: Sequence[Turn], within: Readable) -> Turn:
        if not past or not question.strip() or len(question) > MAX_QUESTION:
            return Turn(question, question, question)
        topic, text = past[-1].topic, question.strip("?!.…, ")
        fragment = self._without_cue(text)
        most = FEW if fragment == text else 2 * FEW  # "and the Aero 5 Pro Max?"
        if 0 < len(list(tokens(fragment))) <= most:
            put = filled(topic, fragment, _names(tuple(self._lexicon(within))))
            if put:
                return Turn(put, put, put, leans=True)
        if not _points_back(question) or self._is_unheard_of(question, within):
            return Turn(question, question, question)
        return Turn(f"{topic} {question}", question, topic, leans=True)

    def _is_unheard_of(self, question: str, within: Readable) -> bool:
        """Whether no text holds any of its words and none is a language's: `asdf qwer`."""
        words = [word.lowered for word in tokens(question)][: FEW + 1]
        known = (word in _COMMON or self._is_word(word, within) for word in words)
        return len(words) <= FEW and not any(known)

    def _without_cue(self, text: str) -> str:
        lowered = text.lower()
        begun = (cue for cue in self._cues if re.match(rf"{re.escape(cue)}\b", lowered))
        return text[len(next(begun, "")) :].strip(" ,:")


@lru_cache(LEXICONS_KEPT)
def _names(lexicon: tuple[str, ...]) -> Names:
    """A lexicon is indexed once, until it changes."""
    return Names(lexicon)


def _points_back(question: str) -> bool:
    """Whether it says too little to stand alone, or little beside a word that points back."""
    words = [word.lowered for word in tokens(question)]
    told = [word for word in words if word not in _COMMON]
    return 0 < len(words) <= FEW or (bool(POINTING & set(words)) and len(told) < FEW)


def _resolution(
    question: str, own: Turn, past: Sequence[Turn], leading: Sequence[Turn], method: str
) -> Resolution:
    """What people are shown, and what of the conversation goes into the search."""
    numbers = source_numbers(question)
    searched = without_markers(own.searched) or own.searched
    return Resolution(
        query=own.query,
        is_followup=bool(past) and (own.leans or bool(numbers)),
        method="unchanged" if own.query == question else method,
        dense_query=searched,
        lexical_query=searched,
        source_numbers=numbers,
        before=_before(leading),
    )


def _before(past: Sequence[Turn]) -> EarlierTopics:
    """The last question, by meaning and by words."""
    if not past:
        return NO_EARLIER_TOPICS
    last = without_markers(past[-1].topic[:MAX_CONTEXT])
    return EarlierTopics(((last, MEANING),), ((last, WORDS),))


def source_numbers(question: str) -> tuple[int, ...]:
    """Numbers of sources that a question names, such as "[3]", "[1, 2]", "[2-4]", "source 3"."""
    named = [int(found[1]) for found in NAMED_SOURCE.finditer(question)]
    return tuple(dict.fromkeys([*cited_numbers(question), *named]))


def without_markers(text: str) -> str:
    """The text as it should be searched for."""
    return " ".join(keep_markers(text, lambda _number: False).text.split())
