"""Whether one sentence of the turns carries a clause of a summary: code alone, word by word.

Content words may not be added, lost or moved; what is typed (figures with unit, sign, comparison
and range, dates, codes, single letters, negations, limits, may and must) is the same both ways.
Words of framing ("the user asks whether") count for nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from operator import itemgetter

from rag.citations.markers import without_markers
from rag.language.amounts import Figure
from rag.language.figures import read_figures
from rag.language.languages import LANGUAGES, Language, read_lists, words
from rag.language.names import find_names
from rag.language.words import UNSPACED, canonical, is_function_word, language_of, stem, tokens
from rag.memory.evidence import Claim, SpokenSentence, TurnEvidence, read_evidence
from rag.records import LineEdit, SummaryLine

LEAST_ORDER = 0.8  # of shared stems that stand in the same order
SAME_LINE = 0.9  # of stems in common: what a person took out, said again
LEAST_SHARED = 0.5  # of a clause's stems that one message holds: it speaks of something there
MOST_BEHIND = 3  # sentences that a clause without a number is quoted by
MOST_LATER = 400  # messages that may replace a value, or that a line without a number is of
_LISTS = read_lists("framing")


@dataclass(frozen=True, slots=True)
class Wording:
    """What a clause says, taken apart."""

    stems: tuple[str, ...]  # in order
    figures: tuple[tuple[object, ...], ...]
    codes: tuple[str, ...]
    qualifiers: tuple[tuple[str, str], ...]  # sorted: the word, and what stands behind it

    @property
    def typed(self) -> tuple[object, ...]:
        return (self.figures, self.codes, self.qualifiers)

    @property
    def is_typed(self) -> bool:
        """Whether it holds a figure or a code, so that half of it may not be wrong."""
        return bool(self.figures or self.codes)


@lru_cache(maxsize=8192)
def read_wording(text: str, language: Language) -> Wording:
    """The words of a clause; its markers are none."""
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
    """`Vega 7`, `Room 12`: a plain number behind a word that is written large."""
    before = _WORD_BEFORE.search(text[max(0, figure.start - 40) : figure.start])
    is_plain = figure.kind == "amount" and not figure.unit and figure.upper is None
    return is_plain and before is not None and before[0][0].isupper()


def _kinds(text: str, lowered: str, place: int, language: Language) -> Iterator[tuple[str, str]]:
    """A token as a code, a qualifier or stems; nothing for what says nothing."""
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
    """`can't` as `can` and `not`; German and French ones by their stems."""
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
    """A sentence of a message that a clause may rest on."""

    message: int
    sentence: SpokenSentence
    claim: Claim


@dataclass(frozen=True, slots=True)
class Verifier:
    """Holds clauses against the turns as they were at one moment."""

    evidence: TurnEvidence

    # ── With a number ────────────────────────────────────────────────────────────────────────

    def witnesses(self, number: int, pointed: Sequence[int] = ()) -> list[Witness]:
        """The sentences that give a number: of the turns that a line points to, then the newest."""
        giving = self.evidence.giving(number)
        order = sorted(giving, key=lambda index: (index not in pointed, -index))
        return [
            Witness(index, sentence, claim)
            for index in order
            for sentence in self.evidence.sentences(index)
            for claim in sentence.claims
            if number in claim.numbers
        ]

    def carrying(self, clause: str, number: int, pointed: Sequence[int] = ()) -> Witness | None:
        """The sentence that carries a clause beside this number, of a value that still holds."""
        for witness in self.witnesses(number, pointed):
            if self._carries(clause, witness) and self.replacement(clause, witness) is None:
                return witness
        return None

    def nearest(self, clause: str, number: int, pointed: Sequence[int] = ()) -> Witness | None:
        """The sentence of a number that shares most with a clause, or what replaced its value."""
        witnesses = self.witnesses(number, pointed)
        if not witnesses:
            return None
        best = max(witnesses, key=lambda witness: shared(clause, witness.claim.text))
        return self.replacement(best.claim.text, best) or best

    def _carries(self, clause: str, witness: Witness) -> bool:
        sentence, question = witness.sentence, self.evidence.question(witness.message)
        language = language_of(sentence.quotation)
        is_one = len(sentence.claims) == 1
        wording = read_wording(sentence.text if is_one else witness.claim.text, language)
        return carries(
            read_wording(clause, language), wording, sentence.setting, question, language
        )

    def replacement(self, clause: str, witness: Witness) -> Witness | None:
        """A later sentence with another value of just this."""
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

    def spoken_of(self, clause: str, pointed: Sequence[int] = ()) -> tuple[int | None, bool]:
        """The message that a clause without a number speaks of, and whether a sentence carries it.

        None where it speaks of nothing, or where what is typed in it stands nowhere so.
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

    def nearest_message(self, clause: str, pointed: Sequence[int] = ()) -> int | None:
        """The message that shares most with a clause, at least half, whatever is typed in it."""
        shares = (
            (shared(clause, self.evidence.messages[message].text), message)
            for message in self._by_pointing(pointed)
        )
        most, best = max(shares, key=itemgetter(0), default=(0.0, 0))
        return best if most >= LEAST_SHARED else None

    def newer_value(self, line: SummaryLine, since: int) -> Witness | None:
        """A sentence of the messages since then that has another value of what a line says."""
        position = max(since - 1, *line.messages, -1)
        nothing = SpokenSentence(line.text)
        return self.replacement(line.text, Witness(position, nothing, Claim(line.text)))

    def sentences_behind(self, clause: str, message: int) -> list[SpokenSentence]:
        """Of a message that which shares most with a clause, then those that share what is left."""
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
    """Whether a sentence says what a clause says, and the clause all that the sentence does.

    Without `is_whole` the clause may leave content words out, but nothing that is typed.
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
        same_codes = codes == theirs or (not theirs and not codes)
        if figures == clause.figures and same_codes and qualifiers == clause.qualifiers:
            # what limits the lead-in limits what it leads in
            return {q for q, _ in around.qualifiers} <= {q for q, _ in clause.qualifiers}
    return False


def _names_of(question: str, language: Language) -> frozenset[str]:
    """The words of the names in a question, as stems and codes."""
    words = (token for name in find_names(question) for token in tokens(name.text))
    keys: set[str] = set()
    for token in words:
        keys |= {token.lowered, canonical(stem(token.lowered, language.code))}
    return frozenset(keys)


def _order(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """The share of the stems in common that stand in the same order."""
    common = set(ours) & set(theirs)
    one = [our for our in ours if our in common]
    other = [their for their in theirs if their in common]
    return _longest_common(one, other) / len(one) if one else 1.0


def _longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    row = [0] * (len(other) + 1)
    for ours in one:
        before = 0
        for index, theirs in enumerate(other, start=1):
            here = row[index]
            row[index] = before + 1 if ours == theirs else max(row[index], row[index - 1])
            before = here
    return row[-1]


def _replaces(ours: Wording, theirs: Wording) -> bool:
    """Whether the same is said there with other figures of the same kinds."""
    if len(theirs.figures) < len(ours.figures) or ours.codes != theirs.codes:
        return False
    pairs = list(zip(ours.figures, theirs.figures, strict=False))
    is_alike = all((one[0], one[2]) == (other[0], other[2]) for one, other in pairs)
    differ = sum(one != other for one, other in pairs)
    return is_alike and differ == 1 and set(ours.stems) <= set(theirs.stems)


def is_typed(text: str) -> bool:
    """Whether a clause holds a figure or a code: then it is no matter of style."""
    return read_wording(text, language_of(text)).is_typed


def is_excusable(clause: str, quoted: str) -> bool:
    """Whether only content words differ: what is typed is the same both ways."""
    language = language_of(quoted)
    return read_wording(clause, language).typed == read_wording(quoted, language).typed


def shared(clause: str, text: str) -> float:
    """The share of a clause's stems, figures and codes that a text holds."""
    language = language_of(text)
    one = _things(read_wording(clause, language))
    return len(one & _things(read_wording(text, language))) / max(1, len(one))


def _things(wording: Wording) -> set[object]:
    return {*wording.stems, *wording.figures, *wording.codes}


def _spoken_share(clause: str, text: str) -> float:
    """The share of a clause's stems that a message holds; 0 where what is typed differs."""
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
    """Whether a person corrected or took out what this says."""
    return any(
        shared(text, edit.original) >= SAME_LINE and shared(edit.original, text) >= SAME_LINE
        for edit in edits
        if text != edit.text
    )
