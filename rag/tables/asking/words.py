"""The words in which people ask over rows, English and German.

They are written as `normalised` writes them: small, without accents.
"""

from collections.abc import Iterator

from rag.records import ColumnType, TableColumn
from rag.tables.plan import Kind
from rag.tables.wordforms import normalised
from rag.text.amounts import UNIT_SIGNS
from rag.text.languages import all_meanings, all_words, any_of, words
from rag.text.late import re

_SPELLED = {normalised(word): value for word, value in all_meanings("numbers").items()}
SCALES = {"k": 1e3, "hundred": 1e2, "hundert": 1e2, "thousand": 1e3, "tausend": 1e3,
    "million": 1e6, "millionen": 1e6, "mio": 1e6, "billion": 1e9, "mrd": 1e9}  # fmt: skip
NUMBER_WORDS = {word: int(value) for word, value in _SPELLED.items() if value < 100} | {"funf": 5}
MONTHS = {normalised(word): at for word, at in all_meanings("months").items()}
UNITS = {normalised(word): sign for word, sign in UNIT_SIGNS.items()} | {
    "eur": "€", "dollar": "$", "dollars": "$", "usd": "$", "pounds": "£", "pound": "£",
    "gbp": "£", "quid": "£", "yen": "¥", "jpy": "¥", "percent": "%", "prozent": "%",
}  # fmt: skip
UNITS.pop("", "")  # what is written in signs alone


def _lines(text: str) -> Iterator[list[list[str]]]:
    for line in text.strip().splitlines():
        yield [part.split() for part in line.split("|")]


# Words for one thing; those behind the bar also stand for those before it, not the other way.
_SAME = """
revenue sales turnover umsatz erlos|amount
price cost costs preis kosten kostet fee rent miete|pay paid zahlen zahlt bezahlt
salary pay paid wage earnings earn earns gehalt lohn verdienst verdienen verdient|
quantity qty units pieces menge stuck stuckzahl|amount anzahl
country nation nationality nat land|
competition event tournament|
opponent rival|team against
team club squad|
venue location place site stadium ort standort|
location city|
player|name scorer
driver rider|racer name
position pos place rank platz rang|finish ranking
attendance crowd|spectators attendees
population|people inhabitants residents populous einwohner
height hohe|tall elevation
length lange|long
duration dauer|long length
weight mass gewicht masse weigh weighs wiegt wiegen|heavy schwer
title titel name|film movie song
customer client buyer kunde kunden|
employee staff worker mitarbeiter angestellte|person people
department division abteilung|team
date datum|day when tag
rate rating|score
result outcome ergebnis|score
score points pts punkte|result
stock inventory bestand|quantity
category kind type kategorie art typ|
product produkt|item article artikel
supplier vendor lieferant|
manufacturer maker brand hersteller marke|
year jahr|
month monat|
quarter quartal|
city town stadt|
region gebiet|area
status state|
owner besitzer|
sold verkauft|
author autor|writer
number nummer|
budget etat|
"""
SYNONYMS: dict[str, tuple[str, ...]] = {}
for _same, _also in _lines(_SAME):
    for _word in _same:
        _others = (each for each in (*_same, *_also) if each != _word)
        SYNONYMS[_word] = tuple(dict.fromkeys((*SYNONYMS.get(_word, ()), *_others)))

# An adjective, whether its end is the highest, what it measures ("-": the other end of that; "$":
# what has a currency), its forms.
_ADJECTIVES = """
high|+|height elevation altitude|high higher highest hoch hoher hochste
low|-|height elevation altitude|low lower lowest
low|-||niedrig niedriger niedrigste gering geringer geringste
tall|+|height elevation|tall taller tallest
long|+|length duration distance time runtime minutes|long longer longest lang langer langste
short|-|length duration height time runtime|short shorter shortest kurz kurzer kurzeste
heavy|+|weight mass gewicht|heavy heavier heaviest schwer schwerer schwerste
light|-|weight mass gewicht|light lighter lightest leicht leichter leichteste
expensive|+|price cost amount preis $|expensive pricier priciest costlier costliest dearer dearest
expensive|+||teuer teurer teuerste
valuable|+|value worth wert price $|valuable wertvoll wertvoller wertvollste
cheap|-|price cost amount preis $|cheap cheaper cheapest
cheap|-||billig billiger billigste gunstig gunstiger gunstigste
old|+|age alter -year -founded -date -built -established -born -jahr -datum|old older oldest
old|+||alt alter alteste
young|-|age alter -born -year -date|young younger youngest jung junger jungste
new|+|year date founded bought jahr datum|new newer newest neu neuer neueste
large|+|size area population capacity flache grosse|large larger largest gross grosser grosste
big|+|size area population capacity|big bigger biggest
small|-|size area population capacity flache grosse|small smaller smallest klein kleiner kleinste
fast|+|speed -time -duration|fast faster fastest schnell schneller schnellste
slow|-|speed -time -duration|slow slower slowest langsam langsamer langsamste
populous|+|population|populous
deep|+|depth tiefe|deep deeper deepest tief tiefer tiefste
wide|+|width breite|wide wider widest breit breiter breiteste
early|-|date year time datum jahr|early earlier earliest soonest fruh fruher fruheste
late|+|date year time datum jahr|late later latest spat spater spateste
recent|+|date year|recent
busy|+|count orders|busy busier busiest
""".strip()
_PLAIN = "most + least - more + less - fewer - fewest - greatest + greater + maximum + max +" \
    " minimum - min - top + best + better + worst - worse - bottom - meisten + meiste +" \
    " wenigsten - wenigste - mehr + weniger - beste + schlechteste -"  # fmt: skip
ADJECTIVES: dict[str, tuple[str, bool]] = {}  # any form: the adjective, and whether it goes up
MEASURES: dict[str, tuple[str, ...]] = {}
for _line in _ADJECTIVES.splitlines():
    (_name,), (_sign,), _measures, _forms = next(_lines(_line))
    MEASURES[_name] = (*MEASURES.get(_name, ()), *_measures)
    ADJECTIVES |= dict.fromkeys(_forms, (_name, _sign == "+"))
_plain = _PLAIN.split()
ADJECTIVES |= {w: ("", s == "+") for w, s in zip(_plain[::2], _plain[1::2], strict=True)}
_ENDS = {w for w in ADJECTIVES if w.endswith("st") and w != "least"} | {"meiste", "wenigste"}
_GERMAN_ENDS = {w for w in ADJECTIVES if w.endswith("ste") and w not in ("meiste", "wenigste")}
for _word in _GERMAN_ENDS:
    for _ending in ("n", "r", "s", "m"):
        ADJECTIVES[_word + _ending] = ADJECTIVES[_word]
RANKED_ENDS = {"top", "best", "worst", "bottom", "beste", "besten", "schlechteste"}
PLAIN_ENDS = {"most", "least", "fewest", "meisten", "wenigsten", "maximum", "max", "minimum", "min",
    "priciest", *RANKED_ENDS}  # fmt: skip
ADJECTIVES["besten"] = ADJECTIVES["beste"]
SUPERLATIVES = {
    word: found
    for word, found in ADJECTIVES.items()
    if word in PLAIN_ENDS | _ENDS or re.search(r"ste[nrsm]?$", word)
}
COMPARATIVES = {
    word: up
    for word, (_adjective, up) in ADJECTIVES.items()
    if word not in SUPERLATIVES and re.search(r"er$|^more$|^less$|^mehr$", word)
} | {"first": False, "last": True, "most": True, "least": False}  # fmt: skip
_UP = any_of([w for w, up in COMPARATIVES.items() if up and w.endswith(("r", "e", "re"))])
_DOWN = any_of([w for w, up in COMPARATIVES.items() if not up and w.endswith(("r", "ss"))])
COMPARED = (
    (re.compile(r"at least|no less than|no fewer than|(?:a )?minimum of|not less than|mindestens|"
        r"wenigstens|since|seit|starting (?:from|in)|from .* on|ab"), ">="),
    (re.compile(r"at most|no more than|up to|(?:a )?maximum of|hochstens|not more than|maximal|"
        r"until|till|bis zu|bis"), "<="),
    (re.compile(rf"(?:{_UP}|mehr|more \w+) (?:than|als)|more than|over|above|exceed(?:s|ed|ing)?|"
        r"beyond|uber|after|nach"), ">"),
    (re.compile(rf"(?:{_DOWN}|less \w+) (?:than|als)|below|under|unter|before|prior to|vor"), "<"),
)  # fmt: skip
OR_MORE = re.compile(
    r"^(?:or (?:more|above|higher|better|greater|over|later|newer)|and (?:above|over|up|more)|"
    r"oder (?:mehr|hoher|spater))\b"
)
OR_LESS = re.compile(
    r"^(?:or (?:less|fewer|below|lower|under|earlier)|and below|oder (?:weniger|niedriger))\b"
)
COUNT = re.compile(
    r"\b(?:how many|how often|(?:total )?(?:number|amount|count|no) of|count(?: of)?|"
    r"tell me the number|wie viele|wieviele|wie oft|anzahl(?: der| von)?)\b"
)
TOTAL = re.compile(
    r"\b(?:sum(?: of)?|total(?:led|s)?|altogether|combined|overall|in all|(?:all )?together|"
    r"added up|gesamt\w*|summe|insgesamt|zusammen)\b"
)
SUM = re.compile(rf"{TOTAL.pattern}|\b(?:how much|wie viel|wieviel)\b")
AVERAGE = re.compile(r"\b(?:average|avg|mean|on average|durchschnitt\w*|(?:im )?schnitt|mittel)\b")
MEDIAN = re.compile(r"\bmedian\b")
KINDS = ((Kind.MEDIAN, MEDIAN), (Kind.AVERAGE, AVERAGE), (Kind.SUM, SUM))
DIFFERENT = re.compile(r"\b(?:different|distinct|unique|verschiedene\w*|unterschiedliche\w*)\b")
SHARE = re.compile(
    r"\b(?:shares?|percentages?|proportions?|fraction|anteile?|prozent\w+|"
    r"(?<![\d¤] )(?:percent|prozent))\b"  # behind a figure it is a unit
)
DIFFERENCE = re.compile(
    r"\b(?:difference|how (?:many|much) (?:more|less|fewer|longer|higher|older|later|taller)|"
    r"by how much|differ|range|gap|unterschied|differenz)\b"
)
GROUP = re.compile(
    r"\b(?:by|per|for each|for every|in each|in every|grouped by|broken down by|split by|each|"
    r"every|nach|pro|je|jede[mnrs]?)\b"
)
_COUNTS = rf"\d{{1,3}}|{any_of([word for word, count in NUMBER_WORDS.items() if count])}"
_TOPS = any_of(
    {*SUPERLATIVES, "first", "last", "ersten", "letzten"}
    - {"max", "min", "maximum", "minimum", "greatest", "least", "wenigsten"}
)
WITH_THE = r"(?:\w+ (?:with|by|mit|nach) (?:the |den |dem |der )?)?"
TOP = re.compile(
    rf"\b(?<!at )(?P<word>{_TOPS}) (?P<count>{_COUNTS})\b|\b(?P<count2>{_COUNTS}) {WITH_THE}"
    rf"(?P<word2>{_TOPS})\b"
)
NOT = re.compile(
    r"\b(?:not|without|except|exclud(?:e|es|ing)|besides|other than|apart from|isnt|arent|wasnt|"
    r"werent|didnt|doesnt|aside from|ohne|ausser|nicht|kein\w*|rather than|leav(?:e|ing) out|never|"
    r"leav(?:e|ing) (?=\w+ out)|drop(?:ping)?|remov(?:e|ing)|ignor(?:e|ing)|omit(?:ting)?|minus)\b"
)
# Words that change nothing: they carry no condition and no figure.
IDLE = frozenset(map(normalised, all_words("idle_over_rows")))
ROW_NOUNS = words(
    """
    row rows entry entries record records line lines item items order orders transaction
    transactions sale sales deal deals booking bookings time times zeilen eintrage
    """
)
PERSON = (
    "name", "player", "driver", "rider", "athlete", "artist", "winner", "recipient", "candidate",
    "author", "cyclist", "swimmer", "diver", "wrestler", "representative", "employee", "customer",
    "person", "actor", "director", "opponent", "coach", "salesperson", "owner", "lieutenant",
    "character", "member",
)  # fmt: skip
LACKING = frozenset(
    {"no", "without", "missing", "lack", "lacks", "lacking", "ohne", "kein", "keine", "keinen"}
)
WHEN = ("date", "year", "when", "season", "day", "month", "time", "took office", "from", "period")
WHERE = ("location", "venue", "place", "city", "country", "site", "town", "where", "hometown",
    "stadium", "region", "address", "headquarters")  # fmt: skip
RANKS = ("rank", "pos", "position", "place", "placing", "pick", "ranking", "finish", "grid")
OPERATORS = frozenset({*SUPERLATIVES, *COMPARATIVES, *NUMBER_WORDS}) | words(
    """
    first last next previous after before total sum average avg mean median difference
    different distinct unique share percentage percent proportion change growth increase per
    top bottom combined altogether overall count number above below over under than without
    except exclude excluding between versus vs not no besides other following immediately
    directly right consecutive row chart graph ranked sorted sort order ordered quarter month
    year same more less through out up nach als nicht ohne
    """
)


def counted(said: str) -> re.Match[str] | None:
    """Where words count; "the part number of" names a cell, "the number of" counts."""
    for found in COUNT.finditer(said):
        before = said[: found.start()].split()[-1:]
        is_cell = found[0] in ("number of", "no of") and before and before[0].isalpha()
        if not is_cell or before[0] in IDLE | OPERATORS:
            return found
    return None


BETWEEN = words("between from zwischen von vom")
AND_UP_TO = words("and to und bis till until through")


def is_of_money(column: TableColumn) -> bool:
    """Whether its figures are in a currency."""
    return column.type is ColumnType.NUMBER and bool(column.unit) and column.unit in "€$£¥₹CHF"
