"""Serve the app with gunicorn: one process with many threads, everything loaded after the fork."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gunicorn.app.base import BaseApplication

from rag.settings import Settings
from rag.web import create_app
from rag.wiring import Application, build

ADDRESS_FILE = "server.json"


class Server(BaseApplication):  # type: ignore[misc]
    """gunicorn with our settings instead of a command line."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        web = self._settings.web
        host = f"[{web.host}]" if ":" in web.host else web.host
        options = {
            "bind": f"{host}:{web.port}",
            "workers": 1,
            "worker_class": "gthread",
            "threads": web.threads,
            "timeout": 0,  # a slow model is no reason to kill the process
            "graceful_timeout": 5,
            "keepalive": 5,
            "preload_app": False,
            "accesslog": None,
            "loglevel": "warning",
            "control_socket_disable": True,
            "post_worker_init": lambda worker: self._announce(worker),
            "worker_exit": lambda server, worker: self._leave(),
        }
        for name, value in options.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> Any:
        """Called in the worker, after the fork."""
        self._application = build(self._settings)
        self._application.start()
        return create_app(self._application)

    def _announce(self, worker: Any) -> None:
        port = worker.sockets[0].getsockname()[1]
        host = self._settings.web.host
        shown = f"[{host}]" if ":" in host else host
        write_address(self._settings.data_dir, f"http://{shown}:{port}")
        print(f"Groundnote is ready at http://{shown}:{port}", flush=True)  # noqa: T201
        threading.Thread(target=self._application.warm_up, daemon=True).start()

    def _leave(self) -> None:
        (self._settings.data_dir / ADDRESS_FILE).unlink(missing_ok=True)
        application: Application | None = getattr(self, "_application", None)
        if application is not None:
            application.stop()


def serve(settings: Settings) -> None:
    """Serve until a signal ends it."""
    Server(settings).run()


def write_address(data_dir: Path, url: str) -> None:
    """Leave a note where a running server can be reached, for `groundnote ingest` beside it."""
    address = {"url": url, "pid": os.getpid()}
    (data_dir / ADDRESS_FILE).write_text(json.dumps(address), encoding="utf-8")


def running_server(data_dir: Path) -> str | None:
    """The URL of the server that holds this data, if one runs on this machine."""
    try:
        address = json.loads((data_dir / ADDRESS_FILE).read_text(encoding="utf-8"))
        os.kill(int(address["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    url = str(address["url"])
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


@contextmanager
def opened(settings: Settings) -> Iterator[Application]:
    """The application without a server, for one command."""
    application = build(settings)
    try:
        yield application
    finally:
        application.stop()
