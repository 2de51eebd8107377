"""Let the markers of a stream through only if their numbers are allowed."""

from collections.abc import Callable

from rag.citations.markers import Rewriter


class MarkerGate:
    """`keep_markers` for a text that arrives in deltas: joined, the outputs are the same text.

    Only what cannot be decided yet is held back: the beginning of a marker, one blank, or the
    line after an unclosed backtick, each up to the limits in rag.citations.grammar.
    """

    def __init__(self, allowed: Callable[[int], bool]) -> None:
        self._rewriter = Rewriter(allowed)

    def feed(self, delta: str) -> str:
        """The next text to show; often shorter or longer than the delta."""
        return self._rewriter.feed(delta)

    def finish(self) -> str:
        """What was held back, when the stream has ended."""
        return self._rewriter.finish()

    @property
    def cited(self) -> tuple[int, ...]:
        """Allowed numbers given out so far, in the order of their first citation."""
        return tuple(self._rewriter.cited)

    @property
    def removed(self) -> tuple[int, ...]:
        """Numbers taken out so far, in the order in which they first appeared."""
        return tuple(self._rewriter.removed)
