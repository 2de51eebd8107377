"""How a turn ended."""

from collections.abc import Iterable

from rag.records import Event, Failed, Finished


def ending(events: Iterable[Event]) -> Finished | Failed:
    """The event that a turn ended with; what a judge says afterwards is read, but not it."""
    return [each for each in events if isinstance(each, Finished | Failed)][-1]
