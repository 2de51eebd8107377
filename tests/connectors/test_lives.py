"""The library is as a folder is, whatever happened there and whenever a process was killed."""

from functools import partial

import pytest

from tests.connectors.conftest import killed_at
from tests.connectors.folder_model import Life, live

pytestmark = pytest.mark.slow


def test_so_it_is_on_postgresql(office_on_postgres):
    life = Life(office_on_postgres, 4)
    office_on_postgres.add()

    assert live(life, 60, partial(killed_at, office_on_postgres.app.engine))["kills"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_a_random_life_the_library_is_as_the_folder(office, seed):
    life = Life(office, seed)
    office.add()

    counts = live(life, 70, partial(killed_at, office.app.engine))

    assert counts["kills"] > 1
    assert counts["ids compared"] > 50
