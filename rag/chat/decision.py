"""The one decision over the evidence: a lead of quoted words, each with its number, or nothing.

Values are compared only in one unit, of one subject, with a word of the question that stands with
both. What is denied by other evidence is never said alone: the source leads that says itself that
it supersedes, else the newer one, else both stand side by side. A value that a text says was
corrected never leads, whichever text that is.

Only what is surely of no use is told of: a short answer, or one in other words, is none of it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag.chat.evidence import COMPUTED, LONGEST, LOOKED_UP, SourceEvidence, is_looked_up
from rag.citations.comparison.case import UNLIKE, is_near
from rag.citations.comparison.parser import read_source
from rag.citations.markers import neutralise, without_markers
from rag.language.amounts import UNIT_SIGNS, Figure, agree, dates
from rag.language.figures import read_figures
from rag.language.sentences import split_sentences
from rag.language.words import ENGLISH, Language, content_words, language_of, phrases, stem
from rag.records import Answer, Source, Verdict
from rag.records.answers import OPEN
from rag.seams import Embedder

SURE = 0.9  # likeness from which evidence is said
NEAR, AHEAD = 0.7, 0.4  # or from which it is, so much nearer than all that says otherwise
NEAR_IN_TWO = 0.6  # in place of NEAR where another document says the same
BESIDE_ITSELF = 0.1  # nearer than so, another case of the same document may be meant
UNIT_WORDS = frozenset(map(stem, UNIT_SIGNS))  # "days" says nothing of what they are of
BESIDE = 0.35  # less of it, and evidence may still deny what is said
MOST_DENIALS = 2
MOST_CASES = 2  # of one document that are said together
_SUPERSEDES = re.compile(
    rf"\b(?:{phrases('prevails')}|{phrases('supersedes')}|(?P<corrects>{phrases('corrects')}))\b",
    re.IGNORECASE,
)
_QUOTES = re.compile(r'[“„](?P<typeset>[^”“"]*)[”“"]|(?<!\d)"(?P<plain>[^"]*)"|[“”„]|(?<!\d)"')


@dataclass(frozen=True, slots=True)
class Lead:
    """The sentence that an answer begins with, as Markdown with its numbers."""

    text: str = ""
    evidence: tuple[SourceEvidence, ...] = ()  # what it quotes, what holds first
    is_denied: bool = False  # whether other evidence says otherwise


NOTHING = Lead()


def decide(
    evidence: Sequence[SourceEvidence],
    sources: Sequence[Source],
    language: Language = ENGLISH,
) -> Lead:
    """Return the lead in a language; `NOTHING` if no evidence is near enough."""
    cases = _sure(evidence)
    if not cases:
        return NOTHING
    best = cases[0]
    rulings = [sentence for source in sources for sentence in _superseding(source)]
    corrections = [c for ruling in rulings if (c := _correction(ruling, language)) is not None]
    least = best.likeness - BESIDE - LOOKED_UP * is_looked_up(best.source)
    is_computed = best.kind == COMPUTED
    alike = [one for one in evidence if not one.is_of_another]  # another year's denies nothing
    rest = [one for one in alike if is_computed or one.likeness >= least]
    denying = [e for e in rest if denies(best, e) and not _is_among(e, cases[1:])]
    denials = _of_each_document([*_in_place_of(best, alike, corrections), *denying])
    first, *rest = _by_precedence([best, *denials], rulings)
    if _is_past(first, alike, corrections):
        return NOTHING
    leading = (first, *rest[:MOST_DENIALS])
    quoted, *others = (_quoted(*(cases if one is best else [one])) for one in leading)
    if not denials:
        return Lead(quoted, tuple(cases))
    text = language.speech["otherwise"].format(first=quoted, others="; ".join(others))
    return Lead(text, leading, is_denied=True)


def _sure(evidence: Sequence[SourceEvidence]) -> list[SourceEvidence]:
    """Return the nearest evidence if it is near enough; else [].

    That is by itself, or by far the nearest and in a word of the question. Behind it stands another
    case of its text, which may be meant as well; none where there are more, or they are rows: the
    question may ask for all of them. What gives another day or year than the question, or the
    opposite, is never said.
    """
    if not evidence or evidence[0].is_of_another:
        return []
    best, *rest = evidence
    if best.likeness < SURE:
        denying = [best, *(other for other in rest if denies(best, other))]
        others = [other for other in rest if not _is_among(other, denying)]
        ahead = best.likeness - max((other.likeness for other in others), default=0.0)
        least = NEAR_IN_TWO if any(_repeats(best, other) for other in rest) else NEAR
        is_near_enough = best.likeness >= least and ahead >= AHEAD
        return [best] if is_near_enough and best.attribute else []
    cases = [best]
    document, is_row = best.source.document_id, best.kind == "row"
    dimensions = {amount.dimension for amount in _amounts(best)}
    for other in (e for e in rest if best.likeness - e.likeness < BESIDE_ITSELF):
        is_same_text = (other.source.document_id, other.kind == "row") == (document, is_row)
        is_alike = any(amount.dimension in dimensions for amount in _amounts(other))
        if is_same_text and is_alike and not _is_among(other, cases):
            cases.append(other)
    is_clear = len(cases) == 1 or (len(cases) <= MOST_CASES and not is_row)
    return [case for case in cases if not case.is_of_another] if is_clear else []


def _is_among(evidence: SourceEvidence, others: Sequence[SourceEvidence]) -> bool:
    """Whether one of the others gives the same value."""
    return any(_agree(other, evidence) for other in others)


def _repeats(one: SourceEvidence, other: SourceEvidence) -> bool:
    """Whether another document gives the same value and is nearly as near."""
    is_near = one.likeness - other.likeness < BESIDE
    return is_near and one.source.document_id != other.source.document_id and _agree(one, other)


def _agree(one: SourceEvidence, other: SourceEvidence) -> bool:
    return any(agree(a, b) for a in one.values for b in other.values if a.kind == b.kind)


def denies(one: SourceEvidence, other: SourceEvidence) -> bool:
    """Whether two documents give different values for the same subject and attribute."""
    few, many = sorted((one.attribute, other.attribute), key=len)
    if one.subject != other.subject or not few <= many or not few - UNIT_WORDS:
        return False
    if one.source.document_id == other.source.document_id:
        return False  # one document gives a value for each of its cases, rows and columns
    is_computed = one.kind == COMPUTED
    if is_computed and (other.kind == "row" or not one.attribute <= other.attribute):
        return False  # a row is a part of what was computed, or another table's
    pairs = [
        (a, b)
        for a in _amounts(one)
        for b in _amounts(other)
        if (a.unit and b.unit) or (is_computed and a.unit == b.unit)
        if a.dimension == b.dimension
    ]
    return bool(pairs) and not any(agree(a, b) for a, b in pairs)


def _amounts(evidence: SourceEvidence) -> list[Figure]:
    return _amounts_in_force(evidence.quote, evidence.values)


def _amounts_in_force(text: str, figures: Sequence[Figure]) -> list[Figure]:
    """Return the amounts that hold: 36 of "36 months instead of 24", "24 corrected to 36"."""
    amounts = [figure for figure in figures if figure.kind == "amount"]
    cue = _SUPERSEDES.search(text)
    if cue is None:
        return amounts
    is_behind = cue["corrects"] is not None
    return [a for a in amounts if (a.start > cue.start()) == is_behind] or amounts


def _of_each_document(denials: Sequence[SourceEvidence]) -> list[SourceEvidence]:
    """Keep the nearest evidence of each document, and others of it that give another value."""
    results: list[SourceEvidence] = []
    for denial in denials:
        if all(denies(other, denial) for other in results):
            results.append(denial)
    return results


def _superseding(source: Source) -> list[str]:
    """Return the sentences of a source that say that one value replaces another."""
    text = source.passage
    return [
        text[start:end]
        for start, end in split_sentences(text)
        if end - start <= LONGEST and _SUPERSEDES.search(text[start:end])
    ]


def _by_precedence(
    evidences: Sequence[SourceEvidence], rulings: Sequence[str]
) -> list[SourceEvidence]:
    """Order evidence: what a superseding sentence upholds, then newer sources, then as given."""
    upheld = [
        figure
        for sentence in rulings
        for figure in _amounts_in_force(sentence, list(read_figures(sentence)))
        if figure.unit
    ]
    return sorted(evidences, key=lambda e: (-_gives(e, upheld), -_newest(e.source)))


@dataclass(frozen=True, slots=True)
class _Correction:
    """A sentence that says which amount was corrected to which."""

    words: frozenset[str]
    holding: list[Figure]
    former: list[Figure]

    def speaks_of(self, evidence: SourceEvidence) -> bool:
        return not self.words.isdisjoint(evidence.attribute - UNIT_WORDS)


def _correction(sentence: str, language: Language) -> _Correction | None:
    """Return the correction that a sentence plainly states; None for other words of replacing.

    "Replace the filter every 6 months", "members pay 12 EUR instead of 20".
    """
    cue = _SUPERSEDES.search(sentence)
    if cue is None or cue["corrects"] is None:
        return None
    amounts = [f for f in read_figures(sentence) if f.kind == "amount" and f.unit]
    past = [amount for amount in amounts if amount.start < cue.start()]
    holding = [amount for amount in amounts if amount.start > cue.start()]
    return _Correction(frozenset(content_words(sentence, language)), holding, past)


def _gives(evidence: SourceEvidence, figures: Sequence[Figure]) -> bool:
    """Whether the evidence gives one of these values."""
    amounts = [amount for amount in _amounts(evidence) if amount.unit]
    return any(agree(a, b) for a in amounts for b in figures if a.dimension == b.dimension)


def _is_past(
    evidence: SourceEvidence, others: Sequence[SourceEvidence], corrections: Sequence[_Correction]
) -> bool:
    """Whether a correction replaces the value of this evidence."""
    about = [one for one in corrections if one.speaks_of(evidence)]
    if any(_gives(evidence, one.holding) for one in about):
        return False
    past = [figure for one in about for figure in one.former]
    return _gives(evidence, past) or bool(_in_place_of(evidence, others, corrections))


def _in_place_of(
    evidence: SourceEvidence, others: Sequence[SourceEvidence], corrections: Sequence[_Correction]
) -> list[SourceEvidence]:
    """Return the nearest evidence of the same subject that gives the corrected value, if any.

    A revision's "budget corrected to 250 W" may name no product; that another text has 250 W for
    this one says that it is meant.
    """
    upheld = [f for one in corrections if one.speaks_of(evidence) for f in one.holding]
    dimensions = {amount.dimension for amount in _amounts(evidence) if amount.unit}
    upheld = [figure for figure in upheld if figure.dimension in dimensions]
    if evidence.kind == COMPUTED or _gives(evidence, upheld):
        return []
    subject = evidence.subject
    same = [other for other in others if other.subject == subject and _gives(other, upheld)]
    return same[:1]


def _newest(source: Source) -> float:
    text = f"{source.document_title} {' '.join(source.heading_path)} {source.passage}"
    return max((date.value for date in dates(text) if date.value > 1e6), default=0.0)


def _quoted(*cases: SourceEvidence) -> str:
    """Return `title: "words" [n]; "words" [n]` for evidence of one document."""
    source = cases[0].source
    title = neutralise(source.document_title or source.document_name)
    return f"{title}: {'; '.join(map(_marked_quotation, cases))}"


def _inner_quotation(quotation: re.Match[str]) -> str:
    """In single quotes; a sign behind a figure that closes none stays: it is inches."""
    words = quotation["typeset"] if quotation["typeset"] is not None else quotation["plain"]
    return "'" if words is None else f"'{words}'"


def _marked_quotation(evidence: SourceEvidence) -> str:
    """Return `"words" [n]`; in a row the content of the cell is marked."""
    texts = (neutralise(" ".join(text.split())) for text in (evidence.quote, evidence.cell))
    words, cell = (_QUOTES.sub(_inner_quotation, text) for text in texts)
    if cell and "*" not in cell and words.endswith(cell):
        words = f"{words.removesuffix(cell)}**{cell}**"
    words = words if evidence.kind == COMPUTED else f'"{words}"'
    return f"{words} {evidence.source.marker}"


_LEAST = 0.2  # of an answer's words that stand in what was found, or in the question
_FEWEST = 4  # words that an answer has to have to be told so
_FEW = 3  # … where none of them does
_LONG = 12  # … that says a good deal, and so would name what was asked

REPEATED = "It said the same to another question."
WARNED = "Nothing that it cites is carried by its source."
ELSEWHERE = "It speaks of nothing that was found."
LATER = "It quotes what was found last, and says little of what was asked."
BESIDE_THE_POINT = "It says nothing of what was asked, and no source carries it."


def weakness(
    question: str,
    answer: Answer,
    sources: Mapping[int, Source],
    earlier: Sequence[tuple[str, str]],
    embedder: Embedder | None = None,
) -> str:
    """Return why the passages should stand before the answer, for people; "" if they should not.

    `earlier` are questions with their answers. With an embedding model, what shares few words with
    what was found has to mean something else, too.
    """
    if any(_repeats_answer(question, answer.text, *turn) for turn in earlier):
        return REPEATED
    if _is_off_the_point(question, answer, sources):
        return LATER
    verdicts = [citation.verdict for citation in answer.citations]
    if len(verdicts) > 1 and all(verdict.is_warning for verdict in verdicts):
        return WARNED
    if any(verdict.is_certain or verdict is Verdict.CONTRADICTED for verdict in verdicts):
        return ""
    return _beside_what_was_found(question, answer, sources, embedder)


def _beside_what_was_found(
    question: str, answer: Answer, sources: Mapping[int, Source], embedder: Embedder | None
) -> str:
    """Return a notice if an answer without a verified statement shares nothing with its sources."""
    if not sources:
        return ""
    language = language_of(answer.text)
    passages = [source.passage for source in sources.values()]
    cited = [
        sources[citation.number].passage
        for citation in answer.citations
        if citation.number in sources
    ]
    if any(language_of(text) is not language for text in cited or passages):
        return ""  # another language shares no words
    answer_words, question_words = (
        frozenset(content_words(text, language)) for text in (answer.text, question)
    )
    passage_words = [frozenset(content_words(passage, language)) for passage in passages]
    there = frozenset[str]().union(*passage_words)
    figures = {(figure.base, figure.dimension) for p in passages for figure in read_figures(p)}
    if any((figure.base, figure.dimension) in figures for figure in read_figures(answer.text)):
        return ""
    is_silent = {citation.verdict for citation in answer.citations} == {Verdict.OFF_SUBJECT}
    if is_silent and len(answer_words) >= _FEW and answer_words.isdisjoint(question_words):
        return WARNED
    is_strange = answer_words.isdisjoint(there | question_words)
    if len(answer_words) < (_FEW if is_strange else _FEWEST):
        return ""
    if len(answer_words & there) < _LEAST * len(answer_words):
        texts = [read_source(source) for source in sources.values()]
        near = embedder and is_near(
            without_markers(answer.text), tuple(answer_words), texts, embedder, least=UNLIKE
        )
        return "" if near else ELSEWHERE
    if answer.citations or not question_words or not answer_words.isdisjoint(question_words):
        return ""
    is_carried = any(2 * len(answer_words & words) >= len(answer_words) for words in passage_words)
    return "" if is_carried else BESIDE_THE_POINT


def _repeats_answer(question: str, answer: str, earlier: str, text: str) -> bool:
    """Whether an earlier answer said the same although this question asks something else.

    A short answer, such as `24 months`, may be right of two things.
    """
    words = set(content_words(without_markers(answer)))
    if len(words) < _FEWEST:
        return False
    if _plain(answer) != _plain(text.rpartition("\n> ")[2]):  # or what was set aside then
        return False
    fresh = set(content_words(question)).difference(content_words(earlier))
    return 2 * len(fresh & words) < len(fresh)


def _is_off_the_point(question: str, answer: Answer, sources: Mapping[int, Source]) -> bool:
    """Whether all cited sources were found behind the passages that a card would show open, and one
    of those shares more words with the question than the whole answer does.
    """
    first, cited = list(sources)[:OPEN], [citation.number for citation in answer.citations]
    language = language_of(answer.text)
    question_words, answer_words = (
        frozenset(content_words(text, language))
        for text in (question, without_markers(answer.text))
    )
    if language_of(question) is not language:
        return False
    if not cited or len(answer_words) < _LONG or not set(first).isdisjoint(cited):
        return False
    there = (
        len(question_words.intersection(content_words(sources[number].passage))) for number in first
    )
    return len(question_words & answer_words) < max(there)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", without_markers(text).lower()))
