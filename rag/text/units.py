"""Units of measure: their spellings, and which of them can be compared."""

from rag.text.languages import LANGUAGES

_MEASURES = {
    "mass": {"µg": 1e-6, "mg": 1e-3, "g": 1.0, "kg": 1e3, "t": 1e6},
    "pounds": {"oz": 1.0, "lb": 16.0},
    "time": {
        "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0,
        "business day": 86400.0, "week": 604800.0,
    },
    "months": {"month": 1.0, "year": 12.0},
    "length": {"nm": 1e-9, "µm": 1e-6, "mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3},
    "feet": {"in": 1.0, "ft": 12.0, "mi": 63360.0},
    "area": {"mm²": 1e-6, "cm²": 1e-4, "m²": 1.0},
    "volume": {"µl": 1e-6, "ml": 1e-3, "cl": 1e-2, "dl": 0.1, "l": 1.0},
    "share": {"%": 1.0},
    "euros": {"€": 1.0, "cent": 0.01}, "dollars": {"$": 1.0},
    "sterling": {"£": 1.0}, "yen": {"¥": 1.0},
    "francs": {"chf": 1.0}, "sek": {"sek": 1.0}, "nok": {"nok": 1.0},
    "power": {"mw": 1e-3, "w": 1.0, "kw": 1e3},
    "energy": {"wh": 1.0, "kwh": 1e3},
    "voltage": {"µv": 1e-6, "mv": 1e-3, "v": 1.0, "kv": 1e3},
    "current": {"ma": 1e-3, "a": 1.0},
    "charge": {"mah": 1e-3, "ah": 1.0},
    "resistance": {"ohms": 1.0, "kilohms": 1e3},
    "frequency": {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9},
    "sound": {"db": 1.0}, "signal": {"dbm": 1.0}, "gain": {"dbi": 1.0},
    "data": {"bit": 0.125, "bits": 0.125, "byte": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12},
    "rate": {"kbit/s": 1e3, "mbit/s": 1e6, "gbit/s": 1e9, "mb/s": 8e6, "gb/s": 8e9},
    "warmth": {"°c": 1.0}, "fahrenheit": {"°f": 1.0}, "angle": {"°": 1.0},
    "pressure": {"pa": 1.0, "hpa": 100.0, "kpa": 1e3, "bar": 1e5},
    "light": {"lm": 1.0}, "brightness": {"nits": 1.0}, "dots": {"dpi": 1.0}, "points": {"px": 1.0},
    "turns": {"rpm": 1.0}, "times": {"×": 1.0},
}  # fmt: skip
# A unit's sign to what it measures, and how many base units it is.
DIMENSIONS = {
    sign: (measure, factor)
    for measure, signs in _MEASURES.items()
    for sign, factor in signs.items()
}
# All spellings, in lower case, to the sign.
UNIT_SIGNS = {sign: sign for sign in DIMENSIONS if sign not in ("in", "a", "t", "×")}
for _language in LANGUAGES:
    UNIT_SIGNS |= dict(_language.units)
UNIT_SIGNS |= {
    "business days": "business day", "business day": "business day", "working days": "business day",
    "working day": "business day", "business-day": "business day", "work days": "business day",
    "calendar days": "day", "db(a)": "db", "ohm": "ohms", "kilohm": "kilohms", "mbit": "mbit/s",
    "gbit": "gbit/s", "nit": "nits", "khz": "khz",
}  # fmt: skip
