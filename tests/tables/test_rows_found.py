"""Every row of a table is found by search, however far below the first it stands."""

import pytest

from rag.documents.files import IncomingFile
from rag.records import EVERYTHING
from rag.settings import Settings
from tests.applications import application_of

ROWS = 1_200
LINES = ["firm,seat,staff", *(f"Firm {at:04},Town {at % 50},{at}" for at in range(ROWS))]


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    lines = [*LINES, "Quellbrunn Pumps,Oberau,77"]
    list(
        application.ingestion.ingest(
            [IncomingFile.from_bytes("firms.csv", "\n".join(lines).encode())]
        )
    )
    yield application
    application.stop()


@pytest.mark.parametrize("name", ["Quellbrunn Pumps", "Firm 0733"])
def test_a_row_far_down_is_found_by_its_words(application, name):
    hits = application.assistant._retriever.search(name, EVERYTHING, limit=5)

    assert any(name in hit.chunk.text for hit in hits)
