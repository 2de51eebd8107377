"""An installed package brings along what the checkout has."""

import importlib.metadata
import tomllib
from pathlib import PurePosixPath
from types import SimpleNamespace

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
