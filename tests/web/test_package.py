"""An installed package brings along what the checkout has."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from rag import web
from rag.settings import HOME


def test_every_page_and_script_is_packed():
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))

    packed = project["tool"]["setuptools"]["data-files"]

    for folder in ("templates", "static"):
        found = {path for each in packed[f"share/groundnote/{folder}"] for path in HOME.glob(each)}
        assert found == set((HOME / folder).rglob("*"))


def test_pages_are_found_in_the_checkout():
    assert web.pages_home() == HOME


def test_pages_are_found_where_the_package_was_installed(tmp_path, monkeypatch):
    installed = tmp_path / "share" / "groundnote"
    listed = [
        SimpleNamespace(locate=lambda name=name: PurePosixPath(installed / "templates" / name))
        for name in ("error.html", "layout.html")
    ]
    monkeypatch.setattr(web, "HOME", tmp_path / "site-packages")
    monkeypatch.setattr(web, "files", lambda package: listed)

    assert web.pages_home() == installed


def test_the_package_is_known_by_its_name():
    assert importlib.metadata.files("groundnote")


SERVES = """
import app, rag, sys
from rag.settings import Settings
from rag.web import create_app
from rag.wiring.building import build
assert rag.__file__.startswith(sys.argv[1]) and app.__file__.startswith(sys.argv[1])
application = build(Settings(data_dir=sys.argv[1] + "/var"))
assert create_app(application).test_client().get("/").status_code == 200
application.stop()
"""


@pytest.mark.slow
def test_a_wheel_holds_app_and_sample_library_and_serves(tmp_path):
    source, installed = tmp_path / "source", tmp_path / "installed"
    for name in ("rag", "templates", "static", "data"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(HOME / name, source / name, ignore=ignored)
    for name in ("app.py", "pyproject.toml", "README.md"):
        shutil.copy(HOME / name, source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, source]
    subprocess.run(list(map(str, built)), check=True)
    (wheel,) = tmp_path.glob("*.whl")
    put = [*pip, "install", "--no-deps", "--ignore-installed", "--prefix", installed, wheel]
    subprocess.run(list(map(str, put)), check=True)
    (packages,) = {path.parent for path in installed.rglob("app.py")}
    subprocess.run(
        [sys.executable, "-c", SERVES, str(installed)],
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(packages)},
    )

    (library,) = installed.rglob("share/groundnote/library")
    brought = {path.name for path in library.rglob("*") if path.is_file()}
    assert brought == {path.name for path in (HOME / "data/library").rglob("*") if path.is_file()}
