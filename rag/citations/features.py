"""What a statement is made of, as far as two statements can be compared by words alone."""

import re
from dataclasses import dataclass
from functools import lru_cache

from rag.text.names import find_names

_WORD = re.compile(r"[^\W\d_][^\W_]*(?:[-'’][^\W_]+)*")
_FIGURE = re.compile(
    r"(?P<sign>[$€£¥]\s?|(?<![\w.])[-−+±<>~≤≥]\s?)?"
    r"(?<![\w.])(?P<value>\d{1,3}(?:[,\u00a0\u202f’']\d{3})+(?:\.\d+)?|\d+(?:[.,:/]\d+)*)"
    r"(?:[\s\u00a0\u202f-]?(?P<unit>[A-Za-zµΩ°%€$£¥][A-Za-z²³°]{0,11}(?:/[A-Za-z]{1,4})?))?"
)
_CODE = re.compile(r"(?=[^\W_]*[^\W\d_])(?=[^\s]*\d)[^\W_]+(?:[-./_][^\W_]+)*")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|without|cannot|neither|nor|nothing|lacks?|unable|nicht|kein\w*|ohne|nie|"
    r"ne|pas|sans|jamais|sin|nunca|non|senza)\b|n[’']t\b|不|没|無|ない|非",
    re.IGNORECASE,
)
_NUMBER_WORDS = {
    **dict(
        zip(
            (
                "two",
                "three",
                "four",
                "five",
                "six",
                "seven",
                "eight",
                "nine",
                "ten",
                "eleven",
                "twelve",
            ),
            map(str, range(2, 13)),
            strict=True,
        )
    ),
    "zwei": "2",
    "drei": "3",
    "vier": "4",
    "fünf": "5",
    "half": "0.5",
}


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_STOP = _set("""
    a an the and or but of to in on at by for with from as is are was were be been being it its this
    that these those which who whose what when where how than then there their they them he she his
    her you your we our us i me my do does did has have had having can could will would shall should
    may might must also so such very more most much many some any each every all both either about
    into over under up out per according source sources see says said say states stated stating
    mentions mentioned shows noted notes user asked assistant answered if while because since
    however additionally furthermore moreover
    der die das ein eine und oder ist sind war im den dem des zu mit für von auf es er sie
""")
# Units are compared in the first of their spellings; another word after a number is a word.
_UNIT_SPELLINGS = """
    g gram grams; kg kilogram kilograms kilos; mg milligrams; lb lbs pound pounds; oz ounce ounces;
    h hour hours hr hrs std; min minute minutes mins; s second seconds sec secs;
    ms millisecond milliseconds; day days tag tage; week weeks; month months monate;
    year years yr yrs jahre; m meter meters metre metres; km kilometers kilometres;
    cm centimeter centimeters centimetre centimetres; in inch inches; ft feet foot;
    mm millimeter millimeters millimetre millimetres; % percent pct prozent;
    $ usd dollar dollars; € eur euro euros; £ gbp; ¥ yen jpy; w watt watts; kw kilowatt kilowatts;
    wh; kwh; v volt volts; a amp amps ampere; ma; mah; ah; hz hertz; khz; mhz megahertz;
    ghz gigahertz; b byte bytes; kb; mb megabyte megabytes; gb gigabyte gigabytes;
    tb terabyte terabytes; mbps mbit/s; gbps gbit/s; kbps; db dba decibel decibels;
    l liter liters litre litres; ml milliliters; °c celsius; °f fahrenheit; ° degree degrees;
    px pixel pixels; dpi; ppi; rpm; lm lumen lumens; lux; nits nit; nm; bar; psi; fps;
    mp megapixel megapixels; x times fold; pa; kpa; hpa; j
"""
_UNITS = {
    spelling: spellings.split()[0]
    for spellings in _UNIT_SPELLINGS.split(";")
    for spelling in spellings.split()
}


@dataclass(frozen=True, slots=True)
class Features:
    """The figures with their units, the names, the content words and the negations of a text."""

    figures: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]  # stems, without those inside names
    negations: int

    @property
    def is_empty(self) -> bool:
        return not (self.figures or self.names or self.words)


def features(text: str) -> Features:
    """Compare texts without markers only: a marker's number would be a figure."""
    return _features(core(text))


def core(text: str) -> str:
    """The text without the marks around it, which make no difference to what it consists of."""
    return text.lstrip(": ").rstrip(" .!?:;")


@lru_cache(maxsize=8192)
def _features(text: str) -> Features:
    names = frozenset(name.text for name in find_names(text))
    rest = text
    for name in sorted(names, key=len, reverse=True):
        rest = rest.replace(name, " ")
    return Features(_figures(rest), names, _words(rest), len(_NEGATION.findall(text)))


def _figures(text: str) -> frozenset[str]:
    found = {_figure(match) for match in _FIGURE.finditer(text)}
    spelled = {_NUMBER_WORDS[word] for word in text.lower().split() if word in _NUMBER_WORDS}
    codes = {code[0].lower() for code in _CODE.finditer(text) if not _FIGURE.match(code[0])}
    return frozenset(found | spelled | codes)


def _figure(match: re.Match[str]) -> str:
    value = re.sub(r"(?<=\d)[,\u00a0\u202f’'](?=\d{3}(?!\d))", "", match["value"])
    sign = (match["sign"] or "").strip()
    unit = _UNITS.get((match["unit"] or "").lower(), "")
    if sign in {"$", "€", "£", "¥"}:
        return value + sign
    return ("-" if sign in {"-", "−"} else "") + value + unit


def same_figure(one: str, other: str) -> bool:
    """`30` agrees with `30h`: somebody left the unit out; `30h` does not agree with `30g`."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and short[-1:].isdigit() and not long[len(short)].isdigit()


def figures_within(some: frozenset[str], all_: frozenset[str]) -> bool:
    """Whether each figure of the one is among the other's."""
    return some <= all_ or all(any(same_figure(a, b) for b in all_) for a in some - all_)


def _words(text: str) -> frozenset[str]:
    lowered = (match[0].lower() for match in _WORD.finditer(text))
    return frozenset(_stem(word) for word in lowered if _is_content(word))


def _is_content(word: str) -> bool:
    known = word in _STOP or word in _UNITS or word in _NUMBER_WORDS
    return not known and len(word) > 1 and not word.endswith(("n't", "n’t"))


def _stem(word: str) -> str:
    """The word without the commonest endings, so that `weighs` meets `weigh` and `weight`."""
    word = word.removesuffix("'s").removesuffix("’s")
    for ending in ("ingly", "ations", "ation", "ings", "ing", "edly", "ies", "ied", "ely", "es"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    for ending in ("ed", "ly", "s", "e", "t", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


_KEY = re.compile(r"[^\W_]+")


def wording(text: str) -> str:
    """The words of a text alone: equal for two spellings of the same sentence."""
    return " ".join(_KEY.findall(text.casefold()))


_ESSENTIAL = re.compile(r"\d|[^\W\d_a-zà-öø-ÿ]|[$€£¥%\[\]]")


def holds_essentials(text: str) -> bool:
    """Whether there may be a figure, a name, a negation or a marker in a piece of a sentence."""
    lowered = text.lower()
    if not _NUMBER_WORDS.keys().isdisjoint(_KEY.findall(lowered)):
        return True
    return bool(_ESSENTIAL.search(text) or _NEGATION.search(text))
