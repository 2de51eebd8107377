"""The spellings of a citation in the wild, as patterns; DESIGN.md lists them.

Every pattern ends with a character of its own, so that what matches in the beginning of a text
matches in all of it. `regex` also tells whether a beginning may still come to match, which is what
a stream has to know.
"""

import re
import unicodedata

from rag.language.languages import any_pattern, phrases, read_lists
from rag.language.lazy_patterns import regex

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
    """A number or range, with what names it before and what tells of it behind."""
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
    """What a text ends with: to be matched with all of the text, from its end."""
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
    """A citation that begins with a character, with what stands around it."""
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
    """Whether a bracket directly after this text is an index, or part of an address."""
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
