"""Serve the app with gunicorn: one process with many threads, everything loaded after the fork."""

import errno
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.errors import AppImportError

from rag.errors import RagError, SetupError
from rag.retrieval.vectors import holder_of
from rag.settings import Settings
from rag.web import create_app
from rag.web.owner import is_loopback
from rag.wiring import Application, build, open_database

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
            "on_exit": lambda server: _forget_address(self._settings.data_dir),
        }
        for name, value in options.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> Any:
        """Called in the worker, after the fork."""
        try:
            self._application = build(self._settings)
            if self._settings.retrieval.chroma_url is None:
                self._application.index.check()  # takes it, before anything is promised
            app = create_app(self._application)
            self._application.start()
        except RagError as error:  # gunicorn ends on this one; on any other it shows a traceback
            raise AppImportError(str(error)) from error
        return app

    def _announce(self, worker: Any) -> None:
        port = worker.sockets[0].getsockname()[1]
        host = self._settings.web.host
        shown = f"[{host}]" if ":" in host else host
        write_address(self._settings.data_dir, f"http://{shown}:{port}")
        print(f"Groundnote is ready at http://{shown}:{port}", flush=True)  # noqa: T201
        if self._settings.auth.mode == "single" and not is_loopback(host):
            worker.log.warning(
                "Anybody who reaches %s may read, add and delete everything: auth.allow_public is "
                "set, and nobody has to log in.",
                shown,
            )
        threading.Thread(target=self._warm_up, args=(worker.log,), daemon=True).start()

    def _warm_up(self, log: Any) -> None:
        try:
            self._application.warm_up()
        except RagError as error:
            log.error("Not ready: %s", error)

    def _leave(self) -> None:
        _forget_address(self._settings.data_dir)
        application: Application | None = getattr(self, "_application", None)
        if application is not None:
            application.stop()


def serve(settings: Settings) -> None:
    """Serve until a signal ends it.

    Raises:
        SetupError: the data folder, the database, the index or the address cannot be had.
    """
    open_database(settings).dispose()
    _check_index(settings)
    _check_address(settings.web.host, settings.web.port)
    Server(settings).run()


def _check_index(settings: Settings) -> None:
    """Refuse early what the worker would find out late."""
    folder = settings.data_dir / "chroma"
    pid = holder_of(folder) if settings.retrieval.chroma_url is None else None
    if pid is None:
        return
    url = running_server(settings.data_dir)
    holder = f"process {pid}" + (f", the server at {url}" if url else "")
    raise SetupError(
        f"The vector index in {folder} is in use by {holder}. Stop it first, or serve another "
        "GROUNDNOTE_DATA_DIR; several servers at once need a Chroma server (retrieval.chroma_url)."
    )


def _check_address(host: str, port: int) -> None:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SetupError(
                f"Port {port} on {host} is in use by another program. Stop that program, or choose "
                "another port with --port."
            ) from error
        raise SetupError(
            f"Nothing can listen on {host}, port {port} ({error.strerror}). Choose an address of "
            "this machine with --host and a port above 1023 with --port."
        ) from error


def write_address(data_dir: Path, url: str) -> None:
    """Leave a note where a running server can be reached, for `groundnote ingest` beside it."""
    address = {"url": url, "pid": os.getpid()}
    (data_dir / ADDRESS_FILE).write_text(json.dumps(address), encoding="utf-8")


def _forget_address(data_dir: Path) -> None:
    """Remove the note if it is ours or of a server that is gone."""
    path = data_dir / ADDRESS_FILE
    with suppress(OSError, ValueError, KeyError, TypeError):
        is_ours = json.loads(path.read_text(encoding="utf-8"))["pid"] == os.getpid()
        if is_ours or running_server(data_dir) is None:
            path.unlink(missing_ok=True)


def running_server(data_dir: Path) -> str | None:
    """The URL of the server that holds this data, if one runs on this machine."""
    try:
        address = json.loads((data_dir / ADDRESS_FILE).read_text(encoding="utf-8"))
        pid = int(address["pid"])
        os.kill(pid, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    index = data_dir / "chroma"
    if index.is_dir() and holder_of(index) != pid:
        return None  # another process has the number now, as happens in containers
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
