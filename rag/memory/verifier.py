"""Decide whether one sentence of the turns supports a clause of a summary, by code alone.

Content words may not be added, lost or moved; what is typed (figures with unit, sign, comparison
and range, dates, codes, single letters, negations, limits, may and must) is the same both ways.
Words of framing ("the user asks whether") count for nothing.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from operator import itemgetter

from rag.citations.markers import without_markers
from rag.citations.statements import Statement, depends, read_statements
from rag.language.amounts import Figure
from rag.language.figures import read_figures
from rag.language.names import find_names
from rag.language.sentences import asks, leads_in
from rag.language.words import (
    LANGUAGES,
    UNSPACED,
    Language,
    canonical,
    is_function_word,
    language_of,
    read_lists,
    stem,
    tokens,
    words,
)
from rag.memory.recall import size, telling
from rag.records import LineEdit, Role, SummaryLine

WHOLE = 200  # bytes of a message that is quoted whole
LONGEST = 600  # characters of a quotation; what is longer is no line of a summary
LEAST = 24  # bytes of a user's sentence that says something by itself
_QUOTATION = re.compile(r"[ \t]*\n\s*>")
_PARAGRAPH_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+#|]|\d+[.)]))")
_BOLD_LEVEL = 7  # of a heading without a sign of its level
_QUOTE_SIGNS = re.compile(r"(?m)^[ \t]*>[> ]*")
LEAST_WORDS = 4  # of one that says something in fewer
MOST_SENTENCES = 200  # of one message


@dataclass(frozen=True, slots=True)
class Claim:
    """The text that some numbers support in a sentence; without numbers, a whole sentence."""

    text: str
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """A sentence, entry or row of a message, with the text that limits it or leads it in."""

    text: str
    setting: str = ""  # headings, the lead-in, the sentence that it leans on
    claims: tuple[Claim, ...] = ()
    asks: bool = False
    leans: bool = False  # it says nothing without the question before its message
    paragraph: str = ""  # a short one whole: what goes on behind a sentence may limit it

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers in the sentence, each once."""
        return tuple(dict.fromkeys(n for claim in self.claims for n in claim.numbers))

    @property
    def says_something(self) -> bool:
        """Whether it is more than a word of thanks: `Ours are from 1987`, `I am Marta Lind`."""
        has_figure = any(map(str.isdigit, self.text))
        return has_figure or size(self.text) >= LEAST or len(self.text.split()) >= LEAST_WORDS

    @property
    def quotation(self) -> str:
        """The sentence on one line, whole, with its setting."""
        return f"{self.setting} {self.text}".strip()


@lru_cache(maxsize=4096)
def read_evidence(text: str) -> tuple[SpokenSentence, ...]:
    """Return the sentences, entries and rows of a message in canonical spelling."""
    results: list[SpokenSentence] = []
    headings: list[tuple[int, str]] = []  # the level of each, and what it says
    statements = read_statements(text)[:MOST_SENTENCES]
    for before, statement, behind in zip(
        [None, *statements], statements, [*statements[1:], None], strict=False
    ):
        line = flat(text[statement.start : statement.end])
        level = _heading_level(text, statement, behind)
        if level:
            headings = [heading for heading in headings if heading[0] < level]
            headings.append((level, line.strip("#*_: ")))
        elif _stands_over_quotation(text, statement):
            headings = [(1, without_markers(line).rpartition(" › ")[2].strip())]
        elif statement.kind in ("sentence", "entry", "row") and line:
            led = _lead(text, before, statement)
            path = [name for _, name in headings if name and name not in led]
            last = results[-1] if results else None
            results.append(_sentence(text, statement, [*map("{} ›".format, path), led], last))
    return tuple(results)


def _heading_level(text: str, statement: Statement, behind: Statement | None) -> int:
    """Return the level of a heading, also of an underlined one; 0 if it is none."""
    line = text[statement.start : statement.end].lstrip(" \t>")
    if statement.kind == "heading":
        return len(line) - len(line.lstrip("#")) or _BOLD_LEVEL
    is_underlined = (
        behind is not None
        and (statement.kind, behind.kind) == ("sentence", "rule")
        and text[statement.end : behind.start].count("\n") == 1
    )
    return 2 if is_underlined and "\n" not in line else 0


def _lead(text: str, before: Statement | None, statement: Statement) -> str:
    lead = statement.lead_in
    if lead and lead.end <= statement.start:
        return flat(text[lead.start : lead.end])
    is_next = before is not None and text[before.end : statement.start].count("\n") <= 1
    if before is None or not is_next or before.kind != "sentence":
        return ""
    line = flat(text[before.start : before.end])
    return line if leads_in(line) else ""


def _stands_over_quotation(text: str, statement: Statement) -> bool:
    """Whether a line names the place of the quotation below it, as in our own answers."""
    is_quoted = text[statement.start : statement.end].lstrip().startswith(">")
    return not is_quoted and bool(_QUOTATION.match(text, statement.end))


def _sentence(
    text: str, statement: Statement, setting: list[str], before: SpokenSentence | None
) -> SpokenSentence:
    line = flat(text[statement.start : statement.end])
    needs = statement.kind == "sentence" and depends(line)
    if needs and before is not None:
        setting = [before.quotation]
    claims = tuple(
        Claim(flat(text[part.start : part.end]), part.numbers) for part in statement.parts
    )
    paragraph = ""
    if statement.kind == "sentence":  # the paragraph from the sentence on
        end = _PARAGRAPH_END.search(text, statement.end)
        paragraph = flat(text[statement.start : end.start() if end else len(text)])
    return SpokenSentence(
        line,
        " ".join(filter(None, setting)),
        claims or (Claim(line),),
        asks=asks(line),
        leans=needs and before is None,
        paragraph=paragraph if size(paragraph) <= WHOLE else "",
    )


def flat(text: str) -> str:
    """Return the text on one line, without quotation signs."""
    return " ".join(_QUOTE_SIGNS.sub("", text).split())


@dataclass(frozen=True, slots=True)
class SpokenMessage:
    """A message of the conversation as evidence."""

    role: str
    text: str  # in canonical spelling
    numbers: tuple[int, ...] = ()  # that count in it


@dataclass(frozen=True, slots=True)
class TurnEvidence:
    """A snapshot of a conversation's messages, for callers that hold no lock.

    The messages `[start, end)` are summarised; later ones may replace a value.
    """

    messages: Sequence[SpokenMessage]
    start: int
    end: int
    base: int = 0  # the first message that is held in memory
    older: Callable[[int], Sequence[int]] = lambda number: ()  # those before it that give a number

    def sentences(self, message: int) -> tuple[SpokenSentence, ...]:
        """Return the sentences of one message."""
        return read_evidence(self.messages[message].text)

    def question(self, message: int) -> str:
        """Return the question before an answer; "" if no question stands there."""
        if message < 1 or self.messages[message].role == Role.USER:
            return ""
        before = self.messages[message - 1]
        return flat(before.text) if before.role == Role.USER else ""

    def giving(self, number: int) -> list[int]:
        """Return the messages before `end` that hold a number, oldest first."""
        newest = range(self.base, self.end)
        return [
            *self.older(number),
            *(position for position in newest if number in self.messages[position].numbers),
        ]

    def quotation(self, message: int, sentence: SpokenSentence) -> str:
        """Return a sentence word for word with what limits it; short answers are quoted whole."""
        text = self.messages[message].text
        is_answer = self.messages[message].role != Role.USER
        question, needs_question = self.question(message), sentence.leans
        # Only sentences: numbers in code would count on one line.
        if (
            is_answer
            and size(text) <= WHOLE
            and all(statement.kind == "sentence" for statement in read_statements(text))
        ):
            quoted = flat(text)
            needs_question = any(s.leans for s in self.sentences(message))
        elif is_answer and sentence.paragraph:
            quoted = f"{sentence.setting} {sentence.paragraph}".strip()
        else:
            quoted = sentence.quotation
        is_short = is_answer and size(quoted) <= WHOLE // 2
        if question and is_short and not needs_question:
            language = language_of(question)
            words = set(telling(question, language))
            needs_question = words.isdisjoint(telling(quoted, language))
        return f"{question} → {quoted}" if question and needs_question else quoted


LEAST_ORDER = 0.8  # of shared stems that stand in the same order
SAME_LINE = 0.9  # of stems in common: what a person took out, said again
LEAST_SHARED = 0.5  # of a clause's stems that one message holds: it speaks of something there
MOST_BEHIND = 3  # sentences that a clause without a number is quoted by
MOST_LATER = 400  # messages that may replace a value, or that a line without a number is of
_LISTS = read_lists("framing")


@dataclass(frozen=True, slots=True)
class Wording:
    """The parts of a clause that are compared."""

    stems: tuple[str, ...]  # in order
    figures: tuple[tuple[object, ...], ...]
    codes: tuple[str, ...]
    qualifiers: tuple[tuple[str, str], ...]  # sorted: the word, and what stands behind it

    @property
    def typed(self) -> tuple[object, ...]:
        return (self.figures, self.codes, self.qualifiers)

    @property
    def is_typed(self) -> bool:
        """Whether it holds a figure or a code: then half of it must not be wrong."""
        return bool(self.figures or self.codes)


@lru_cache(maxsize=8192)
def read_wording(text: str, language: Language) -> Wording:
    """Read the wording of a clause, without its citation markers."""
    plain = without_markers(text)
    figures = [
        figure for figure in read_figures(plain, language) if not _is_in_a_name(plain, figure)
    ]
    stems: list[str] = []
    codes: list[str] = []
    qualifiers: list[tuple[str, int]] = []
    every = list(tokens(plain))
    spans = [(figure.start, figure.end) for figure in figures]
    for place, token in enumerate(every):
        if any(start < token.end and token.start < end for start, end in spans):
            if "/" in token.text:  # no figure is read whole there: `1/2 litre`
                codes.append(token.lowered)
            continue
        for kind, word in _kinds(token.text, token.lowered, place, language):
            if kind == "qualifier":
                qualifiers.append((word, place + 1))
            else:
                (codes if kind == "code" else stems).append(word)
    behind = [
        (word, stem(every[position].lowered, language.code) if position < len(every) else "")
        for word, position in qualifiers
    ]
    return Wording(tuple(stems), tuple(map(_key, figures)), tuple(codes), tuple(sorted(behind)))


_WORD_BEFORE = re.compile(r"[^\W\d_][\w-]*[ \u00a0]$")


def _is_in_a_name(text: str, figure: Figure) -> bool:
    """Whether a figure is a plain number behind a capitalised word: `Vega 7`, `Room 12`."""
    before = _WORD_BEFORE.search(text[max(0, figure.start - 40) : figure.start])
    is_plain = figure.kind == "amount" and not figure.unit and figure.upper is None
    return is_plain and before is not None and before[0][0].isupper()


def _kinds(text: str, lowered: str, place: int, language: Language) -> Iterator[tuple[str, str]]:
    """Yield a token as code, qualifiers or stems; nothing for function and framing words."""
    if any(map(str.isdigit, lowered)):
        yield "code", lowered
    elif len(text) == 1 and text.isupper() and text.isascii() and (place or text not in "AI"):
        yield "code", text
    elif UNSPACED.search(lowered):
        yield from (("stem", a + b) for a, b in zip(lowered, lowered[1:] or " ", strict=False))
    elif lowered in _framing():
        return
    elif qualifiers := _qualifiers(lowered, language):
        yield from (("qualifier", word) for word in qualifiers)
    elif not is_function_word(lowered, language):
        yield "stem", stem(lowered, language.code)


@cache
def _framing() -> frozenset[str]:
    return frozenset[str]().union(*map(words, _LISTS["framing"].values()))


_QUALIFYING = ("negations", "limits", "universal", "restricting", "refusals", "lacking", "telling")


@cache
def _qualifying(code: str) -> frozenset[str]:
    language = next(language for language in LANGUAGES if language.code == code)
    every = (language.words.get(name, frozenset()) for name in _QUALIFYING)
    modal = words(_LISTS["modal"].get(code, ""))
    return frozenset[str]().union(*every, modal) - words(_LISTS["linking"]["any"])


def _qualifiers(lowered: str, language: Language) -> tuple[str, ...]:
    """Return the qualifiers in a word: `can't` is `can` and `not`; German, French ones by stem."""
    if lowered in ("cannot", "can't", "cant"):
        return ("can", "not")
    if lowered.endswith("n't"):
        bare = lowered.removesuffix("n't")
        return (bare, "not") if bare in _qualifying("en") else ("not",)
    for code in dict.fromkeys((language.code, "en")):
        if lowered in _qualifying(code):
            return (stem(lowered, code) if code != "en" else lowered,)
    return ()


def _key(figure: Figure) -> tuple[object, ...]:
    ends = tuple(round(end, 6) for end in figure.ends)
    return (figure.kind, ends, figure.unit, figure.comparator, figure.per)


# ── Carried ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Witness:
    """A sentence of a message that may support a clause."""

    message: int
    sentence: SpokenSentence
    claim: Claim


@dataclass(frozen=True, slots=True)
class Verifier:
    """Compares clauses with a snapshot of the turns."""

    evidence: TurnEvidence

    # ── With a number ────────────────────────────────────────────────────────────────────────

    def witnesses(self, number: int, pointed: Sequence[int]) -> list[Witness]:
        """Return the sentences that give a number: of the `pointed` messages, then the newest."""
        giving = self.evidence.giving(number)
        order = sorted(giving, key=lambda index: (index not in pointed, -index))
        return [
            Witness(index, sentence, claim)
            for index in order
            for sentence in self.evidence.sentences(index)
            for claim in sentence.claims
            if number in claim.numbers
        ]

    def carrying(self, clause: str, number: int, pointed: Sequence[int]) -> Witness | None:
        """Return a sentence that supports a clause with this number and still holds, or None."""
        for witness in self.witnesses(number, pointed):
            sentence, language = witness.sentence, language_of(witness.sentence.quotation)
            support = sentence.text if len(sentence.claims) == 1 else witness.claim.text
            is_carried = carries(
                read_wording(clause, language),
                read_wording(support, language),
                sentence.setting,
                self.evidence.question(witness.message),
                language,
            )
            if is_carried and self.replacement(clause, witness) is None:
                return witness
        return None

    def nearest(self, clause: str, number: int, pointed: Sequence[int]) -> Witness | None:
        """Return the sentence with a number that shares most with a clause, or its replacement."""
        witnesses = self.witnesses(number, pointed)
        if not witnesses:
            return None
        best = max(witnesses, key=lambda witness: shared(clause, witness.claim.text))
        return self.replacement(best.claim.text, best) or best

    def replacement(self, clause: str, witness: Witness) -> Witness | None:
        """Return a later sentence that gives another value for the same, or None."""
        language = language_of(clause)
        ours = read_wording(clause, language)
        if not ours.figures or not ours.stems:
            return None
        last = min(len(self.evidence.messages), witness.message + 1 + MOST_LATER)
        for position in reversed(range(witness.message + 1, last)):
            for sentence in self.evidence.sentences(position):
                for claim in sentence.claims:
                    if _replaces(ours, read_wording(claim.text, language)):
                        return Witness(position, sentence, claim)
        return None

    # ── Without one ──────────────────────────────────────────────────────────────────────────

    def spoken_of(self, clause: str, pointed: Sequence[int]) -> tuple[int | None, bool]:
        """Return the message that an unnumbered clause is of, and whether a sentence supports it.

        The message is None if no message shares half of the clause, or if its typed values differ.
        """
        best, most = None, 0.0
        for index in self._by_pointing(pointed):
            sentences = self.evidence.sentences(index)
            for sentence in sentences:
                language = language_of(sentence.quotation)
                ours = read_wording(clause, language)
                theirs = read_wording(sentence.text, language)
                if carries(ours, theirs, sentence.setting, "", language, is_whole=False):
                    return index, True
            share = _spoken_share(clause, self.evidence.messages[index].text)
            if share > most:
                best, most = index, share
        return (best, False) if most >= LEAST_SHARED else (None, False)

    def _by_pointing(self, pointed: Sequence[int]) -> list[int]:
        every = range(self.evidence.start, self.evidence.end)
        newest = (position for position in reversed(every) if position not in pointed)
        return [
            *(position for position in pointed if position in every),
            *islice(newest, MOST_LATER),
        ]

    def nearest_message(self, clause: str, pointed: Sequence[int]) -> int | None:
        """Return the message that shares at least half of a clause and most of it, or None.

        Typed values may differ.
        """
        shares = (
            (shared(clause, self.evidence.messages[message].text), message)
            for message in self._by_pointing(pointed)
        )
        most, best = max(shares, key=itemgetter(0), default=(0.0, 0))
        return best if most >= LEAST_SHARED else None

    def newer_value(self, line: SummaryLine, since: int) -> Witness | None:
        """Return a sentence from message `since` on with another value for a line, or None."""
        position = max(since - 1, *line.messages, -1)
        nothing = SpokenSentence(line.text)
        return self.replacement(line.text, Witness(position, nothing, Claim(line.text)))

    def sentences_behind(self, clause: str, message: int) -> list[SpokenSentence]:
        """Return up to `MOST_BEHIND` sentences of a message that cover most of a clause."""
        left = list(self.evidence.sentences(message))
        missing = _things(read_wording(clause, language_of(clause)))
        chosen: list[SpokenSentence] = []
        while left and len(chosen) < MOST_BEHIND:
            things = {
                sentence: _things(read_wording(sentence.text, language_of(sentence.quotation)))
                for sentence in left
            }
            best = max(left, key=lambda sentence: len(missing & things[sentence]))
            if chosen and not missing & things[best]:
                break
            chosen.append(best)
            left.remove(best)
            missing -= things[best]
        return sorted(chosen, key=self.evidence.sentences(message).index)


def carries(
    clause: Wording,
    sentence: Wording,
    setting: str,
    question: str,
    language: Language,
    *,
    is_whole: bool = True,
) -> bool:
    """Whether a sentence says what a clause says, and the clause all that the sentence says.

    Without `is_whole` the clause may omit content words, but no typed value.
    """
    around = read_wording(setting, language) if setting else _NOTHING
    names = (
        _names_of(question, language) if not sentence.codes and not around.codes else frozenset()
    )
    stems = {*map(canonical, (*sentence.stems, *around.stems)), *names}
    if not stems.issuperset(map(canonical, clause.stems)) or not (clause.stems or clause.is_typed):
        return False
    if is_whole and not set(map(canonical, sentence.stems)) <= set(map(canonical, clause.stems)):
        return False
    if _order(clause.stems, (*around.stems, *sentence.stems)) < LEAST_ORDER:
        return False
    return _same_typed(clause, sentence, around, names)


_NOTHING = Wording((), (), (), ())


def _same_typed(clause: Wording, sentence: Wording, around: Wording, names: frozenset[str]) -> bool:
    codes = tuple(code for code in clause.codes if code not in names)
    for figures, theirs, qualifiers in (
        (sentence.figures, sentence.codes, sentence.qualifiers),
        (
            (*around.figures, *sentence.figures),
            (*around.codes, *sentence.codes),
            tuple(sorted((*around.qualifiers, *sentence.qualifiers))),
        ),
    ):
        if (figures, theirs, qualifiers) == (clause.figures, codes, clause.qualifiers):
            # what limits the lead-in limits what it leads in
            return {q for q, _ in around.qualifiers} <= {q for q, _ in clause.qualifiers}
    return False


def _names_of(question: str, language: Language) -> frozenset[str]:
    """Return the words of the names in a question, as stems and codes."""
    words = (token for name in find_names(question) for token in tokens(name.text))
    keys: set[str] = set()
    for token in words:
        keys |= {token.lowered, canonical(stem(token.lowered, language.code))}
    return frozenset(keys)


def _order(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """Return the share of the common stems that stand in the same order."""
    from rapidfuzz.distance import LCSseq

    common = set(ours) & set(theirs)
    one = [stem for stem in ours if stem in common]
    other = [stem for stem in theirs if stem in common]
    return LCSseq.similarity(one, other) / len(one) if one else 1.0


def _replaces(ours: Wording, theirs: Wording) -> bool:
    """Whether the other wording says the same with one other figure of the same kind."""
    if len(theirs.figures) < len(ours.figures) or ours.codes != theirs.codes:
        return False
    pairs = list(zip(ours.figures, theirs.figures, strict=False))
    is_alike = all((one[0], one[2]) == (other[0], other[2]) for one, other in pairs)
    differ = sum(one != other for one, other in pairs)
    return is_alike and differ == 1 and set(ours.stems) <= set(theirs.stems)


def is_typed(text: str) -> bool:
    """Whether a clause holds a figure or a code, so that a difference is no matter of style."""
    return read_wording(text, language_of(text)).is_typed


def is_excusable(clause: str, quoted: str) -> bool:
    """Whether only content words differ, while the typed values are the same."""
    language = language_of(quoted)
    return read_wording(clause, language).typed == read_wording(quoted, language).typed


def shared(clause: str, text: str) -> float:
    """Return the share of a clause's stems, figures and codes that a text holds."""
    language = language_of(text)
    one = _things(read_wording(clause, language))
    return len(one & _things(read_wording(text, language))) / max(1, len(one))


def _things(wording: Wording) -> set[object]:
    return {*wording.stems, *wording.figures, *wording.codes}


def _spoken_share(clause: str, text: str) -> float:
    """Return the share of a clause's stems that a message holds; 0 if typed values differ."""
    language = language_of(text[:4000])
    ours = read_wording(clause, language)
    if not ours.stems:
        return 0.0
    wordings = [read_wording(sentence.text, language) for sentence in read_evidence(text)]
    typed = {
        thing
        for wording in wordings
        for thing in (*wording.figures, *wording.codes, *wording.qualifiers)
    }
    if not typed.issuperset((*ours.figures, *ours.codes, *ours.qualifiers)):
        return 0.0
    stems = {one for wording in wordings for one in wording.stems}
    return len(stems.intersection(ours.stems)) / len(set(ours.stems))


def is_taken_out(text: str, edits: Sequence[LineEdit]) -> bool:
    """Whether a person corrected or deleted a line that says the same."""
    return any(
        shared(text, edit.original) >= SAME_LINE and shared(edit.original, text) >= SAME_LINE
        for edit in edits
        if text != edit.text
    )
