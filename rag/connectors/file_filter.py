"""Which files of a source are wanted: globs as `.gitignore` has them, and no half-written ones."""

from collections.abc import Callable, Sequence
from functools import cache

from pathspec import GitIgnoreSpec

from rag.errors import UserError

# What programs write before a file is whole, and locks beside an open one.
PASSING = GitIgnoreSpec.from_lines(
    ["*.part", "*.partial", "*.filepart", "*.tmp", "*.crdownload", "*.swp", "*~", "~$*", ".~lock.*"]
)


@cache
def file_filter(include: tuple[str, ...], exclude: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a name within a source is wanted. Raises UserError for what is no glob."""
    included, excluded = _spec(include), _spec(exclude)

    def is_wanted(name: str) -> bool:
        if PASSING.match_file(name) or excluded.match_file(name):
            return False
        return not include or included.match_file(name)

    return is_wanted


def _spec(globs: Sequence[str]) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(globs)
    except ValueError as error:
        raise UserError(
            f"One of {', '.join(globs)[:100]} is no pattern of names. Write such as *.pdf, "
            "drafts/ or manuals/**/*.md."
        ) from error
