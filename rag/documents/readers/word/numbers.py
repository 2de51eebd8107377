"""The numbers of paragraphs in Word, which stand in no text: `4.2`, `(a)`, `3.`."""

import re
from collections import defaultdict
from typing import Any

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
PLACE = re.compile(r"%([1-9])")
ROMAN = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
Numbering = tuple[str, int]  # id of a list, level from 0
LEVELS = 9


class Numbers:
    """Counts as Word does; `label` is asked for each paragraph in reading order."""

    def __init__(self, document: Any) -> None:
        self._levels: dict[str, dict[int, Any]] = {}
        self._lists: dict[str, str] = {}
        self._of_styles = {
            style.get(f"{WORD}styleId"): _numbering(style)
            for style in document.styles.element.iterchildren(f"{WORD}style")
        }
        self._counts: dict[str, list[int]] = defaultdict(lambda: [0] * LEVELS)
        part = next((p for p in document.part.package.iter_parts() if _holds_lists(p)), None)
        if part is not None:
            self._read(part)

    def _read(self, part: Any) -> None:
        from docx.oxml import parse_xml

        lists = parse_xml(part.blob)
        for each in lists.iterchildren(f"{WORD}abstractNum"):
            levels = {_level(level): level for level in each.iterchildren(f"{WORD}lvl")}
            self._levels[each.get(f"{WORD}abstractNumId", "")] = levels
        for each in lists.iterchildren(f"{WORD}num"):
            self._lists[each.get(f"{WORD}numId", "")] = _value(each, "abstractNumId")

    def label(self, paragraph: Any, style_id: str) -> str | None:
        """What stands before the paragraph; "" for a bullet, None where it is of no list."""
        name, level = _numbering(paragraph) or self._of_styles.get(style_id) or ("0", 0)
        its_list = self._lists.get(name)
        levels = self._levels.get(its_list or "", {})
        if its_list is None or level not in levels:
            return None
        counts = self._counts[its_list]
        counts[level] = (counts[level] or _number(_value(levels[level], "start"), 1) - 1) + 1
        counts[level + 1 :] = [0] * (LEVELS - level - 1)
        if _value(levels[level], "numFmt") in ("bullet", "none"):
            return ""

        def written(place: re.Match[str]) -> str:
            at = int(place[1]) - 1
            return _figure(max(counts[at], 1), _value(levels.get(at, levels[level]), "numFmt"))

        return PLACE.sub(written, _value(levels[level], "lvlText")).strip()


def _holds_lists(part: Any) -> bool:
    return bool(re.search(r"/numbering\d*\.xml$", part.partname))


def _numbering(element: Any) -> Numbering | None:
    found = element.find(f"{WORD}pPr/{WORD}numPr")
    if found is None or not _value(found, "numId"):
        return None
    return _value(found, "numId"), _level_of(_value(found, "ilvl"))


def _level(element: Any) -> int:
    return _level_of(element.get(f"{WORD}ilvl", ""))


def _level_of(value: str) -> int:
    return min(_number(value, 0), LEVELS - 1)


def _number(value: str, otherwise: int) -> int:
    return int(value[:9]) if value.isdecimal() else otherwise


def _value(element: Any, name: str) -> str:
    found = element.find(f"{WORD}{name}")
    return found.get(f"{WORD}val", "") if found is not None else ""


def _figure(count: int, kind: str) -> str:
    if kind.endswith("Letter"):
        text = chr(ord("a") + (count - 1) % 26) * (1 + (count - 1) // 26 % 4)
    elif kind.endswith("Roman") and count < 40:
        text, rest = "", count
        for value, letters in ROMAN:
            text += letters * (rest // value)
            rest %= value
    else:
        text = str(count)
    return text.upper() if kind.startswith("upper") else text
