"""Reads files in a process of its own, so that a hostile one can only end that process."""

import dataclasses
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

from rag.documents.limits import LoadLimits
from rag.documents.load import check_size
from rag.documents.worker import from_json, receive, send
from rag.errors import Unreadable
from rag.records import ParsedDocument

PACKAGE_PARENT = str(Path(__file__).resolve().parents[2])


class GuardedLoader:
    """`load` in a reading process with a time and a memory limit.

    The process is started at the first file, serves all files one after the other, and is
    replaced after a file that killed it or had to be stopped. Threads take turns.
    """

    def __init__(self, limits: LoadLimits | None = None) -> None:
        self.limits = limits or LoadLimits()
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def load(self, name: str, data: bytes) -> ParsedDocument:
        """As `rag.documents.load.load`; a crash or a hang is Unreadable too."""
        check_size(name, len(data), limits=self.limits)
        if not data:
            raise Unreadable(name, "the file is empty (0 bytes).")
        with self._turn:
            reply = self._ask(name, data)
        return from_json(reply)

    def close(self) -> None:
        """End the reading process; the next file would start another."""
        with self._turn:
            self._stop()

    def _ask(self, name: str, data: bytes) -> bytes:
        process = self._running()
        timed_out = threading.Event()

        def stop() -> None:
            timed_out.set()
            process.kill()

        timer = threading.Timer(self.limits.max_seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            return _exchange(process, name, data)
        except (EOFError, OSError) as error:
            code = process.wait()
            self._stop()
            raise Unreadable(name, self._reason(code, timed_out=timed_out.is_set())) from error
        finally:
            timer.cancel()
            if timed_out.is_set():
                self._stop()

    def _reason(self, code: int, *, timed_out: bool) -> str:
        if timed_out:
            return (
                f"reading it took longer than {self.limits.max_seconds:g} seconds, the limit. "
                "The file is damaged or far too complex; export it again or split it."
            )
        return (
            f"it made the reading process fail (exit code {code}): the file is damaged, or needs "
            f"more than {self.limits.max_memory_bytes >> 20:,} MiB of memory. Export it again."
        )

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = _start(self.limits)
        return self._process

    def _stop(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for stream in _streams(self._process):
            _close(stream)
        self._process = None


def _start(limits: LoadLimits) -> subprocess.Popen[bytes]:
    paths = [PACKAGE_PARENT, os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, "-m", "rag.documents.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    send(_streams(process)[0], json.dumps(dataclasses.asdict(limits)).encode())
    return process


def _exchange(process: subprocess.Popen[bytes], name: str, data: bytes) -> bytes:
    files, replies = _streams(process)
    send(files, json.dumps(name).encode())
    send(files, data)
    return receive(replies)


def _streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise OSError("the reading process has no pipes")
    return process.stdin, process.stdout


def _close(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except OSError:  # bytes were left that nobody will read
        return
