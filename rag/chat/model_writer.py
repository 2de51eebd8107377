"""Let a language model write the answer."""

from collections.abc import Iterator

from rag.chat.draft import cut_at_stop
from rag.chat.prompts import says_declined
from rag.seams import ChatModel, ModelDelta, ModelRequest, WriteRequest


class ModelWriter:
    """Passes the assembled context to a model; its text is checked by whoever reads it."""

    reads_context = True

    def __init__(self, model: ChatModel, *, temperature: float | None = None) -> None:
        self._model = model
        self._temperature = temperature

    @property
    def name(self) -> str:
        return self._model.name

    def write(self, request: WriteRequest) -> Iterator[ModelDelta]:
        replied = self._model.stream(
            ModelRequest(
                messages=request.messages,
                max_tokens=min(request.max_tokens, request.wishes.max_tokens or request.max_tokens),
                temperature=self._temperature
                if request.wishes.temperature is None
                else request.wishes.temperature,
                stop=request.wishes.stop,
                tools=request.tools,
                passed_on=request.wishes.passed_on,
                deadline=request.deadline,
            )
        )
        yield from cut_at_stop(replied, request.wishes)  # some servers know no stop texts

    def declined(self, text: str) -> bool:
        return says_declined(text)
