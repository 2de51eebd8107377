"""Where what we ship beside the code lies: in the checkout, or where the package was installed."""

from importlib.metadata import files
from pathlib import Path

from rag.errors import SetupError
from rag.settings import HOME

SHARED = "share/groundnote"


def package_folder(name: str, *, beside: Path = HOME, package: str = "groundnote") -> Path:
    """A folder: `templates`, `static`, or the sample `library`. Raises SetupError."""
    for place in (beside / name, beside / "data" / name):
        if place.is_dir():
            return place
    mark = f"{SHARED}/{name}/"
    for file in files(package) or ():
        path = Path(str(file.locate())).as_posix()
        if mark in path:
            return Path(path[: path.index(mark) + len(mark)]).resolve()
    raise SetupError(f"This installation lacks its folder {name}. Install groundnote again.")
