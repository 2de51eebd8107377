"""The former path of `rag.regression.plugin`."""

from rag.regression.plugin import *  # noqa: F403
