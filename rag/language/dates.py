"""Days and times of day in a text, and cells that are dates."""

import re
from collections.abc import Iterator
from datetime import date, datetime

import regex

from rag.language.amounts import UNIT_SIGNS, Figure
from rag.language.languages import all_meanings, all_words, any_of, phrases

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
    """Day and month, with the year where it stands: 20260331.0, or 331.0."""
    taken: list[tuple[int, int]] = []
    for pattern in _DATES:
        for found in pattern.finditer(text):
            parts = found.groupdict()
            if parts.get("n") in _NO_MONTH:  # `years 7 and 8 may leave`
                continue
            month = _MONTHS[parts["n"].lower()] if parts.get("n") else int(parts.get("m") or 0)
            day, year = int(parts.get("d") or 0), int(parts.get("y") or 0)
            span = found.span()
            if month > 12 or day > 31 or any(s < span[1] and span[0] < e for s, e in taken):
                continue
            taken.append(span)
            value = float(year * 10000 + month * 100 + day)
            yield Figure(value, kind="date", start=span[0], end=span[1])


def clocks(text: str) -> Iterator[Figure]:
    """Times of day, as hours."""
    for found in _CLOCK.finditer(text):
        told, half = found["h"].lower(), (found["half"] or "").lower()
        hour = _HOURS[told] if told in _HOURS else int(told)
        if hour <= 24:
            value = hour + int(found["m"] or 0) / 60 + _HALVES.get(half, 0)
            value += 12 * (half == "pm" and hour < 12)
            yield Figure(value, kind="clock", start=found.start(), end=found.end())


def read_date(text: str, *, month_first: bool = False) -> date | datetime | None:
    """A date in digits or words, at least with month and year; None for anything else."""
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
    named = [word for word in words if word in _MONTHS]
    numbers = [word for word in words if word.isdecimal()]
    others = [word for word in words if not word.isdecimal() and word not in _MONTHS]
    if len(named) != 1 or set(others) - _AROUND_DAYS:
        return None
    years = [number for number in numbers if len(number) == 4]
    days = [number for number in numbers if len(number) <= 2]
    if len(years) != 1 or len(days) > 1 or len(numbers) > 2:
        return None
    return date(int(years[0]), _MONTHS[named[0]], int(days[0]) if days else 1)


def is_date(text: str) -> bool:
    """Whether a cell is a date and nothing else."""
    return read_date(text) is not None
