"""The one grammar of figures: what a cell or a word of a text says as a number, to the last digit.

Plan: signs, currency, notes and unit are taken off, the digits are read by what separates them.
What two conventions read differently (`1.234`) is not exact unless the caller knows the decimal
sign, which the other cells of a column tell (`decimal_sign`). More than one figure is none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from rag.language.amounts import UNIT_SIGNS
from rag.language.languages import all_meanings, any_of, meanings, read_lists
from rag.language.lazy_patterns import regex

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


def _letters(name: str) -> dict[str, int]:
    """Of the sections of capitals, whose case tells."""
    groups = (group.split(":") for group in _WORDS[name].split(";"))
    return {letter.strip(): int(value) for value, some in groups for letter in some.split(",")}


_LETTERS = _letters("letters")
LETTERS_OF_MONEY = _letters("letters_of_money")
_BEFORE_SIGN = _letters("before_signs")
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
    """One figure that was read whole."""

    value: Decimal  # with its scale
    unit: str = ""  # as it is written, a currency as its sign
    scale: int = 1
    exact: bool = True  # False: another convention reads the same digits as another number

    @property
    def number(self) -> int | float:
        """For a column: an integer where it is written as one."""
        exponent = self.value.as_tuple().exponent
        is_whole = isinstance(exponent, int) and exponent >= 0 and abs(self.value) < 2**53
        return int(self.value) if is_whole else float(self.value)


@lru_cache(maxsize=8192)
def parse_figure(text: str, *, decimal: str = "", blanks: bool = False) -> Quantity | None:
    """The figure that a text is, nothing left over; None where it is text, a code or several.

    `decimal` is the decimal sign where it is known, `blanks`: plain blanks separate groups.
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
    """One spelling of signs and digits of every script, nothing that is not seen."""
    if text.isascii():
        return text.strip()
    text = text.translate(_DIRECTIONS).translate(_SPELLED).strip(" \t\n\u00a0")
    return "".join(str(int(sign)) if sign.isdecimal() else sign for sign in text)


def power_of(written: str) -> int:
    """The power of ten that `× 10^6`, `10⁶` or `e6` says; 0 of nothing."""
    plain = written.translate(_SUPERSCRIPT).translate(_SPELLED).replace("–", "-")
    match = _POWER.search(plain)
    return int(match[1]) if match else 0


def _tail(tail: str, before: str) -> tuple[str, int, str] | None:
    """Unit, scale and trailing sign behind the digits."""
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
    value = _letter_scale(letter, match, is_money=bool(signs - {"%", "‰"}))
    if letter and not value:
        unit = f"{letter} {unit}".strip()
    return signs.pop() if signs else unit, scale * (value or 1), match["minus"] or ""


def _letter_scale(letter: str, match: "regex.Match[str]", *, is_money: bool) -> int:
    """What a letter multiplies by; 0 where it is a unit."""
    if letter == "T" and match.end("letter") == match.start("after"):
        return _BEFORE_SIGN[letter]  # T€
    is_billion = letter == "B" and match.start("letter") == 0 and not match["unit"]
    return (LETTERS_OF_MONEY if is_money or is_billion else _LETTERS).get(letter, 0)


def sign_of(unit: str) -> str:
    """The sign of a currency, of a word of measure its sign, else the unit as written."""
    plain = unit.strip()
    currency = CURRENCIES.get(plain.casefold()) or (plain if plain in _CODES else "")
    return currency or (UNIT_SIGNS.get(plain.lower(), plain) if len(plain) > 2 else plain)


def read_digits(
    digits: str, *, decimal: str = "", blanks: bool = False
) -> tuple[Decimal, bool] | None:
    """The value of digits with what separates them, and whether no other convention reads another.

    Codes (00501), versions (3.4.0) and what has more digits than a float keeps are none.
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
    """Whether one point or comma may group or part: `1.234`, but not `0.234`, `1234.567`."""
    whole, point, fraction = digits.partition("." if "." in digits else ",")
    is_group = whole.isdecimal() and len(whole) <= 3 and not whole.startswith("0")
    return bool(point) and len(fraction) == 3 and is_group


def decimal_sign(texts: Iterable[str]) -> str:
    """The decimal sign of a column by the cells that leave no choice; "" where they disagree."""
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
    """Whether a column agrees that a plain blank groups: two cells at least, none of them not."""
    spread = [text for text in texts if _BLANK_GROUPS.fullmatch(text)]
    return len(spread) > 1 and not any(map(_FOUR_DIGITS.search, texts))
