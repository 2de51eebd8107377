"""What is said to who greets, thanks or asks what can be done here: told by what lies near it."""

from collections.abc import Callable, Sequence
from functools import cached_property

from rag.errors import ModelError
from rag.language.languages import ENGLISH, LANGUAGES, Language
from rag.library.told import Speech
from rag.records import Resolution
from rag.seams import LIBRARY, DirectAnswer, Matrix, SessionHandle

# As measured: below begin questions to documents; "what can it do" is as near as .69.
NEAR = {"greeting": 0.6, "thanks": 0.6, "help": 0.7}
LONGEST = 40  # characters; what is longer asks something
# What is said to each.
EXAMPLES = {
    text: (kind, language)
    for language in reversed(LANGUAGES)
    for kind, texts in language.manners.items()
    for text in texts
}


class Manners:
    """Answers what asks nothing of the documents; see `rag.seams.DirectAnswers`."""

    def __init__(self, embed: Callable[[Sequence[str]], Matrix] | None) -> None:
        """None for a model whose nearness was not measured: the examples alone are known then."""
        self._embed = embed

    def answer(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> DirectAnswer | None:
        """None for a question; while the model is away the examples alone are known."""
        text = question.strip().strip("?!.,:;) ").lower()
        if not text or len(text) > LONGEST:
            return None
        kind, language = self._nearest(text)
        if not kind:
            return None
        own = Resolution(question, is_followup=False, method="unchanged")  # nothing is searched
        return DirectAnswer(Speech(language).say(kind), made_by=LIBRARY, resolution=own)

    def _nearest(self, text: str) -> tuple[str, Language]:
        """What a text is near to; "" for none."""
        if text in EXAMPLES:
            return EXAMPLES[text]
        if self._embed is None:
            return "", ENGLISH
        try:
            likeness = self._known @ self._embed([text])[0]
        except ModelError:
            return "", ENGLISH
        nearest = int(likeness.argmax())
        kind, language = list(EXAMPLES.values())[nearest]
        return (kind if likeness[nearest] >= NEAR[kind] else "", language)

    @cached_property
    def _known(self) -> Matrix:
        assert self._embed is not None
        return self._embed(list(EXAMPLES))
