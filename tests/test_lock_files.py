"""What `make run` installs is decided beforehand: every package with its version and its hashes."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.licences import known

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINNED = re.compile(r"(?m)^([\w.-]+)==([^\s;\\]+)")
FROM_THE_MAKEFILE = {"torch"}
SERVED = ("models", "web", "git", "postgresql", "oidc")  # extras of the image


def pinned(name):
    """The versions that a lock file allows of each package."""
    found = {}
    for package, version in PINNED.findall((ROOT / name).read_text()):
        found.setdefault(canonicalize_name(package), []).append(version)
    return found


def wanted(requirements):
    parsed = [Requirement(text) for text in requirements]
    return [each for each in parsed if each.name not in {"groundnote", *FROM_THE_MAKEFILE}]


def extra(name):
    return PROJECT["optional-dependencies"][name]


@pytest.mark.parametrize(
    ("lock", "requirements"),
    [
        ("requirements.lock", PROJECT["dependencies"]),
        (
            "requirements-server.lock",
            PROJECT["dependencies"] + [each for name in SERVED for each in extra(name)],
        ),
        (
            "requirements-dev.lock",
            PROJECT["dependencies"] + [each for name in ("dev", *SERVED) for each in extra(name)],
        ),
    ],
)
def test_a_lock_file_has_what_the_project_asks_for(lock, requirements):
    versions = pinned(lock)
    for each in wanted(requirements):
        allowed = versions.get(canonicalize_name(each.name), [])
        assert allowed, f"{lock} has no {each.name}: run `make lock`"
        assert all(each.specifier.contains(version) for version in allowed), each


@pytest.mark.parametrize(
    "lock", ["requirements.lock", "requirements-server.lock", "requirements-dev.lock"]
)
def test_every_package_has_hashes_and_none_an_address(lock):
    text = (ROOT / lock).read_text()
    entries = re.split(r"(?m)^(?=[\w.-]+==)", text)[1:]

    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


@pytest.mark.parametrize(
    "lock", ["requirements.lock", "requirements-server.lock", "requirements-dev.lock"]
)
def test_no_lock_file_brings_a_gpu_or_a_cluster(lock):
    names = " ".join(pinned(lock))

    heavy = r"nvidia|cuda|triton|torch|kubernetes|onnxruntime|pyarrow|hf-xet"
    assert not re.search(rf"\b({heavy})", names)


@pytest.mark.parametrize(
    "package",
    [
        "psycopg",
        "authlib",
        "sentence-transformers",
        "transformers",
        "scipy",
        "trafilatura",
        "dulwich",
    ],
)
def test_what_few_need_is_an_extra(package):
    assert package not in pinned("requirements.lock")
    assert package in pinned("requirements-dev.lock")


def test_the_licence_of_every_package_is_listed():
    listed = {canonicalize_name(name): told for name, told in known(ROOT / "LICENCES.md").items()}

    assert listed.keys() == pinned("requirements.lock").keys(), "run `make sbom`"


def test_the_image_has_the_versions_that_users_have():
    installed, served = pinned("requirements.lock"), pinned("requirements-server.lock")

    assert {name: served[name] for name in installed} == installed


def test_development_has_the_versions_that_users_have():
    installed, developed = pinned("requirements.lock"), pinned("requirements-dev.lock")

    assert {name: developed[name] for name in installed} == installed


def test_nothing_that_is_installed_to_run_needs_what_make_takes_out_again():
    assert "uninstall --quiet --yes setuptools" in (ROOT / "Makefile").read_text()
    assert "setuptools" not in pinned("requirements.lock")
