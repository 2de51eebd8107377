"""`re` and `regex` whose patterns are compiled at their first use, or by `compile_all`.

The first page is shown before any question; compiling the patterns for questions and answers took a
fifth of the time until then.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    import re

    import regex
else:
    import re as _re

    import regex as _regex

_waiting: "WeakSet[_LazyPattern]" = WeakSet()


class _LazyPattern:
    """A pattern that is compiled at its first use; as quick as a plain one afterwards."""

    def __init__(self, compile_now: Callable[[], Any]) -> None:
        self._compile = compile_now
        _waiting.add(self)

    def __getattr__(self, name: str) -> Any:
        member = self._compile() if name == "_pattern" else getattr(self._pattern, name)
        setattr(self, name, member)
        return member


class _LazyModule:
    """A regular-expression module whose `compile` is lazy."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def compile(self, pattern: str, flags: int = 0) -> Any:
        return _LazyPattern(partial(self._module.compile, pattern, flags))

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._module, name)
        setattr(self, name, member)  # found by itself from now on
        return member


if not TYPE_CHECKING:
    re, regex = _LazyModule(_re), _LazyModule(_regex)


def compile_all() -> None:
    """Compile all patterns that are not compiled yet, so that no question waits for it."""
    for pattern in list(_waiting):
        _ = pattern._pattern
    _waiting.clear()


__all__ = ["compile_all", "re", "regex"]
