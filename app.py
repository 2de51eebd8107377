"""For WSGI servers that take `app:create()`, and `flask run`; nothing is loaded before that."""

from typing import Any

from rag.wsgi import create

__all__ = ["create"]


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = create()
    return globals()["app"]
