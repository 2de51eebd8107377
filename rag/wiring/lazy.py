"""Attributes that are made at their first use: a page does not wait for what answers questions."""

from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")
_MAKING = RLock()  # one for all: what is made may need others, in any order


class once(Generic[Made]):  # noqa: N801 - it is read as a decorator
    """Calls the method once, whatever thread asks first, and keeps what it returns.

    What only one attribute needs is imported in its method, and so loaded with it.
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make = make
        self._name = make.__name__

    def __get__(self, owner: Any, kind: type) -> Made:
        # Only until it is made: from then on it is found in the object itself.
        with _MAKING:
            if self._name not in owner.__dict__:
                owner.__dict__[self._name] = self._make(owner)
            made: Made = owner.__dict__[self._name]
            return made
