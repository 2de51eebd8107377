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
def sample_replayer(tmp_path_factory):
    """As the sample conversations are replayed, each over the documents that it names."""
    folder = tmp_path_factory.mktemp("replayed")
    settings = Settings(data_dir=folder)
    with Replayer(settings, Libraries(settings)) as replayer:
        yield replayer
