"""The command line."""

from rag.cli.commands import main

__all__ = ["main"]
