"""Units of measure: their spellings, and which of them can be compared."""

from rag.text.languages import all_meanings
from rag.text.languages.language import read_lists, values

# A unit's sign to what it measures, and how many base units it is.
DIMENSIONS = {
    sign: (measure, factor)
    for measure, signs in read_lists("units").items()
    for sign, factor in values(signs).items()
}
_OTHER_WORDS = {"in", "a", "t", "×"}  # signs that are units only where a language spells them out
# All spellings, in lower case, to the sign.
UNIT_SIGNS: dict[str, str] = {
    sign: sign for sign in DIMENSIONS if sign not in _OTHER_WORDS
} | all_meanings("units")
