"""Answer without a model: a card of the passages that were found."""

from collections.abc import Callable, Iterator, Sequence

from rag.chat.card import card_of
from rag.chat.highlights import EmbedTexts, once
from rag.chat.markdown import markdown_of
from rag.chat.prompts import says_declined
from rag.chat.stop_sequences import cut_at_stop
from rag.records import Confidence, Mention, Readable
from rag.seams import ModelDelta, WriteRequest
from rag.tokens import count_tokens


class CardWriter:
    """Quotes; it states nothing of its own."""

    name = "extractive"

    reads_context = False

    def __init__(
        self,
        embed: EmbedTexts,
        *,
        lexicon: Callable[[Readable], Sequence[str]] = lambda within: (),
        mentions: Callable[[str, Readable], Mention | None] = lambda name, within: None,
        confidence: Callable[[str, Readable], Confidence] = lambda text, within: Confidence(),
    ) -> None:
        """`lexicon` gives the product names of documents, as they are at each question,
        `confidence` says whether they answer it at all."""
        self._embed = embed
        self._lexicon = lexicon
        self._mentions = mentions
        self._confidence = confidence

    def write(self, request: WriteRequest) -> Iterator[ModelDelta]:
        yield from cut_at_stop(self._card(request), request.wishes, count=count_tokens)

    def _card(self, request: WriteRequest) -> Iterator[ModelDelta]:
        within = request.within
        names = self._lexicon(within)
        embed = once(self._embed)
        card = card_of(
            request,
            embed,
            names,
            lambda name: self._mentions(name, within),
            self._confidence(request.question, within),
        )
        for paragraph in markdown_of(card):
            yield ModelDelta(text=paragraph)
        if card.passages:
            yield ModelDelta(card=card)

    def declined(self, text: str) -> bool:
        return says_declined(text)
