"""Replayers that a module's tests share."""

import subprocess
from types import SimpleNamespace

import pytest

from rag.regression import replay
from rag.regression.replay import Libraries, Replayer
from rag.settings import Settings
from tests.conftest import folder_of_the_run
from tests.regression.scripts import documents_in, replaying


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder for conversations, with documents in it."""
    folder = tmp_path_factory.mktemp("talks")
    documents_in(folder / "documents")
    return folder


@pytest.fixture(scope="module")
def replayer(place):
    """Over the documents of that folder."""
    with replaying(place) as replayer:
        yield replayer


@pytest.fixture(scope="session")
def sample_settings(tmp_path_factory):
    """With a data folder whose libraries all tests share, whichever process they run in."""
    return Settings(data_dir=folder_of_the_run(tmp_path_factory) / "replayed")


@pytest.fixture(scope="session")
def sample_libraries(sample_settings):
    """Each folder of documents is ingested once for all that is asked of it."""
    return Libraries(sample_settings)


@pytest.fixture(scope="module")
def sample_replayer(sample_settings, sample_libraries):
    """As the sample conversations are replayed, each over the documents that it names.

    A process after a restart takes the vectors that the tests have computed, as this one does.
    """

    def run(command, **options):
        *python, code = command
        remembers = f"from tests.vectors_once import remember; remember(); {code}"
        return subprocess.run([*python, remembers], **options)

    with (
        pytest.MonkeyPatch.context() as patch,
        Replayer(sample_settings, sample_libraries) as replayer,
    ):
        patch.setattr(replay, "subprocess", SimpleNamespace(run=run))
        yield replayer
