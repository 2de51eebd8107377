"""The canary that all tests of applications carry finds what it should."""

import gzip

import pytest

from rag.settings import Settings
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
    application.stop()
