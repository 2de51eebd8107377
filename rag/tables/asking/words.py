"""The words in which people ask over rows: English, and German where it costs nothing.

They are written as `normalised` writes them: small, without accents.
"""

import re

NUMBER_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
    "zwei": 2, "drei": 3, "vier": 4, "funf": 5, "zehn": 10,
}  # fmt: skip
# Stem of a column's word: what else it is called.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "revenu": ("sales", "turnover", "umsatz"),
    "sale": ("revenue", "turnover"),
    "amount": ("revenue", "sales"),
    "price": ("cost", "costs", "preis", "price"),
    "cost": ("price", "expense"),
    "quantiti": ("units", "pieces", "quantity", "amount", "menge"),
    "qti": ("quantity", "units"),
    "unit": ("quantity", "units sold"),
    "countri": ("nation", "nationality", "land"),
    "nation": ("country", "nationality"),
    "nationality": ("country", "nation"),
    "nat": ("country", "nation", "nationality"),
    "competit": ("event", "tournament"),
    "tournament": ("event", "competition"),
    "oppon": ("rival", "team", "against"),
    "team": ("club", "squad"),
    "club": ("team",),
    "venu": ("location", "place", "stadium"),
    "locat": ("place", "venue", "city"),
    "site": ("location", "place"),
    "player": ("name", "scorer"),
    "driver": ("racer", "name"),
    "rider": ("racer", "name"),
    "posit": ("place", "rank", "pos", "finish"),
    "pos": ("position", "place", "rank"),
    "place": ("position", "rank", "finish"),
    "rank": ("position", "place", "ranking"),
    "attend": ("crowd", "spectators", "attendees"),
    "popul": ("people", "inhabitants", "residents", "populous"),
    "height": ("tall",),
    "length": ("long",),
    "weight": ("heavy",),
    "durat": ("long", "length"),
    "titl": ("name", "film", "movie", "song"),
    "custom": ("client", "buyer"),
    "employe": ("staff", "person", "worker"),
    "depart": ("division", "team"),
    "salari": ("pay", "wage", "earnings"),
    "date": ("day", "when"),
    "rate": ("rating", "score"),
    "score": ("result", "points"),
    "point": ("score", "pts"),
    "pts": ("points",),
    "stock": ("inventory", "quantity"),
    "outcom": ("result",),
    "result": ("outcome",),
}
# What an adjective measures, by its stem: words that a column's name may hold.
MEASURES = {
    "tall": ("height", "elevation"),
    "high": ("height", "elevation", "altitude"),
    "long": ("length", "duration", "distance", "time", "runtime"),
    "short": ("length", "duration", "height", "time"),
    "heavy": ("weight", "mass"),
    "light": ("weight", "mass"),
    "expensive": ("price", "cost", "amount"),
    "cheap": ("price", "cost"),
    "old": ("age", "year", "founded", "date", "built", "established"),
    "young": ("age", "born"),
    "new": ("year", "date", "founded"),
    "large": ("size", "area", "population", "capacity"),
    "big": ("size", "area", "population", "capacity"),
    "small": ("size", "area", "population", "capacity"),
    "fast": ("time", "speed"),
    "slow": ("time", "speed"),
    "populous": ("population",),
    "deep": ("depth",),
    "wide": ("width",),
    "early": ("date", "year", "time"),
    "late": ("date", "year", "time"),
    "recent": ("date", "year"),
    "busy": ("count", "orders"),
}
SUPERLATIVES = {
    "highest": ("high", True), "tallest": ("tall", True), "longest": ("long", True),
    "largest": ("large", True), "biggest": ("big", True), "greatest": ("", True),
    "most": ("", True), "maximum": ("", True), "max": ("", True), "top": ("", True),
    "best": ("", True), "heaviest": ("heavy", True), "oldest": ("old", True),
    "newest": ("new", True), "fastest": ("fast", False),
    "slowest": ("slow", True), "deepest": ("deep", True), "widest": ("wide", True),
    "priciest": ("expensive", True), "costliest": ("expensive", True),
    "lowest": ("", False), "least": ("", False), "fewest": ("", False),
    "smallest": ("small", False), "minimum": ("", False), "min": ("", False),
    "shortest": ("short", False),
    "latest": ("late", True), "cheapest": ("cheap", False), "lightest": ("light", False),
    "youngest": ("young", False),
    "worst": ("", False),
    "earliest": ("early", False), "bottom": ("", False),
    "soonest": ("early", False), "hochste": ("high", True), "hochsten": ("high", True),
    "meisten": ("", True), "grosste": ("big", True), "grossten": ("big", True),
    "niedrigste": ("", False), "niedrigsten": ("", False), "gunstigste": ("cheap", False),
    "gunstigsten": ("cheap", False), "teuerste": ("expensive", True),
    "teuersten": ("expensive", True), "billigste": ("cheap", False),
}  # fmt: skip
COMPARATIVES = {
    "higher": True, "more": True, "larger": True, "bigger": True, "greater": True, "better": True,
    "longer": True, "taller": True, "later": True, "older": True, "heavier": True, "fewer": False,
    "less": False, "lower": False, "smaller": False, "shorter": False, "earlier": False,
    "cheaper": False, "younger": False, "worse": False, "first": False, "last": True,
    "most": True, "least": False,
}  # fmt: skip
COUNT = re.compile(
    r"\b(?:how many|how often|(?:total )?(?:number|amount|count|no) of|count(?: of)?|"
    r"tell me the number|wie viele|anzahl(?: der| von)?)\b"
)
SUM = re.compile(
    r"\b(?:sum(?: of)?|total(?:led|s)?|altogether|combined|overall|in all|all together|added up|"
    r"gesamt\w*|summe|insgesamt|how much)\b"
)
AVERAGE = re.compile(r"\b(?:average|avg|mean|on average|durchschnitt\w*|im schnitt)\b")
MEDIAN = re.compile(r"\bmedian\b")
DIFFERENT = re.compile(r"\b(?:different|distinct|unique|verschiedene\w*)\b")
SHARE = re.compile(
    r"\b(?:shares?|percentages?|percent|proportions?|fraction|anteile?|prozent\w*)\b"
)
CHANGE = re.compile(
    r"\b(?:change[sd]?|growth|grew|grow|trend|increase[sd]?|decrease[sd]?|veranderung|"
    r"(?:year|quarter|month) (?:over|on) (?:year|quarter|month)|yoy)\b"
)
DIFFERENCE = re.compile(
    r"\b(?:difference|how (?:many|much) (?:more|less|fewer|longer|higher|older|later|taller)|"
    r"by how much|differ|range|gap)\b"
)
GROUP = re.compile(
    r"\b(?:by|per|for each|for every|in each|grouped by|broken down by|split by|each|every|nach|"
    r"pro|je)\b"
)
_COUNTS = rf"\d{{1,3}}|{'|'.join(word for word, count in NUMBER_WORDS.items() if count)}"
_ENDS = "|".join(
    sorted(
        {*SUPERLATIVES, "first", "last", "ersten", "letzten"}
        - {"max", "min", "maximum", "minimum", "greatest"},
        key=len,
        reverse=True,
    )
)
TOP = re.compile(
    rf"\b(?<!at )(?P<word>{_ENDS}) (?P<count>{_COUNTS})\b|\b(?P<count2>{_COUNTS}) "
    rf"(?P<word2>{_ENDS})\b"
)
COMPARED = (
    (re.compile(r"(?:at least|no less than|no fewer than|minimum of|not less than|mindestens)"),
     ">="),
    (re.compile(r"(?:at most|no more than|up to|maximum of|hochstens|not more than)"), "<="),
    (re.compile(
        r"(?:more than|greater than|higher than|larger than|bigger than|longer than|older than|"
        r"over|above|exceed(?:s|ed|ing)?|taller than|heavier than|better than|later than|"
        r"more expensive than|mehr als|uber|grosser als)"), ">"),
    (re.compile(
        r"(?:less than|fewer than|lower than|smaller than|below|under|shorter than|younger than|"
        r"cheaper than|lighter than|earlier than|weniger als|unter|kleiner als)"), "<"),
    (re.compile(r"(?:after|since|nach|seit)"), ">t"),
    (re.compile(r"(?:before|prior to|until|vor|bis)"), "<t"),
)  # fmt: skip
OR_MORE = re.compile(
    r"^(?:or (?:more|above|higher|better|greater|over|later)|and (?:above|over|up)|\+)"
)
OR_LESS = re.compile(r"^(?:or (?:less|fewer|below|lower|under|earlier)|and below)")
NOT = re.compile(
    r"\b(?:not|without|except|exclud(?:e|es|ing)|besides|other than|apart from|isnt|arent|wasnt|"
    r"werent|didnt|doesnt|aside from|ohne|ausser|nicht|rather than|leav(?:e|ing) out|never|"
    r"leav(?:e|ing) (?=\w+ out)|drop(?:ping)?|remov(?:e|ing)|ignor(?:e|ing)|omit(?:ting)?|minus)\b"
)
# Words that change nothing: they carry no condition and no figure.
IDLE = frozenset(
    """
    a an the of in on at to for from with and or is are was were be been being do does did has
    have had what which who whom whose when where how that this these those there it its as by
    s me my show list give tell name find get please all any we our us you your i can could
    would will many much number total table chart column row rows entry entries record records
    data listed shown overall amount according each every only just also than then out up into
    about if they them their he she his her one ones time times same such some more less say
    says called named made make come comes came go goes went take takes took seen see given
    here during within between among over through via were not no yes sell sold buy bought
    order ordered place placed made got earn earned generate generated bring brought include
    included contain contains exist exists happen happened occur occurred appear appeared per
    made held wie was wer wo wann der die das den dem des ein eine einer von im in am mit und
    but oder zu zum zur vom beim auf sind ist war waren hat haben
    zeige zeig mir welche welcher welches alle nach pro je fur
    """.split()  # noqa: SIM905  (a list of quoted words reads worse)
)
ROW_NOUNS = {
    "row", "rows", "entry", "entries", "record", "records", "line", "lines", "item", "items",
    "order", "orders", "transaction", "transactions", "sale", "sales", "deal", "deals", "booking",
    "bookings", "time", "times",
}  # fmt: skip
PERSON = (
    "name", "player", "driver", "rider", "athlete", "artist", "winner", "recipient", "candidate",
    "author", "cyclist", "swimmer", "diver", "wrestler", "representative", "employee", "customer",
    "person", "actor", "director", "opponent", "coach", "salesperson", "owner", "lieutenant",
    "character", "member",
)  # fmt: skip
CURRENCIES = {
    "euro": "€", "euros": "€", "eur": "€", "dollar": "$", "dollars": "$", "usd": "$",
    "pound": "£", "pounds": "£", "gbp": "£", "yen": "¥", "jpy": "¥",
}  # fmt: skip
LACKING = frozenset(
    {"no", "without", "missing", "lack", "lacks", "lacking", "ohne", "kein", "keine"}
)
WHEN = ("date", "year", "when", "season", "day", "month", "time", "took office", "from", "period")
WHERE = ("location", "venue", "place", "city", "country", "site", "town", "where", "hometown",
    "stadium", "region", "address", "headquarters")  # fmt: skip
RANKS = ("rank", "pos", "position", "place", "placing", "pick", "ranking", "finish", "grid")
OPERATORS = frozenset(
    {
        *SUPERLATIVES,
        *COMPARATIVES,
        *NUMBER_WORDS,
        "first",
        "last",
        "next",
        "previous",
        "after",
        "before",
        "total",
        "sum",
        "average",
        "avg",
        "mean",
        "median",
        "difference",
        "different",
        "distinct",
        "unique",
        "share",
        "percentage",
        "percent",
        "proportion",
        "change",
        "growth",
        "increase",
        "per",
        "top",
        "bottom",
        "combined",
        "altogether",
        "overall",
        "count",
        "above",
        "below",
        "over",
        "under",
        "than",
        "without",
        "except",
        "exclude",
        "excluding",
        "between",
        "versus",
        "vs",
        "not",
        "no",
        "or",
        "and",
        "besides",
        "other",
        "following",
        "immediately",
        "directly",
        "right",
        "consecutive",
        "row",
        "chart",
        "graph",
        "ranked",
        "sorted",
        "sort",
        "order",
        "ordered",
        "quarter",
        "month",
        "year",
    }
)


BETWEEN = frozenset({"between", "from", "zwischen", "von"})
AND_UP_TO = frozenset({"and", "to", "und", "bis", "till", "until", "through"})
