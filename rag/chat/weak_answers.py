"""Whether a model's answer is weaker than the passages that were found, and why.

Only what is surely of no use is told of: a short answer, or one in other words, is none of it.
"""

import re
from collections.abc import Mapping, Sequence

from rag.citations.comparison.case import UNLIKE, is_near
from rag.citations.comparison.parser import read_source
from rag.citations.markers import without_markers
from rag.language.figures import read_figures
from rag.language.words import content_words, language_of
from rag.records import Answer, Source, Verdict
from rag.records.answers import OPEN
from rag.seams import Embedder

_LEAST = 0.2  # of an answer's words that stand in what was found, or in the question
_FEWEST = 4  # words that an answer has to have to be told so
_FEW = 3  # … where none of them does
_LONG = 12  # … that says a good deal, and so would name what was asked

REPEATED = "It said the same to another question."
WARNED = "Nothing that it cites is carried by its source."
ELSEWHERE = "It speaks of nothing that was found."
LATER = "It quotes what was found last, and says little of what was asked."
BESIDE = "It says nothing of what was asked, and no source carries it."


def weakness(
    question: str,
    answer: Answer,
    sources: Mapping[int, Source],
    earlier: Sequence[tuple[str, str]],
    embedder: Embedder | None = None,
) -> str:
    """Why the passages shall stand first, for people; "" where the answer does.

    `earlier` are questions with their answers. With an embedding model, what shares few words with
    what was found has to mean something else, too.
    """
    if any(_repeats(question, answer.text, *each) for each in earlier):
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
    """Of an answer that nothing is certain of: whether it has anything of the sources."""
    if not sources:
        return ""
    language = language_of(answer.text)
    passages = [source.passage for source in sources.values()]
    cited = [
        sources[citation.number].passage
        for citation in answer.citations
        if citation.number in sources
    ]
    if any(language_of(each) is not language for each in cited or passages):
        return ""  # another language shares no words
    said, asked = (frozenset(content_words(each, language)) for each in (answer.text, question))
    told = [frozenset(content_words(passage, language)) for passage in passages]
    there = frozenset[str]().union(*told)
    figures = {(figure.base, figure.dimension) for p in passages for figure in read_figures(p)}
    if any((figure.base, figure.dimension) in figures for figure in read_figures(answer.text)):
        return ""
    is_silent = {citation.verdict for citation in answer.citations} == {Verdict.OFF_SUBJECT}
    if is_silent and len(said) >= _FEW and said.isdisjoint(asked):
        return WARNED
    is_strange = said.isdisjoint(there | asked)
    if len(said) < (_FEW if is_strange else _FEWEST):
        return ""
    if len(said & there) < _LEAST * len(said):
        texts = [read_source(source) for source in sources.values()]
        near = embedder and is_near(
            without_markers(answer.text), tuple(said), texts, embedder, least=UNLIKE
        )
        return "" if near else ELSEWHERE
    if answer.citations or not asked or not said.isdisjoint(asked):
        return ""
    return "" if any(2 * len(said & each) >= len(said) for each in told) else BESIDE


def _repeats(question: str, answer: str, asked: str, text: str) -> bool:
    """Whether it was said before, and has little of what is asked otherwise now.

    A short answer, such as `24 months`, may be right of two things.
    """
    words = set(content_words(without_markers(answer)))
    if len(words) < _FEWEST:
        return False
    if _plain(answer) != _plain(text.rpartition("\n> ")[2]):  # or what was set aside then
        return False
    fresh = set(content_words(question)).difference(content_words(asked))
    return 2 * len(fresh & words) < len(fresh)


def _is_off_the_point(question: str, answer: Answer, sources: Mapping[int, Source]) -> bool:
    """Whether all that it cites was found behind the passages that a card would show open, and
    one of these has more of the question than the whole answer."""
    first, cited = list(sources)[:OPEN], [citation.number for citation in answer.citations]
    language = language_of(answer.text)
    asked, said = (
        frozenset(content_words(each, language))
        for each in (question, without_markers(answer.text))
    )
    if language_of(question) is not language:
        return False
    if not cited or len(said) < _LONG or not set(first).isdisjoint(cited):
        return False
    there = (len(asked.intersection(content_words(sources[each].passage))) for each in first)
    return len(asked & said) < max(there)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", without_markers(text).lower()))
