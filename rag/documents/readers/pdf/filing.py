"""What a report to an exchange's supervisor is called: company, form and period.

Its largest words are the authority's name, the same on every report of every company.
"""

import re
from collections.abc import Sequence

from rag.language.languages import read_lists

SAID = read_lists("filings")
COVER_LINES = 60
FORM = re.compile(
    rf"(?<!\w){SAID['form']}\s+(\d{{1,2}}-[A-Z]{{1,3}}(?:/A)?|[A-Z]-\d{{1,2}}(?:/A)?)(?!\w)",
    re.IGNORECASE,
)
PERIOD = re.compile(
    rf"{SAID['before_period']}({SAID['period']}:?\s+\w+\.? \d{{1,2}},? \d{{4}})", re.IGNORECASE
)
NAMED = re.compile(rf"\(?\s*{SAID['named']}", re.IGNORECASE)
NO_NAME = re.compile(rf"\W*|{SAID['no_name']}.*", re.IGNORECASE)


def filing_title(lines: Sequence[str]) -> str:
    """The title from the lines of a cover page; "" for any other document."""
    cover = list(lines[:COVER_LINES])
    text = " ".join(" ".join(cover).split())
    form, period = FORM.search(text), PERIOD.search(text)
    company = _company(cover)
    if not (form and company):
        return ""
    parts = [company, f"Form {form[1].upper()}", " ".join(period[1].split()) if period else ""]
    return " – ".join(filter(None, parts))


def _company(cover: Sequence[str]) -> str:
    """The words above "(Exact name of registrant as specified in its charter)"."""
    at = next((index for index, line in enumerate(cover) if NAMED.match(line)), 0)
    above = (line.strip() for line in reversed(cover[:at]))
    return next((line for line in above if not NO_NAME.fullmatch(line)), "")[:100]
