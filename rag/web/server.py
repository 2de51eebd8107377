"""Serves the app: processes with many threads each (see rag.web.http_server)."""

import _thread
import ctypes
import errno
import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from rag.errors import RagError, SetupError
from rag.runtime.shared import open_door, share
from rag.search.index_lock import holder_of, holding, holds_vectors
from rag.settings import Settings
from rag.web import create_app, turns
from rag.web.access.counters import NOWHERE, limiter, place_of_counters
from rag.web.api.documents import BYTES_PER_MB
from rag.web.http_server import BACKLOG, SHARED, allow_sockets, open_server, run_fleet
from rag.wiring.application import Application, opened
from rag.wiring.components import index_folder, open_chroma, open_embedder
from rag.wiring.listeners import (
    UNIX,
    forget_address,
    is_loopback,
    listener_policy,
    running_server,
    write_address,
)
from rag.wiring.stores import open_database

M_ARENA_MAX = -8  # of malloc.h
log = logging.getLogger(__name__)


def serve(settings: Settings) -> None:
    """Serve with one process or several until a signal ends it.

    Raises:
        SetupError: the data folder, the database, the index or the address cannot be used.
    """
    with suppress(OSError, AttributeError):  # another C library
        # One heap for all threads: else glibc keeps freed memory for each of many.
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    web, auth = settings.web, settings.auth
    listener_policy(settings, web.host)
    if settings.jobs.workers == 0:
        _check_shared(settings, "A server that leaves jobs to others (jobs.workers is 0) needs")
    open_database(settings).dispose()
    _check_index(settings)
    with closing(_listener(web.host, web.port)) as listener:
        url = _url(web.host, listener)
        if not url.startswith(UNIX):
            write_address(settings.data_dir, url)
        if auth.mode == "single" and auth.allow_public and not is_loopback(web.host):
            log.warning(
                "Anybody who reaches %s may read, add and delete everything: auth.allow_public is "
                "set, and nobody has to log in.",
                url,
            )
        try:
            if web.workers == 1:
                _serve_process(settings, listener, url)
            else:
                _serve_together(settings, listener, url)
        finally:
            forget_address(settings.data_dir)


def _serve_together(settings: Settings, listener: socket.socket, url: str) -> None:
    """Run several processes, and a shared one for what only one process may have."""
    door, shared = open_door()
    changes: dict[str, Any] = {}
    if _has_folder(settings):
        retrieval = settings.retrieval.model_copy(update={"chroma_url": shared})
        changes["retrieval"] = retrieval
    if place_of_counters(settings) == NOWHERE:
        changes["web"] = settings.web.model_copy(update={"rate_limit_storage": shared})

    def work(number: int) -> None:
        if number == SHARED:
            _share(settings, door, shared)
        else:
            door.close()
            _serve_process(settings.model_copy(update=changes), listener, "" if number else url)

    with door:
        run_fleet(work, settings.web.workers)


def _has_folder(settings: Settings) -> bool:
    """Return whether the vectors are in an index that only one process may open."""
    retrieval = settings.retrieval
    is_elsewhere = retrieval.vectors == "postgresql" and not holds_vectors(index_folder(settings))
    return retrieval.chroma_url is None and not is_elsewhere


def _share(settings: Settings, door: socket.socket, url: str) -> None:
    """Run the shared process until a signal ends it."""
    allow_sockets()  # each thread of each worker connects to this process
    objects: dict[str, object] = {"counters": limiter()}
    with _reserved_index(settings, os.getppid()), _ended_by_signals(), suppress(SystemExit):
        if _has_folder(settings):
            index = objects["index"] = open_chroma(settings, open_embedder(settings))
            index.check()
        share(door, url, objects)


def work(settings: Settings) -> None:
    """Do background jobs until a signal ends it.

    Raises:
        SetupError: the queue or the index is one that only one process may use.
    """
    _check_shared(settings, "A worker beside servers needs")
    if settings.jobs.workers == 0:
        raise SetupError("jobs.workers is 0, so this worker would do nothing. Set at least 1.")
    with opened(settings) as application:
        application.load()
        application.start()
        threading.Thread(target=application.keep_ready, name="ready", daemon=True).start()
        print("Groundnote is working.", flush=True)  # noqa: T201
        with _ended_by_signals(), suppress(SystemExit):
            application.stopping.wait()


def _check_shared(settings: Settings, who: str) -> None:
    if not settings.retrieval.is_shared:
        raise SetupError(
            f"{who} an index that several servers share. Set retrieval.chroma_url (a Chroma "
            'server), or retrieval.vectors to "postgresql".'
        )


def _serve_process(settings: Settings, listener: socket.socket, url: str) -> None:
    """Run one process; the first has the address as `url`, to print it, the others ""."""
    failures: list[RagError] = []
    with opened(settings) as application, _reserved_index(settings):
        app = create_app(application)
        largest = int(app.config["MAX_CONTENT_LENGTH"]) + BYTES_PER_MB
        threads = settings.web.threads
        server = open_server(app, listener, threads=threads, max_body_bytes=largest)
        running: turns.Turns = app.extensions[turns.EXTENSION]
        application.start()
        if url:
            print(f"Groundnote is ready at {url}", flush=True)  # noqa: T201
        threading.Thread(target=_warm_up, args=(application, failures), daemon=True).start()
        with _ended_by_signals(), suppress(SystemExit):
            server.run()
            server.finish(running.any, seconds=settings.web.stop_seconds)
        running.close()
    if failures:
        raise failures[0]


def _reserved_index(settings: Settings, pid: int | None = None) -> AbstractContextManager[None]:
    """Lock the index's folder, before the index is loaded and the server says it is ready.

    Raises SetupError.
    """
    return holding(index_folder(settings), pid) if _has_folder(settings) else nullcontext()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Raise SystemExit at a signal: the first ends the loop, a second the wait for answers."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(0)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _warm_up(application: Application, failures: list[RagError]) -> None:
    """Load models and check the index while the server already answers.

    Wrong settings and an unusable index end the server: the error goes into `failures`.
    """
    try:
        application.load()
        if application.settings.retrieval.chroma_url is None:
            application.index.check()
            application.refuse_emptied()
    except RagError as error:
        failures.append(error)
        _thread.interrupt_main(signal.SIGTERM)
        return
    threading.Thread(target=application.keep_ready, name="ready", daemon=True).start()
    application.tried.wait()
    application.prepare_answers()
    gc.collect()
    gc.freeze()  # what is loaded by now is never freed


def _check_index(settings: Settings) -> None:
    """Refuse an index that another process uses before any worker starts."""
    folder = settings.data_dir / "chroma"
    pid = holder_of(folder) if _has_folder(settings) else None
    if pid is None:
        return
    url = running_server(settings.data_dir)
    holder = f"process {pid}" + (f", the server at {url}" if url else "")
    raise SetupError(
        f"The vector index in {folder} is in use by {holder}. Stop it first, or serve another "
        "GROUNDNOTE_DATA_DIR; several servers at once need a Chroma server (retrieval.chroma_url)."
    )


def _listener(host: str, port: int) -> socket.socket:
    """Raises SetupError."""
    try:
        if host.startswith(UNIX):
            return _unix_listener(host.removeprefix(UNIX))
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, proto)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
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
    return listener


def _unix_listener(path: str) -> socket.socket:
    """Listen on a Unix socket whose group may write to it, such as a proxy's."""
    file = Path(path)
    if file.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(path) == 0:
                raise OSError(errno.EADDRINUSE, "in use")
        file.unlink()  # left by a server that was killed
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    file.chmod(0o660)
    listener.listen(BACKLOG)
    return listener


def _url(host: str, listener: socket.socket) -> str:
    if host.startswith(UNIX):
        return host
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
