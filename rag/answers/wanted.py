"""What kind of thing a question asks for, and whether a text holds one."""

import re

TRUTH = "truth"  # what is answered by yes or no
# The first that matches holds; German beside English, since the words are few.
_CUES = (
    (
        "price",
        r"\b(prices?|costs?|kostet|kosten|preis|teuer)\b|\bhow (much (is|are|for)|expensive)\b",
    ),
    (
        "figure",
        r"\bhow (many|much|long|far|tall|heavy|large|big|wide|fast|high|deep|old|often|loud)\b"
        r"|\bwhat (size|amount|share|rate|speed|age|percentage)\b|\bnumber of\b"
        r"|\b(weight|weighs?)\b"
        r"|\bwie (viele?|lange|hoch|schwer|groß|oft|weit|alt|breit|tief|schnell)\b"
        r"|\b(wiegt|gewicht)\b",
    ),
    (
        "date",
        r"\b(when|since what|wann|seit wann|bis wann)\b"
        r"|\b(what|which|welchem|welches) (year|date|day|month|time|jahr|tag|monat)\b",
    ),
    ("person", r"\b(who|whose|whom|wer|wem|wen|wessen)\b"),
    ("place", r"\b(where|wo|wohin|woher)\b|\b(what|which) (country|city|place|folder|file)\b"),
    ("reason", r"\b(why|what causes?|what caused|warum|weshalb|wieso)\b"),
    ("steps", r"\bhow (do|can|to|should|would|could|does one|is|are)\b|\bwie\b"),
    (
        TRUTH,
        r"^\W*(is|are|was|were|am|do|does|did|has|have|can|could|may|must|shall|should|will|would"
        r"|ist|sind|war|hat|haben|darf|dürfen|kann|können|muss|müssen|soll|sollen|wird|gibt)\b",
    ),
)
_COMPILED = tuple((kind, re.compile(cue, re.IGNORECASE)) for kind, cue in _CUES)
_MONTH = (
    r"jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|"
    r"nov(ember)?|dec(ember)?|januar|februar|märz|mai|juni|juli|oktober|dezember"
)
_HOLDS = {
    "price": r"[€$£¥%]|\b(EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|euros?|dollars?|pounds?|yen|cents?|free|"
    r"prices?|preis|kostenlos)\b|\d[.,]\d\d\b",
    "figure": r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|thousand|"
    r"million|once|twice|half|zwei|drei|vier|fünf|sechs|zehn|einmal|zweimal)\b",
    "date": rf"\b(1\d|20)\d\d\b|\b({_MONTH})\b|\d\s*(days?|weeks?|months?|years?|hours?|minutes?|"
    r"seconds?|am|pm|uhr|tage?n?|wochen?|monate?n?)\b|\b\w+day\b|\bbefore\b|\bafter\b",
    "person": r"(?<!^)(?<![.!?]\s)\b[A-ZÀ-Þ][a-zà-ÿ]+",
    "place": r"\b(in|at|on|near|from|to|under|above|below|behind|inside|im|am|bei|auf)\b|[/›>]",
    "reason": r"\b(because|since|due to|so that|in order|caus\w+|reasons?|therefore|thus|"
    r"otherwise|weil|damit|deshalb|sonst)\b|\bto (avoid|prevent|protect|reduce|ensure)\b",
    "steps": r"^\s*\d+[.)]|\b(tap|press|select|open|click|choose|go|set|use|run|enter|hold|turn|"
    r"swipe|connect|install|add|call|insert|remove|can|drücken|wählen|öffnen|drücke|wähle)\b",
}
_HELD = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _HOLDS.items()}
_HELD["person"] = re.compile(_HOLDS["person"])

BRIEF = ("price", "figure", "date", "person")  # one word may be the whole answer


def wanted_in(question: str) -> str:
    """The kind of the answer by the first cue; "" where none tells."""
    return next((kind for kind, cue in _COMPILED if cue.search(question)), "")


def holds(kind: str, text: str) -> bool:
    """Whether a text holds such a thing; of anything, it always does."""
    return kind not in _HELD or bool(_HELD[kind].search(text))
