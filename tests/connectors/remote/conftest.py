import pytest

from tests.connectors.remote.site import Site, running


@pytest.fixture
def site():
    with running(Site()) as made:
        yield made
