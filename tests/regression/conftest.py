"""Replayers that a module's tests share."""

import pytest

from rag.regression.replay import Libraries, Replayer
from rag.settings import Settings
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


@pytest.fixture(scope="module")
def sample_settings(tmp_path_factory):
    """With a data folder that a module's libraries share."""
    return Settings(data_dir=tmp_path_factory.mktemp("replayed"))


@pytest.fixture(scope="module")
def sample_libraries(sample_settings):
    """Each folder of documents is ingested once for all that a module asks of it."""
    return Libraries(sample_settings)


@pytest.fixture(scope="module")
def sample_replayer(sample_settings, sample_libraries):
    """As the sample conversations are replayed, each over the documents that it names."""
    with Replayer(sample_settings, sample_libraries) as replayer:
        yield replayer
