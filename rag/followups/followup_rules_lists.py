""" "The second one": count out what the last answer listed."""

import re
from collections.abc import Sequence

from rag.citations.markers import cited_numbers, keep_markers
from rag.followups.followup_names import Names
from rag.followups.followup_words import Mention, mentions

ORDINALS = {
    "first": 0,
    "1st": 0,
    "second": 1,
    "2nd": 1,
    "third": 2,
    "3rd": 2,
    "fourth": 3,
    "4th": 3,
    "fifth": 4,
    "5th": 4,
    "sixth": 5,
    "seventh": 6,
    "eighth": 7,
    "ninth": 8,
    "tenth": 9,
    "former": 0,
    "latter": -1,
    "last": -1,
}
COUNTED = re.compile(
    rf"\b(?:the\s+)?({'|'.join(ORDINALS)})\s+"
    r"(one|option|choice|item|entry|product|model|device|version|variant|plan|point|step|thing|"
    r"result|source|document|citation|reference|link|page|file)\b"
    r"|\bthe\s+(latter(?!\s+(?:half|part)\b)|(?:former|first|second|third|last)"
    r"(?=\s*[?.!,]|\s*$|\s+(?:is|are|was|does|do|did|has|have|had|costs?|weighs?|works?|supports?|"
    r"instead|too|also)\b))"
    r"|\b(?:number|option|item|no\.)\s*(\d{1,2})\b",
    re.IGNORECASE,
)
SOURCE_NOUNS = {"source", "document", "citation", "reference", "link", "page", "file"}
ENTRY = re.compile(r"^[ \t]*(?:\d{1,2}[.)]|[-*•–])[ \t]+(.+)$", re.MULTILINE)
ENTRY_END = re.compile(r"\s*(?:[:;|]|\s[-–—]\s|\(|\[|,|\.(?:\s|$)|\bis\b|\bwith\b|\bat\b)")
MAX_ENTRY_WORDS = 8
MAX_PART_WORDS = 4
MAX_ANSWER = 4000  # characters that are read for a list


def count_out(question: str, answer: str, lexicon: Names) -> tuple[str, tuple[int, ...]]:
    """The question with the entry of the list named, and the source it counts out, if it does."""
    found = COUNTED.search(question)
    if not found or not answer:
        return question, ()
    place = _place(found)
    if (found[2] or "").lower() in SOURCE_NOUNS:
        numbers = list(dict.fromkeys(cited_numbers(answer)))
        number = _at([str(number) for number in numbers], place)
        return question, (int(number),) if number else ()
    entry = _at(listed(answer[:MAX_ANSWER], lexicon), place)
    if not entry:
        return question, ()
    return question[: found.start()] + entry + question[found.end() :], ()


def _place(found: re.Match[str]) -> int:
    if found[4]:
        return int(found[4]) - 1
    return ORDINALS[(found[1] or found[3]).lower()]


def _at(entries: Sequence[str], place: int) -> str:
    """The entry at a place, -1 being the last; "" when there is none or only one in all."""
    if len(entries) < 2 or place >= len(entries):
        return ""
    return entries[place]


def listed(answer: str, lexicon: Names) -> list[str]:
    """What an answer lists: the entries of a list, else its products, else its enumeration."""
    entries = [_entry_name(line, lexicon) for line in ENTRY.findall(answer)]
    if len(entries) >= 2:
        return [entry for entry in entries if entry]
    named = [m for m in mentions(_unmarked(answer), lexicon) if m.is_name]
    products = _distinct([mention for mention in named if mention.text in lexicon])
    return products if len(products) >= 2 else _enumerated(answer) or _distinct(named)


def _unmarked(text: str) -> str:
    return keep_markers(text, lambda _number: False).text


def _distinct(found: Sequence[Mention]) -> list[str]:
    return list(dict.fromkeys(mention.text for mention in found))


def _entry_name(line: str, lexicon: Names) -> str:
    """What an entry of a list is called: its bold words, else what stands before the first mark."""
    bold = re.match(r"\s*(?:\*\*|__)(.+?)(?:\*\*|__)", line)
    text = (bold[1] if bold else _unmarked(line)).strip(" *_`")
    for mention in mentions(text, lexicon):
        if mention.text in lexicon:
            return mention.text
    name = ENTRY_END.split(text, maxsplit=1)[0].strip()
    return " ".join(name.split()[:MAX_ENTRY_WORDS])


def _enumerated(answer: str) -> list[str]:
    """ "red, dark green and blue" in a sentence."""
    for sentence in re.split(r"[.!?:;\n]", _unmarked(answer)):
        parts = [part.strip() for part in re.split(r",\s*(?:and|or)\s|,|\s(?:and|or)\s", sentence)]
        if len(parts) < 3 or not all(0 < len(part.split()) <= MAX_PART_WORDS for part in parts[1:]):
            continue
        # The first part drags the sentence's beginning along: as long as the second is kept.
        return [" ".join(parts[0].split()[-len(parts[1].split()) :]), *parts[1:]]
    return []
