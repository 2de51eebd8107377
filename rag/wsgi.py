"""For WSGI servers that take `rag.wsgi:create()`; nothing is loaded before that."""

import os
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask


def create() -> "Flask":
    """The app with its own settings; called in each worker, after the fork.

    Raises SetupError at once where another process holds the embedded index: several workers need
    `retrieval.chroma_url`.
    """
    from rag.settings import load_settings
    from rag.web import create_app
    from rag.wiring.application import build

    os.umask(0o077)  # what is written is somebody's documents and conversations
    application = build(load_settings())
    application.load()
    application.index.check()
    application.start()
    Thread(target=application.warm_up, daemon=True).start()
    return create_app(application)
