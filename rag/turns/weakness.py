"""Whether a model's answer is weaker than the passages that were found, and why.

Only what is surely of no use is told of: a short answer, or one in other words, is none of it.
"""

from collections.abc import Mapping, Sequence

from rag.citations.checking.case import UNLIKE
from rag.citations.checking.meaning import is_near
from rag.citations.checking.reading import read_source
from rag.citations.markers import without_markers
from rag.records import Answer, Source, Verdict
from rag.seams import Embedder
from rag.text.figures import read_figures
from rag.text.words import content_words, language_of

_LEAST = 0.2  # of an answer's words that stand in what was found, or in the question
_FEWEST = 4  # words that an answer has to have to be told so

REPEATED = "It said the same to another question."
WARNED = "Nothing that it cites is carried by its source."
ELSEWHERE = "It speaks of nothing that was found."
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
    verdicts = [each.verdict for each in answer.citations]
    if len(verdicts) > 1 and all(each.is_warning for each in verdicts):
        return WARNED
    if any(each.is_certain or each is Verdict.CONTRADICTED for each in verdicts):
        return ""
    language = language_of(answer.text)
    passages = [each.passage for each in sources.values()]
    if any(language_of(each) is not language for each in passages):
        return ""  # another language shares no words
    said, asked = (frozenset(content_words(each, language)) for each in (answer.text, question))
    there = frozenset(word for each in passages for word in content_words(each, language))
    figures = {(each.base, each.dimension) for p in passages for each in read_figures(p)}
    if any((each.base, each.dimension) in figures for each in read_figures(answer.text)):
        return ""
    if len(said) < _FEWEST:
        return ""
    if len(said & there) < _LEAST * len(said):
        known = [read_source(each) for each in sources.values()]
        near = embedder and is_near(
            without_markers(answer.text), tuple(said), known, embedder, least=UNLIKE
        )
        return "" if near else ELSEWHERE
    return BESIDE if not verdicts and asked and said.isdisjoint(asked) else ""


def _repeats(question: str, answer: str, asked: str, said: str) -> bool:
    """Whether it was said before, and has no word of what is asked otherwise now."""
    if _plain(answer) != _plain(said):
        return False
    fresh = set(content_words(question)).difference(content_words(asked))
    return bool(fresh) and fresh.isdisjoint(content_words(answer))


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
