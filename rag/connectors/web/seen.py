"""What a site was like when it was looked at last, so that only what changed is fetched again."""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "seen.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Seen:
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


def load_seen(folder: Path | None) -> dict[str, Seen]:
    """By the address that was asked; nothing where nothing, or nonsense, is kept."""
    if folder is None:
        return {}
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if kept["version"] == VERSION:
            return {
                url: Seen(**{**values, "links": tuple(values["links"])})
                for url, values in kept["seen"].items()
            }
    return {}


def save_seen(folder: Path | None, seen: dict[str, Seen]) -> None:
    """Whole or not at all; where it cannot be written, the next look fetches everything."""
    if folder is None:
        return
    kept = {"version": VERSION, "seen": {url: asdict(each) for url, each in seen.items()}}
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{FILE}.{os.getpid()}.part"
        part.write_text(json.dumps(kept), encoding="utf-8")
        part.replace(folder / FILE)
