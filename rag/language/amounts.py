"""Read an amount, a date or a time of day as a value, and compare two of them.

Signs, currency, notes and unit are taken off, then the digits are read by their separators. Digits
that two conventions read differently (`1.234`) are not exact unless the caller knows the decimal
sign from the other cells of a column (`decimal_sign`). A text with several figures has no value.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache

from rag.language.lazy_patterns import regex
from rag.language.words import (
    ENGLISH,
    all_meanings,
    all_words,
    any_of,
    meanings,
    phrases,
    read_lists,
)

# A unit's sign to what it measures, and how many base units it is.
DIMENSIONS: dict[str, tuple[str, float]] = {
    sign: (measure, factor)
    for measure, signs in read_lists("units").items()
    for sign, factor in meanings(signs).items()
}
_OTHER_WORDS = {"in", "a", "t", "×"}  # signs that are units only where a language spells them out
# All spellings, in lower case, to the sign.
UNIT_SIGNS: dict[str, str] = {
    sign: sign for sign in DIMENSIONS if sign not in _OTHER_WORDS
} | all_meanings("units")

_TOLERANCE = 1e-6
_ROUNDED = 0.06  # by so much of its value a figure may be off that is called approximate

_DEGREES = {"angle", "warmth", "fahrenheit"}  # degrees that nobody says what of may be any


@dataclass(frozen=True, slots=True)
class Figure:
    """An amount in a text; `text[start:end]` is its number with its unit."""

    value: float
    unit: str = ""  # its sign; "" where none is named
    comparator: str = ""  # one of < <= > >= ~, or ""
    upper: float | None = None  # of a range
    per: str = ""  # "day" of `EUR 42 a day`
    kind: str = "amount"  # amount, ordinal, date, clock, or the closed set that a word is of
    scale: float = 1.0  # a million of `$7 million`: part of the value
    start: int = 0
    end: int = 0

    @property
    def dimension(self) -> str:
        """The measured dimension; amounts of one dimension can be compared."""
        if self.kind != "amount":
            return self.kind
        return DIMENSIONS.get(self.unit, (self.unit, 1.0))[0]

    @property
    def base(self) -> float:
        """The value in the base unit of its dimension."""
        return self.values[0]

    @property
    def ends(self) -> tuple[float, ...]:
        """The value, or both ends of a range."""
        return (self.value,) if self.upper is None else (self.value, self.upper)

    @property
    def values(self) -> tuple[float, ...]:
        """The ends in the base unit of the dimension."""
        factor = DIMENSIONS.get(self.unit, ("", 1.0))[1]
        return tuple(end * factor for end in self.ends)

    @property
    def phrase(self) -> str:
        """The figure as a generated sentence shows it: `12 business days`, `€ 14`, `4–6 h`."""
        if self.kind == "date":
            return _date_shown(self)
        if self.kind not in ("amount", "ordinal", "clock"):
            return self.unit
        if self.kind == "clock":
            return f"{int(self.value)}:{round(self.value % 1 * 60):02d}"
        number = "–".join(map(number_shown, self.ends))
        if self.kind == "ordinal":
            return f"{number}."
        is_word = self.unit.endswith(("day", "week", "month", "year", "night"))
        plural = "s" if is_word and number != "1" else ""
        return f"{number} {self.unit}{plural}".strip()


def agree(figure: Figure, there: Figure) -> bool:
    """Whether a figure of a source supports a stated figure."""
    if figure.scale != there.scale and 1.0 in (figure.scale, there.scale):  # a table in millions
        plain = [replace(one, value=one.value / one.scale) for one in (figure, there)]
        return _agree(*plain) or _agree(figure, there)
    return _agree(figure, there)


def _agree(figure: Figure, there: Figure) -> bool:
    if {figure.kind, there.kind} == {"date", "amount"}:
        return _plain_number(figure) == _plain_number(there) > 0
    if {figure.kind, there.kind} == {"clock", "amount"}:  # `between 7 and 9`
        return figure.value == there.value and not figure.unit and not there.unit
    if not comparable(figure, there) or (figure.per and there.per and figure.per != there.per):
        return False
    if figure.kind == "date":  # parts that only one of them names do not count
        pairs = zip(date_parts(figure), date_parts(there), strict=True)
        return all(one == other or not one or not other for one, other in pairs)
    if figure.upper is not None and there.upper is not None:
        ends = zip(figure.values, there.values, strict=True)
        return all(_equal(one, other, figure) for one, other in ends)
    if figure.unit != there.unit and "" in (figure.unit, there.unit):
        return _agree_without_unit(figure, there)
    return any(_equal(one, other, figure) for one in figure.values for other in there.values)


def _agree_without_unit(figure: Figure, there: Figure) -> bool:
    """Compare a bare number with an amount; `0.8` or four fifths agrees with `80 %`."""
    for bare, share in ((figure, there), (there, figure)):
        if share.unit == "%" and bare.value < 1:
            return _equal(100 * bare.value, share.value, figure)
    return any(_equal(figure.value, other, figure) for other in there.ends)


def date_parts(figure: Figure) -> tuple[int, int, int]:
    """Return the year, month and day of a date; 0 for each part that it does not name."""
    return int(figure.value) // 10000, int(figure.value) // 100 % 100, int(figure.value) % 100


def _plain_number(figure: Figure) -> float:
    """Return a number without a unit, or a year without a day; 0 for any other figure."""
    if figure.kind == "date":
        year, month, day = date_parts(figure)
        return 0.0 if month or day else float(year)
    return 0.0 if figure.unit else figure.value


def comparable(figure: Figure, there: Figure) -> bool:
    """Whether both figures measure the same; a bare number may stand for an amount."""
    if figure.kind != there.kind:
        return False
    if figure.kind != "amount":
        return True
    if "°" in (figure.unit, there.unit) and {figure.dimension, there.dimension} <= _DEGREES:
        return True
    return figure.dimension == there.dimension or "" in (figure.unit, there.unit)


def _equal(one: float, other: float, figure: Figure) -> bool:
    margin = _TOLERANCE * max(1.0, abs(other))
    if figure.comparator == "~":
        margin = max(margin, _ROUNDED * abs(other))
    return abs(one - other) <= margin


def _date_shown(figure: Figure) -> str:
    year, month, day = date_parts(figure)
    called = (name for name, number in ENGLISH.meanings["months"].items() if number == month)
    parts = (str(day or ""), next(called, "").capitalize(), str(year or ""))
    return " ".join(filter(None, parts))


def number_shown(value: float) -> str:
    """Format a number for a generated sentence: `1,500`, `0.5`."""
    return f"{value:,.2f}".rstrip("0").rstrip(".") if value % 1 else f"{int(value):,}"


_MONTHS: dict[str, int] = all_meanings("months")
_HOURS: dict[str, float] = all_meanings("numbers")
_MONTH = rf"(?P<n>{any_of(_MONTHS)})\.?"
_NO_MONTH = all_words("often_no_month")
_NTH = phrases("ordinal_endings")
_AROUND_DAYS = all_words("weekdays") | all_words("around_days")
_WORD = re.compile(r"[^\W\d_]+|\d+")
NUMERIC_DATE = re.compile(
    r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})(?:[T ](\d\d?):(\d\d)(?::(\d\d))?.*)?"
)
_HALVES: dict[str, float] = all_meanings("clock_halves")
_DATES = (
    re.compile(r"(?<![\w.])(?P<y>(?:19|20)\d\d)-(?P<m>\d\d)-(?P<d>\d\d)(?!\d)"),
    re.compile(r"(?<![\w.])(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>(?:19|20)\d\d)(?!\d)"),
    re.compile(rf"\b(?:{phrases('before_days')}) (?P<d>\d{{1,2}})\.(?P<m>\d{{1,2}})\.(?!\d)"),
    re.compile(
        rf"(?<![\w.])(?P<d>\d{{1,2}})(?:{_NTH}|\.)?(?: (?:{phrases('day_of')}))? {_MONTH}\b"
        r"(?:,? (?P<y>(?:19|20)\d\d))?",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b{_MONTH} (?P<d>\d{{1,2}})(?:{_NTH})?\b(?![:.]\d)"
        r"(?:,? (?P<y>(?:19|20)\d\d))?",
        re.IGNORECASE,
    ),
    re.compile(rf"\b{_MONTH} (?P<y>(?:19|20)\d\d)\b", re.IGNORECASE),
    re.compile(  # a year by itself: no `2000 kg`, no `EUR 2000`
        r"(?<![\w.,:/€$£-])(?<!EUR )(?<!USD )(?P<y>(?:19|20)\d\d)"
        rf"(?:{phrases('decade_endings')})?(?![\w%+]|[.,:/]\d|-\d)"
        rf"(?![ \u00a0-](?:{any_of(UNIT_SIGNS)})\b)",
        re.IGNORECASE,
    ),
)
_CLOCK = regex.compile(
    r"(?<![\w.:])(?P<h>\d{1,2}):(?P<m>\d\d)(?![\w:])(?: ?(?P<half>am|pm)\b)?"
    r"|\b(?P<h>\d{1,2}) ?(?P<half>am|pm)\b"
    rf"|\b(?P<h>\d{{1,2}}) ?(?:{phrases('clock_signs')}) ?(?P<m>\d\d)\b"
    rf"|\b(?P<half>{any_of(_HALVES)}) (?P<h>{any_of(_HOURS)}|\d{{1,2}})\b",
    regex.IGNORECASE,
)


def dates(text: str) -> Iterator[Figure]:
    """Yield the dates in a text, with the year if it is named: 20260331.0, or 331.0."""
    taken: list[tuple[int, int]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            if parts.get("n") in _NO_MONTH:  # `years 7 and 8 may leave`
                continue
            month = _MONTHS[parts["n"].lower()] if parts.get("n") else int(parts.get("m") or 0)
            day, year = int(parts.get("d") or 0), int(parts.get("y") or 0)
            span = match.span()
            if month > 12 or day > 31 or any(s < span[1] and span[0] < e for s, e in taken):
                continue
            taken.append(span)
            value = float(year * 10000 + month * 100 + day)
            yield Figure(value, kind="date", start=span[0], end=span[1])


def clocks(text: str) -> Iterator[Figure]:
    """Yield the times of day in a text, in hours."""
    for match in _CLOCK.finditer(text):
        word, half = match["h"].lower(), (match["half"] or "").lower()
        hour = _HOURS[word] if word in _HOURS else int(word)
        if hour <= 24:
            value = hour + int(match["m"] or 0) / 60 + _HALVES.get(half, 0)
            value += 12 * (half == "pm" and hour < 12)
            yield Figure(value, kind="clock", start=match.start(), end=match.end())


def read_date(text: str, *, month_first: bool = False) -> date | datetime | None:
    """Read a date in digits or words with at least month and year; None for anything else."""
    text = text.strip()
    match = NUMERIC_DATE.fullmatch(text)
    try:
        return _from_digits(match, month_first) if match else _from_words(text)
    except ValueError:
        return None


def _from_digits(match: re.Match[str], month_first: bool) -> date | datetime | None:
    a, b, c = int(match[1]), int(match[3]), int(match[4])
    if len(match[1]) == 4:
        year, month, day = a, b, c
    else:
        year, month, day = (c, a, b) if month_first else (c, b, a)
        year += 2000 if year < 70 else 1900 if year < 100 else 0
    if match[5] is None:
        return date(year, month, day)
    moment = datetime(year, month, day, int(match[5]), int(match[6]), int(match[7] or 0))
    return moment if moment.time().isoformat() != "00:00:00" else moment.date()


def _from_words(text: str) -> date | None:
    if len(text) > 40:
        return None
    words = _WORD.findall(
        re.sub(rf"(?<=\d)(?:{phrases('ordinal_endings')})\b", "", text.casefold())
    )
    months = [_MONTHS[word] for word in words if word in _MONTHS]
    numbers = [word for word in words if word.isdecimal()]
    years = [int(number) for number in numbers if len(number) == 4]
    days = [int(number) for number in numbers if len(number) <= 2]
    is_more = set(words) - {*_MONTHS, *numbers, *_AROUND_DAYS} or len(numbers) > 2
    if is_more or len(months) != 1 or len(years) != 1 or len(days) > 1:
        return None
    return date(years[0], months[0], *days or [1])


def is_date(text: str) -> bool:
    """Whether a cell holds only a date."""
    return read_date(text) is not None


MOST_DIGITS = 15  # as many as a float keeps
LONGEST = 120  # characters of a cell that may be a figure
_HINTS = [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C]
_DIRECTIONS = dict.fromkeys(_HINTS)  # marks of the direction of writing
_SPELLED = str.maketrans("’＇٬，．％－\u202f\u2009\u2212٪؉", "''',.%-\u00a0\u00a0-%‰")
_POINTS = ".,٫"
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"

_WORDS = read_lists("figures")
CURRENCIES: dict[str, str] = meanings(_WORDS["signs"])
_SCALES: dict[str, int] = all_meanings("scales")


def _letter_values(name: str) -> dict[str, int]:
    """Return the values of capital letters from a section where case matters."""
    groups = (group.split(":") for group in _WORDS[name].split(";"))
    return {letter.strip(): int(value) for value, some in groups for letter in some.split(",")}


_LETTERS = _letter_values("letters")
LETTERS_OF_MONEY = _letter_values("letters_of_money")
_BEFORE_SIGN = _letter_values("before_signs")
_CODES = frozenset(_WORDS["codes"].split())
_SIGN = (
    rf"(?:\p{{Sc}}|[A-Z]{{1,2}}\$|(?:{any_of(_CODES)})(?!\p{{L}})"
    rf"|(?:{any_of(_WORDS['others'].split())})(?!\p{{L}})\.?)"
)
_EXPONENT = rf"(?:\^[-–]?\d{{1,2}}|[{_RAISED}]+)"
POWER = rf"(?:[\u00a0\ ]?[×xX·⋅*][\u00a0\ ]?10{_EXPONENT}|(?<=(?<!\d)10){_EXPONENT})"
_FIGURE = regex.compile(
    rf"""(?P<bracket>\()?\s*(?P<sign>[-–‐+])?\s*
    (?P<thousands>[kT](?=EUR|\p{{Sc}}))?(?P<before>{_SIGN}|%|‰)?\s*(?P<sign>[-–‐])?\s*
    (?P<digits>(?:\d+(?:[.,٫'\u00a0\ ]\d+)*|\.\d+))
    (?P<power>[eE][-+]?\d{{1,2}}|{POWER})?
    [{_RAISED}]*(?P<tail>.*)""",
    regex.VERBOSE | regex.DOTALL,
)
_NOTES = regex.compile(r"(?:\s*(?:\[[^\[\]]{0,40}\]|\([^()]{0,60}\)|[*†‡§]+))+$")
_HOLDS_FIGURES = regex.compile(r"\d{3}|\d\W+\d")  # of a note: it says more than its own number
_TAIL = regex.compile(
    rf"(?:[\u00a0\ ]?(?:(?P<scale>(?i:{any_of(_SCALES)}))\.?"
    rf"|(?P<letter>{any_of(LETTERS_OF_MONEY)}))(?!\p{{L}}))?"
    rf"(?:[\u00a0\ ]?(?P<prefix>{any_of(_BEFORE_SIGN)})?(?P<after>{_SIGN}))?"
    r"(?P<unit>[\u00a0\ ]?(?:%|‰|[°º′″\"']|°?[\p{L}µ°]{1,14}(?:(?<=m|ft|in)[23]|[²³])?)?"
    r"(?:[\u00a0\ ]?/[\u00a0\ ]?\p{L}{1,9}[23²³]?)?(?:[\u00a0\ ]\p{Ll}{1,8})?)\.?"
    r"(?P<minus>[-–‐])?"
)
_NO_CENTS = regex.compile(r"[.,][-–](?!\d)")  # 1.200,–
_POWER = regex.compile(r"(?:[eE]|10\^?)([-–+]?\d+)$")
_THREES = regex.compile(r"\d{1,3}(?:\D\d{3})+")
_LAKHS = regex.compile(r"\d{1,2}(?:,\d\d)+,\d{3}")
_WRITTEN = regex.compile(r"\d+(?:[.,٫'\u00a0\ ]\d+)*")
_BLANK_GROUPS = regex.compile(r"\D*\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d).*", regex.DOTALL)
_IN_BRACKETS = regex.compile(r"^(\p{Sc})[\u00a0\ ]?\(")  # $(1,178)
_FOUR_DIGITS = regex.compile(r"\d{4}")


@dataclass(frozen=True, slots=True)
class Quantity:
    """One figure that a whole text is."""

    value: Decimal  # with its scale
    unit: str = ""  # as it is written, a currency as its sign
    scale: int = 1
    exact: bool = True  # False: another convention reads the same digits as another number

    @property
    def number(self) -> int | float:
        """The value for a column: an integer if it is written as one."""
        exponent = self.value.as_tuple().exponent
        is_whole = isinstance(exponent, int) and exponent >= 0 and abs(self.value) < 2**53
        return int(self.value) if is_whole else float(self.value)


@lru_cache(maxsize=8192)
def parse_figure(text: str, *, decimal: str = "", blanks: bool = False) -> Quantity | None:
    """Return the figure that a whole text is; None for text, a code or several figures.

    `decimal` is the decimal sign if it is known; with `blanks`, plain blanks separate groups.
    """
    spelled = _IN_BRACKETS.sub(r"(\1", _spelled(text)) if len(text) <= LONGEST else ""
    match = _FIGURE.fullmatch(spelled)
    if not match:
        return None
    signs, tail = match.captures("sign"), match["tail"]
    if match["bracket"]:
        if ")" not in tail:
            return None
        signs, tail = [*signs, "-"], tail.replace(")", "", 1)
    if _NO_CENTS.match(tail):
        decimal, tail = decimal or tail[0], tail[2:]
    rest = _tail(tail, match["before"] or "")
    power = match["power"] or ""
    is_of_ten = power[:1] in tuple("^" + _RAISED)
    read = read_digits("1" if is_of_ten else match["digits"], decimal=decimal, blanks=blanks)
    if rest is None or read is None or len(signs) + len(rest[2]) > 1:
        return None
    unit, scale, minus = rest
    scale *= 1_000 if match["thousands"] else 1
    value = (read[0] * scale).scaleb(power_of("10" * is_of_ten + power))
    return Quantity(
        -value if "".join(signs) + minus not in ("", "+") else value, unit, scale, read[1]
    )


def _spelled(text: str) -> str:
    """Normalise the signs and digits of every script, and remove invisible characters."""
    if text.isascii():
        return text.strip()
    text = text.translate(_DIRECTIONS).translate(_SPELLED).strip(" \t\n\u00a0")
    return "".join(str(int(sign)) if sign.isdecimal() else sign for sign in text)


def power_of(written: str) -> int:
    """Return the power of ten in `× 10^6`, `10⁶` or `e6`; 0 if there is none."""
    plain = written.translate(_SUPERSCRIPT).translate(_SPELLED).replace("–", "-")
    match = _POWER.search(plain)
    return int(match[1]) if match else 0


def _tail(tail: str, before: str) -> tuple[str, int, str] | None:
    """Return unit, scale and trailing sign behind the digits, or None if the rest is no unit."""
    notes = _NOTES.search(tail)
    if notes and _HOLDS_FIGURES.search(notes[0]):
        return None
    match = _TAIL.fullmatch(tail[: notes.start() if notes else None].rstrip())
    signs = {sign_of(unit) for unit in (before, match and match["after"]) if unit}
    if not match or len(signs) > 1:
        return None
    scale = _SCALES[match["scale"].lower()] if match["scale"] else 1
    scale *= _BEFORE_SIGN.get(match["prefix"] or "", 1)
    letter, unit = match["letter"] or "", match["unit"].strip()
    if letter == "T" and match.end("letter") == match.start("after"):
        factor = _BEFORE_SIGN[letter]  # T€
    else:
        is_billion = letter == "B" and match.start("letter") == 0 and not match["unit"]
        is_of_money = is_billion or bool(signs - {"%", "‰"})
        factor = (LETTERS_OF_MONEY if is_of_money else _LETTERS).get(letter, 0)
    if letter and not factor:  # the letter is a unit
        unit = f"{letter} {unit}".strip()
    return signs.pop() if signs else unit, scale * (factor or 1), match["minus"] or ""


def sign_of(unit: str) -> str:
    """Return the sign of a currency or of a word of measure, else the unit as written."""
    plain = unit.strip()
    currency = CURRENCIES.get(plain.casefold()) or (plain if plain in _CODES else "")
    return currency or (UNIT_SIGNS.get(plain.lower(), plain) if len(plain) > 2 else plain)


def read_digits(
    digits: str, *, decimal: str = "", blanks: bool = False
) -> tuple[Decimal, bool] | None:
    """Return the value of digits with separators, and whether every convention agrees on it.

    Return None for codes (00501), versions (3.4.0) and more digits than a float keeps.
    """
    digits = digits.translate(_SPELLED)
    separators = [digit for digit in digits if not digit.isdecimal()]
    if " " in separators and not blanks:
        return None
    whole, fraction, exact = digits, "", True
    last = separators[-1] if separators else " "
    if last in _POINTS and separators.count(last) == 1:
        is_open = _is_open(digits)
        exact = not is_open or bool(decimal)
        if not is_open or (last == decimal if decimal else last != ","):
            whole, _, fraction = digits.rpartition(last)
    kinds = {sign for sign in whole if not sign.isdecimal()}
    if kinds and (len(kinds) > 1 or not (_THREES.fullmatch(whole) or _LAKHS.fullmatch(whole))):
        return None
    plain = "".join(filter(str.isdecimal, whole))
    is_code = plain.startswith("0") and len(plain) > 1
    if is_code or len((plain + fraction).lstrip("0")) > MOST_DIGITS:
        return None
    return Decimal(f"{plain or 0}.{fraction}" if fraction else plain), exact


def _is_open(digits: str) -> bool:
    """Whether a single point or comma may group or be decimal: `1.234`, not `0.234`, `1234.567`."""
    whole, point, fraction = digits.partition("." if "." in digits else ",")
    is_group = whole.isdecimal() and len(whole) <= 3 and not whole.startswith("0")
    return bool(point) and len(fraction) == 3 and is_group


def decimal_sign(texts: Iterable[str]) -> str:
    """Return the decimal sign that a column's unambiguous cells use; "" if they disagree."""
    votes: set[str] = set()
    is_open, lengths = set(), set()
    for text in texts:
        match = _WRITTEN.search(_spelled(text))
        if match is None or parse_figure(text, blanks=True) is None:
            continue
        digits = match[0]
        points = [digit for digit in digits if digit in _POINTS]
        if _is_open(digits):
            is_open.add(points[0])
        elif points:
            votes.add(points[-1] if points.count(points[-1]) == 1 else _other(points[-1]))
        elif digits.isdecimal():
            lengths.add(len(digits))
    if not votes and len(is_open) == 1 and lengths:  # beside 1234 it parts, beside 567 it groups
        sign = is_open.pop()
        return sign if max(lengths) > 3 else _other(sign)
    return votes.pop() if len(votes) == 1 else ""


def _other(sign: str) -> str:
    return "," if sign == "." else "."


def grouped_by_blanks(texts: Sequence[str]) -> bool:
    """Whether plain blanks group digits in a column: in two cells at least, and none denies it."""
    spread = [text for text in texts if _BLANK_GROUPS.fullmatch(text)]
    return len(spread) > 1 and not any(map(_FOUR_DIGITS.search, texts))
