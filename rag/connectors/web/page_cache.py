"""What a site was like when it was looked at last, so that only what changed is fetched again."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from rag.connectors.credentials import hidden, revealed

FILE = "seen.json"
VERSION = 1
Secrets = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CachedPage:
    """An address as it was answered last."""

    url: str  # after redirects
    name: str  # "" for what gave no file, such as a page that is another one's copy
    mark: str = ""
    etag: str = ""
    modified: str = ""
    size: int | None = None
    links: tuple[str, ...] = ()

    def conditions(self) -> dict[str, str]:
        """Headers by which a site says that nothing changed."""
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in named.items() if value}


def load_page_cache(folder: Path | None, secrets: Secrets = ()) -> dict[str, CachedPage]:
    """By the address that was asked; nothing where nothing, or nonsense, is kept.

    What was kept with its secrets, as once it was, is kept without them from now on.
    """
    seen = _load(folder, lambda text: revealed(text, secrets))
    if secrets and seen and any(value in str(_load(folder, str)) for value, _name in secrets):
        save_page_cache(folder, seen, secrets)
    return seen


def _load(folder: Path | None, read: Callable[[str], str]) -> dict[str, CachedPage]:
    if folder is None:
        return {}
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if kept["version"] == VERSION:
            return {
                read(url): _spelled(CachedPage(**{**values, "links": tuple(values["links"])}), read)
                for url, values in kept["seen"].items()
            }
    return {}


def _spelled(seen: CachedPage, spell: Callable[[str], str]) -> CachedPage:
    return replace(seen, url=spell(seen.url), links=tuple(map(spell, seen.links)))


def save_page_cache(
    folder: Path | None, seen: dict[str, CachedPage], secrets: Secrets = ()
) -> None:
    """Whole or not at all; where it cannot be written, the next look fetches everything."""
    hide = partial(hidden, secrets=secrets)
    if folder is None:
        return
    kept = {
        "version": VERSION,
        "seen": {hide(url): asdict(_spelled(each, hide)) for url, each in seen.items()},
    }
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{FILE}.{os.getpid()}.part"
        part.write_text(json.dumps(kept), encoding="utf-8")
        part.replace(folder / FILE)
