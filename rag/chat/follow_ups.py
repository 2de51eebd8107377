"""Decide whether a question goes on from the last one, and what leads its search.

No list of words says what goes on from the last question, so that any language does that the
embedding model knows. The last question leads each search a little. It is a follow-up where the
section that answered last comes first so, and the question by itself has nothing far better.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rag.citations.markers import cited_numbers, without_markers
from rag.language.names import Name, TypedNames, typed_names
from rag.language.words import QUESTION_WORDS, STOP_WORDS, content_words, phrases, tokens
from rag.records import (
    ChatMessage,
    EarlierTopics,
    Hit,
    Readable,
    Resolution,
    Role,
    Source,
)
from rag.runtime.budget import json_object, reply_soon
from rag.seams import ChatModel
from rag.seams.models import FOLLOW_UP, Patience

LEAD = 0.3  # what the last question counts in a search, by meaning and by words
SILENT = 0.03  # relevance below which a question by itself says nothing
LITTLE = 1  # words that carry meaning, and a question that is silent may lean on the last one
FAR_BETTER = 4.0  # times the odds of another section, and the question stands alone
MAX_QUESTION = 400  # characters; what is longer leaves nothing out
MAX_CONTEXT = 600  # characters of an earlier question
FEW, MOST_AROUND = 3, 8  # words of what nobody knows; of a question that holds but a name
MODEL_TURNS = 3
ANSWER_CHARACTERS = 600  # of each answer that the model is shown
MAX_QUERY_CHARACTERS = 400
MAX_REPLY_TOKENS = 200
_COMMON = STOP_WORDS | QUESTION_WORDS
SOURCE_REFERENCE = re.compile(
    rf"\b(?:{phrases('named_sources')})\s+(?:n[or°]\.?\s*|#)?([1-9]\d{{0,4}})\b", re.IGNORECASE
)
INSTRUCTIONS = """\
Rewrite the user's last question so that it can be understood without the conversation. Put in \
what it leaves out: the product, the person, the attribute, the period. Change nothing else, \
answer nothing, keep the language of the question. If it can be understood alone, repeat it \
word for word. Reply with JSON only: {"question": "<the question>"}"""
Search = Callable[[Resolution], list[Hit]]


@dataclass(frozen=True, slots=True)
class LastTurn:
    """The last turn, as far as a question may go on from it."""

    topic: str = ""  # the question as it stands alone
    source: Source | None = None  # what answered it
    cited: frozenset[str] = frozenset()  # ids of documents
    turns: tuple[tuple[str, str], ...] = ()  # questions with their answers, for a model
    talk: str = ""  # the user's last questions, as they were asked


NO_TURN = LastTurn()


class FollowUps:
    """Resolves questions in the context of their conversation."""

    def __init__(
        self,
        *,
        model: ChatModel | None = None,
        lexicon: Callable[[Readable], Sequence[str]] = lambda readable: (),
        is_word: Callable[[str, Readable], bool] = lambda word, readable: True,
        is_enabled: bool = True,
        patience: Patience = FOLLOW_UP,
    ) -> None:
        """`is_word` tells whether the library has a word, or one that it may be mistyped for."""
        self._model, self._patience = model, patience
        self._lexicon, self._is_word = lexicon, is_word
        self._is_enabled = is_enabled

    def resolve(self, question: str, last: LastTurn, readable: Readable) -> Resolution:
        """Return the question with what leads its search, before anything is searched.

        A name alone ("and the Pro?") takes the place of the name in the last question.
        """
        alone = Resolution(
            question,
            False,
            "unchanged",
            _searched(question),
            source_numbers(question),
            before=EarlierTopics(documents=last.cited),
            earlier=last.topic,
            talk=last.talk,
        )
        if not (self._is_enabled and last.topic and question.strip()):
            return alone
        if self._is_unheard_of(question, readable):
            return alone
        if alone.source_numbers:
            return replace(alone, is_followup=True, before=_topics_before(last))
        names = typed_names(tuple(self._lexicon(readable)))
        renamed = _renamed(question, last.topic, names)
        if renamed:
            resolution = replace(
                alone, query=renamed, is_followup=True, method="rules", searched=_searched(renamed),
                before=_topics_before(last),
            )  # fmt: skip
            return self._rewritten(question, resolution, last)
        return alone if names.find(question) else replace(alone, before=_topics_before(last))

    def search(
        self, question: str, last: LastTurn, resolution: Resolution, search: Search
    ) -> tuple[Resolution, list[Hit]]:
        """Return the hits, and the question joined with the last one if it belongs to it."""
        hits = search(resolution)
        if resolution.method != "unchanged" or not resolution.before.texts or last.source is None:
            return resolution, hits
        text = f"{last.topic} {question}"
        joined = replace(resolution, query=text, is_followup=True, method="rules")
        if len(question) > MAX_QUESTION or resolution.source_numbers:
            return resolution, hits
        is_silent = max((hit.relevance for hit in hits), default=0.0) < SILENT
        if is_silent and len(content_words(question)) > LITTLE:
            return resolution, hits  # it speaks of something that is not there
        if not _belongs(hits, last.source):
            if not is_silent:
                return resolution, hits
            joined = replace(joined, searched=_searched(text))
            hits, alone = search(joined), hits
            if not hits or not _is_in(hits[0], last.source):
                return resolution, alone
        rewritten = self._rewritten(question, joined, last)
        return rewritten, hits if rewritten is joined else search(rewritten)

    def _rewritten(self, question: str, resolution: Resolution, last: LastTurn) -> Resolution:
        """Return a model's rewrite, if there is a model and it replies in time."""
        if self._model is None:
            return resolution
        lines = []
        for earlier, answer in last.turns[-MODEL_TURNS:]:
            lines += [f"User: {earlier}", f"Assistant: {answer[:ANSWER_CHARACTERS]}"]
        lines += ["", f"Last question: {question}"]
        messages = (
            ChatMessage(Role.SYSTEM, INSTRUCTIONS),
            ChatMessage(Role.USER, "\n".join(lines)),
        )
        reply = reply_soon(
            self._model, messages, max_tokens=MAX_REPLY_TOKENS, patience=self._patience
        )
        query = read_reply(reply, question)
        if not query:
            return resolution
        is_other = query != question
        method = "model" if is_other else "unchanged"
        return replace(resolution, query=query, is_followup=is_other, method=method,
                       searched=_searched(query))  # fmt: skip

    def _is_unheard_of(self, question: str, readable: Readable) -> bool:
        """Whether no text and no language has any of the words: `asdf qwer`."""
        words = [word.lowered for word in tokens(question)][: FEW + 1]
        heard_of = (word in _COMMON or self._is_word(word, readable) for word in words)
        return len(words) <= FEW and not any(heard_of)


def topic_of(question: str, resolved: str) -> str:
    """Return the topic of a question: for a resolved follow-up, the one it was put behind."""
    topic = resolved.removesuffix(f" {question}")
    return (topic or question)[:MAX_CONTEXT]


def _belongs(hits: Sequence[Hit], source: Source) -> bool:
    """Whether the section that answered last is found first, and no other is far more likely."""
    if not hits or not _is_in(hits[0], source):
        return False
    there = max(hit.relevance for hit in hits if _is_in(hit, source))
    elsewhere = max((hit.relevance for hit in hits if not _is_in(hit, source)), default=0.0)
    return elsewhere * (1 - there) <= FAR_BETTER * there * (1 - elsewhere)


def _is_in(hit: Hit, source: Source) -> bool:
    section = (source.document_id, source.heading_path)
    return section == (hit.chunk.document_id, hit.chunk.heading_path)


def _topics_before(last: LastTurn) -> EarlierTopics:
    """Return the last question, by meaning and by words, and the documents that answered it."""
    topics = ((_searched(last.topic), LEAD),)
    return EarlierTopics(topics, last.cited)


# ── Names ────────────────────────────────────────────────────────────────────────────────────


def _renamed(question: str, topic: str, names: TypedNames) -> str:
    """Return the last question with its only name replaced by this one; "" if this says more."""
    in_topic = names.find(topic)
    words = [token.lowered for token in tokens(question)]
    if not in_topic or not 0 < len(words) <= MOST_AROUND:
        return ""
    runs = ((a, b) for a in range(len(words)) for b in range(len(words), a, -1))
    for start, end in sorted(runs, key=lambda run: run[0] - run[1]):
        if not _COMMON.issuperset(words[:start] + words[end:]):
            continue
        new, old = _sibling(words[start:end], in_topic, names)
        if new:
            return topic[: old.start] + new + topic[old.end :]
    return ""


def _sibling(words: Sequence[str], in_topic: Sequence[Name], names: TypedNames) -> tuple[str, Name]:
    """Return the product name that some words mean, and the name that it replaces.

    "the Pro" after "Aero 5" is "Aero 5 Pro".
    """
    whole = " ".join(words)
    rated = [
        (len({*new.lower().split()} & {*old.text.lower().split()}), -len(new), old.start, new, old)
        for new in names.with_words(words)
        for old in in_topic
    ]
    whole_names = [pair for pair in rated if pair[3].lower() == whole]
    best = max(whole_names or [pair for pair in rated if pair[0]], default=None)
    return ("", in_topic[0]) if best is None else best[3:]


# ── With a model ─────────────────────────────────────────────────────────────────────────────


def read_reply(reply: str, question: str) -> str:
    """Return the question in a model's reply; "" unless the reply is the requested JSON."""
    match json_object(reply):
        case {"question": str(rewritten), **rest} if not rest and _is_sound(rewritten, question):
            return rewritten.strip()
    return ""


def _is_sound(rewritten: str, question: str) -> bool:
    """Whether a rewrite is one line of fair length without numbers that the user did not name."""
    line = rewritten.strip()
    is_short = len(line) <= max(MAX_QUERY_CHARACTERS, 2 * len(question))
    is_line = bool(line) and "\n" not in line
    return is_line and is_short and set(cited_numbers(line)) <= set(cited_numbers(question))


# ── Numbers ──────────────────────────────────────────────────────────────────────────────────


def source_numbers(question: str) -> tuple[int, ...]:
    """Return the source numbers in a question: "[3]", "[1, 2]", "[2-4]", "source 3"."""
    named = [int(match[1]) for match in SOURCE_REFERENCE.finditer(question)]
    return tuple(dict.fromkeys([*cited_numbers(question), *named]))


def _searched(text: str) -> str:
    return " ".join(without_markers(text).split()) or text
