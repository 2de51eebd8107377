"""Make a question stand alone: with a language model where there is one, by rules otherwise."""

from collections.abc import Callable, Sequence

from rag.followups.model import ask_model
from rag.followups.names import Names
from rag.followups.rules import CUE_WORDS, recall_turns, rewrite
from rag.followups.searched import resolution
from rag.records import Resolution, Within
from rag.seams import ChatModel

MODEL_TURNS = 3
LEXICONS_KEPT = 64  # for so many sets of collections


class FollowUps:
    """Resolves questions in the context of their conversation."""

    def __init__(
        self,
        *,
        model: ChatModel | None = None,
        lexicon: Callable[[Within], Sequence[str]] = lambda within: (),
        cue_words: Sequence[str] = CUE_WORDS,
        max_turns: int = 10,
        timeout_seconds: float = 5.0,
        is_mentioned: Callable[[str, Within], bool] = lambda name, within: False,
    ) -> None:
        self._model, self._timeout = model, timeout_seconds
        self._lexicon = lexicon
        self._is_mentioned = is_mentioned
        self._names: dict[Within, tuple[tuple[str, ...], Names]] = {}
        self._cue_words = tuple(cue_words)
        self._max_turns = max_turns

    def resolve(
        self, question: str, history: Sequence[tuple[str, str]], within: Within
    ) -> Resolution:
        """The question standing alone; `history` is (question, answer) of turns that succeeded."""
        turns = list(history)[-self._max_turns :] if self._max_turns else []
        names = self._known_names(within)
        past = recall_turns(turns, names, self._cue_words)
        whole, leans = rewrite(question, past, names, self._cue_words)
        by_rules = resolution(question, whole, past, "rules", leans=leans)
        if self._model is None or not by_rules.is_followup:
            return by_rules
        told = ask_model(self._model, question, turns[-MODEL_TURNS:], self._timeout)
        by_model = resolution(question, told, past, "model", leans=told != question)
        return by_model if told else by_rules

    def _known_names(self, within: Within) -> Names:
        """The lexicon, indexed anew only when it changed."""
        lexicon = tuple(self._lexicon(within))
        known = self._names.get(within)
        if known is None or known[0] != lexicon:
            known = lexicon, Names(lexicon, lambda name: self._is_mentioned(name, within))
            if len(self._names) >= LEXICONS_KEPT:
                self._names.clear()
            self._names[within] = known
        return known[1]
