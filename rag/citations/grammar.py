"""The spellings of a citation in the wild, as patterns; DESIGN.md lists them.

Every pattern ends with a character of its own, so that what matches in the beginning of a text
matches in all of it. `regex` also tells whether a beginning may still come to match, which is what
a stream has to know.

Code, mathematics, links and indices are literal text. Nothing is held back that is decided, and
each decision looks ahead for a fixed distance only, so that every split of a text reads alike.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rag.language.lazy_patterns import regex
from rag.language.sentences import Lines
from rag.language.words import any_pattern, phrases, read_lists
from rag.runtime.budget import spend

OPENING, CLOSING = "[【［〔⟦〚〖❲⦋⁅﹝⟨〈", "]】］〕⟧〛〗❳⦌⁆﹞⟩〉"  # in the same order
SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹"
INVISIBLE = (
    "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufe00-\ufe0f\ufeff"
)
BLANKS = " \\t\u00a0\u2000-\u200a\u202f\u205f\u3000"
ZEROS = "".join(map(chr, filter(lambda code: unicodedata.decimal(chr(code), 1) == 0, range(65536))))
BEGINS_BRACKET = OPENING + "\\"
PAIRS = list(zip(OPENING[1:], CLOSING[1:], strict=True))  # the first may be escaped
MOST = 1_000  # characters of a spelling
MAX_CODE = 500  # characters between a backtick and the one that closes it, on the same line
MAX_MATH = 300
_LOOK_BACK = 80

_WORDINGS = {name: any_pattern(spellings) for name, spellings in read_lists("citing").items()}
_B = rf"[{BLANKS}{INVISIBLE}]*+"
_S = rf"[{BLANKS}]?"
_DIGIT = r"\d"  # of any script
_NUMBER = rf"(?![{ZEROS}])\d(?:[{INVISIBLE}]*+{_DIGIT})*+"
_DASH = (
    rf"(?:--?|[‐‑‒–—―−－~〜～…至到]|\.{{2,3}}|"
    rf"(?<=[{BLANKS}])(?:{_WORDINGS['through']})(?=[{BLANKS}]))"
)
_SOURCE = f"(?:{_WORDINGS['sources']})"
_WORDS = f"(?:{_SOURCE}|{_WORDINGS['retrieved']})"
_BREAK = rf"{_B}(?:\r?\n|&nbsp;)?{_B}"
_CONNECTS = rf"(?:[ _-]?(?:{_WORDINGS['called']})(?![^\W\d_]))?{_BREAK}[.:：#=_-]?{_B}[#№@]?[\"']?"
_SEE = rf"(?:(?:{_WORDINGS['see']})(?:[{BLANKS}](?:{_WORDINGS['also']}))?:?)"
_PREFIX = (
    rf"(?:(?=\D)(?:{_SEE}{_B})?+"  # nearly always a figure follows at once
    rf"(?:@?{_WORDS}{_CONNECTS}|(?:n(?:[or]\.|[°º])|[sn]|[#^№@†*→]){_B})?+)?+"
)
_RANGE = rf"(?P<range>{_NUMBER}(?:{_B}{_DASH}{_B}(?:[s#@])?{_NUMBER})?+)"
_PART = f"(?:{_WORDINGS['parts']})"
_LONG = r"[^\W\d_]{2}|[\"“„'‘«]"  # a title begins
_MONTH = f"(?:{_WORDINGS['months']})"


def _item(rest: str) -> str:
    """Return the pattern of a number or range, with the words that belong to it."""
    # To the end, or to another citation: `7, p. 3; 9, p. 4`.
    text = rf"(?:(?:(?!;){rest}){{0,120}}+(?=;{_B}{_NUMBER}{_B}[,:])|{rest}{{0,120}}+)"
    tail = (
        rf"(?:(?::[0-9]{{1,4}})?[†‡]{rest}{{0,80}}+"  # 7†source, 7:0†source, 7†L3-L5
        rf"|[ \u00a0](?:[-–—|][ \u00a0](?=pp?\.|{_LONG})|\((?:pp?\.)?(?={_LONG}|\s?\d))"
        rf"{rest}{{0,120}}+"  # 7 – title
        rf"|{_B}[,;:]?{_B}(?:[§¶]|{_PART}\.?{_B}\(?(?:\d|(?-i:(?<=\W)[A-Z]\b))|(?<=[,;]{_S})[ls]\.{_B}\d)"
        rf"{text}"  # 7, §1.1
        rf"|{_B}(?:[:：][ \u00a0]|：)(?={_LONG}){text}"  # 7: title
        rf"|\.[ \u00a0](?!{_MONTH})(?-i:[A-ZÄÖÜ]){rest}{{1,120}}+"  # 7. Title
        rf"|[,;][ \u00a0](?!None|True|False|NaN|{_WORDS})"
        rf"(?:(?-i:[“„«‘]|[A-ZÄÖÜ][a-zäöüß]{{2}}){rest}{{0,120}}+|{rest}{{1,80}}\.[a-z]{{2,4}}\b{rest}{{0,40}}+))"
    )
    return rf"{_PREFIX}{_RANGE}[\"']?+(?:(?=[{BLANKS}{INVISIBLE},.:：;§¶†‡a-z]){tail})?+"


# A short word between two numbers joins them in any language; `2 x 4` and `3 of 5` are no lists.
_JOINS = (
    rf"(?!(?:{_WORDINGS['no_list']}|{_PART}|{_MONTH})(?:\b|\d))"
    rf"(?:[^\W\d_]{{1,3}}|{_WORDINGS['lists']})"
)
_BETWEEN = (
    rf"{_BREAK}(?:(?:[,，、،;；؛]|&(?:amp;)?){_BREAK}(?:{_JOINS}[{BLANKS}])?|"
    rf"(?:(?<=[{BLANKS}\n]){_JOINS}(?=[{BLANKS}\n])|[\u3040-\ud7ff]{{1,3}}(?=[{BLANKS}\d]))|"
    rf"(?P<unsure>[/|+·])){_BREAK}"
)
# Called by its name: written out in each of its places it takes half a second to compile.
_NO_BRACKET = rf"[^{re.escape(OPENING + CLOSING)}\n]"
_NO_ROUND = rf"[^{re.escape(OPENING + CLOSING)}()（）\n]"
_INNER, _IN_ROUND, _BRACKET, _ROW = "(?&inner)", "(?&round)", "(?&bracket)", "(?&row)"
_ITEM, _ROUND_ITEM = "(?&item)", "(?&round_item)"
_LIGHT = r"(?P<light>[*_]{1,3}|[(^{<])"  # within the brackets


def _items(item: str) -> str:
    return rf"{_BREAK}(?>{item})(?:{_BETWEEN}(?>{item}))*{_B}[,;]?{_BREAK}"


_TARGET = (
    r"\((?P<target><[^<>\n]{0,300}+>|[^()\s]{0,300}+(?:\([^()\s]{0,100}+\)[^()\s]{0,100}+)?)"
    r"(?:[ ]\"[^\"\n]{0,100}+\")?\)"
)
_AND = rf"(?<=[{BLANKS}])(?:{phrases('ands')}|{phrases('ors')}|&)(?=[{BLANKS}])"
_SEPARATOR = rf"{_B}(?:[,，、;；]|(?:,[{BLANKS}])?{_AND})?{_B}"
_HIGH = rf"{_B}(?P<raised>[{SUPERSCRIPT}]++(?:[,˒⸴⁻–][{SUPERSCRIPT}]++)*+){_B}"
_SOURCE_CUE = rf"(?:(?:{_SEE}{_B})?{_WORDS}{_CONNECTS}|{_SEE})"
_DOUBLE = rf"\[(?:{_B}(?:{_SOURCE_CUE}{_B})?{_ROW}{_B}|{_HIGH})\]"
_EITHER = rf"(?:{_ROW}|(?P<figure>{_INNER}))"
_PARENTHESES = (
    rf"[(（]{_B}(?:(?:{_SOURCE_CUE}|{_WORDINGS['introduces']}){_B})?"
    rf"(?:{_ROW}|{_DOUBLE}|{_HIGH}|(?={_WORDS}){_IN_ROUND}){_B}[)）]"
)
_ENTITY = rf"&(?:\#0*91|\#x0*5b|lbrack|lsqb);{_INNER}&(?:\#0*93|\#x0*5d|rbrack|rsqb);"
_ANCHOR = rf"<a\b[^<>\n]{{0,200}}+>{_B}(?:{_BRACKET}|{_INNER}){_B}</a>"


_DEFINED = {  # each by what calls it: written out in each of its places it takes long to compile
    _ROW: rf"\^?{_BRACKET}(?:{_TARGET})?(?:{_SEPARATOR}{_BRACKET}(?:{_TARGET})?)*",
    _BRACKET: (
        rf"(?:\[(?:{_INNER}|{_B}{_LIGHT}{_INNER}(?:(?P=light)|[)}}>]){_B})\\{{0,2}}\]|"
        rf"\\{{1,2}}\[{_INNER}\\{{0,2}}\]|"
        + "|".join(f"{opening}{_INNER}{closing}" for opening, closing in PAIRS)
        + ")"
    ),
    _INNER: _items(_ITEM),
    _IN_ROUND: _items(_ROUND_ITEM),
    _ITEM: _item(_NO_BRACKET),
    _ROUND_ITEM: _item(_NO_ROUND),
}


def _compiled(pattern: str) -> "regex.Pattern[str]":
    needed = pattern
    for name, defined in _DEFINED.items():
        if name in needed:
            needed = f"(?(DEFINE)(?P<{name[3:-1]}>{defined})){needed}"
    return regex.compile(needed, regex.IGNORECASE)


def _compile_ending(pattern: str, flags: int = 0) -> "regex.Pattern[str]":
    """Compile a pattern of a text's end, which is matched with the whole text."""
    return regex.compile(pattern, flags | regex.REVERSE)


TARGET = _compiled(_TARGET)
SEPARATOR = _compiled(rf"{_SEPARATOR}(?=[{regex.escape(OPENING)}\\])")
_AROUND = {  # by the character that they begin with
    "[": (
        rf"{_DOUBLE}|(?P<start>\[cite_start\])|\[(?P<tag>sup|cite|ref|citation|source)\]{_INNER}\[/(?P=tag)\]"
    ),
    "(": _PARENTHESES,
    "<": (
        rf"<(?P<tag>sup|cite|co?|ref|citation|sources?|footnote)\b[^<>\n]{{0,80}}+>{_B}"
        rf"(?:{_ANCHOR}|{_ROW}|(?P<figure>{_INNER})){_B}</(?P=tag)>|{_ANCHOR}"
        rf"|<(?P<style>b|i|u|em|strong|small|span|mark)\b[^<>\n]{{0,80}}+>{_B}{_ROW}{_B}</(?P=style)>"
        rf"|<(?P<tag>cite|ref|citation|source|footnote)\s[^<>\n=]{{0,20}}+=\s?[\"']?{_INNER}[\"']?\s?"
        rf"(?:/>|>{_B}</(?P=tag)>)"
        rf"|(?P<start><co:{_B}\d[\d,{BLANKS}]{{0,80}}>)|</co:{_INNER}>"  # around what it stands for
    ),
    "^": (rf"\^(?:{_BRACKET}|{_EITHER})\^|\^{_BRACKET}"),
    "$": (rf"\$\^(?:(?P<figure>{_INNER})|\{{{_EITHER}\}})\$"),
    "\\": (
        rf"\\(?:[a-z]{{0,8}}cite[a-z]{{0,8}}\*?|ref|textsuperscript)(?:\[[^\[\]\n]{{0,80}}+\]){{0,2}}"
        rf"\{{{_EITHER}\}}"
    ),
    "{": (
        rf"\{{(?:(?P<unsure>{_RANGE}(?:{_BETWEEN}{_RANGE})*)|(?=[\"'\#]|{_WORDS})[\"']?{_INNER})\}}"
        rf"|\{{[\"'](?:{_SOURCE})[\"']:{_B}{_EITHER}\}}"
    ),
    "&": (_ENTITY),
    "*": (rf"(?P<run>\*{{1,3}}){_B}(?:{_ROW}|\({_ROW}\)){_B}(?P=run)(?=[^*])"),
    "_": (rf"(?P<run>_{{1,3}}){_B}(?:{_ROW}|\({_ROW}\)){_B}(?P=run)(?=[^_\w])"),
}
_AROUND["（"] = _AROUND["("]
for _char in BEGINS_BRACKET:
    _AROUND[_char] = "|".join(filter(None, [_AROUND.get(_char), rf"(?P<plain>{_BRACKET})"]))
_AROUND |= dict.fromkeys(
    SUPERSCRIPT,
    rf"(?P<raised>[{SUPERSCRIPT}]++(?:[,˒⸴⁻–][{SUPERSCRIPT}]++)*+)"
    rf"(?=[^{SUPERSCRIPT}⁻⁺a-z0-9,˒⸴–]|[,˒⸴–][^{SUPERSCRIPT}])",
)
_COMPILED = {char: _compiled(pattern) for char, pattern in _AROUND.items()}


def around(char: str) -> "regex.Pattern[str] | None":
    """Return the pattern of citations that begin with a character, with what surrounds them."""
    return _COMPILED.get(char)


# Between two markers: all that is between their numbers is cited.
SPAN = _compiled(
    rf"(?:[-‐‑–—−]|{_B}(?<=[{BLANKS}])(?:{_WORDINGS['through']})(?=[{BLANKS}]){_B})(?=[{re.escape(OPENING)}\\])"
)
TITLED = re.compile(r"\d\.[ \u00a0]+[^\W\d_]")
AWAY = re.compile(r"://|^www\.|^mailto:|/|\.\w")  # a link's target that is a place of its own
# In prose: "according to source 7, …", and "Source 7 says …".
_SPOKEN = rf"(?P<word>{_WORDINGS['spoken']})[{BLANKS}](?:no\.[ ])?"
_NUMBERS = rf"(?:(?<=s[ ]|n[ ]){_RANGE}(?:{_BETWEEN}{_RANGE})*+|{_RANGE})"
INTRODUCED = _compiled(rf"{_SPOKEN}{_NUMBERS}(?=[^\w%°.,]|[.,][^\w])")
REPORTING = _compiled(rf"{_SPOKEN}{_NUMBERS}(?=[{BLANKS}](?:{phrases('reports')})[\s,.:;])")
INTRODUCES = _compile_ending(
    rf"\b(?:{phrases('introduces')}|{_WORDINGS['see']}|{phrases('ands')})[ ]"
    rf"(?:(?:{phrases('articles')}) )?",
    regex.IGNORECASE,
)
BEGINS = _compile_ending(
    rf"(?:^|[.!?;:,\]】］〕)…]|\b(?:{phrases('joins')}))[\s>*_\-]*", regex.IGNORECASE
)

_FORMULA = rf"\\\([^\n]{{0,{MAX_MATH}}}?\\\)|\\\[[\s\S]{{0,{MAX_MATH}}}?\\\]"
MATH = {
    "$": regex.compile(
        rf"\$\$[\s\S]{{1,{MAX_MATH}}}?\$\$"
        # A lookbehind would hide from `partial` that a lazy repetition may still go on.
        rf"|\$(?=[^\s$\d])(?:[^\s$]{{1,{MAX_MATH}}}+(?<!\\)|[^$\n]{{0,{MAX_MATH}}}?(?:[\^_=+<>{{}}]|"
        rf"[\\^_=+<>{{}}][^$\n]{{0,{MAX_MATH}}}?[^$\s\\]))\$(?=\D)"
        rf"|(?<!\w)\$[\[(][^$\n]{{0,{MAX_MATH}}}?[\])]\$(?=\D)"
        rf"|\$\d[^\s$]{{0,40}}?(?:[\^_={{}}]|[\\^_={{}}][^$\n]{{0,{MAX_MATH}}}?[^$\s\\])\$(?=\D)"
    ),
    "\\": regex.compile(_FORMULA),
}
_ENVIRONMENT = (
    r"\\begin\{(?P<name>(?:equation|align|gather|multline|eqnarray|(?:display)?math|[bpvV]?matrix|cases|"
    rf"array)\*?)\}}[\s\S]{{0,{2 * MAX_MATH}}}?\\end\{{(?P=name)\}}"
)
LITERAL = {  # what is no citation whatever stands in it, by the character that it begins with
    "`": regex.compile(  # inline code, up to as many backticks on the same line
        r"(?P<run>`{1,100}+)(?:[^`\n]++|(?!(?P=run)[^`])`++)*?(?P=run)(?=[^`])"
    ),
    "$": MATH["$"],
    "\\": regex.compile(rf"{_FORMULA}|{_ENVIRONMENT}"),
    "<": regex.compile(
        rf"<(?P<name>code|pre|tt|kbd|samp)\b[^<>\n]{{0,80}}>[\s\S]{{0,{MAX_CODE}}}?</(?P=name)>",
        regex.IGNORECASE,
    ),
}


# What stands before a bracket that is an index: an identifier, a call, an index, an address. A
# word, a figure, a unit or a name with a number is none.
_INDEX = _compile_ending(
    r"(?:(?<!\w)(?:\w*[^\W_]_+|_+)[^\W_]+"  # snake_case, but no _emphasis_
    r"|(?<!(?<!\w)_[^_]*)(?<!\w)[^\W_]+_"  # class_
    r"|(?<!\w)[a-z]+[a-z][A-Z][a-z]\w*"  # camelCase
    r"|(?<![\w.])[A-Za-z_]\w*(?:\.\w+)*\."
    r"(?!(?:pdf|docx?|xlsx?|pptx?|csv|md|txt|html?)$)[a-z_]\w*"  # with a dot, and no file
    r"|(?<!\w)[A-Za-z_]\w*(?!\((?:s|es|n|en|e|r|er|in|innen)\)$)\([^()\n]*\)"  # a call
    r"|\w\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\]|\w\[[^\[\]\s]*"  # after or within another index
    r"|(?:->|::|[$@]\{?(?!\d))\w+|(?<!\w)\w*vec!"
    r"|(?<!\w)[A-Z](?:\[-?\d+\][A-Z])+"  # R[1]C[2]
    r"|(?<![\w.,'’/-]|\d[ ])[a-uw-z]\d?)"  # a lone letter, no unit behind a figure
)


# An address that goes on: a closing bracket ends it unless it was opened within, as does a stop.
_ADDRESS = _compile_ending(r"://(?:[^\s()<>]|\([^\s()<>]*\))*(?<=[\w)\]/=&?#%+~@-])")
# A list in JSON, one that is assigned, an interval.
_LIST = _compile_ending(
    rf"(?:(?:^|[{{,])\s*[\"'](?!{_SOURCE}[\"'])\w+[\"']:|^\s*(?!{_SOURCE}\b)[a-z_]\w*[ ]?=|∈)[ ]?"
)
ROW = _compile_ending(r"(?<!\w)[A-Z]")
COLUMN = regex.compile(r"\[\d+\][A-Z]\[")
MEMBER = regex.compile(r"\[\d+\]\.[a-z_]")  # what follows: `args[7].name`


def is_index(before: str) -> bool:
    """Whether a bracket directly behind this text is an index or a part of an address."""
    last = before[-1:]
    near = before[-_LOOK_BACK:]
    if last and last in " :=∈" and _LIST.match(near):
        return True
    if not last or not (last.isalnum() or last in "_)]!/=&?#%+~@-"):
        return False
    return bool(_INDEX.match(near) or _ADDRESS.match(before))


# What stands before a raised figure that is an exponent: a figure, a symbol or a unit.
EXPONENT = _compile_ending(
    r"(?:⁽|(?<!\d)\d{1,3}|(?<!\w)(?<!\d[ \u00a0])[A-Za-zΩµ]|[⁻⁺]|[+\-*/^=]\s?\w*\))"
)
UNIT = _compile_ending(
    r"(?:(?<![A-Za-zµ])(?:[kcdmnµμ]?m|mc|in|ft|yd|mi|s|h|A|V|W|K|N|g|kg|l|L|rad|CO|sq))"
)

# What chat clients write: `:contentReference[oaicite:3]{index=3}`, and `citeturn0search3` with or
# without private signs.
FOREIGN = regex.compile(
    r":contentReference\[oaicite:(?P<number>\d{1,4})\]\{index=\d{1,4}\}"
    r"|\ue200?(?<![^\W\d])(?:file)?cite(?:\ue202?turn\d{1,3}(?:search|file|view|news|fetch|academia)"
    r"(?P<number>\d{1,3})){1,20}\ue201?"
)


MAX_RANGE = 20  # numbers; a longer range is text, as is one that runs backwards
_MAX_TOGETHER = 20
_CONTEXT = 500  # characters of the line that are kept for looking back
_MAX_LINE = 300  # of a line that may open or close a fence

_SPECIAL = r"\n`$\\(（<^*_{&" + re.escape(OPENING) + SUPERSCRIPT
# Nor may `source 7` and `Quelle 7` begin in it.
_PLAIN = regex.compile(rf"(?:[^{_SPECIAL}sSqQ]|(?<=[^\W_])[sSqQ]|[sS](?=[^oO])|[qQ](?=[^uU]))+")
_LINE = regex.compile(r"[^\n]+")
_RAISED = regex.compile(f"[{SUPERSCRIPT}]+")
_RAISED_TO = str.maketrans(SUPERSCRIPT + "⁻–", "0123456789--")
_TICKS = regex.compile(r"`{1,100}")
_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
_USUAL = re.compile(r"\[([1-9][0-9]{0,4}(?:–[1-9][0-9]{0,4})?)\][^(]")
FIGURE = regex.compile(rf"[\d{SUPERSCRIPT}]|cite_start", regex.IGNORECASE)
_TELLING = 8  # visible characters of a line that tell a list's entry
_NOT_ESCAPED = "\n\\" + OPENING


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker in a text: its distinct numbers in order, and its place."""

    numbers: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MarkerGroup:
    """Markers side by side, each with the text that parts it from the one before."""

    markers: tuple[Marker, ...]
    between: tuple[str, ...]
    text: str  # as it was spelled
    is_unsure: bool = False  # such as a link to elsewhere: a citation only if its number is known
    leaves: str = ""  # what stays of it without its numbers


class _MoreNeeded(Exception):
    """Raised if the text that follows decides, and has not come yet."""


class Scanner:
    """Reads a text piece by piece; the tokens joined are the text."""

    def __init__(self) -> None:
        self._text = ""  # of the line so far, and what is not decided yet
        self._position = 0
        self._offset = 0  # of `_text` in the whole
        self._line = 0  # where the line begins in `_text`
        self._final = False
        self._lines = Lines()
        self._begins = True  # a line, whose kind is not known yet
        self._is_code = False
        self._cited_to = -1  # where the last marker ended
        self._figure = -1  # in the whole: before it, from where it was looked for, there is none

    def scan(self, text: str, *, final: bool = False) -> Iterator[str | MarkerGroup]:
        """Yield what is decided; with `final`, the rest too."""
        passed = max(self._line, self._position - _CONTEXT)
        self._text = self._text[passed:] + text
        self._position -= passed
        self._line = max(0, self._line - passed)
        self._offset += passed
        end = len(self._text)
        if final:
            self._final = True
            self._text += "\n"  # for patterns that look one character ahead
        while self._position < end:
            spend()
            try:
                yield self._next()
            except _MoreNeeded:
                return

    def _next(self) -> str | MarkerGroup:
        if self._begins:
            self._begin_line()
        char = self._text[self._position]
        if char == "\n":
            self._begins = True
            self._line = self._position + 1
            return self._take(self._line)
        if self._is_code:
            return self._taken_by(_LINE)
        plain = _PLAIN.match(self._text, self._position)
        if plain:  # most of any text
            return self._take(plain.end())
        group = self._citation(char)
        if group:
            self._position += len(group.text)
            self._cited_to = self._offset + self._position
            return group
        if char in SUPERSCRIPT:
            return self._taken_by(_RAISED)
        return self._literal(char) if char in LITERAL else self._take(self._position + 1)

    def _take(self, end: int) -> str:
        taken = self._text[self._position : end]
        self._position = end
        return taken

    def _taken_by(self, pattern: "regex.Pattern[str]") -> str:
        match = pattern.match(self._text, self._position)
        return self._take(match.end() if match else self._position + 1)

    def _match(
        self, pattern: "regex.Pattern[str]", position: int, most: int = MOST
    ) -> "regex.Match[str] | None":
        match = pattern.match(self._text, position, position + most)
        is_cut = not self._final and len(self._text) < position + most
        if not match and is_cut and pattern.match(self._text, position, partial=True):
            raise _MoreNeeded
        return match

    def _before(self, position: int) -> str:
        return self._text[max(self._line, position - _CONTEXT) : position]

    # ── Code and mathematics ─────────────────────────────────────────────────────────────────

    def _begin_line(self) -> None:
        line, newline, _ = self._text[self._position : self._position + _MAX_LINE].partition("\n")
        visible = line.lstrip(" \t>")
        is_fence = visible.startswith(("```", "~~~"))
        if not newline and len(line) < _MAX_LINE and (is_fence or len(visible) < _TELLING):
            raise _MoreNeeded
        self._is_code = self._lines.is_code(line)
        self._begins = False

    def _literal(self, char: str) -> str:
        most = MAX_CODE if char == "`" else MOST
        match = self._match(LITERAL[char], self._position, most)
        if match:
            return self._take(match.end())
        if char == "`":
            return self._taken_by(_TICKS)
        if char != "\\":
            return self._take(self._position + 1)
        if self._position + 1 == len(self._text):
            raise _MoreNeeded
        return self._take(
            self._position + (1 if self._text[self._position + 1] in _NOT_ESCAPED else 2)
        )

    # ── Citations ────────────────────────────────────────────────────────────────────────────

    def _citation(self, char: str) -> MarkerGroup | None:
        if char in "sSqQ":
            return self._spoken()
        if self._is_far_from_figures():
            return None
        first = self._unit(self._position, is_next=self._offset + self._position == self._cited_to)
        return self._together(first) if first else None

    def _unit(self, position: int, *, is_next: bool) -> MarkerGroup | None:
        """Return a bracket, or one with its surroundings: `([7])`, `**[7]**`, `<sup>7</sup>`."""
        char = self._text[position]
        if char in "[\\(" and not is_next and self._is_index(position):
            return None
        plain = _USUAL.match(self._text, position)
        if plain:  # nearly all are so
            numbers = _numbers([plain[1]])
            return self._cited(numbers, position, plain.end() - 1) if numbers else None
        pattern = around(char)
        match = self._match(pattern, position) if pattern else None
        if not match or not self._fits(char, match):
            return None
        groups = match.groupdict()
        is_plain = bool(groups.get("plain"))
        end = match.end()
        target = self._match(TARGET, end) if char in "[\\" else None
        if target and is_plain and self._before(position).endswith("!"):
            return None  # an image
        numbers = _numbers(_ranges(match))
        if not numbers and not groups.get("start"):
            return None
        end = target.end() if target else end
        unsure = match.capturesdict().get("unsure", [])
        leads_away = bool(target and is_plain and AWAY.search(target["target"]))
        is_apart = bool(unsure) and not numbers[0] <= numbers[-1] < numbers[0] + MAX_RANGE
        if is_apart or (leads_away and TITLED.search(match.group())):
            return None  # a fraction, a date; a link to a section, `[1. Refunds](/documents/…)`
        is_unsure = bool(unsure) or leads_away
        return self._cited(numbers, position, end, is_unsure=is_unsure)

    def _is_far_from_figures(self) -> bool:
        """Whether no citation can begin here; the text is searched only once."""
        most = self._position + MOST
        if most > len(self._text) and not self._final:
            return False
        if self._figure < self._offset + self._position:
            match = FIGURE.search(self._text, self._position)
            self._figure = self._offset + (match.start() if match else len(self._text))
        return self._figure - self._offset >= min(most, len(self._text))

    def _is_index(self, position: int) -> bool:
        """Whether a bracket is an index both behind a citation and behind nothing."""
        before = self._before(position)
        if ROW.match(before) and self._match(COLUMN, position):
            return True
        if before[-1:].isalnum() and self._match(MEMBER, position):
            return True
        behind = self._text[max(position - len(before), self._cited_to - self._offset) : position]
        return is_index(before) and is_index(behind)

    def _cited(
        self, numbers: tuple[int, ...], position: int, end: int, *, is_unsure: bool = False
    ) -> MarkerGroup:
        marker = Marker(numbers, self._offset + position, self._offset + end)
        return MarkerGroup((marker,), ("",), self._text[position:end], is_unsure)

    def _fits(self, char: str, match: "regex.Match[str]") -> bool:
        """Whether emphasis opens here, a raised figure is no exponent, and no name continues."""
        before = self._before(match.start())
        if char == "{":
            return not before or before[-1].isspace()
        if char not in "*_":
            figure = match.groupdict().get("raised" if char in SUPERSCRIPT else "figure")
            if not figure:
                return True
            is_power = figure.strip().translate(_RAISED_TO) in ("2", "3")
            return not (EXPONENT.match(before) or (is_power and UNIT.match(before)))
        run = re.escape(match["run"])
        is_open = len(re.findall(rf"(?<![*_]){run}(?![*_])", before)) % 2
        return not (is_open or before.endswith(char) or (char == "_" and before[-1:].isalnum()))

    def _together(self, first: MarkerGroup) -> MarkerGroup:
        """Return a group with all markers beside it, so that the text between can go with them."""
        group, position = first, self._position + len(first.text)
        while not first.is_unsure and len(group.markers) < _MAX_TOGETHER:
            span = separator = None
            if not _USUAL.match(self._text, position):
                span = self._match(SPAN, position)
                separator = span or self._match(SEPARATOR, position)
                if not separator:
                    break
            apart = separator.group() if separator else ""
            start = position + len(apart)
            unit = self._unit(start, is_next=bool(span or not apart))
            if not unit or unit.is_unsure:
                break
            if span:
                unit = _with_all_between(group, unit)
            between = (*group.between, "" if span else apart)
            group = MarkerGroup(
                group.markers + unit.markers, between, group.text + apart + unit.text
            )
            position = start + len(unit.text)
        return group

    def _spoken(self) -> MarkerGroup | None:
        """Match "According to source 7, …" and "Source 7 says …"."""
        before, match = self._before(self._position), None
        cited_to = self._cited_to - self._offset
        between = self._text[max(0, cited_to) : self._position]
        follows_marker = cited_to >= 0 and not between.strip(" \t>*_-…")
        if INTRODUCES.match(before):
            match = self._match(INTRODUCED, self._position)
        elif BEGINS.match(before) or follows_marker:
            match = self._match(REPORTING, self._position)
        numbers = _numbers(match.captures("range")) if match else ()
        if not match or not numbers:
            return None
        return replace(self._cited(numbers, self._position, match.end()), leaves=match["word"])


def _with_all_between(first: MarkerGroup, last: MarkerGroup) -> MarkerGroup:
    """Return `[7]–[9]` as two markers, the second with the numbers between."""
    marker = last.markers[0]
    between = _numbers([f"{first.markers[-1].numbers[-1]}-{marker.numbers[0]}"])[1:-1]
    return replace(last, markers=(replace(marker, numbers=between + marker.numbers),))


def _numbers(ranges: Sequence[str]) -> tuple[int, ...]:
    """Return the distinct numbers in order; none if one of the ranges is invalid."""
    numbers: dict[int, None] = {}
    for range_ in ranges:
        ends = [int(end) for end in re.findall(r"\d+", _INVISIBLE.sub("", range_))]
        if not 0 < ends[0] <= ends[-1] < ends[0] + MAX_RANGE:
            return ()
        numbers.update(dict.fromkeys(range(ends[0], ends[-1] + 1)))
    return tuple(numbers)


def _ranges(match: "regex.Match[str]") -> list[str]:
    """Return the ranges of a match; none if one in `⁷˒⁸` begins with a zero."""
    raised = match.capturesdict().get("raised")
    if not raised:
        return match.captures("range")
    ranges = [part.translate(_RAISED_TO) for part in re.split(r"[,˒⸴]", raised[0])]
    return [] if any(range_.startswith("0") for range_ in ranges) else ranges
