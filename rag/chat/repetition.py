"""See when a model repeats itself without end."""

import regex

WATCHED = 6_000  # characters at the end of a text
MOST_WORDS = 240  # of what is repeated
LEAST_TIMES = 4
LEAST_CHARACTERS = 240  # of the repetitions together
LONGEST_WORD = 60  # characters; what is longer is read letter by letter
_FILLS = frozenset("|-=_.·:+ ")  # a table's empty cells, rules and leaders may be long
_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{So}"
# Where words are not set apart, and in what is too long to be a word, each character is one.
_WORD = regex.compile(
    rf"(?P<number>^[ \t]*\d{{1,4}}[.)](?=\s))"
    rf"|(?<=[\s{_SCRIPTS}]|^)[^\s{_SCRIPTS}]{{1,{LONGEST_WORD}}}+(?=[\s{_SCRIPTS}]|$)|\S",
    regex.MULTILINE,
)


def end_before_loop(text: str) -> int | None:
    """Where to end a text whose last words are the same again and again; None if they are not.

    What is repeated stays once. Numbers of a list that goes on counting are no difference.
    """
    start = max(0, len(text) - WATCHED)
    found = list(_WORD.finditer(text[start:]))
    words = ["1." if word["number"] else word[0] for word in found]
    for period in range(1, min(MOST_WORDS, len(words) // LEAST_TIMES) + 1):
        if words[-period:] != words[-2 * period : -period]:
            continue
        if _FILLS.issuperset("".join(words[-period:])):
            continue
        first = _begin_of_loop(words, period)
        looped = len(text) - start - found[first].start()
        times = (len(words) - first) // period
        if times >= LEAST_TIMES and looped >= LEAST_CHARACTERS:
            return start + found[first + period - 1].end()
    return None


def _begin_of_loop(words: list[str], period: int) -> int:
    """The first of the last words that repeat with this period."""
    at = len(words) - period
    while at > 0 and words[at - 1] == words[at - 1 + period]:
        at -= 1
    return at
