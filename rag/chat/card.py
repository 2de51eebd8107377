"""Answers put together by rules: the card of passages, the notices beside it, its Markdown."""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from rag.chat.decision import NOTHING, Lead, decide
from rag.chat.draft import Draft, cut_at_stop
from rag.chat.evidence import (
    EmbedTexts,
    EvidenceReader,
    MarkedSpans,
    StatementVectors,
    is_looked_up,
    marked_in,
    with_tables_joined,
)
from rag.chat.prompts import DECLINE, says_declined
from rag.chat.tool_loop import sent_tokens
from rag.citations.comparison.parser import are_siblings, read, read_source, same_name
from rag.citations.gate import JsonGate, calls_in_words, json_in_words
from rag.citations.markers import as_it_stands, find_markers, keep_markers, neutralise
from rag.errors import IndexAway, ModelError, TooLarge, UnreadableReply
from rag.language.figures import read_figures
from rag.language.names import Lexicon, typed_names
from rag.language.sentences import cells_of
from rag.language.words import Language, language_of
from rag.llm.windows import TokenBudget
from rag.records import (
    Answer,
    Card,
    Certainty,
    ChatMessage,
    Citation,
    Confidence,
    Judging,
    Mention,
    MissingIdentifier,
    Notice,
    NoticeKind,
    QuotedPassage,
    Readable,
    Role,
    SetAside,
    Source,
    ToolCall,
    Verdict,
)
from rag.records.answers import OPEN
from rag.render.gate import in_words, sanitise
from rag.seams import AnswerOptions, Embedder, ModelDelta, TokenCounter, WriteRequest
from rag.tokens import count_tokens

MODEL_ANSWER = "The model said:"


def quoted(draft: Draft, card: Card, shown: Sequence[Source]) -> Answer:
    """Return a card's answer; its text is word for word that of its sources: nothing to check."""
    text = draft.preface + draft.text
    citations = tuple(
        replace(citation, verdict=Verdict.OPEN) if citation.number in card.denied else citation
        for citation in all_cited(text, Verdict.SUPPORTED)
    )
    notices = (*draft.notices, *_of_sibling(draft, text, shown))
    return Answer(
        text, citations, declined=card.is_weak, model=draft.model, card=card, notices=notices
    )


def set_aside(answer: Answer, text: str, card: Card, reason: str) -> Answer:
    """Return a card with the model's answer quoted below it."""
    whole = text.rstrip() + quotation(answer.text, reason)
    of_card = all_cited(text, Verdict.SUPPORTED)
    below = all_cited(whole, Verdict.OPEN)[len(of_card) :]
    if len(below) == len(answer.citations):
        pairs = zip(answer.citations, below, strict=True)
        below = tuple(
            replace(citation, start=place.start, end=place.end) for citation, place in pairs
        )
    return replace(
        answer,
        text=whole,
        citations=(*of_card, *below),
        unsourced=(),
        figures=(),
        card=card,
        judging=Judging.OFF,
        set_aside=SetAside(answer.text, reason),
    )


def quotation(text: str, reason: str) -> str:
    """Return a model's answer as a quotation, to stand below the passages."""
    lines = (f"> {line}".rstrip() for line in text.splitlines())
    return "\n\n".join(["", f"**{MODEL_ANSWER}** {reason}", "\n".join(lines)])


def all_cited(text: str, verdict: Verdict) -> tuple[Citation, ...]:
    """Return a citation for every number of a rule-made text, all with the same verdict."""
    return tuple(
        Citation(number, marker.start, marker.end, verdict)
        for marker in find_markers(text)
        for number in marker.numbers
    )


def notices_beside(
    draft: Draft, text: str, sources: Sequence[Source], embedder: Embedder | None
) -> tuple[Notice, ...]:
    """Return the notices beside a model's answer, for instance that sources disagree."""
    query = draft.resolution.query if draft.resolution else ""
    lead = NOTHING
    if embedder is not None:
        names = {
            n for source in sources for n in read_source(source).lexicon.names if _tells_apart(n)
        }
        reader = EvidenceReader(query, sorted(names))
        lead = decide(reader.read(sources, embedder.embed), sources, language_of(query))
    notices = [Notice(NoticeKind.DISAGREEMENT, lead.text)] if lead.is_denied else []
    return (*draft.notices, *notices, *_of_sibling(draft, text, sources))


def _of_sibling(draft: Draft, text: str, sources: Sequence[Source]) -> list[Notice]:
    """Return a notice on an answer that names only a sibling of the product in the question."""
    question = draft.resolution.query if draft.resolution else ""
    named = (word for word in question.split()[1:] if word.strip(".,?!") != "I")
    if not any(any(map(str.isupper, word)) for word in named) and not re.search(r"\d", question):
        return []  # it names nothing, and no source is read for it
    lexicon = Lexicon(n for source in sources for n in read_source(source).lexicon.names)
    wanted, products = _product_names(question, lexicon), _product_names(text, lexicon)
    if len(wanted) != 1 or any(same_name(wanted[0], name) for name in products):
        return []
    sibling = next((name for name in products if are_siblings(wanted[0], name)), None)
    if sibling is None or read_figures(text[: text.lower().find(sibling)]):
        return []  # something was said before, of what `it` stands for
    spelled = {name.lower(): name for name in lexicon.names}
    about = spelled.get(wanted[0], wanted[0])
    remark = f"You asked about the {about}; this speaks of the {spelled.get(sibling, sibling)}."
    return [Notice(NoticeKind.OTHER_PRODUCT, remark)]


def _product_names(text: str, lexicon: Lexicon) -> list[str]:
    return [name for name in read(text, lexicon, language_of(text)).names if _tells_apart(name)]


def _tells_apart(name: str) -> bool:
    return any(letter.isdigit() or letter in " +" for letter in name)


LEAST_TOKENS = 512  # that a question needs beside what came with it
_NO_ID = re.compile(r"(call[_-]?)?\d{0,5}")  # counted anew in each reply: others have it, too


def unchecked(draft: Draft, allowed: Callable[[int], bool]) -> Answer:
    """Return the answer with its notices; its text is not changed."""
    rounds, text, json_text = draft.wishes.rounds, draft.preface + draft.text, ""
    if draft.calls:
        calls = tuple(_identified(draft.calls, rounds, allowed))
        rounds = (*rounds, ChatMessage(Role.ASSISTANT, text, tool_calls=calls))
        text = calls_in_words(text, calls)
    elif text.startswith("{"):
        text, json_text = json_in_words(text), text
    # What was code in a text alone may be none in a list of them.
    visible = sanitise(keep_markers(text, allowed))
    return Answer(
        visible,
        model=draft.model,
        usage=draft.usage,
        notices=tuple(draft.notices),
        given=json_text,
        rounds=rounds,
    )


def _identified(
    calls: Sequence[ToolCall], rounds: Sequence[ChatMessage], allowed: Callable[[int], bool]
) -> Iterator[ToolCall]:
    """Give each call an id that is unique in the turn, as every server accepts it, and pass its
    arguments through the gate.
    """
    taken = {call.id for message in rounds for call in message.tool_calls}
    for call in calls:
        call_id = call.id
        if _NO_ID.fullmatch(call_id) or call_id in taken:
            call_id = secrets.token_hex(5)[:9]
        taken.add(call_id)
        gate = JsonGate(allowed, only_unknown=True)
        try:
            arguments = gate.feed(call.arguments) + gate.finish()
            json.loads(arguments)
        except (UnreadableReply, ValueError, RecursionError):
            arguments = "{}"  # which the program's own check refuses, and the model is told
        yield replace(call, id=call_id, arguments=arguments)


def room_beside(
    budget: TokenBudget, wishes: AnswerOptions, reserved: int, count: TokenCounter
) -> TokenBudget:
    """Return the token budget beside a program's own tools, forms or results; ours are not offered
    then.

    Raises TooLarge if they leave no room for a question.
    """
    taken = count(json.dumps(dict(wishes.passed_on), ensure_ascii=False))
    taken += sum(sent_tokens(message, count) for message in wishes.rounds)
    beside = replace(budget, reserved=reserved + taken, tools=0)
    if beside.input_tokens < min(LEAST_TOKENS, budget.input_tokens // 2):
        raise TooLarge(
            f"The tools and forms that came with the question need {taken:,} tokens, and the model "
            f"can be sent {budget.input_tokens:,}. Send fewer of them, or set "
            "`llm.context_window`, if the model takes more."
        )
    return beside


MORE = "More passages:"
LONGEST_KEY = 60  # words of a folded passage
_ENDS_IN_STOP = re.compile(r"([.!?。！？…]+[\"'”’»)\]」』]*)$")
_NUMBERED = re.compile(r"^([ \t]*)- (?=\d{1,3}\. )")  # our own form of an entry that has a number
_RULE = re.compile(r"[\s|:-]*")  # below a table's header, or nothing


def markdown_of(card: Card) -> Iterator[str]:
    """Yield the card as Markdown, paragraph by paragraph with the blank lines between."""
    paragraphs = [] if card.passages else [DECLINE]
    if card.said or card.lead:
        paragraphs.append(card.said or card.lead)
    if card.perhaps:
        paragraphs.append(in_words(card.perhaps))
    for passage in card.open:
        paragraphs += [f"{in_words(passage.heading)} [{passage.number}]", _quoted(passage)]
    if card.folded:
        entries = [f"- {in_words(folded.heading)}: {_short(folded)}" for folded in card.folded]
        paragraphs.append("\n".join(entries if card.said else [MORE, "", *entries]))
    paragraphs += map(_mention, card.mentions)
    for place, paragraph in enumerate(paragraphs):
        yield f"\n\n{paragraph}" if place else paragraph


def cited(text: str, number: int) -> str:
    """Return the text with its marker before the full stop."""
    end = _ENDS_IN_STOP.search(text)
    if end is None:
        return f"{text} [{number}]"
    return f"{text[: end.start()]} [{number}]{end[0]}"


def _quoted(passage: QuotedPassage) -> str:
    """Return the passage as a Markdown quotation; marked statements carry its number."""
    text, number = passage.text, passage.number
    for start, end in sorted(passage.marked, reverse=True):
        text = text[:start] + _marked(text[start:end], number) + text[end:]
    lines = (_NUMBERED.sub(r"\1", line) for line in text.split("\n"))
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _marked(unit: str, number: int) -> str:
    if unit.rstrip().endswith("|"):
        return f"{unit.rstrip()[:-1].rstrip()} [{number}] |"
    return cited(unit, number)


def _short(passage: QuotedPassage) -> str:
    words = _NUMBERED.sub(r"\1", gist(passage)).split()
    if len(words) <= LONGEST_KEY:
        return cited(" ".join(words), passage.number)
    beginning = " ".join(words[:LONGEST_KEY])
    closed = "`" if beginning.count("`") % 2 else ""  # of code that was cut
    return f"{beginning}{closed} … [{passage.number}]"


def gist(passage: QuotedPassage) -> str:
    """Return a passage in one line, without the signs of rows, list entries and code."""
    lines = []
    for line in map(str.strip, passage.text.splitlines()):
        if line.startswith("|") and not _RULE.fullmatch(line):
            lines.append(" · ".join(filter(None, cells_of(line))) + ";")
        elif not _RULE.fullmatch(line):
            lines.append(line.removeprefix("- "))
    return " ".join(lines).strip("; ")


def _mention(mention: Mention) -> str:
    links = ", ".join(
        f"[{in_words(document.title)}](/documents/{document.id})" for document in mention.documents
    )
    more = mention.count - len(mention.documents)
    rest = f" and {more} more" if more > 0 else ""
    return f"{mention.count} documents mention {in_words(mention.name)}: {links}{rest}."


MOST_SHOWN = 6  # passages, the folded ones among them
WEAK = 0.1  # relevance of the best, below which the search's word is taken that nothing answers
NEAR = 0.4  # a sentence so near to the question by meaning may answer where the search is not sure
SURE_OF_IT = Confidence()
UNKNOWN_RELEVANCE = 0.5
MOST_MENTIONS = 3
Mentions = Callable[[str], Mention | None]


def card_of(
    request: WriteRequest,
    embed: EmbedTexts,
    lexicon: Sequence[str] = (),
    mentions: Mentions = lambda _: None,
    confidence: Confidence = SURE_OF_IT,
) -> Card:
    """Return the card; without passages if nothing was found.

    If the question names a code that no document holds, the card says so first.
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
    best = max(request.relevance.get(source.number, UNKNOWN_RELEVANCE) for source in sources)
    if best < WEAK and is_far[confidence.certainty]:
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
    """Remove product names before the language is detected: `pro` of "aero 5 pro" is not German."""
    for name in reversed(typed_names(tuple(lexicon)).find(question)):
        question = question[: name.start] + question[name.end :]
    return question


def _once(
    passages: Sequence[QuotedPassage], sources: Sequence[Source], lead: Lead
) -> Iterator[QuotedPassage]:
    """Drop the table passage from which a cell was already looked up."""
    claim = lead.evidence[0].source if len(lead.evidence) == 1 else None
    rows = _rows(claim.passage)[1:] if claim and is_looked_up(claim) else []
    for passage, source in zip(passages, sources, strict=True):
        is_other = claim in (None, source) or source.document_id != claim.document_id
        is_table = all(line.startswith("|") for line in passage.text.split("\n") if line)
        table = _rows(passage.text) if rows and is_table and not is_other else []
        if not table or not all(any(row <= whole for whole in table) for row in rows):
            yield passage


def _rows(table: str) -> list[set[str]]:
    """Return the cells of each row, the naming cell first."""
    rows = (set(filter(None, cells_of(line))) for line in table.split("\n") if line)
    return [row for row in rows if set("".join(row)) - set(":-")]


def _offer_documents(spoken: Language, sources: Sequence[Source], confidence: Confidence) -> str:
    """Offer two or three documents to choose from, if it is unsure that one answers."""
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


def _passage_of(source: Source, text: str, marked: MarkedSpans = ()) -> QuotedPassage:
    titles = dict.fromkeys((source.document_title, *source.heading_path))
    heading = " › ".join(filter(None, titles))
    return QuotedPassage(source.number, neutralise(heading), text, marked)


class CardWriter:
    """Writes answers from quotations alone, without a model."""

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
        """`lexicon` returns the current product names, `confidence` whether the documents answer a
        question.
        """
        self._statements = StatementVectors(embed)
        self._lexicon = lexicon
        self._mentions = mentions
        self._confidence = confidence

    def write(self, request: WriteRequest) -> Iterator[ModelDelta]:
        yield from cut_at_stop(self._card(request), request.wishes, count=count_tokens)

    def _card(self, request: WriteRequest) -> Iterator[ModelDelta]:
        readable, confidence = request.readable, Confidence()
        names = self._lexicon(readable)
        with suppress(ModelError, IndexAway):  # none if a model or an index is unavailable
            confidence = self._confidence(request.question, readable)
        card = card_of(
            request,
            self._statements.embed,
            names,
            lambda name: self._mentions(name, readable),
            confidence,
        )
        for paragraph in markdown_of(card):
            yield ModelDelta(text=paragraph)
        if card.passages:
            yield ModelDelta(card=card)

    def declined(self, text: str) -> bool:
        return says_declined(text)
