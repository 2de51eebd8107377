"""Words that look like names and are none: units, dates, the openings of sentences."""

import tomllib
from importlib.resources import files

from rag.text.languages.language import words

_TOLD = tomllib.loads(
    files("rag.text.languages").joinpath("names.toml").read_text(encoding="utf-8")
)
UNITS, CALENDAR, ORDINARY, REQUESTS, GENERIC, VARIANTS = (
    words(_TOLD[each])
    for each in ("units", "calendar", "ordinary", "requests", "generic", "variants")
)
