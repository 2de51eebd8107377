"""Markdown to safe HTML for answers: tables, tasks, mathematics; nothing is fetched."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from html import unescape

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import escape

from rag.citations.grammar import MATH

HIGHEST_HEADING = 2  # of the page; an answer's headings are below it
TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
MATH_TAGS = {
    "math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow",
    "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr",
    "munder", "munderover",
}  # fmt: skip
TAGS = MATH_TAGS | {
    "a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "*": {"dir"}, "a": {"href"}, "ol": {"start"}, "td": {"align"}, "th": {"align"},
    "math": {"display", "xmlns"}, "mo": {"stretchy", "fence", "form", "minsize", "maxsize"},
    "mi": {"mathvariant"}, "mtable": {"columnalign"}, "mfrac": {"linethickness"},
}  # fmt: skip
# Blocks with a text direction of their own, so that languages do not affect each other; the
# contents of a quotation follow it.
DIRECTED = {f"{name}_open" for name in ("paragraph", "heading", "list_item", "th", "td")}


def rendered(text: str) -> str:
    """Return the safe HTML of a Markdown text; none of its own tags is kept."""
    return nh3.clean(
        _parser().render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable("reference")  # texts may not define the targets of citations
    parser.inline.ruler.before("escape", "math", _inline_math)
    parser.block.ruler.before("code", "math", _block_math, {"alt": ["paragraph"]})
    parser.core.ruler.push("as_answers_use_it", _changed)
    parser.add_render_rule(
        "math", lambda _, tokens, place, *_more: formula_html(tokens[place].content)
    )
    return parser


# ── Mathematics ──────────────────────────────────────────────────────────────────────────────


def _inline_math(state: StateInline, silent: bool) -> bool:
    pattern = MATH.get(state.src[state.pos])
    # The whole text: it examines what stands before it.
    match = pattern.match(state.src + "\n", state.pos) if pattern else None
    if match is None:
        return False
    if not silent:
        state.push("math", "math", 0).content = match[0]
    state.pos = match.end()
    return True


def _block_math(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a formula that begins and ends a line, whatever lines are inside."""
    position = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith(("$$", "\\["), position):
        return False
    match = MATH[state.src[position]].match(state.src, position)
    last = next((n for n in range(start, end) if match and state.eMarks[n] >= match.end()), None)
    if match is None or last is None or state.src[match.end() : state.eMarks[last]].strip():
        return False
    if not silent:
        state.line = last + 1
        state.push("paragraph_open", "p", 1)
        state.push("math", "math", 0).content = match[0]
        state.push("paragraph_close", "p", -1)
    return True


@lru_cache(maxsize=2_000)
def formula_html(source: str) -> str:
    """Convert a formula with its delimiters to MathML; unchanged where that fails."""
    from latex2mathml.converter import convert

    is_block = source.startswith(("$$", "\\["))
    inside = source[2:-2] if source.startswith(("$$", "\\")) else source[1:-1]
    try:
        written = convert(inside, display="block" if is_block else "inline")
        return _FORMULA_TEXT.sub(_as_text, str(written))
    except Exception:  # noqa: BLE001 - any text by a model is shown
        return f"<code>{escape(source)}</code>"


_FORMULA_TEXT = re.compile(r"(?<=<mtext>).*?(?=</mtext>)", re.DOTALL)  # left by the converter


def _as_text(match: re.Match[str]) -> str:
    return str(escape(re.sub(r"\\([&%$#_{}])", r"\1", unescape(match[0]))))


# ── What else is shown in another way ────────────────────────────────────────────────────────


def _changed(state: StateCore) -> None:
    quotations = 0
    for before, token in zip([None, *state.tokens], state.tokens, strict=False):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + HIGHEST_HEADING)}"
        if not quotations and token.type in (*DIRECTED, "blockquote_open"):
            token.attrSet("dir", "auto")
        quotations += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        style = str(token.attrGet("style") or "")
        if style.startswith("text-align:"):
            token.attrSet("align", style.removeprefix("text-align:"))
        if token.children:
            if before is not None and before.type == "paragraph_open":
                _check_boxes(token.children[0])
            token.children = list(_without_images(token.children))


def _check_boxes(first: Token) -> None:
    box = TASKS.get(first.content[:4]) if first.type == "text" and first.level == 0 else None
    if box is not None:
        first.content = box + first.content[4:]


def _without_images(tokens: list[Token]) -> Iterator[Token]:
    """Replace an image by a link: loading it would tell its server who reads the page."""
    for token in tokens:
        if token.type != "image":
            yield token
            continue
        yield Token("link_open", "a", 1, attrs={"href": token.attrGet("src") or ""})
        yield Token("text", "", 0, content=token.content or "Picture")
        yield Token("link_close", "a", -1)
