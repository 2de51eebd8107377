"""The card of an answer: what the passages say of it, then these, in the order of the search."""

from collections.abc import Callable, Iterator, Sequence

from rag.chat.decision import Lead, decide
from rag.chat.draft import cut_at_stop
from rag.chat.evidence import (
    EmbedTexts,
    EvidenceReader,
    MarkedSpans,
    StatementVectors,
    is_looked_up,
    marked_in,
    with_tables_joined,
)
from rag.chat.markdown import markdown_of
from rag.chat.prompts import says_declined
from rag.citations.markers import as_it_stands, neutralise
from rag.language.languages import Language
from rag.language.names import Lexicon, typed_names
from rag.language.sentences import cells_of
from rag.language.words import language_of
from rag.records import (
    Card,
    Certainty,
    Confidence,
    Mention,
    MissingIdentifier,
    Readable,
    ShownPassage,
    Source,
)
from rag.records.answers import OPEN
from rag.seams import ModelDelta, WriteRequest
from rag.tokens import count_tokens

MOST_SHOWN = 6  # passages, the folded ones among them
WEAK = 0.1  # relevance of the best, below which the search's word is taken that nothing answers
NEAR = 0.4  # a sentence so near to the question by meaning may answer where the search is not sure
FOUND = Confidence()
UNKNOWN_RELEVANCE = 0.5
MOST_MENTIONS = 3
Mentions = Callable[[str], Mention | None]


def card_of(
    request: WriteRequest,
    embed: EmbedTexts,
    lexicon: Sequence[str] = (),
    mentions: Mentions = lambda _: None,
    confidence: Confidence = FOUND,
) -> Card:
    """The card; without passages where nothing was found.

    A code that no document holds is said first, whatever else was found.
    """
    sources = request.sources[:MOST_SHOWN]
    if not sources:
        return Card()
    texts = [with_tables_joined(as_it_stands(source.passage)) for source in sources]
    spoken = language_of(_without_names(request.question, lexicon), request.talk, *texts)
    names = Lexicon(lexicon)
    if confidence.missing:
        return Card(
            tuple(map(_passage_of, sources, texts)), _unknown_codes(spoken, confidence.missing)
        )
    marked, nearest = marked_in(request.question, texts[:OPEN], embed, names)
    is_unsure = nearest < NEAR and not confidence.is_other_language
    is_far = {Certainty.NOTHING: True, Certainty.PERHAPS: is_unsure, Certainty.FOUND: False}
    if _relevance(request, sources) < WEAK and is_far[confidence.certainty]:
        first = spoken.speech["offered" if request.has_offers else "hardly"]
        return Card(tuple(map(_passage_of, sources, texts)), first)
    named = dict.fromkeys(name.text for name in names.find(request.question))
    mentioned = (mentions(name) for name in list(named)[:MOST_MENTIONS])
    passages = tuple(map(_passage_of, sources, texts, [*marked, *[()] * len(sources)]))
    reader = EvidenceReader(request.question, lexicon, spoken, earlier=request.earlier)
    evidence = reader.read(sources, embed)
    lead = decide(evidence, sources, spoken)
    return Card(
        tuple(_once(passages, sources, lead)),
        mentions=tuple(mention for mention in mentioned if mention is not None),
        lead=lead.text,
        perhaps="" if lead.text else _offer_documents(spoken, sources, confidence),
        denied=tuple(evidence.source.number for evidence in lead.evidence if lead.is_denied),
    )


def _without_names(question: str, lexicon: Sequence[str]) -> str:
    """What tells a language: `pro` of "aero 5 pro" is no German."""
    for name in reversed(typed_names(tuple(lexicon)).find(question)):
        question = question[: name.start] + question[name.end :]
    return question


def _once(
    passages: Sequence[ShownPassage], sources: Sequence[Source], lead: Lead
) -> Iterator[ShownPassage]:
    """Without the table that a cell was looked up in: its other columns say nothing more of it."""
    claim = lead.evidence[0].source if len(lead.evidence) == 1 else None
    rows = _rows(claim.passage)[1:] if claim and is_looked_up(claim) else []
    for passage, source in zip(passages, sources, strict=True):
        is_other = claim in (None, source) or source.document_id != claim.document_id
        is_table = all(line.startswith("|") for line in passage.text.split("\n") if line)
        table = _rows(passage.text) if rows and is_table and not is_other else []
        if not table or not all(any(row <= whole for whole in table) for row in rows):
            yield passage


def _rows(table: str) -> list[set[str]]:
    """What stands in each row, that of names first."""
    rows = (set(filter(None, cells_of(line))) for line in table.split("\n") if line)
    return [row for row in rows if set("".join(row)) - set(":-")]


def _offer_documents(spoken: Language, sources: Sequence[Source], confidence: Confidence) -> str:
    """Two or three documents, where it is not sure that one of them answers."""
    titles = {
        source.document_id: source.document_title or source.document_name for source in sources
    }
    few = [as_it_stands(title) for title in list(titles.values())[:OPEN]]
    if confidence.certainty is not Certainty.PERHAPS or len(few) < 2:
        return ""
    return spoken.speech["perhaps"].format(documents=", ".join(few))


def _unknown_codes(spoken: Language, missing: Sequence[MissingIdentifier]) -> str:
    speech = spoken.speech
    sentences = []
    for identifier in missing:
        sentences.append(speech["unknown_code"].format(code=as_it_stands(identifier.written)))
        if identifier.near:
            near = ", ".join(map(as_it_stands, identifier.near))
            sentences.append(speech["near_codes"].format(codes=near))
    return " ".join(sentences)


def _relevance(request: WriteRequest, sources: Sequence[Source]) -> float:
    return max(request.relevance.get(source.number, UNKNOWN_RELEVANCE) for source in sources)


def _passage_of(source: Source, text: str, marked: MarkedSpans = ()) -> ShownPassage:
    titles = dict.fromkeys((source.document_title, *source.heading_path))
    heading = " › ".join(filter(None, titles))
    return ShownPassage(source.number, neutralise(heading), text, marked)


class CardWriter:
    """Quotes; it states nothing of its own."""

    name = "extractive"

    reads_context = False

    def __init__(
        self,
        embed: EmbedTexts,
        *,
        lexicon: Callable[[Readable], Sequence[str]] = lambda readable: (),
        mentions: Callable[[str, Readable], Mention | None] = lambda name, readable: None,
        confidence: Callable[[str, Readable], Confidence] = lambda text, readable: Confidence(),
    ) -> None:
        """`lexicon` gives the product names of documents, as they are at each question,
        `confidence` says whether they answer it at all."""
        self._statements = StatementVectors(embed)
        self._lexicon = lexicon
        self._mentions = mentions
        self._confidence = confidence

    def write(self, request: WriteRequest) -> Iterator[ModelDelta]:
        yield from cut_at_stop(self._card(request), request.wishes, count=count_tokens)

    def _card(self, request: WriteRequest) -> Iterator[ModelDelta]:
        readable = request.readable
        names = self._lexicon(readable)
        card = card_of(
            request,
            self._statements.embed,
            names,
            lambda name: self._mentions(name, readable),
            self._confidence(request.question, readable),
        )
        for paragraph in markdown_of(card):
            yield ModelDelta(text=paragraph)
        if card.passages:
            yield ModelDelta(card=card)

    def declined(self, text: str) -> bool:
        return says_declined(text)
