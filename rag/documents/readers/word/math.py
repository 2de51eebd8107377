"""Equations of Word (Office Math, ECMA-376 part 1, 22.1) as LaTeX text."""

from typing import Any

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
SIGNS = {"∑": r"\sum", "∏": r"\prod", "∫": r"\int", "∞": r"\infty", "√": r"\sqrt"}
DEEPEST = 40
FORMS = {
    "f": r"\frac{{{num}}}{{{den}}}",
    "sSup": "{e}^{{{sup}}}",
    "sSub": "{e}_{{{sub}}}",
    "sSubSup": "{e}_{{{sub}}}^{{{sup}}}",
    "d": "({e})",
}


def latex(element: Any, depth: int = 0) -> str:
    """The formula; what has no form of its own is told by its parts, in order."""
    if depth > DEEPEST:
        return ""
    name = element.tag.removeprefix(MATH)
    if name == "t":
        return "".join(SIGNS.get(sign, sign) for sign in element.text or "")
    if name not in (*FORMS, "rad", "nary"):
        return "".join(latex(child, depth + 1) for child in element)
    parts = _MathParts({child.tag.removeprefix(MATH): latex(child, depth + 1) for child in element})
    if name == "rad":
        return rf"\sqrt{'[' + parts['deg'] + ']' if parts['deg'] else ''}{{{parts['e']}}}"
    if name == "nary":
        limits = ((mark, parts[key]) for mark, key in (("_", "sub"), ("^", "sup")))
        told = "".join(f"{mark}{{{limit}}}" for mark, limit in limits if limit)
        return f"{_sign(element)}{told} {parts['e']}"
    return FORMS[name].format_map(parts)


class _MathParts(dict[str, str]):
    """Parts that are not there are empty."""

    def __missing__(self, key: str) -> str:
        return ""


def _sign(element: Any) -> str:
    """Of a sum, a product or an integral; without a word of it, an integral."""
    found = element.find(f"{MATH}naryPr/{MATH}chr")
    sign = found.get(f"{MATH}val", "∫") if found is not None else "∫"
    return SIGNS.get(sign, sign)
