"""An installed package brings along what the checkout has."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import pytest

from rag.errors import SetupError
from rag.settings import HOME
from rag.wiring import components as places
from rag.wiring.components import package_folder


def test_every_page_and_script_is_packed():
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))

    packed = project["tool"]["setuptools"]["data-files"]

    for folder in ("templates", "static"):
        held = [path for path in (HOME / folder).rglob("*") if path.is_file()]
        for each in {path.parent.relative_to(HOME).as_posix() for path in held}:
            patterns = packed[f"share/groundnote/{each}"]
            found = {path for pattern in patterns for path in HOME.glob(pattern)}
            assert found == {path for path in held if path.parent == HOME / each}


@pytest.mark.parametrize("name", ["templates", "static", "library"])
def test_folders_are_found_in_the_checkout(name):
    assert package_folder(name).is_relative_to(HOME)


def test_folders_are_found_where_the_package_was_installed(tmp_path, monkeypatch):
    installed = tmp_path / "share" / "groundnote"
    names = ("static/base.css", "templates/layout.html", "library/audio/manual.md")
    listed = [SimpleNamespace(locate=lambda name=name: installed / name) for name in names]
    monkeypatch.setattr(places, "files", lambda package: listed)
    nowhere = tmp_path / "site-packages"

    assert package_folder("templates", beside=nowhere) == installed / "templates"
    assert package_folder("library", beside=nowhere) == installed / "library"
    with pytest.raises(SetupError, match="lacks its folder pages"):
        package_folder("pages", beside=nowhere)


def test_the_package_is_known_by_its_name():
    assert importlib.metadata.files("groundnote")


SERVES = """
import groundnote, rag, sys, rag.wsgi
from rag.settings import Settings
from rag.web import create_app
from rag.wiring.application import build
assert rag.__file__.startswith(sys.argv[1]) and groundnote.__file__.startswith(sys.argv[1])
application = build(Settings(data_dir=sys.argv[1] + "/var"))
assert create_app(application).test_client().get("/").status_code == 200
application.stop()
"""


@pytest.mark.slow
def test_a_wheel_holds_packages_and_sample_library_alone_and_serves(tmp_path):
    source, installed = tmp_path / "source", tmp_path / "installed"
    for name in ("rag", "groundnote", "templates", "static", "data"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(HOME / name, source / name, ignore=ignored)
    for name in ("app.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(HOME / name, source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, source]
    subprocess.run(list(map(str, built)), check=True)
    (wheel,) = tmp_path.glob("*.whl")
    put = [*pip, "install", "--no-deps", "--ignore-installed", "--prefix", installed, wheel]
    subprocess.run(list(map(str, put)), check=True)
    (packages,) = {path.parents[1] for path in installed.rglob("rag/wsgi.py")}
    brought = {path.name for path in packages.iterdir() if path.suffix != ".dist-info"}
    assert brought - {"__pycache__"} == {"rag", "groundnote"}
    assert {path.parent.name for path in packages.rglob("py.typed")} == {"rag", "groundnote"}
    subprocess.run(
        [sys.executable, "-c", SERVES, str(installed)],
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(packages)},
    )

    (library,) = installed.rglob("share/groundnote/library")
    brought = {path.name for path in library.rglob("*") if path.is_file()}
    assert brought == {path.name for path in (HOME / "data/library").rglob("*") if path.is_file()}
