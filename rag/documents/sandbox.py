"""Read files in separate processes, so that a hostile file can only end such a process."""

import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from rag.documents.limits import LoadLimits, check_size
from rag.documents.sandbox_worker import from_json, receive, send
from rag.errors import Unreadable
from rag.records import ParsedDocument

PACKAGE_PARENT = str(Path(__file__).resolve().parents[2])
PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "VIRTUAL_ENV")  # no key, no setting
SPARE_SECONDS = 0.3  # how long a file waits for a busy process before another is started
PATIENCE = 10  # wall time allowed, in multiples of the processor time: the machine may be busy


class GuardedLoader:
    """Runs `load` in reading processes, with limits of processor time and memory for each file.

    As many files are read at once as there are processors; a slow one delays only itself. A process
    is started when the running ones stay busy, and replaced after a file that ended it. It has no
    environment, no network where the system allows that, and an empty folder of its own.
    """

    def __init__(
        self,
        limits: LoadLimits | None = None,
        *,
        readers: int | None = None,
        module: str = "rag.documents.sandbox_worker",
    ) -> None:
        """`module` is the module that a reading process runs."""
        self.limits = limits or LoadLimits()
        count = readers or os.cpu_count() or 1
        self._idle: queue.LifoQueue[_ReadingProcess] = queue.LifoQueue()
        self._readers = [_ReadingProcess(module) for _ in range(count)]
        self._idle.put(self._readers[0])
        self._spare = self._readers[:0:-1]

    @property
    def readers(self) -> int:
        """How many files are read at once."""
        return len(self._readers)

    def start(self) -> None:
        """Start one process before the first file comes: starting takes longer than reading.

        Does nothing where one runs or is starting.
        """
        with suppress(queue.Empty):
            reader = self._idle.get_nowait()
            try:
                reader.start(self.limits)
            finally:
                self._idle.put(reader)

    def load(self, name: str, data: bytes) -> ParsedDocument:
        """Read a file as `rag.documents.readers.registry.load` does.

        A crash or timeout is Unreadable.
        """
        return from_json(self.ask(name, data))

    def ask(self, name: str, data: bytes) -> bytes:
        """Return the reading process's reply as it comes. Raises Unreadable and TooLarge."""
        check_size(name, len(data), limits=self.limits)
        if not data:
            raise Unreadable(name, "the file is empty (0 bytes).")
        reader = self._free()
        try:
            return reader.ask(name, data, self.limits)
        finally:
            self._idle.put(reader)

    def _free(self) -> "_ReadingProcess":
        while True:
            try:
                return self._idle.get(timeout=SPARE_SECONDS if self._spare else None)
            except queue.Empty:
                with suppress(IndexError):  # another thread was quicker
                    return self._spare.pop()

    def close(self) -> None:
        """End the reading processes; a later file starts another."""
        for reader in self._readers:
            reader.stop()


class _ReadingProcess:
    """A reading process, used by one thread at a time."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._turn = threading.Lock()

    def start(self, limits: LoadLimits) -> None:
        with self._turn:
            self._running(limits)

    def stop(self) -> None:
        with self._turn:
            self._stop()

    def ask(self, name: str, data: bytes, limits: LoadLimits) -> bytes:
        with self._turn:
            return self._ask(name, data, limits)

    def _ask(self, name: str, data: bytes, limits: LoadLimits) -> bytes:
        process = self._running(limits)
        timed_out = threading.Event()

        def end() -> None:
            timed_out.set()
            process.kill()

        timer = threading.Timer(PATIENCE * limits.max_seconds, end)
        timer.daemon = True
        timer.start()
        try:
            files, replies = _streams(process)
            send(files, json.dumps({"name": name, "max_seconds": limits.max_seconds}).encode())
            send(files, data)
            return receive(replies)
        except (EOFError, OSError) as error:
            code = process.wait()
            self._stop()
            took_too_long = timed_out.is_set() or code == -signal.SIGXCPU
            raise Unreadable(name, _reason(code, limits, took_too_long)) from error
        finally:
            timer.cancel()
            if timed_out.is_set():
                self._stop()

    def _running(self, limits: LoadLimits) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._folder = tempfile.TemporaryDirectory(prefix="groundnote-reading-")
            folder = self._folder.name
            paths = [PACKAGE_PARENT, *(path for path in sys.path if path.endswith("site-packages"))]
            variables = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env={**variables, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": folder},
            )
            send(_streams(self._process)[0], json.dumps(dataclasses.asdict(limits)).encode())
        return self._process

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in _streams(self._process):
                with suppress(OSError):  # unread bytes were left
                    stream.close()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _reason(code: int, limits: LoadLimits, took_too_long: bool) -> str:
    if took_too_long:
        return (
            f"reading it took more than {limits.max_seconds:g} seconds of processor time, the "
            "limit. The file is damaged or far too complex; export it again or split it."
        )
    return (
        f"it made the reading process fail (exit code {code}): the file is damaged, or needs "
        f"more than {limits.max_memory_bytes >> 20:,} MiB of memory. Export it again."
    )


def _streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise OSError("the reading process has no pipes")
    return process.stdin, process.stdout
