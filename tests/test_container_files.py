"""Dockerfile and compose.yaml say nothing that Groundnote, Docker or this folder does not know."""

import json
import re
import shlex
import tomllib
from importlib.metadata import requires
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from packaging.requirements import Requirement

from rag.cli import main
from rag.errors import SetupError
from rag.settings import load_settings
from rag.wiring.listeners import listener_policy

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
OURS = sorted(name for name, each in SERVICES.items() if each["image"] == "groundnote")
# Of the Compose Specification; a key that is not here is a slip, or a reason to look it up.
KEYS = {
    "build", "cap_drop", "command", "depends_on", "environment", "healthcheck", "image", "ports",
    "mem_limit", "networks", "pids_limit", "read_only", "restart", "security_opt",
    "stop_grace_period", "tmpfs", "volumes",
}  # fmt: skip
HEALTH_KEYS = {"test", "interval", "timeout", "retries", "start_period", "disable"}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
GIVEN = {
    "POSTGRES_PASSWORD": "secret",
    "REDIS_PASSWORD": "another",
    "GROUNDNOTE_AUTH__TOKENS": '{"a-long-secret-of-anna": "anna"}',
    "GROUNDNOTE_WEB__ALLOWED_HOSTS": '["docs.example"]',
    "GROUNDNOTE_AUTH__TRUSTED_PROXIES": '["10.0.0.1"]',
}


def instructions():
    """Of the Dockerfile, continued lines joined: name and the rest."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    lines = (line.strip() for line in text.splitlines())
    return [tuple(line.split(None, 1)) for line in lines if line and not line.startswith("#")]


def of(name):
    return [rest for each, rest in instructions() if each == name]


def image_variables():
    pairs = (pair for rest in of("ENV") for pair in shlex.split(rest))
    return dict(pair.split("=", 1) for pair in pairs)


def filled(value):
    """A value of compose.yaml as Compose gives it to the container."""
    for name, given in GIVEN.items():
        value = re.sub(rf"\$\{{{name}(:[?-][^{{}}]*)?\}}", lambda _, given=given: given, value)
    assert "$" not in value, value
    return value


def settings_of(monkeypatch, service):
    given = image_variables() | SERVICES[service]["environment"]
    for name, value in given.items():
        if name.startswith("GROUNDNOTE_"):
            monkeypatch.setenv(name, filled(value))
    return load_settings()


class TestCompose:
    def test_holds_only_keys_that_there_are(self):
        assert set(COMPOSE) <= {"networks", "services", "volumes", "x-groundnote"}
        for name, service in SERVICES.items():
            assert set(service) <= KEYS, name
            assert set(service.get("healthcheck", {})) <= HEALTH_KEYS, name

    def test_names_only_volumes_and_services_that_it_declares(self):
        used = {each.split(":")[0] for s in SERVICES.values() for each in s.get("volumes", ())}
        assert used == set(COMPOSE["volumes"])
        for service in SERVICES.values():
            for other, how in service.get("depends_on", {}).items():
                assert how["condition"] in CONDITIONS
                watched = "test" in SERVICES[other].get("healthcheck", {})
                assert watched or how["condition"] != "service_healthy", other

    @pytest.mark.parametrize("name", OURS)
    def test_gives_no_process_of_ours_more_than_it_needs(self, name):
        service = SERVICES[name]

        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        places = [each.split(":")[1] for each in service["volumes"]]
        assert image_variables()["GROUNDNOTE_DATA_DIR"] in places
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        assert service["stop_grace_period"] == "40s"  # more than web.stop_seconds

    @pytest.mark.parametrize("name", OURS)
    def test_every_variable_is_a_setting_and_every_server_a_service(self, name, monkeypatch):
        settings = settings_of(monkeypatch, name)

        urls = (settings.jobs.url, settings.retrieval.chroma_url, settings.database_url)
        for url in (*urls, settings.web.rate_limit_storage):
            assert urlsplit(url).hostname in SERVICES, url
        assert settings.auth.mode == "tokens"
        assert settings.auth.tokens == json.loads(GIVEN["GROUNDNOTE_AUTH__TOKENS"])
        only_serves = "serve" in SERVICES[name]["command"]
        assert (settings.jobs.workers == 0) is only_serves

    @pytest.mark.parametrize("name", OURS)
    def test_every_command_is_one_of_ours(self, name):
        program, command, *arguments = SERVICES[name]["command"]

        assert program == "groundnote"
        main.commands[command].make_context(command, arguments)

    def test_a_slip_in_a_variable_would_be_noticed(self, monkeypatch):
        monkeypatch.setitem(SERVICES["web-1"], "environment", {"GROUNDNOTE_JOBS__WORKRES": "0"})

        with pytest.raises(SetupError, match=r"jobs\.workres is not a setting"):
            settings_of(monkeypatch, "web-1")

    def test_runs_the_chroma_of_the_client(self):
        client = re.search(r"(?m)^chromadb==(\S+)", (ROOT / "requirements.lock").read_text())[1]

        assert SERVICES["vectors"]["image"] == f"chromadb/chroma:{client}${{CHROMA_DIGEST:-}}"

    @pytest.mark.parametrize("name", sorted(set(SERVICES) - set(OURS)))
    def test_lets_nobody_but_us_reach_a_store(self, name):
        service = SERVICES[name]

        assert service["networks"] == ["stores"]
        assert COMPOSE["networks"]["stores"] == {"internal": True}
        assert "ports" not in service
        assert service["mem_limit"]
        assert service["pids_limit"]
        assert service["healthcheck"]["test"]
        assert service["security_opt"] == ["no-new-privileges:true"]

    def test_asks_redis_and_postgresql_for_their_passwords(self, monkeypatch):
        settings = settings_of(monkeypatch, "web-1")

        assert urlsplit(settings.jobs.url).password == GIVEN["REDIS_PASSWORD"]
        assert urlsplit(settings.database_url).password == GIVEN["POSTGRES_PASSWORD"]
        assert "--requirepass" in SERVICES["queue"]["command"]

    def test_names_each_image_by_a_whole_version(self):
        foreign = [each["image"] for each in SERVICES.values() if each["image"] != "groundnote"]

        assert all(
            re.fullmatch(r"[\w/]+:\d+\.\d+(\.\d+)?\$\{[A-Z]+_DIGEST:-\}", image)
            for image in foreign
        )


class TestDockerfile:
    def test_installs_nothing_without_its_version(self):
        installs = [part for rest in of("RUN") for part in rest.split("&&") if "install" in part]

        for each in (part for part in installs if "pip install" in part):
            assert "--no-deps" in each
            assert "--require-hashes" in each or "torch==" in each or each.strip().endswith(" .")

    def test_copies_what_is_there_and_not_left_out(self):
        left_out = (ROOT / ".dockerignore").read_text().split()
        for rest in of("COPY"):
            *sources, _target = rest.split()
            if sources[0].startswith("--from="):
                assert f"AS {sources[0].removeprefix('--from=')}" in of("FROM")[0]
                continue
            for source in sources:
                assert (ROOT / source).exists(), source
                assert source.split("/")[0] not in left_out

    def test_brings_everything_that_the_wheel_is_made_of(self):
        copied = {each for rest in of("COPY") if "--from" not in rest for each in rest.split()[:-1]}
        tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
        files = [path for paths in tool["data-files"].values() for path in paths]
        needed = {path.split("/")[0] for path in files}
        packages = {each.rstrip("*") for each in tool["packages"]["find"]["include"]}

        assert needed | packages <= copied
        assert {"pyproject.toml", "README.md", "LICENSE", "requirements-server.lock"} <= copied

    def test_has_the_versions_of_the_makefile(self):
        torch = re.search(r"TORCH \?= (\S+)", (ROOT / "Makefile").read_text())[1]
        python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]

        assert any(torch in rest for rest in of("RUN"))
        assert {rest.split()[0] for rest in of("FROM")} == {"${PYTHON}"}
        assert re.fullmatch(r"PYTHON=python:3\.11\.\d+-slim-\w+", of("ARG")[0])
        assert python == ">=3.11"

    def test_brings_no_build_of_pytorch_for_gpus(self):
        (line,) = (rest for rest in of("RUN") if "torch==" in rest)
        *_, install = line.split("&&")
        lock = (ROOT / "requirements-server.lock").read_text()

        index = r'--index-url "\$\{TORCH_INDEX_URL:\?[\w ]+\}"'
        assert re.search(rf"pip install --no-deps {index} torch==\S+\+cpu$", install)
        assert of("ARG")[1:] == ["TORCH_INDEX_URL"]
        for needed in requires("torch") or ():
            requirement = Requirement(needed)
            if requirement.marker is None:  # --no-deps: the lock file brings them
                assert re.search(rf"^{requirement.name}==", lock, re.MULTILINE), needed
        assert not re.search(r"^(nvidia|triton|torch)", lock, re.MULTILINE)

    def test_runs_as_nobody_in_particular_and_writes_only_its_data(self):
        names = [name for name, _ in instructions()]
        users = of("USER")

        assert users == ["groundnote"]
        assert "RUN" not in names[names.index("USER") :]
        assert of("WORKDIR")[-1] == of("VOLUME")[-1] == image_variables()["GROUNDNOTE_DATA_DIR"]

    def test_starts_with_its_own_variables_and_the_ones_it_names(self, monkeypatch):
        for name, value in image_variables().items():
            monkeypatch.setenv(name, value)
        told = re.search(r"docker run .*", (ROOT / "Dockerfile").read_text())[0]
        for pair in re.findall(r"-e (\S+)", told):
            monkeypatch.setenv(*pair.split("=", 1))

        settings = load_settings()
        listener_policy(settings, settings.web.host)

        assert "-p 127.0.0.1:8000:8000" in told
        assert of("EXPOSE") == ["8000"]
        assert json.loads(of("CMD")[-1]) == ["groundnote", "serve"]
        assert json.loads(of("HEALTHCHECK")[0].split("CMD ", 1)[1])[:2] == ["python", "-c"]


class TestRelease:
    JOBS = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]

    def runs(self, job):
        return "\n".join(step.get("run", "") for step in self.JOBS[job]["steps"])

    def test_looks_up_what_is_installed_among_known_faults(self):
        installed = {part for rest in of("RUN") for part in rest.split() if part.endswith(".lock")}

        for lock in installed | {"requirements.lock"}:
            assert re.search(
                rf"pip-audit --strict .*--require-hashes .*{lock}$", self.runs("packages"), re.M
            )

    def test_names_images_by_their_digests(self):
        assert "--resolve-image-digests > compose.pinned.yaml" in self.runs("images")
        assert '--build-arg "PYTHON=$(cat base-image.txt)"' in self.runs("images")

    def test_publishes_nothing_that_was_not_looked_at(self):
        assert {"packages", "images"} <= set(self.JOBS["publish"]["needs"])
