"""The former path of `rag.connectors.confluence`."""

from rag.connectors.confluence import *  # noqa: F403
