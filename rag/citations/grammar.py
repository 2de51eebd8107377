"""The spellings of a citation in the wild, as patterns; DESIGN.md lists them.

Every pattern ends with a character of its own, so that what matches in the beginning of a text
matches in all of it. `regex` also tells whether a beginning may still come to match, which is what
a stream has to know.
"""

import re
import unicodedata

import regex

OPENING = "[【［〔"
SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹"
INVISIBLE = "\u00ad\u200b-\u200f\u2060\ufeff"
BLANKS = " \\t\u00a0\u2009\u202f\u3000"
ZEROS = "".join(map(chr, filter(lambda code: unicodedata.decimal(chr(code), 1) == 0, range(65536))))
BEGINS_BRACKET = OPENING + "\\"
MOST = 1_000  # characters of a spelling
MAX_CODE = 500  # characters between a backtick and the one that closes it, on the same line
MAX_MATH = 300
_LOOK_BACK = 80

_B = rf"[{BLANKS}{INVISIBLE}]*+"
_DIGIT = r"\d"  # of any script
_NUMBER = rf"(?![{ZEROS}])\d(?:[{INVISIBLE}]*+{_DIGIT})*+"
_DASH = rf"(?:[-‐‑–—－]|(?<=[{BLANKS}])(?:to|through|bis)(?=[{BLANKS}]))"
_RANGE = rf"(?P<range>{_NUMBER}(?:{_B}{_DASH}{_B}{_NUMBER})?+)"
_SOURCE = r"(?:sources?|src|refs?|references?|cit(?:e|ation)s?|quellen?|来源|來源|出典|参考)"
_PREFIX = (
    rf"(?:(?:{_SOURCE}|doc(?:ument)?s?|passages?|excerpts?|chunks?|footnotes?){_B}[.:#]?{_B}\#?|"
    rf"[s#^№]{_B})"
)
_REST = r"[^\[\]【】［］〔〕\n]"
_TAIL = (
    rf"(?:(?::[0-9]{{1,4}})?[†‡]{_REST}{{0,80}}+"  # 7†source, 7:0†source, 7†L3-L5
    rf"|[ \u00a0][-–—][ \u00a0](?=[^\W\d_]{{2}}|[\"“„'‘«]){_REST}{{0,120}}+"  # 7 – title
    rf"|{_B}[,;:]?{_B}(?:§|(?:pp?|pages?|sec(?:tion)?s?|ch(?:apter)?s?|lines?|tables?|fig(?:ure)?s?|"
    rf"seiten?|abschnitt|kapitel|zeilen?)\b){_REST}{{0,80}}+"  # 7, §1.1
    rf"|{_B}[:：][ \u00a0](?=[^\W\d_]{{2}}|[\"“„'‘«]){_REST}{{0,120}}+"  # 7: title
    rf"|,[ \u00a0](?!None|True|False|NaN|{_SOURCE})(?-i:[A-ZÄÖÜ][a-zäöüß]{{2}}){_REST}{{0,120}}+)"
)
_BREAK = rf"{_B}\n?{_B}"
# A short word between two numbers joins them in any language; `2 x 4` and `3 of 5` are no lists.
_JOINS = r"(?!(?:x|by|of|von|vs|per|pro)\b)[^\W\d_]{1,3}"
_BETWEEN = (
    rf"{_BREAK}(?:[,，、;；&]{_BREAK}(?:{_JOINS}[{BLANKS}])?|{_JOINS}(?=[{BLANKS}\d])){_BREAK}"
)
# Called by its name: written out in each of its places it takes half a second to compile.
_ITEM = "(?&item)"
_DEFINED = rf"(?(DEFINE)(?P<item>(?:{_PREFIX})?{_RANGE}(?:{_TAIL})?))"
_INNER = rf"{_B}{_ITEM}(?:{_BETWEEN}{_ITEM})*{_B}"
_BRACKET = rf"(?:\\{{0,2}}\[{_INNER}\\{{0,2}}\]|【{_INNER}】|［{_INNER}］|〔{_INNER}〕)"
_TARGET = (
    r"\((?P<target>[^()\s]{0,300}+(?:\([^()\s]{0,100}+\)[^()\s]{0,100}+)?)"
    r"(?:[ ]\"[^\"\n]{0,100}+\")?\)"
)
_SEPARATOR = (
    rf"{_B}(?:[,，、;；]|(?:,[{BLANKS}])?(?<=[{BLANKS}])(?:and|und|or|oder|&)(?=[{BLANKS}]))?{_B}"
)
_ROW = rf"\^?{_BRACKET}(?:{_TARGET})?(?:{_SEPARATOR}{_BRACKET}(?:{_TARGET})?)*"
_HIGH = rf"{_B}(?P<raised>[{SUPERSCRIPT}]++){_B}"
_DOUBLE = rf"\[(?:{_B}(?:{_SOURCE}{_B}[.:\#]?{_B})?{_ROW}{_B}|{_HIGH})\]"
_ANCHOR = rf"<a\b[^<>\n]{{0,200}}+>{_B}(?:{_BRACKET}|{_INNER}){_B}</a>"


def _compiled(pattern: str) -> "regex.Pattern[str]":
    return regex.compile(_DEFINED + pattern if _ITEM in pattern else pattern, regex.IGNORECASE)


def _behind(pattern: str, flags: int = 0) -> "regex.Pattern[str]":
    """What a text ends with: to be matched with all of the text, from its end."""
    return regex.compile(pattern, flags | regex.REVERSE)


BRACKET = _compiled(_BRACKET)
TARGET = _compiled(_TARGET)
SEPARATOR = _compiled(rf"{_SEPARATOR}(?=[{regex.escape(OPENING)}\\])")
AROUND = {  # by the character that they begin with
    "[": _compiled(_DOUBLE),
    "(": _compiled(
        rf"[(（]{_B}(?:(?:see|cf\.?|siehe|vgl\.?|{_SOURCE}{_B}[.:\#]?){_B})?(?:{_ROW}|{_DOUBLE}|"
        rf"{_HIGH}|{_SOURCE}{_B}[.:\#]?{_B}{_INNER}){_B}[)）]"
    ),
    "<": _compiled(
        rf"<(?P<tag>sup|cite|ref|citation|source|footnote)\b[^<>\n]{{0,80}}+>{_B}"
        rf"(?:{_ANCHOR}|{_ROW}|(?P<figure>{_INNER})){_B}</(?P=tag)>|{_ANCHOR}"
        rf"|<(?P<style>b|i|u|em|strong|small|span|mark)\b[^<>\n]{{0,80}}+>{_B}{_ROW}{_B}</(?P=style)>"
        rf"|<(?:cite|ref|citation|source|footnote)\s[^<>\n=]{{0,20}}+=\s?[\"']?{_INNER}[\"']?\s?/?>"
    ),
    "^": _compiled(rf"\^{_BRACKET}"),
    "*": _compiled(rf"(?P<run>\*{{1,3}}){_B}{_ROW}{_B}(?P=run)(?=[^*])"),
    "_": _compiled(rf"(?P<run>_{{1,3}}){_B}{_ROW}{_B}(?P=run)(?=[^_\w])"),
}
AROUND["（"] = AROUND["("]
RAISED = _compiled(
    rf"[{SUPERSCRIPT}]++(?:[,˒⸴⁻–][{SUPERSCRIPT}]++)*+"
    rf"(?=[^{SUPERSCRIPT}⁻⁺a-z0-9,˒⸴–]|[,˒⸴–][^{SUPERSCRIPT}])"
)
_REPORTS = (
    r"(?:says?|states?|gives?|notes?|reports?|shows?|lists?|adds?|claims?|mentions?|confirms?|"
    r"den(?:ies|y)|specif(?:ies|y)|recommends?|requires?|allows?|warns?|explains?|describes?|"
    r"suggests?|contradicts?|disagrees?|agrees?|nennt|sagt|gibt|zeigt)"
)
AWAY = re.compile(r"://|^www\.|^mailto:|/|\.\w")  # a link's target that is a place of its own
# In prose: "according to source 7, …", and "Source 7 says …".
_SPOKEN = rf"(?P<word>sources?|quellen?)[{BLANKS}](?:no\.[ ])?"
_NUMBERS = rf"(?:(?<=s[ ]|n[ ]){_RANGE}(?:{_BETWEEN}{_RANGE})*+|{_RANGE})"
INTRODUCED = _compiled(rf"{_SPOKEN}{_NUMBERS}(?=[^\w%°.,]|[.,][^\w])")
REPORTING = _compiled(rf"{_SPOKEN}{_NUMBERS}(?=[{BLANKS}]{_REPORTS}[\s,.:;])")
INTRODUCES = _behind(
    r"(?:according to|as per|\bper|based on|\bsee|\bfrom|\bin|\bby|cf\.|laut|nach|gemäß|siehe|"
    r"\band|\bund)[ ](?:the )?",
    regex.IGNORECASE,
)
BEGINS = _behind(
    r"(?:^|[.!?;:,\]】］〕)…]|\b(?:and|but|while|und|aber))[\s>*_\-]*", regex.IGNORECASE
)

MATH = {
    "$": regex.compile(
        rf"\$\$[\s\S]{{1,{MAX_MATH}}}?\$\$"
        rf"|\$(?=[^\s$\d])(?:[^\s$]{{1,{MAX_MATH}}}+|[^$\n]{{0,{MAX_MATH}}}?[\\^_=+<>{{}}]"
        rf"[^$\n]{{0,{MAX_MATH}}}?)(?<![\s\\])\$(?=\D)"
        rf"|\$\d[^\s$]{{0,40}}?[\\^_={{}}][^$\n]{{0,{MAX_MATH}}}?(?<![\s\\])\$(?=\D)"
    ),
    "\\": regex.compile(rf"\\\([^\n]{{0,{MAX_MATH}}}?\\\)|\\\[[\s\S]{{0,{MAX_MATH}}}?\\\]"),
}


def beginning_with(char: str) -> "list[regex.Pattern[str]]":
    """The patterns of what may begin with this character."""
    found = [AROUND.get(char), MATH.get(char), BRACKET if char in BEGINS_BRACKET else None]
    return [pattern for pattern in found if pattern]


# What stands before a bracket that is an index: an identifier, a call, an index, an address. A
# word, a figure, a unit or a name with a number is none.
_INDEX = _behind(
    r"(?:(?<![^\W_])(?!_[^_\s]++_(?![\w]))(?:\w+_\w*|_\w+)"  # snake_case, but no _emphasis_
    r"|(?<!\w)[a-z]+[a-z][A-Z][a-z]\w*"  # camelCase
    r"|(?<![\w.])[A-Za-z_]\w*(?:\.\w+)*\."
    r"(?!(?:pdf|docx?|xlsx?|pptx?|csv|md|txt|html?)$)[a-z_]\w*"  # with a dot, and no file
    r"|(?<!\w)[A-Za-z_]\w*(?!\((?:s|es|n|en|e|r|er|in|innen)\)$)\([^()\n]*\)"  # a call
    r"|\w\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\]|\w\[[^\[\]\s]*"  # after or within another index
    r"|(?:->|::|[$@])\w+|://\S*"
    r"|(?<![\w.,'’-]|\d[ ])[a-uw-z]\d?)"  # a lone letter, no unit behind a figure
)


def is_index(before: str) -> bool:
    """Whether a bracket directly after this text is an index."""
    last = before[-1:]
    touches = last.isalnum() or (last and last in "_)]")
    return bool(touches and _INDEX.match(before[-_LOOK_BACK:]))


# What stands before a raised figure that is an exponent: a figure, a symbol or a unit.
EXPONENT = _behind(r"(?:(?<!\d)\d{1,3}|(?<!\w)(?<!\d[ \u00a0])[A-Za-zΩµ]|[⁻⁺]|[+\-*/^=]\s?\w*\))")
UNIT = _behind(r"(?:(?<![A-Za-zµ])(?:[kcdmnµμ]?m|mc|in|ft|yd|mi|s|h|A|V|W|K|N|g|kg|l|L|rad|CO|sq))")
