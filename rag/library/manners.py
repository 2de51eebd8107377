"""What is said to who greets, thanks or asks what can be done here: told by what lies near it."""

from collections.abc import Callable, Sequence
from functools import cached_property

from rag.errors import ModelError
from rag.library.told import Speech
from rag.records import Resolution
from rag.seams import LIBRARY, DirectAnswer, Matrix, SessionHandle
from rag.text.languages import LANGUAGES, Language

# As measured: below begin questions to documents; "what can it do" is as near as .69.
NEAR = {"greeting": 0.6, "thanks": 0.6, "help": 0.7}
LONGEST = 60  # characters; what is longer asks something
# Examples, by what is said to them.
SAID = {(kind, each): said for each in LANGUAGES for kind, said in each.manners.items()}


class Manners:
    """Answers what asks nothing of the documents; see `rag.seams.DirectAnswers`."""

    def __init__(self, embed: Callable[[Sequence[str]], Matrix]) -> None:
        self._embed = embed

    @cached_property
    def _known(self) -> tuple[list[tuple[str, Language]], Matrix]:
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
        kind, language = kinds[nearest]
        if likeness[nearest] < NEAR[kind]:
            return None
        own = Resolution(question, is_followup=False, method="unchanged")  # nothing is searched
        return DirectAnswer(Speech(language).say(kind), made_by=LIBRARY, resolution=own)
