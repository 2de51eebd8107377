"""The vocabulary of questions over tables, from `rows.toml`, and the parsing of questions."""

import re
import unicodedata
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from rag.language.amounts import UNIT_SIGNS, parse_figure, read_date
from rag.language.words import all_meanings, all_words, language_of, meanings
from rag.language.words import stem as text_stem
from rag.records import ColumnType, TableColumn
from rag.tables.plan import ROW_WORDS, Filter, Op, Part

LONGEST_EXAMPLE = 80  # longest example value in a profile, in characters
MOST_WORDS = 4_000  # of one table, for search
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
WORD = re.compile(r"[^\W_]+(?:[.'’][^\W_]+)*")
COUNTED = re.compile(ROW_WORDS["names"]["counted"], re.IGNORECASE)
NAMING = frozenset(ROW_WORDS["names"]["naming"].split())


def normalised(text: str) -> str:
    """Return lower-case words without accents, trade marks and punctuation, to compare texts."""
    decomposed = unicodedata.normalize("NFKD", text.replace("™", "").casefold())
    bare = "".join(char for char in decomposed if not unicodedata.combining(char))
    return " ".join(WORD.findall(bare.replace("'", "").replace("’", "")))


def spelled_words(name: str) -> str:
    """Return a column's name as words: "maxHeight", "Number.of.Bags" and "n_covers" are several."""
    return normalised(CAMEL.sub(" ", name).replace(".", " "))


def is_identifier(column: TableColumn) -> bool:
    """Return whether a column's figures are identifiers, whose sum has no meaning."""
    words = column.name.casefold().replace("_", " ").replace(".", " ").split()
    return not COUNTED.search(column.name) and not NAMING.isdisjoint(words)


def searchable_words(
    names: Iterable[str], columns: Sequence[TableColumn], texts: Iterable[str]
) -> str:
    """Return the words by which a table can be found."""
    results: dict[str, None] = {}
    for text in (*names, *(column.name for column in columns), *texts):
        results.update(dict.fromkeys(normalised(text).split()))
        if len(results) > MOST_WORDS:
            break
    return " ".join(results)


def table_words(name: str, row_count: int, columns: Sequence[TableColumn]) -> str:
    """Describe a table in words; embedded for a long table."""
    lines = [f"Table {name}: {row_count:,} rows, {len(columns)} columns."]
    for column in columns:
        unit = f" in {column.unit}" if column.unit else ""
        span = f", from {column.low} to {column.high}" if column.low else ""
        samples = ", ".join(column.examples[:6])
        lines.append(
            f"- {column.name}: {column.type}{unit}, {column.distinct:,} different{span}"
            + (f", such as {samples}" if samples else "")
        )
    return "\n".join(lines)


_FIGURES = ROW_WORDS["figures"]
PARTS = {word: Part(name) for name, words in ROW_WORDS["parts"].items() for word in words.split()}
FIGURES = frozenset({ColumnType.NUMBER, ColumnType.DURATION})
ORDERED = FIGURES | {ColumnType.DATE, ColumnType.QUARTER}


def _expressions(section: str) -> dict[tuple[str, ...], str]:
    return {
        tuple(part.split()): name
        for name, text in ROW_WORDS[section].items()
        for part in text.split(";")
    }


CUES = _expressions("cues")
COMPARED = _expressions("compared")
CHANGES: dict[str, list[tuple[str, ...]]] = {
    name: [tuple(part.split()) for part in text.split(";")]
    for name, text in ROW_WORDS["changes"].items()
}
EXISTS = CHANGES["exists"][0]
LONGEST_SAID = max(map(len, (*CUES, *COMPARED)))
THAN = frozenset(ROW_WORDS["adjectives"]["than"].split())
IDLE = frozenset(map(normalised, all_words("idle_over_rows")))
MONTHS = {normalised(word): number for word, number in all_meanings("months").items()}
ORDINALS = {normalised(word): number for word, number in all_meanings("ordinals").items()}
_SPELLED = {normalised(word): value for word, value in all_meanings("numbers").items()}
NUMBERS = {word: int(value) for word, value in _SPELLED.items() if value < 100}
SCALES: dict[str, int] = meanings(_FIGURES["scales"])
UNITS = {normalised(word): sign for word, sign in UNIT_SIGNS.items()} | meanings(_FIGURES["units"])
UNITS.pop("", "")  # units written in symbols only
RANKS = frozenset(_FIGURES["ranks"].split())
NOT_ADDED = frozenset(_FIGURES["not_added"].split())
BRACKETS = re.compile(r"\s*[\[(][^\])]*[\])]")
PRICED = frozenset(_FIGURES["prices"].split())


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective such as "tallest": its direction, and what it measures."""

    up: bool
    measures: tuple[str, ...] = ()
    degree: str = "plain"  # or "more", "most"


def _adjectives() -> dict[str, Adjective]:
    adjectives: dict[str, Adjective] = {}
    for line in ROW_WORDS["adjectives"]["lines"].strip().splitlines():
        sign, measures, forms = line.split("|")
        for form in forms.split():
            most = form.endswith("est") or form.endswith("ste")
            degree = "most" if most else "more" if form.endswith("er") else "plain"
            made = Adjective(sign == "+", tuple(measures.split()), degree)
            adjectives |= dict.fromkeys([form + e for e in ("", *"nrsm") if most or not e], made)
    for name in ("up", "down"):
        ends = ROW_WORDS["adjectives"][name].split()
        for form in ends:
            named_measures = adjectives.get(form, Adjective(True)).measures
            adjectives[form] = Adjective(name == "up", named_measures, "most")
    return adjectives


ADJECTIVES = _adjectives()


def is_end(word: str) -> bool:
    """Return whether a word asks for the highest or lowest: "most", "cheapest"."""
    return word in ADJECTIVES and ADJECTIVES[word].degree == "most"


# ── A question ───────────────────────────────────────────────────────────────────────────────

_THOUSANDS = re.compile(r"(?<=\d)[,'](?=\d{3}\b)")
_GERMAN = re.compile(r"\b\d{1,3}(?:\.\d{3})+(?:,\d+)\b|\b\d{1,3}(?:\.\d{3}){2,}\b|\b\d+,\d{1,2}\b")
_GERMAN_THOUSANDS = re.compile(r"\b\d{1,3}\.\d{3}\b(?!\.)")
_DAYS = re.compile(r"\b(?:\d{4}-\d\d?-\d\d?|\d\d?\.\d\d?\.\d{4}|\d\d?/\d\d?/\d{4})\b")
_DAY_OF = re.compile(r"\b(\d\d?)\. (?=[^\W\d])")
_GLUED = re.compile(r"\b(\d+(?:\.\d+)?)([a-z€$£%²]{1,4}\d?)\b")
_IS = re.compile(rf"\b({'|'.join(_FIGURES['contracted'].split())})['’]s\b")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)$")


def words_of(question: str) -> list[str]:
    """Return the words of a question in normal form; figures and days in one notation."""
    text = _IS.sub(r"\1 is", question.casefold())
    text = _DAYS.sub(_day, text)
    text = _GERMAN.sub(lambda match: match[0].replace(".", "").replace(",", "."), text)
    if language_of(question).code == "de":
        text = _GERMAN_THOUSANDS.sub(lambda match: match[0].replace(".", ""), text)
    text = _THOUSANDS.sub("", _DAY_OF.sub(r"\1 ", text))
    text = _GLUED.sub(_apart, text)
    return normalised(text.replace("#", " # ").replace("%", " percent ")).split()


def _day(match: re.Match[str]) -> str:
    day = read_date(match[0])
    return day.strftime("%Y.%m.%d") if day else match[0]


def _apart(match: re.Match[str]) -> str:
    """Split "32GB" into two words; a code such as "24X" stays one."""
    figure, unit = match.groups()
    is_unit = normalised(unit) in UNITS or normalised(unit) in SCALES
    return f"{figure} {unit}" if is_unit else match[0]


def number_in(word: str) -> float | int | None:
    """Return the figure in digits or words; None for any other word."""
    ordinal = _ORDINAL.match(word)
    if ordinal:
        return int(ordinal[1])
    if word in NUMBERS:
        return NUMBERS[word]
    if re.fullmatch(r"\d{1,15}(?:\.\d+)?", word):
        return float(word) if "." in word else int(word)
    return None


def ordinal_in(word: str) -> int:
    """Return 1 for "first" and "1st"; 0 for any other word."""
    match = _ORDINAL.match(word)
    return int(match[1]) if match else ORDINALS.get(word, 0)


def expression_at(
    words: Sequence[str], position: int, expressions: dict[tuple[str, ...], str]
) -> tuple[int, str]:
    """Return the length and meaning of the longest expression at a position; (0, "") if none."""
    for length in range(min(LONGEST_SAID, len(words) - position), 0, -1):
        meaning = expressions.get(tuple(words[position : position + length]))
        if meaning is not None:
            return length, meaning
    return 0, ""


def is_idle(word: str) -> bool:
    """Return whether a word carries no meaning, in any of its forms."""
    return word in IDLE or word.removesuffix("s") in IDLE


def stems(word: str) -> tuple[str, ...]:
    """Return the word stemmed as English and as German."""
    if not word.isalpha():
        return (word,)
    return tuple(dict.fromkeys((text_stem(word), _german_stem(word))))


def _german_stem(word: str) -> str:
    """Stem "Kurse" and "Kurs" alike, which takes two steps."""
    stemmed = text_stem(word, "de")
    return word if stemmed == word else _german_stem(stemmed)


# ── Columns ──────────────────────────────────────────────────────────────────────────────────


def is_of_money(column: TableColumn) -> bool:
    """Return whether a column's figures are in a currency."""
    return column.type is ColumnType.NUMBER and bool(column.unit) and column.unit in "€$£¥₹CHF"


def has_unit(column: TableColumn, unit: str) -> bool:
    """Return whether a column can hold figures in this unit."""
    column_unit = UNITS.get(normalised(column.unit), column.unit).casefold()
    inner = BRACKETS.findall(column.name)
    unit_word = normalised(inner[0] if inner else spelled_words(column.name).rpartition(" ")[2])
    is_named = unit == UNITS.get(unit_word)
    return column.type in FIGURES and (column_unit == unit.casefold() or is_named)


def numbers_rows(column: TableColumn, rows: int) -> bool:
    """Return whether a column only numbers the rows: 1, 2, 3 …"""
    return column.distinct == rows and column.high in (str(rows), str(rows - 1))


def is_mixed(column: TableColumn) -> bool:
    """Return whether a column has figures in several units: "3 kg" and "200 g"."""
    figures = (text for text in column.examples if re.search(r"\d", text))
    return len({_unit_of(text).casefold() for text in figures}) > 1


def _unit_of(text: str) -> str:
    """Return the unit without the scale: `$1.2B` and `$300M` are in dollars."""
    figure = parse_figure(text)
    return figure.unit if figure else re.sub(r"[\d.,\s+-]", "", text)


def has_years(column: TableColumn) -> bool:
    """Return whether a column's figures are years, whatever its name."""
    if column.type is not ColumnType.NUMBER or column.decimals or not column.low:
        return False
    return float(column.low) >= 1000 and 1500 <= float(column.high) <= 2200


def is_priced(word: str) -> bool:
    """Return whether a word asks for a price, so for the only money column."""
    return word in PRICED


def is_rank(column: TableColumn) -> bool:
    """Return whether the lowest figure of a column is the best."""
    return column.name.casefold().strip(". ") in RANKS


def is_added(column: TableColumn) -> bool:
    """Return whether a sum of this column has a meaning."""
    if column.type is not ColumnType.NUMBER or column.unit == "%":
        return False
    words = spelled_words(column.name).split()
    if any(word in NOT_ADDED or word.removesuffix("s") in NOT_ADDED for word in words):
        return False
    return not (is_identifier(column) or is_rank(column) or has_years(column))


def is_hinted(column: TableColumn, hint: str) -> bool:
    """Return whether a word of the column's name is what an adjective measures."""
    hint_words = set(stems(hint.removeprefix("-")))
    return any(hint_words & set(stems(word)) for word in spelled_words(column.name).split())


def measured_by(adjective: Adjective, columns: Sequence[TableColumn]) -> list[TableColumn]:
    """Return the columns that an adjective measures, by its most specific hint that fits."""
    for hint in adjective.measures:
        fitting = [
            column
            for column in columns
            if column.type in ORDERED
            and (is_of_money(column) if hint == "$" else is_hinted(column, hint))
        ]
        if fitting:
            exact = [c for c in fitting if hint.removeprefix("-") == normalised(c.name)]
            return exact or fitting
    if {"year", "-year", "date", "-date"}.isdisjoint(adjective.measures):
        return []
    times = [c for c in columns if c.type is ColumnType.DATE or has_years(c)]
    return times if len(times) == 1 else []


def goes_down(adjective: Adjective, column: TableColumn) -> bool:
    """Return whether the order is falling: the oldest have the lowest year, the best rank 1."""
    is_turned = any(hint[0] == "-" and is_hinted(column, hint) for hint in adjective.measures)
    dated = column.type in (ColumnType.DATE, ColumnType.QUARTER) or has_years(column)
    is_turned |= dated and "age" in adjective.measures
    by_rank = is_rank(column) and not adjective.measures
    return adjective.up != (is_turned or by_rank)


def changes_in(words: Sequence[str], *names: str) -> list[tuple[int, int, str]]:
    """Return where the words express these changes: (start, end, name) with `end` excluded."""
    results = []
    for name in names:
        for phrase in CHANGES[name]:
            for position in range(len(words) - len(phrase) + 1):
                is_there = phrase == ("there",) and position > 0 and words[position - 1] in EXISTS
                if tuple(words[position : position + len(phrase)]) == phrase and not is_there:
                    results.append((position, position + len(phrase), name))
    return sorted(results)


DRAWINGS = {"bar": "bar", "line": "line", "pie": "share", "table": "none", "chart": "auto"}


def drawing_in(words: Sequence[str]) -> tuple[str, set[int]]:
    """Return the requested chart, and the positions of the words that request it."""
    changes = changes_in(words, *DRAWINGS)
    names = {name for _, _, name in changes}
    drawn = next((DRAWINGS[name] for name in DRAWINGS if name in names), "")
    return drawn, {position for start, end, _ in changes for position in range(start, end)}


# ── Whether rows are asked for at all ────────────────────────────────────────────────────────

_WORD = re.compile(r"[^\W_]+")
_OF_ROWS = ("count", "sum", "much", "average", "median", "distinct", "share", "spread", "group")


def name_words(question: str) -> set[str]:
    """Return words of operations that are part of a name: the "Max" of "Pro Max".

    They follow a capitalised word or a figure.
    """
    written, is_english = _WORD.findall(question), language_of(question).code == "en"
    names = {
        word.casefold()
        for before, word in pairwise(written)
        if word[0].isupper() and (is_english or before[0].isupper() or before.isdigit())
    }
    return {word for word in names if word in ADJECTIVES or (word,) in CUES}


def without_cues(question: str) -> str:
    """Return the question without its operation: "total revenue" becomes "revenue"."""
    words, left, position = words_of(question), list[str](), 0
    while position < len(words):
        length = expression_at(words, position, CUES)[0]
        left += [] if length else [words[position]]
        position += length or 1
    return " ".join(left)


def may_ask_rows(question: str) -> bool:
    """Return whether the words allow that the question is over rows."""
    names = name_words(question)
    words = [word for word in words_of(question) if word not in names]
    senses = (expression_at(words, position, CUES)[1] for position in range(len(words)))
    is_drawn = bool(changes_in(words, "chart", "bar", "line", "pie"))
    return is_drawn or any(sense in _OF_ROWS for sense in senses) or any(map(is_end, words))


@dataclass(frozen=True, slots=True)
class Time:
    """A time named by the words `[start, end)`; 0 stands for a part that is not named."""

    start: int
    end: int
    year: int = 0
    quarter: int = 0
    month: int = 0
    day: int = 0

    def parts(self) -> Iterator[tuple[Part, int]]:
        """Yield the named parts, the smallest first."""
        parts = {Part.DAY: self.day, Part.MONTH: self.month, Part.QUARTER: self.quarter}
        yield from ((part, value) for part, value in parts.items() if value)
        if self.year:
            yield Part.YEAR, self.year

    def days(self, year: int) -> tuple[date, date]:
        """Return the first and the last day, within a year."""
        first = self.month or 3 * self.quarter - 2 if self.quarter or self.month else 1
        last = self.month or 3 * self.quarter or 12
        end = self.day or monthrange(year, last)[1]
        return date(year, first, self.day or 1), date(year, last, end)


def time_at(words: Sequence[str], position: int) -> Time | None:
    """Return the time that begins at a word, or None."""
    time = _single_day(words, position) or _month_or_quarter(words, position)
    if time is None:
        year = _year(words, position)
        return Time(position, position + 1, year) if year else None
    if time.year:
        return time
    end = time.end + (words[time.end : time.end + 1] in (["of"], ["in"], ["des"]))
    year = _year(words, end)
    return Time(position, end + 1, year, time.quarter, time.month, time.day) if year else time


def _year(words: Sequence[str], position: int) -> int:
    word = words[position] if position < len(words) else ""
    return int(word) if len(word) == 4 and word.isdigit() and 1500 <= int(word) <= 2100 else 0


def _single_day(words: Sequence[str], position: int) -> Time | None:
    """Parse "10 January", "March 5th", or a day in figures, which `words_of` writes 2024.01.10."""
    numbers = words[position].split(".")
    if [len(number) for number in numbers] == [4, 2, 2] and "".join(numbers).isdigit():
        year, month, day = map(int, numbers)
        return Time(position, position + 1, year, 0, month, day)
    end = position + 1 + (words[position + 1 : position + 2] == ["of"])
    follows = words[end] if end < len(words) else ""
    for number_word, named, last in (
        (words[position], follows, end + 1),
        (follows, words[position], position + 2),
    ):
        number = ordinal_in(number_word) or number_in(number_word) or 0
        if named in MONTHS and len(named) > 2 and number in range(1, 32):
            return Time(position, last, 0, 0, MONTHS[named], int(number))
    return None


def _month_or_quarter(words: Sequence[str], position: int) -> Time | None:
    word, follows = words[position], words[position + 1] if position + 1 < len(words) else ""
    if word in MONTHS and len(word) >= 3:
        return Time(position, position + 1, month=MONTHS[word])
    if len(word) == 2 and word[0] == "q" and word[1] in "1234":
        return Time(position, position + 1, quarter=int(word[1]))
    number = ordinal_in(word)
    if follows in ("quarter", "quartal", "quartals") and 1 <= number <= 4:
        return Time(position, position + 2, quarter=number)
    return None


# ── Of which column ──────────────────────────────────────────────────────────────────────────


def columns_of(columns: Sequence[TableColumn], time: Time) -> list[TableColumn]:
    """Return the columns that can hold this time."""
    if time.quarter:
        quarters = [c for c in columns if c.type is ColumnType.QUARTER]
        if quarters:
            return quarters
    if time.year and not (time.quarter or time.month):
        years = [c for c in columns if has_years(c)]
        years += [c for c in columns if c.type is ColumnType.QUARTER and len(c.high) > 1]
        if years:
            return years
    return [c for c in columns if c.type is ColumnType.DATE]


def conditions_of(
    column: TableColumn, time: Time, op: Op, columns: Sequence[TableColumn]
) -> list[Filter]:
    """Return the conditions that a time means for a column; none where it cannot express it."""
    if column.type is ColumnType.NUMBER:
        return [Filter(column.name, op, (time.year,))]
    if column.type is ColumnType.QUARTER:
        return _of_quarter(column, time, op, columns)
    if op is Op.IS and not time.day:
        return [Filter(column.name, op, (value,), part) for part, value in time.parts()]
    if time.year and not (time.quarter or time.month):
        return [Filter(column.name, op, (time.year,), Part.YEAR)]
    spanned = {column.low[:4], column.high[:4]}
    year = time.year or (int(spanned.pop()) if len(spanned) == 1 else 0)
    if year and time.day > monthrange(year, time.month or 1)[1]:
        return []  # 30 February
    if year:
        return list(between_days(column.name, *time.days(year), op))
    parts = list(time.parts())
    if len(parts) > 1 and op is not Op.IS:
        return []
    return [Filter(column.name, op, (value,), part) for part, value in parts]


def between_days(column: str, first: date, last: date, op: Op) -> Iterator[Filter]:
    """Yield bounds by day: after a month is after its last day, since a year from its first."""
    following = str(last + timedelta(days=1))
    if op is Op.IS and first == last:
        yield Filter(column, Op.IS, (str(first),))
    if op in (Op.AT_LEAST, Op.LESS):
        yield Filter(column, op, (str(first),))
    if op is Op.MORE:
        yield Filter(column, Op.AT_LEAST, (following,))
    if op is Op.AT_MOST:
        yield Filter(column, Op.LESS, (following,))


def _of_quarter(
    column: TableColumn, time: Time, op: Op, columns: Sequence[TableColumn]
) -> list[Filter]:
    """Return conditions on a quarter column, whose year may be in a column of its own."""
    if time.month or op is not Op.IS:
        return []
    quarter = [Filter(column.name, op, (time.quarter,), Part.QUARTER)] if time.quarter else []
    if not time.year:
        return quarter
    if len(column.high) > 1:
        return [*quarter, Filter(column.name, op, (time.year,), Part.YEAR)]
    years = [Filter(column.name, op, (time.year,)) for column in columns if has_years(column)]
    return [*quarter, *years] if len(years) == 1 else []
