"""Readers of Markdown of other houses, with all that they can do; and what is harmless."""

import json
import re
import shutil
import subprocess
from functools import cache

import mistune
from markdown_it import MarkdownIt
from mdit_py_plugins.footnote import footnote_plugin
from selectolax.lexbor import LexborHTMLParser

from tests.other_environments import NODE

PLUGINS = "table strikethrough footnotes task_lists def_list url math abbr mark superscript"
# What Markdown alone can make. None of these asks a server or runs a script.
TAGS = {
    "html", "head", "body", "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "a", "code",
    "pre", "em", "strong", "del", "s", "table", "thead", "tbody", "tr", "td", "th", "hr", "br",
    "blockquote", "input", "div", "span", "dl", "dt", "dd", "abbr", "section", "sup", "mark",
    "-text",
}  # fmt: skip
ATTRIBUTES = {
    "href", "title", "align", "style", "class", "start", "type", "checked", "disabled", "id",
    "role",
}  # fmt: skip
HREF = re.compile(r"(?:https?|mailto|tel):|(?![^/?#]*:)", re.IGNORECASE)
NUMBER = re.compile(r"\[\s*\^?\d+\s*\]")


@cache
def _python_readers():
    plain = MarkdownIt("commonmark", {"html": True})
    more = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return {
        "markdown-it-py": plain.render,
        "markdown-it-py with footnotes": more.use(footnote_plugin).render,
        "mistune": mistune.create_markdown(escape=False),
        "mistune with plugins": mistune.create_markdown(escape=False, plugins=PLUGINS.split()),
    }


@cache
def _node():
    if not ((NODE / "node_modules" / "marked").exists() and shutil.which("node")):
        return None
    return subprocess.Popen(
        ["node", "render.mjs"],
        cwd=NODE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def rendered(text):
    """The HTML that each reader makes of a text."""
    for name, read in _python_readers().items():
        yield name, read(text)
    node = _node()
    if node is not None:
        node.stdin.write(json.dumps(text) + "\n")
        node.stdin.flush()
        answer = json.loads(node.stdout.readline())
        yield from zip(("marked", "marked with footnotes"), answer, strict=True)


def harm_in(html, *, leads=lambda number, href: False):
    """What of a page asks a server, runs a script, or leads a number elsewhere; "" for nothing.

    `leads` says whether a number may lead there.
    """
    for node in LexborHTMLParser(html).root.traverse():
        if node.tag not in TAGS:
            return f"<{node.tag}>"
        for name, value in node.attributes.items():
            if name not in ATTRIBUTES and not name.startswith(("data-", "aria-")):
                return f"{name}={value}"
            if name == "href" and not HREF.match(value or ""):
                return f"href={value}"
        href = node.attributes.get("href") or ""
        said = node.text() if node.tag == "a" else ""
        number = NUMBER.search(said) or re.fullmatch(r"[\W_]*\d+[\W_]*", said)
        if number and not href.startswith("#") and not leads(number[0], href):
            return f"{said!r} leads to {href}"
    return ""


def harms(text, **options):
    """By reader, what it makes of a text."""
    found = {name: harm_in(html, **options) for name, html in rendered(text)}
    return {name: harm for name, harm in found.items() if harm}
