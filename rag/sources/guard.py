"""The former path of `rag.connectors.guard`."""

from rag.connectors.guard import *  # noqa: F403
