"""Install the wheel as a stranger would, ask one question, and say what it cost.

    python packaging/try_wheel.py [PYTHON…] [--with REQUIREMENT]… [--locked]

Tries these interpreters, or this one. `--with` names what is installed beside the wheel, such as a
build of PyTorch for processors alone; `--locked` takes what it needs from `requirements.lock`.
Each gets a new environment with nothing of the system in it.
Ends with 1 where no answer is cited.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("rag", "groundnote", "templates", "static", "data", "app.py", "pyproject.toml")
BESIDE = ("README.md", "LICENSE")
QUESTION = "What does the Kontor 8 PoE cost?"
LARGEST = 10
SIZES = """
import json
from importlib.metadata import distributions
from pathlib import Path
sizes = {}
for each in distributions():
    files = (Path(each.locate_file(file)) for file in each.files or ())
    sizes[each.name] = sum(file.stat().st_size for file in files if file.is_file())
print(json.dumps(sizes))
"""


class Spent:
    """Seconds of the clock and of processors, children's included."""

    def __init__(self):
        self._wall, self._cpu = time.monotonic(), self._used()

    @staticmethod
    def _used():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def __str__(self):
        return f"{time.monotonic() - self._wall:.0f} s, {self._used() - self._cpu:.0f} s of CPU"


def run(*command, **options):
    """The output of a command that has to succeed."""
    done = subprocess.run(
        [*map(str, command)], check=True, stdout=subprocess.PIPE, text=True, **options
    )
    return done.stdout


def build(folder):
    """The wheel, of a copy: nothing is written beside the sources."""
    source = folder / "source"
    for name in (*PARTS, *BESIDE):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        source.mkdir(exist_ok=True)
        copy(ROOT / name, source / name)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def ask(command, data):
    """The first answer of `groundnote demo`, as the API gives it."""
    environment = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    environment |= {"GROUNDNOTE_DATA_DIR": str(data), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [command, "demo", "--port", "0"], env=environment, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            found = None
            while found is None:
                line = running.stdout.readline()
                if not line:
                    raise SystemExit("groundnote demo ended before it listened")
                found = re.search(r"http://127\.0\.0\.1:\d+", line)
            session = post(f"{found[0]}/api/v1/sessions", {})["id"]
            url = f"{found[0]}/api/v1/sessions/{session}/messages"
            return post(url, {"content": QUESTION})
        finally:
            running.terminate()
            running.wait(60)


def post(url, body):
    """The reply of the API."""
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


def attempt(python, wheel, folder, options):
    """Whether a new environment gives a cited answer; prints what it cost."""
    place = folder / "environment"
    total = Spent()
    run(python, "-m", "venv", "--clear", place)
    inside = place / "bin" / "python"
    installing = Spent()
    pip = (inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    if options.locked:
        run(*pip, "--no-deps", "--require-hashes", "-r", ROOT / "requirements.lock")
    run(*pip, *(["--no-deps"] if options.locked else []), wheel, *options.beside)
    told = f"installed in {installing}"
    asking = Spent()
    answer = ask(place / "bin" / "groundnote", folder / "data")
    sizes = json.loads(run(inside, "-c", SIZES))
    numbers = [each["n"] for each in answer["citations"]]
    version = run(inside, "--version").strip()
    print(f"{version}: wheel {wheel.stat().st_size / 1e6:.1f} MB, {len(sizes)} packages,")
    print(f"  {sum(sizes.values()) / 1e6:,.0f} MB installed; {told}")
    print(f"  first answer {asking} after that, {total} in all: {answer['content'][:80]!r}")
    print(f"  cites {numbers}; the largest, in MB:")
    for name, size in sorted(sizes.items(), key=lambda each: -each[1])[:LARGEST]:
        print(f"    {size / 1e6:7,.0f}  {name}")
    shutil.rmtree(place)
    shutil.rmtree(folder / "data")
    return bool(numbers)


def main():
    """Try each interpreter."""
    options = argparse.ArgumentParser()
    options.add_argument("pythons", nargs="*", default=[sys.executable])
    options.add_argument("--with", dest="beside", action="append", default=[])
    options.add_argument("--locked", action="store_true")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        wheel = build(folder)
        cited = [attempt(python, wheel, folder, asked) for python in asked.pythons]
    return 0 if all(cited) else 1


if __name__ == "__main__":
    sys.exit(main())
