"""What is said to who greets, thanks or asks what can be done here: told by what lies near it."""

from collections.abc import Callable, Sequence
from functools import cached_property

from rag.errors import ModelError
from rag.library.told import Speech
from rag.records import Resolution
from rag.seams import LIBRARY, DirectAnswer, Matrix, SessionHandle

NEAR = 0.7  # as measured: below begin questions to documents
LONGEST = 60  # characters; what is longer asks something
# Examples, each with what is said to it: the words of a language beside its German sister's.
SAID = {
    ("greeting", False): ("hello", "hi", "hey", "hello there", "good morning", "good evening"),
    ("greeting", True): ("hallo", "guten tag", "guten morgen", "moin", "servus", "grüß gott"),
    ("thanks", False): ("thanks", "thank you", "great, thanks", "ok, thanks", "that helped"),
    ("thanks", True): ("danke", "vielen dank", "danke, das hilft mir", "super, danke"),
    ("help", False): ("what can you do", "who are you", "help", "what are you"),
    ("help", True): ("was kannst du", "wer bist du", "hilfe", "wozu bist du gut"),
}


class Manners:
    """Answers what asks nothing of the documents; see `rag.seams.DirectAnswers`."""

    def __init__(self, embed: Callable[[Sequence[str]], Matrix]) -> None:
        self._embed = embed

    @cached_property
    def _known(self) -> tuple[list[tuple[str, bool]], Matrix]:
        kinds = [kind for kind, said in SAID.items() for _ in said]
        return kinds, self._embed([text for said in SAID.values() for text in said])

    def answer(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> DirectAnswer | None:
        """None for a question, and while the model is away."""
        text = question.strip().strip("?!.,:;) ").lower()
        if not text or len(text) > LONGEST:
            return None
        try:
            kinds, known = self._known
            likeness = known @ self._embed([text])[0]
        except ModelError:
            return None
        nearest = int(likeness.argmax())
        if likeness[nearest] < NEAR:
            return None
        kind, is_german = kinds[nearest]
        return DirectAnswer(Speech(is_german=is_german).say(kind), made_by=LIBRARY)
