"""Words that look like names and are none: units, dates, the openings of sentences."""

from rag.text.languages.language import read_lists, words

_TOLD = {name: words(listed) for name, listed in read_lists("names").items()}
UNITS, CALENDAR, ORDINARY = _TOLD["units"], _TOLD["calendar"], _TOLD["ordinary"]
REQUESTS, GENERIC, VARIANTS = _TOLD["requests"], _TOLD["generic"], _TOLD["variants"]
