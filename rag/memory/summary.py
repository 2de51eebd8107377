"""Compose the summary of the oldest turns: lines in three sections, then two lists.

The sections about the user, the answers and the open questions hold verified lines of a model, else
sentences of the turns. Code alone writes the lists of sources and products: each number and name,
literally as long as both lists fit into half of the history's room. Everything else is found by
recall.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, groupby, islice, takewhile, tee

from rag.citations.markers import cited_numbers, neutralise
from rag.language.names import Lexicon, find_names
from rag.language.words import UNSPACED, language_of
from rag.memory.history import History, SummaryPhrases, fenced
from rag.memory.recall import telling
from rag.memory.verifier import (
    LONGEST,
    SpokenSentence,
    TurnEvidence,
    flat,
    is_taken_out,
)
from rag.records import (
    LineEdit,
    LineMark,
    Quotation,
    Role,
    Summary,
    SummaryLine,
    SummaryReport,
    SummarySection,
)
from rag.seams import TokenCounter

LISTS_SHARE = 0.5  # of the history's room, at most: numbers and names
LISTS_AND_LINES = 0.45  # of it, for both, where lists are short …
LEAST_LINES_SHARE = 0.25  # … and for lines where they are long
WRITTEN_SHARE = 1 / 3  # … and for those that a model wrote: they say more of all that was said
MOST_LINES_SHARE = 0.25  # of it, at most, where turns stand behind them
ABOUT_SHARE, OPEN_SHARE = 0.6, 0.2  # of the lines, as long as answers want room as well
LEFT_OUT = 0.3  # of them, for what a user says where a model wrote nothing of him
INF = float("inf")
NOTES_FROM = 500  # tokens of history from which the summary says what it is
MARGIN = 4  # tokens that texts put together may take more
MOST_MESSAGES = 200  # of the user, and as many answers, that lines are taken from
TAKEN_UP = 0.5  # of the words of a request, by its answer
MOST_MISSES = 20  # lines for which there was no room, before no more are tried
WEIGHED_AT_ONCE = 60  # answers
SUPPORTED, OPEN, WARNED = range(3)
Weigh = Callable[[Sequence[SummaryLine]], Sequence[int]]  # how the statements of each were judged
Documents = Callable[[Sequence[int]], Mapping[int, str]]  # the title of each number's document
_HIRAGANA = re.compile("[\u3041-\u309f]")
_LITERAL = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Room:
    """The tokens that a summary may take, and the tokens of history that its shares refer to."""

    tokens: int
    history: int
    lines: float = MOST_LINES_SHARE  # of the history at most


@dataclass(frozen=True, slots=True)
class SummaryDraft:
    """The verified lines that a model wrote of the turns before `written_to`; empty without one."""

    lines: tuple[SummaryLine, ...] = ()
    written_to: int = 0
    edits: tuple[LineEdit, ...] = ()
    model: str = ""
    problems: tuple[str, ...] = ()
    dropped: int = 0
    calls: int = 0
    tokens: int = 0


NO_SUMMARY_DRAFT = SummaryDraft()


def summarise(
    past: History,
    end: int,
    room: Room,
    draft: SummaryDraft = NO_SUMMARY_DRAFT,
    *,
    documents: Documents = lambda numbers: {},
    weigh: Weigh = lambda lines: [OPEN] * len(lines),
) -> Summary:
    """Mark the turns before `end` as summarised, and compose their summary."""
    began = time.monotonic()
    past.cover(end)
    evidence = past.evidence(past.first, past.covered)
    layout = _SummaryLayout(past.phrases, past.count, room)
    lists = _lists(past, layout, documents)
    layout.weigh(draft.lines, weigh)
    extracted = {  # what matters most first; read as far as there is room
        SummarySection.ABOUT: _of_user(evidence),
        SummarySection.OPEN: _unanswered(evidence),
        SummarySection.ANSWERED: _by_weight(layout, _answers(evidence), weigh),
    }
    chosen = _chosen(layout, draft, extracted, past.count(lists))
    text, quotations = _composed(layout, chosen, lists)
    report = replace(_report(past, chosen, text, draft), seconds=time.monotonic() - began)
    return Summary(
        start=past.first,
        end=past.covered,
        text=text,
        required_numbers=tuple(past.numbers),
        required_names=tuple(past.names),
        report=report,
        tokens=report.tokens_after,
        quotations=quotations,
        lines=chosen,
        model_lines=draft.lines,
        written_to=draft.written_to,
        edits=draft.edits,
    )


# ── Word for word ────────────────────────────────────────────────────────────────────────────


def _new(lines: Iterable[SummaryLine], again: list[SummaryLine]) -> Iterator[SummaryLine]:
    """Yield the lines that mostly say something new; append the others to `again`."""
    before: list[frozenset[str]] = []
    for line in lines:
        words = frozenset(telling(line.text, language_of(line.text)))
        if any(2 * len(words & others) >= len(words) for others in before):
            again.append(line)
        else:
            before.append(words)
            yield line


def _quoted(section: SummarySection, text: str, *messages: int) -> SummaryLine:
    return SummaryLine(section, text, LineMark.QUOTED, messages, tuple(cited_numbers(text)))


def _of_user(evidence: TurnEvidence) -> Iterator[SummaryLine]:
    """Yield the user's sentences that are no questions, the newest message first.

    Last come the sentences that an answer took up: they may be requests that name a person or a
    figure, or the name and the figures of the user.
    """
    users = (index for index in _newest(evidence) if evidence.messages[index].role == Role.USER)
    taken_up: list[SummaryLine] = []
    for user in islice(users, MOST_MESSAGES):
        statements = set(_statements_of_user(evidence, user))
        for sentence in evidence.sentences(user):
            if sentence.asks or not sentence.says_something or len(sentence.text) > LONGEST:
                continue
            line = _quoted(SummarySection.ABOUT, sentence.quotation, user)
            if sentence in statements:
                yield line
            elif _names_something(sentence.text):
                taken_up.append(line)
    yield from taken_up


def _statements_of_user(evidence: TurnEvidence, message: int) -> Iterator[SpokenSentence]:
    """Yield the sentences that are neither a question nor a request (`Tell me about the lease`).

    A request is recognised by its answer, in any language: nothing in its message is a question,
    yet the answer gives numbers, and repeats half of the sentence's words behind the first one (in
    Japanese outside hiragana, which are mostly grammar).
    """
    if evidence.messages[message].role != Role.USER:
        return
    sentences = evidence.sentences(message)
    following = evidence.messages[message + 1 : min(message + 2, evidence.end)]
    is_taken_up = following and following[0].numbers and not any(other.asks for other in sentences)
    answer = following[0].text if is_taken_up else ""
    for sentence in sentences:
        if not sentence.asks and sentence.says_something:
            is_spaced = not UNSPACED.search(sentence.text)
            words = sentence.text.partition(" ")[2] if is_spaced else ""
            stems = telling(words or sentence.text, language_of(sentence.text))
            sought = {word for word in stems if not _HIRAGANA.search(word)}
            shared = sought.intersection(telling(answer, language_of(answer))) if answer else ()
            if not answer or len(shared) < TAKEN_UP * len(sought):
                yield sentence


def _names_something(text: str) -> bool:
    """Whether a text holds a digit or a name; a capital alone is no name if all nouns have one."""
    has_nouns = language_of(text).capitalises_nouns
    names = (name.text for name in find_names(text))
    return any(map(str.isdigit, text)) or any(" " in name or not has_nouns for name in names)


def _answers(evidence: TurnEvidence) -> Iterator[SummaryLine]:
    """Yield for each answer the sentence that answers its question, the newest first.

    Answers to messages in which users say something of themselves come before the rest.
    """
    answers = (m for m in _newest(evidence) if evidence.messages[m].role == Role.ASSISTANT)
    newest = list(islice(answers, MOST_MESSAGES))
    after_statements = (m for m in newest if m and any(_statements_of_user(evidence, m - 1)))
    for answer in dict.fromkeys(chain(after_statements, newest)):
        sentence = _answering(evidence.question(answer), evidence.sentences(answer))
        quoted = evidence.quotation(answer, sentence) if sentence else ""
        if sentence and len(quoted) > LONGEST:
            quoted = sentence.quotation
        if quoted and len(quoted) <= LONGEST:
            yield _quoted(SummarySection.ANSWERED, quoted, answer)


def _answering(question: str, sentences: Sequence[SpokenSentence]) -> SpokenSentence | None:
    """Return the sentence that shares most words with the question.

    A citation counts as half of the words; of equals the first is returned.
    """
    language = language_of(question)
    wanted_words = set(telling(question, language))

    def worth(place: int) -> tuple[float, int]:
        sentence = sentences[place]
        shared = len(wanted_words.intersection(telling(sentence.quotation, language)))
        return shared / max(1, len(wanted_words)) + 0.5 * bool(sentence.numbers), -place

    able = [i for i, sentence in enumerate(sentences) if not sentence.asks or len(sentences) == 1]
    return sentences[max(able, key=worth)] if able else None


def _unanswered(evidence: TurnEvidence) -> Iterator[SummaryLine]:
    """Yield the questions that no answer follows, the newest first."""
    for index in islice(_newest(evidence), MOST_MESSAGES):
        message = evidence.messages[index]
        following = evidence.messages[index + 1 : min(index + 2, evidence.end)]
        is_open = not following or following[0].role == Role.USER or not following[0].text.strip()
        if message.role == Role.USER and is_open:
            for sentence in evidence.sentences(index):
                if sentence.asks and len(sentence.text) <= LONGEST:
                    yield _quoted(SummarySection.OPEN, sentence.quotation, index)


def _newest(evidence: TurnEvidence) -> Iterator[int]:
    return reversed(range(evidence.start, evidence.end))


def _by_weight(
    layout: "_SummaryLayout", lines: Iterator[SummaryLine], weigh: Weigh
) -> Iterator[SummaryLine]:
    """Sort batches of lines: first those that their sources support, last those with warnings."""
    while some := list(islice(lines, WEIGHED_AT_ONCE)):
        layout.weigh(some, weigh)
        yield from sorted(some, key=lambda line: layout.weights.get(line, OPEN))


# ── Chosen ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _SummaryLayout:
    """How the text of a summary is written, and how many tokens that takes."""

    phrases: SummaryPhrases
    count: TokenCounter
    room: Room
    weights: dict[SummaryLine, int] = field(default_factory=dict)

    def weigh(self, lines: Sequence[SummaryLine], weigh: Weigh) -> None:
        """Store how the statements of the lines were judged."""
        self.weights.update(zip(lines, weigh(lines), strict=True))

    @property
    def frame(self) -> int:
        """The tokens around lines and lists."""
        return self.count(fenced(self.notes)) + MARGIN

    @property
    def notes(self) -> str:
        """The note that the summary is only data; with little room only the fence shows it."""
        return f"{self.phrases.notes}\n" if self.room.history >= NOTES_FROM else ""

    def title(self, section: SummarySection) -> str:
        """Return the title of a section."""
        return f"{getattr(self.phrases, section.value)}:\n"

    def line(self, line: SummaryLine) -> str:
        """Return a line as it is sent, with a remark if its verdict is a warning."""
        is_warned = self.weights.get(line) == WARNED
        return f"- {line.text}{f' ({self.phrases.against})' if is_warned else ''}\n"

    def tokens(self, line: SummaryLine) -> int:
        return self.count(self.line(line))


@dataclass(slots=True)
class _LineSelection:
    """Selects lines as long as there is room for them, each once."""

    layout: _SummaryLayout
    left: int
    chosen: list[SummaryLine] = field(default_factory=list)
    _texts: set[str] = field(default_factory=set)
    _sections: set[SummarySection] = field(default_factory=set)

    def take(self, lines: Iterable[SummaryLine], most: float = INF) -> None:
        """Add as many lines as fit, in at most `most` tokens, without those already chosen."""
        spent, misses = 0, 0
        for line in lines:
            is_first = line.section not in self._sections
            title = self.layout.title(line.section) if is_first else ""
            cost = self.layout.tokens(line) + self.layout.count(title)
            key = line.text.casefold()
            if key in self._texts:
                continue
            if cost > self.left or spent + cost > most:
                misses += 1
                if misses > MOST_MISSES:
                    return
                continue
            spent, self.left = spent + cost, self.left - cost
            self.chosen.append(line)
            self._texts.add(key)
            self._sections.add(line.section)


def _chosen(
    layout: _SummaryLayout,
    draft: SummaryDraft,
    extracted: Mapping[SummarySection, Iterator[SummaryLine]],
    listed: int,
) -> tuple[SummaryLine, ...]:
    """Choose the lines that fit: a model's first, then what the model left out.

    A section without such lines is filled with sentences of the turns; so are turns that no model
    has read yet.
    """
    history = layout.room.history
    room = layout.room.tokens - layout.frame - listed
    spare = max(LEAST_LINES_SHARE, LISTS_AND_LINES - listed / max(1, history))
    most = min(layout.room.lines, spare)
    most = max(most, WRITTEN_SHARE) if draft.lines else most
    share = min(room, int(most * history))
    selection = _LineSelection(layout, max(0, share))
    about, answered, opened = SummarySection
    written = {s: [line for line in draft.lines if line.section is s] for s in SummarySection}
    again: list[SummaryLine] = []  # or in the same form of something else: only where room is left
    rest = {s: _new(_left_out(extracted[s], written[s], draft), again) for s in SummarySection}
    user, more, all_of_user = tee(rest[about], 3)
    selection.take(written[about], ABOUT_SHARE * share)
    if draft.lines and not written[about]:
        selection.take(user, LEFT_OUT * share)
    selection.take([*written[opened], *written[answered]])
    spent = sum(layout.tokens(line) for line in selection.chosen if line.section is about)
    selection.take(more, ABOUT_SHARE * share - spent)
    selection.take(rest[opened], OPEN_SHARE * share)
    selection.take(rest[answered])
    selection.take(all_of_user)
    selection.take(again)
    return tuple(line for s in SummarySection for line in selection.chosen if line.section is s)


def _left_out(
    quoted: Iterator[SummaryLine], written: Sequence[SummaryLine], draft: SummaryDraft
) -> Iterator[SummaryLine]:
    """Yield the lines that no line of a model covers, by its messages and its numbers."""
    stated = {number for line in written for number in line.numbers}
    behind = {message for line in written for message in line.messages}
    for line in quoted:
        if is_taken_out(line.text, draft.edits):
            continue
        is_read = bool(written) and all(message < draft.written_to for message in line.messages)
        is_stated = bool(line.numbers) and stated.issuperset(line.numbers)
        if is_read and (is_stated or behind.issuperset(line.messages)):
            continue
        yield replace(line, mark=LineMark.PUT_BACK) if is_read else line


# ── Composed ─────────────────────────────────────────────────────────────────────────────────


def _composed(
    layout: _SummaryLayout, chosen: Sequence[SummaryLine], lists: str
) -> tuple[str, tuple[Quotation, ...]]:
    """Return the text of the summary, and where it quotes which message."""
    body = layout.notes
    for section, lines in groupby(chosen, key=lambda line: line.section):
        body += layout.title(section)
        body += "".join(map(layout.line, lines))
    text = fenced(body + lists).rstrip("\n")
    quotations, position = [], 0
    for line in chosen:
        start = text.find(line.text, position)
        if start >= 0 and line.mark in (LineMark.QUOTED, LineMark.PUT_BACK) and line.messages:
            quotations.append(Quotation(start, start + len(line.text), line.messages[0]))
            position = start + len(line.text)
    return text, tuple(quotations)


def _lists(past: History, layout: _SummaryLayout, documents: Documents) -> str:
    """List each number and name literally if both fit into their share; else numbers as ranges.

    What does not fit even so is left to recall: the longest ranges stay, and the newest names.
    """
    numbers, names = tuple(past.numbers), list(past.names)
    history, room = layout.room.history, layout.room.tokens - layout.frame
    most = min(int(LISTS_SHARE * history), room)
    titles = documents(numbers)
    products = _product_list(layout.phrases, names)
    literal = [_by_document(layout.phrases, numbers, titles)] if any(titles.values()) else []
    for listed in (*literal, _by_document(layout.phrases, numbers, {})):
        if past.count(listed + products) <= most:
            return listed + products
    ranges = _in_ranges(layout.phrases, past.count, numbers, most)
    left = most - past.count(ranges) - past.count(_product_list(layout.phrases, [""]))
    fit = _fitting(past.count, left, (f", {name}" for name in reversed(names)))
    return ranges + _product_list(layout.phrases, names[len(names) - fit :])


def lists_tokens(past: History, history: int) -> int:
    """Estimate the tokens of the lists for a whole conversation, at most their share."""
    digits = sum(2 + len(str(number)) // 3 for number in past.givers.keys() | past.numbers.keys())
    return min(int(LISTS_SHARE * history), digits + past.count(", ".join(past.names)))


def _fitting(count: TokenCounter, room: int, texts: Iterable[str]) -> int:
    """Return how many of the texts fit, from the first on."""
    return sum(1 for _ in takewhile(lambda tokens: tokens <= room, accumulate(map(count, texts))))


def _product_list(phrases: SummaryPhrases, names: Sequence[str]) -> str:
    return f"{phrases.products}: {', '.join(names)}\n" if names else ""


def _by_document(phrases: SummaryPhrases, numbers: Iterable[int], titles: Mapping[int, str]) -> str:
    of_title: dict[str, list[int]] = {}
    for number in numbers:
        of_title.setdefault(neutralise(flat(titles.get(number, ""))), []).append(number)
    listed = (
        f"{title}: {''.join(f'[{n}]' for n in sorted(of_document))}".removeprefix(": ")
        for title, of_document in of_title.items()
    )
    return f"{phrases.sources}: {'; '.join(listed)}\n" if of_title else ""


def _in_ranges(
    phrases: SummaryPhrases, count: TokenCounter, numbers: Iterable[int], room: int
) -> str:
    """Return the longest ranges that fit; recall finds the other numbers."""
    runs = sorted(_runs(numbers), key=len, reverse=True)
    left = room - count(f"{phrases.sources}:  …\n")
    fit = _fitting(count, left, (f", {ranges_of(run)}" for run in runs))
    listed = ranges_of(number for run in runs[:fit] for number in run)
    more = ", …" if fit < len(runs) else ""
    return f"{phrases.sources}: {listed}{more}\n" if fit else ""


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    pairs = groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0])
    return [[number for _, number in run] for _, run in pairs]


def ranges_of(numbers: Iterable[int]) -> str:
    """Format numbers as ranges of any length: `[1]–[57], [60]`."""
    return ", ".join(
        f"[{run[0]}]" if len(run) == 1 else f"[{run[0]}]–[{run[-1]}]" for run in _runs(numbers)
    )


# ── Report ───────────────────────────────────────────────────────────────────────────────────


def _report(
    past: History, lines: Sequence[SummaryLine], text: str, draft: SummaryDraft
) -> SummaryReport:
    """Report how each number and name was kept, and how the lines were made."""
    numbers, names = tuple(past.numbers), tuple(past.names)
    spoken = "\n".join(line.text for line in lines)
    stated, listed = set(cited_numbers(spoken)), {int(n) for n in _LITERAL.findall(text)}
    spell_out = set(cited_numbers(spelled_out(text)))
    recallable = past.recallable
    lexicon = Lexicon(names)
    stated_names, kept_names = lexicon.whole_names(spoken), lexicon.whole_names(text)
    marks = Counter(line.mark for line in lines)
    literally = listed.intersection(numbers)
    ranged = spell_out.intersection(numbers) - literally
    return SummaryReport(
        citations_required=len(numbers),
        citations_kept=len(literally),
        names_required=len(names),
        names_kept=len(kept_names),
        stated_citations=tuple(n for n in numbers if n in stated),
        recallable_citations=tuple(n for n in numbers if n in recallable - stated),
        listed_citations=tuple(n for n in numbers if n not in recallable | stated),
        stated_names=tuple(name for name in names if name in stated_names),
        recallable_names=tuple(name for name in names if name not in stated_names),
        ranged_citations=len(ranged),
        paragraphs=sum(line.section is SummarySection.ANSWERED for line in lines),
        said=sum(line.section is SummarySection.ABOUT for line in lines),
        written=marks[LineMark.WRITTEN],
        quoted=marks[LineMark.QUOTED],
        put_back=marks[LineMark.PUT_BACK],
        unchecked=marks[LineMark.UNCHECKED],
        dropped=draft.dropped,
        tokens_before=past.covered_tokens,
        tokens_after=past.count(text),
        calls=draft.calls,
        model_tokens=draft.tokens,
        model=draft.model if any(line.by_model for line in lines) else "extractive",
        problems=draft.problems,
    )


_RANGE = re.compile(r"\[(\d{1,6})\]–\[(\d{1,6})\]")
MOST_RANGE = 100_000  # numbers


def spelled_out(summary: str) -> str:
    """Return a summary of our own with its ranges as single numbers."""

    def spell_out(match: "re.Match[str]") -> str:
        first, last = int(match[1]), int(match[2])
        if not first < last < first + MOST_RANGE:
            return match[0]
        return "".join(f"[{number}]" for number in range(first, last + 1))

    return _RANGE.sub(spell_out, summary)
