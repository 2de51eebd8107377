"""Git repositories as sources: the files of a branch."""

from rag.connectors.git.repository import GitSource, open_git
