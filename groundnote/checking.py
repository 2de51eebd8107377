"""Verdicts on any text, without a library."""

from collections.abc import Mapping, Sequence

from rag.citations.verdicts import CheckedText, check_text, sources_from_texts


def check(text: str, sources: Sequence[str] | Mapping[int, str]) -> CheckedText:
    """Return a verdict for each number of a text, compared with its source alone.

    `sources` are texts: the first is [1], or each under its own number. What words alone cannot
    decide stays `open`.

        >>> found = check("It weighs 410 g [1].", ["The Aero 5 weighs 410 g."])
        >>> [str(citation.verdict) for citation in found.citations]
        ['supported']

    Raises:
        ValueError: a number is below 1.
    """
    texts = sources if isinstance(sources, Mapping) else dict(enumerate(sources, start=1))
    wrong = [number for number in texts if number < 1]
    if wrong:
        raise ValueError(f"Numbers of sources begin at 1, got {wrong[0]}.")
    given = sources_from_texts((number, source, "") for number, source in texts.items())
    return check_text(text, given)
