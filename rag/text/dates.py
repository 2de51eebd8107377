"""Days and times of day in a text."""

import re
from collections.abc import Iterator

from rag.text.amounts import UNIT_SIGNS, Figure
from rag.text.languages import all_meanings, any_of

_MONTHS: dict[str, int] = all_meanings("months")
_HOURS: dict[str, float] = all_meanings("numbers")
_MONTH = rf"(?P<n>{any_of(_MONTHS)})\.?"
_DATES = (
    re.compile(r"(?<![\w.])(?P<y>(?:19|20)\d\d)-(?P<m>\d\d)-(?P<d>\d\d)(?!\d)"),
    re.compile(r"(?<![\w.])(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>(?:19|20)\d\d)(?!\d)"),
    re.compile(r"\b(?:am|bis|ab|zum|vom|den|seit) (?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?!\d)"),
    re.compile(
        rf"(?<![\w.])(?P<d>\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of)? {_MONTH}\b"
        r"(?:,? (?P<y>(?:19|20)\d\d))?",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b{_MONTH} (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d)"
        r"(?:,? (?P<y>(?:19|20)\d\d))?",
        re.IGNORECASE,
    ),
    re.compile(rf"\b{_MONTH} (?P<y>(?:19|20)\d\d)\b", re.IGNORECASE),
    re.compile(  # a year by itself: no `2000 kg`, no `EUR 2000`
        r"(?<![\w.,:/€$£-])(?<!EUR )(?<!USD )(?P<y>(?:19|20)\d\d)(?:s|ern?)?(?![\w%+]|[.,:/]\d|-\d)"
        rf"(?![ \u00a0-](?:{any_of(UNIT_SIGNS)})\b)",
        re.IGNORECASE,
    ),
)
_CLOCK = re.compile(
    r"(?<![\w.:])(\d{1,2}):(\d\d)(?![\w:])(?: ?(am|pm)\b)?|\b(\d{1,2}) ?(am|pm)\b", re.I
)
_HALF_HOUR = re.compile(rf"\b(half past|halb) ({any_of(_HOURS)}|\d{{1,2}})\b", re.IGNORECASE)


def dates(text: str) -> Iterator[Figure]:
    """Day and month, with the year where it stands: 20260331.0, or 331.0."""
    taken: list[tuple[int, int]] = []
    for pattern in _DATES:
        for found in pattern.finditer(text):
            parts = found.groupdict()
            if parts.get("n") == "may":  # `years 7 and 8 may leave`
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
    for found in _HALF_HOUR.finditer(text):
        hour = _HOURS.get(found[2].lower()) or float(found[2])
        value = hour + (0.5 if found[1].lower().startswith("half") else -0.5)
        yield Figure(value, kind="clock", start=found.start(), end=found.end())
    for found in _CLOCK.finditer(text):
        hour = int(found[1] or found[4])
        if hour > 24:
            continue
        half = (found[3] or found[5] or "").lower()
        hour += 12 * (half == "pm" and hour < 12)
        value = hour + int(found[2] or 0) / 60
        yield Figure(value, kind="clock", start=found.start(), end=found.end())
