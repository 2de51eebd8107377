"""Where the server that holds this data can be reached; light, for commands beside it."""

import json
import os
from contextlib import suppress
from pathlib import Path

from rag.search.cache.index_lock import holder_of

ADDRESS_FILE = "server.json"


def write_address(data_dir: Path, url: str) -> None:
    """Leave a note where a running server can be reached, for `groundnote ingest` beside it."""
    address = {"url": url, "pid": os.getpid()}
    (data_dir / ADDRESS_FILE).write_text(json.dumps(address), encoding="utf-8")


def forget_address(data_dir: Path) -> None:
    """Remove the note if it is ours or of a server that is gone."""
    path = data_dir / ADDRESS_FILE
    with suppress(OSError, ValueError, KeyError, TypeError):
        is_ours = json.loads(path.read_text(encoding="utf-8"))["pid"] == os.getpid()
        if is_ours or running_server(data_dir) is None:
            path.unlink(missing_ok=True)


def running_server(data_dir: Path) -> str | None:
    """The URL of the server that holds this data, if one runs on this machine."""
    try:
        address = json.loads((data_dir / ADDRESS_FILE).read_text(encoding="utf-8"))
        pid = int(address["pid"])
        os.kill(pid, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    index = data_dir / "chroma"
    if index.is_dir() and holder_of(index) != pid:
        return None  # another process has the number now, as happens in containers
    url = str(address["url"])
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
