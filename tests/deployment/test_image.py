"""The steps of the Dockerfile, run as they stand in a folder of this test, without an engine.

What would fetch packages is held against the lock file and what is installed here instead.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

from tests.deployment.conftest import until
from tests.deployment.servers import free_port, listens
from tests.test_container_files import instructions

ROOT = Path(__file__).parents[2]
TORCH_INDEX = "https://index.example/cpu"
# Stands before the pip of the image, and hands on what fetches nothing.
PIP = """#!{python}
import os, sys
arguments = sys.argv[1:]
if "--requirement" in arguments or "--index-url" in arguments:
    with open({log!r}, "a") as log:
        print(os.getcwd(), *arguments, file=log)
else:
    os.execv({pip!r}, ["pip", *arguments])
"""
NOTES = "#!/bin/sh\necho $(basename $0) $@ >> {log}\n"


class Image:
    """Folders of a root of its own; `/` of the Dockerfile is there."""

    def __init__(self, root):
        self.root, self.log = root, root / "log.txt"
        self.folder, self.environment, self.arguments = root, dict(os.environ), {}
        self.shims = root / "shims"
        self.shims.mkdir()
        self.log.touch()
        self._shim("useradd", NOTES.format(log=self.log))

    def _shim(self, name, text):
        (self.shims / name).write_text(text)
        (self.shims / name).chmod(0o755)

    def here(self, text):
        """What it says of absolute paths, as they are in this root."""
        return re.sub(r"(?<![\w/.:])/(opt|data|shared|build)\b", rf"{self.root}/\1", text)

    def run(self, kind, rest):
        getattr(self, f"_{kind.lower()}", lambda _: None)(rest)

    def _from(self, _):
        self.folder, self.environment = self.root, dict(os.environ)

    def _workdir(self, rest):
        self.folder = Path(self.here(rest))
        self.folder.mkdir(parents=True, exist_ok=True)

    def _env(self, rest):
        for name, _, value in (pair.partition("=") for pair in shlex.split(rest)):
            expanded = self.here(value.replace("$PATH", self.environment["PATH"]))
            self.environment[name] = expanded

    def _copy(self, rest):
        *sources, target = (part for part in rest.split() if not part.startswith("--"))
        for source in sources:
            if "--from=" in rest:
                assert Path(self.here(source)).is_dir()
                continue  # it lies there already
            to = self.folder / target if len(sources) == 1 and target != "./" else self.folder
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, to)

    def _run(self, rest):
        # Nobody but root may give files away.
        command = self.here(rest).replace("install -d -o groundnote", "install -d")
        own = self.environment | {"TORCH_INDEX_URL": TORCH_INDEX}
        own["PATH"] = f"{self.shims}:{own['PATH']}"
        done = subprocess.run(
            ["sh", "-ec", command], cwd=self.folder, env=own, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        if "-m venv" in rest:
            self._take_packages_of_here()

    def _take_packages_of_here(self):
        own = self.root / "opt" / "groundnote"
        here = next(path for path in sys.path if path.endswith("site-packages"))
        packages = next(own.glob("lib/*/site-packages"))
        (packages / "here.pth").write_text(here)
        for old in packages.glob("setuptools*"):  # which the lock file's takes the place of
            shutil.rmtree(old)
        pip = str(own / "bin" / "pip")
        self._shim("pip", PIP.format(python=sys.executable, log=str(self.log), pip=pip))


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    built = Image(tmp_path_factory.mktemp("image"))
    for kind, *rest in instructions():
        built.run(kind, rest[0] if rest else "")
    return built


def test_each_step_succeeds_and_what_it_would_fetch_is_what_is_tested_here(image):
    noted = image.log.read_text().splitlines()
    locked = next(line for line in noted if "--require-hashes" in line)
    lock = Path(locked.split()[0]) / locked.split()[-1]
    pins = re.findall(r"^(\S+==[^\\\n]+)", lock.read_text(), re.MULTILINE)
    wanted = [pin for pin in map(Requirement, pins) if not pin.marker or pin.marker.evaluate()]
    assert len(wanted) > 100
    for pin in wanted:
        assert version(pin.name) in pin.specifier, pin.name
    (torch,) = (line for line in noted if "--index-url" in line)
    assert TORCH_INDEX in torch
    tested = (ROOT / "Makefile").read_text()
    assert f"TORCH ?= {torch.split()[-1].partition('+')[0]}\n" in tested
    assert any(line.startswith("useradd --uid 10001") for line in noted)
    assert (image.root / "data").stat().st_mode & 0o777 == 0o700


def test_what_was_built_serves_and_calls_itself_healthy(image):
    port = str(free_port())
    own = image.environment | {
        "GROUNDNOTE_WEB__HOST": "127.0.0.1",  # tests listen to this machine alone
        "GROUNDNOTE_WEB__PORT": port,
    }
    own.pop("PYTHONPATH", None)
    commands = dict(each for each in instructions() if each[0] in {"CMD", "HEALTHCHECK"})
    check = json.loads(commands["HEALTHCHECK"].partition("CMD ")[2].replace(":8000/", f":{port}/"))
    serve = shutil.which(json.loads(commands["CMD"])[0], path=own["PATH"])
    assert serve.startswith(str(image.root))
    process = subprocess.Popen(
        [serve, *json.loads(commands["CMD"])[1:]], env=own, cwd=image.folder, stderr=subprocess.PIPE
    )
    try:
        until(lambda: listens(int(port)))  # each check is a process of its own
        until(lambda: subprocess.run(check, env=own, capture_output=True).returncode == 0)
        page = httpx.get(f"http://127.0.0.1:{port}/", timeout=30)
        assert page.status_code == 200
        assert "Groundnote" in page.text
    finally:
        process.terminate()
        process.wait(30)
