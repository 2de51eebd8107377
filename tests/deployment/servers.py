"""Real servers of a test's own, on ports of their own, that can be stopped and come back."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

DEADLINE = 60.0
# As the command `chroma` does, which loads the whole client first: twenty times as long.
CHROMA = "import sys, chromadb_rust_bindings as chroma; chroma.cli(sys.argv[1:])"
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Server:
    """One program that listens; what it keeps survives a stop if it keeps anything."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen | None = None

    def __post_init__(self):
        """Nothing is there before the first start."""

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self):
        self.process = subprocess.Popen(self.command(), start_new_session=True, **QUIET)
        end = time.monotonic() + DEADLINE
        while not listens(self.port):
            assert self.process.poll() is None, self.command()
            assert time.monotonic() < end, self.command()
            time.sleep(0.05)
        return self

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=DEADLINE)

    def freeze(self):
        """It takes connections, and says nothing."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def thaw(self):
        os.killpg(self.process.pid, signal.SIGCONT)


class Redis(Server):
    url = property(lambda self: f"redis://127.0.0.1:{self.port}/0")

    def command(self):
        kept = ["--save", "", "--appendonly", "no", "--dir", str(self.folder)]
        return [program("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", *kept]


class Chroma(Server):
    url = property(lambda self: f"http://127.0.0.1:{self.port}")

    def command(self):
        at = ["--host", "127.0.0.1", "--port", str(self.port)]
        run = ["chroma", "run", "--path", str(self.folder / "chroma"), *at]
        return [sys.executable, "-c", CHROMA, *run]

    def lose_everything(self):
        shutil.rmtree(self.folder / "chroma")


class Postgres(Server):
    url = property(lambda self: f"postgresql://groundnote@127.0.0.1:{self.port}/postgres")

    def __post_init__(self):
        self.data = Path(tempfile.mkdtemp(prefix="groundnote-postgres-", dir="/var/tmp"))
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not found:
            pytest.skip("PostgreSQL is not installed")
        self.bin = found[-1].parent
        if os.geteuid() == 0:
            shutil.chown(self.data, "postgres")
        arguments = [str(self.bin / "initdb"), "-D", str(self.data), "-A", "trust"]
        subprocess.run([*_as_postgres(), *arguments, "-U", "groundnote"], check=True, **QUIET)

    def command(self):
        at = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off"
        sockets = f"-c unix_socket_directories={self.data}"
        return [*_as_postgres(), str(self.bin / "postgres"), "-D", str(self.data), *at.split(),
                *sockets.split()]  # fmt: skip

    def stop(self):
        """At once, as if it had crashed."""
        arguments = [str(self.bin / "pg_ctl"), "-D", str(self.data), "-m", "immediate", "stop"]
        subprocess.run([*_as_postgres(), *arguments], check=False, **QUIET)
        super().stop()

    def start(self):
        super().start()
        asked = [str(self.bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        end = time.monotonic() + DEADLINE
        while subprocess.run(asked, check=False, **QUIET).returncode:
            assert time.monotonic() < end, asked
            time.sleep(0.05)
        return self

    def remove(self):
        self.stop()
        shutil.rmtree(self.data)


def _as_postgres():
    return ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []


def program(name):
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path
