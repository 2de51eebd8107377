"""Which rows of a file the rows of a section are."""

import re

from rag.language.sentences import Span
from rag.records import Section
from rag.web.html.pinpoint import TABLE_RULE

LOCATED = re.compile(r"\brows? (\d+)(?:–(\d+))?$")
LINE = re.compile(r"[^\n]+")


def numbers_of_rows(section: Section) -> dict[Span, int]:
    """As the locator tells; none where it does not tell of each, as between empty rows."""
    text, located = section.text, LOCATED.search(section.locator)
    lines = [Span(*line.span()) for line in LINE.finditer(text)]
    is_rule = [bool(TABLE_RULE.fullmatch(text, *line)) for line in lines]
    if located is None or True not in is_rule[1:]:
        return {}
    head = text[slice(*lines[is_rule.index(True) - 1])]  # once more above each piece of many rows
    pairs = zip(lines, is_rule, strict=True)
    rows = [line for line, rule in pairs if not rule and text[slice(*line)] != head]
    first, last = int(located[1]), int(located[2] or located[1])
    if len(rows) != last - first + 1 or not all(text[row.start] == "|" for row in rows):
        return {}
    return dict(zip(rows, range(first, last + 1), strict=True))
