"""`re` and `regex` whose patterns are compiled at their first use, or when there is time for all.

A page is shown before anything is asked, and compiling what reads questions and answers took a
fifth of the time until then.
"""

from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    import re

    import regex
else:
    import re as _re

    import regex as _regex

_waiting: "WeakSet[_LazyPattern]" = WeakSet()


class _LazyPattern:
    """Stands for a pattern; is as quick as one from its first use on."""

    def __init__(self, compile_now: Callable[[], Any]) -> None:
        self._compile = compile_now
        _waiting.add(self)

    def __getattr__(self, name: str) -> Any:
        member = self._compile() if name == "_pattern" else getattr(self._pattern, name)
        setattr(self, name, member)
        return member


class _LazyModule:
    """All that a module has, but for `compile`."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def compile(self, pattern: str, flags: int = 0) -> Any:
        return _LazyPattern(partial(self._module.compile, pattern, flags))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


if not TYPE_CHECKING:
    re, regex = _LazyModule(_re), _LazyModule(_regex)


def compile_all() -> None:
    """Compile what still waits, so that nobody's question does."""
    for pattern in list(_waiting):
        _ = pattern._pattern
    _waiting.clear()


Read = TypeVar("Read")
MOST = 2048  # texts
LONGEST = 8_000  # characters: what is longer is read again


def memoised(read: Callable[[str], Read]) -> Callable[[str], Read]:
    """For functions of a text alone, whose results nobody changes."""
    cached = lru_cache(MOST)(read)

    @wraps(read)
    def read_once(text: str) -> Read:
        return cached(text) if len(text) <= LONGEST else read(text)

    return read_once


__all__ = ["compile_all", "memoised", "re", "regex"]
