import pytest

from tests.sources.remote.site import Site, running


@pytest.fixture
def site():
    with running(Site()) as made:
        yield made
