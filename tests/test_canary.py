"""The canary that all tests of applications carry finds what it should."""

import gzip
import json
import logging
import re
import shutil
import zipfile

import click
import httpx
import pytest
from click.testing import CliRunner
from pydantic import SecretStr
from sqlalchemy import text

from rag.db import writing
from rag.db.audit_trail import record
from rag.settings import Settings, WebSettings
from rag.web import create_app
from rag.wiring.application import build
from rag.wiring.stores import without_secrets
from tests import canary
from tests.applications import app_of, application_of
from tests.fakes import HashEmbedder
from tests.openai_server import OpenAIServer

TOKEN = "canary-0123456789"
SOUNDS_SECRET = r"(?:key|token|password|secret|credential)s?$"


@pytest.fixture
def application(tmp_path):
    auth = {"mode": "tokens", "tokens": {TOKEN: "anna"}}
    return application_of(Settings(data_dir=tmp_path, auth=auth))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_with_a_secret_is_found_when_the_application_stops(application, tmp_path, pack):
    (tmp_path / "errors.log").write_bytes(pack(b"401 for " + TOKEN.encode()))

    with pytest.raises(AssertionError, match=r"errors\.log"):
        application.stop()


def test_an_answer_with_a_secret_is_found(application):
    app = app_of(application)
    app.testing = True
    app.add_url_rule("/leak", view_func=lambda: TOKEN)

    with pytest.raises(AssertionError, match="answer"):
        app.test_client().get("/leak", headers={"Authorization": f"Bearer {TOKEN}"})
    with pytest.raises(AssertionError, match="an answer"):  # at the end, whoever swallowed it
        canary.none_left()
    application.stop()


@pytest.mark.parametrize("cut", [4, len(TOKEN)])
def test_a_secret_in_a_stream_is_found_also_in_two_pieces(application, cut):
    app = app_of(application)
    app.testing = True
    app.add_url_rule("/leak", view_func=lambda: iter(["data: ", TOKEN[:cut], TOKEN[cut:]]))

    response = app.test_client().get("/leak", headers={"Authorization": f"Bearer {TOKEN}"})
    with pytest.raises(AssertionError, match="answer"):
        response.get_data()
    with pytest.raises(AssertionError, match="an answer"):
        canary.none_left()
    application.stop()


def failed(said, cause):
    try:
        raise RuntimeError(said) from ValueError(cause)
    except RuntimeError:
        logging.getLogger("rag.somewhere").exception("It failed")


@pytest.mark.parametrize(
    "log",
    [
        lambda: logging.getLogger("rag.web").warning("refused %s", TOKEN),
        lambda: logging.getLogger("elsewhere").error({"token": TOKEN}),
        lambda: failed(f"401 for {TOKEN}", "no"),
        lambda: failed("401", f"no: {TOKEN}"),
    ],
)
def test_a_secret_in_a_log_is_found(application, log):
    application.stop()
    log()

    with pytest.raises(AssertionError, match="a record of"):
        canary.none_left()


def test_a_secret_in_a_backup_elsewhere_is_found(tmp_path):
    watched = canary.Watched()
    application_of(Settings(data_dir=tmp_path / "data")).stop()
    with zipfile.ZipFile(tmp_path / "backup.zip", "w", zipfile.ZIP_DEFLATED) as backup:
        backup.writestr("settings", f"wiki = {canary.SEED}")

    with pytest.raises(AssertionError, match=r"backup\.zip"):
        watched.end(tmp_path)
    (tmp_path / "backup.zip").unlink()


def strings(model=Settings, path=""):
    """Settings of text, or that hold some, by their dotted names."""
    for name, field in model.model_fields.items():
        kinds = canary.leaves(field.annotation)
        sections = [kind for kind in kinds if hasattr(kind, "model_fields")]
        for section in sections:
            yield from strings(section, f"{path}{name}.")
        if str in kinds:
            yield path + name


class TestEverySecretOfTheSettings:
    def test_has_a_canary(self):
        """A new one fails here until it has."""
        in_the_clear = {name for name in strings() if re.search(SOUNDS_SECRET, name)}

        assert {*canary.secret_fields(Settings), *in_the_clear} == {*canary.SEEDS}

    def test_would_be_missed_without(self):
        class Section(WebSettings):
            signing: dict[str, SecretStr | None] | None = None

        class More(Settings):
            web: Section = Section()

        assert {*canary.secret_fields(More)} - {*canary.SEEDS} == {"web.signing"}

    @pytest.mark.parametrize("kind", canary.SEEDS)
    def test_is_looked_for_in_what_is_built_by_whatever_way(self, tmp_path, kind):
        application = build(Settings(data_dir=tmp_path), embedder=HashEmbedder())
        app = create_app(application)
        app.testing = True
        app.add_url_rule("/leak", view_func=lambda: {"of": canary.SEEDS[kind]})

        with pytest.raises(AssertionError, match="answer"):
            app.test_client().get("/leak")
        (tmp_path / "note.txt").write_text(canary.SEEDS[kind])
        with pytest.raises(AssertionError, match=r"note\.txt"):
            application.stop()
        canary.leaks.clear()

    def test_changes_nothing(self, tmp_path):
        application = application_of(Settings(data_dir=tmp_path))
        client = app_of(application).test_client()

        assert client.get("/metrics").status_code == 200
        assert not application.settings.web.link_keys
        application.stop()

    def test_is_taken_out_of_a_backup(self, tmp_path):
        seeded = canary.seeded(Settings(data_dir=tmp_path))
        shown, named = without_secrets(seeded.model_dump(mode="json"))

        assert not any(secret in json.dumps(shown) for secret in canary.SEEDS.values())
        assert {*named} == {*canary.SEEDS}


# Each as somebody might write it by mistake: with what the settings of the application hold.
def in_a_log(application, secret):
    logging.getLogger("rag.web").warning("Begun with %s", secret)


def in_the_audit(application, secret):
    with writing(application.engine) as connection:
        record(connection, "source.added", f"https://h.test/?token={secret}")


def in_a_title(application, secret):
    application.store.create("anna", title=secret)


def in_an_export(application, secret):
    (application.settings.data_dir.parent / "talk.md").write_text(f"# Talk\n\nSee {secret}.\n")


def in_a_backup(application, secret):
    place = application.settings.data_dir.parent / "backups" / "manifest.gz"
    place.parent.mkdir()
    place.write_bytes(gzip.compress(secret.encode()))


def in_a_request(application, secret):
    with OpenAIServer() as server:
        httpx.post(f"{server.url}/chat/completions", json={"messages": [secret]})


def on_a_terminal(application, secret):
    CliRunner().invoke(click.Command("shows", callback=lambda: click.echo(secret)))


PLACES = (
    in_a_log,
    in_the_audit,
    in_a_title,
    in_an_export,
    in_a_backup,
    in_a_request,
    on_a_terminal,
)


@pytest.mark.parametrize("leak", PLACES)
@pytest.mark.parametrize("kind", ["web.link_keys", "auth.tokens"])
def test_a_leak_fails_the_test_that_it_happens_in(tmp_path, leak, kind):
    watched = canary.Watched()

    def of_an_application():
        application = build(Settings(data_dir=tmp_path / "data"), embedder=HashEmbedder())
        with watched.logs():
            leak(application, canary.SEEDS[kind])
        application.stop()
        watched.end(tmp_path)

    with pytest.raises(AssertionError, match="a secret stands in"):
        of_an_application()
    shutil.rmtree(tmp_path)
    canary.leaks.clear()


@pytest.mark.slow
@pytest.mark.parametrize("column", ["name", "owner"])
def test_a_secret_in_a_row_of_postgresql_is_found(postgres, column):
    assert canary.tables_with(postgres, [canary.SEED.encode()]) == []

    with writing(postgres) as connection:
        change = text(f"UPDATE collections SET {column} = :secret")
        connection.execute(change, {"secret": f"of {canary.SEED}"})
    assert canary.tables_with(postgres, [canary.SEED.encode()]) == ["collections"]

    with writing(postgres) as connection:
        connection.execute(text("DELETE FROM collections"))
