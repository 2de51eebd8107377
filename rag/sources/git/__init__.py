"""Git repositories: the files of a branch."""

from rag.sources.git.repository import GitSource, open_git

__all__ = ["GitSource", "open_git"]
