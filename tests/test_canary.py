"""The canary that all tests of applications carry finds what it should."""

import gzip
import logging
import zipfile

import pytest
from sqlalchemy import text

from rag.db import writing
from rag.settings import Settings
from tests import canary
from tests.applications import app_of, application_of

TOKEN = "canary-0123456789"


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


def test_every_application_has_a_secret_to_look_for(tmp_path):
    application = application_of(Settings(data_dir=tmp_path))

    assert canary.SEED.encode() in canary.secrets_of(application.settings)
    application.stop()


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
