"""What a filter of a plan lets through, empty cells above all."""

import pytest

from rag.documents.files import IncomingFile
from rag.records import EVERYTHING
from rag.settings import Settings
from rag.tables.plan import Filter, Op, TablePlan
from tests.applications import application_of

PARTS = """Part,Colour,Price,Weight,Checked
bolt,red,1.50,12,2026-03-01
nut,Blue,2.00,n/a,2026-04-01
screw,,,,
hook,green,2.00,30,2026-03-01
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    list(application.ingestion.ingest([IncomingFile.from_bytes("parts.csv", PARTS.encode())]))
    (table,) = application.tables.tables(EVERYTHING)

    def parts(*filters):
        plan = TablePlan(table.id, columns=("Part",), filters=filters)
        return [row[0] for row in application.table_answers.library.run(table, plan).rows]

    yield parts
    application.stop()


@pytest.mark.parametrize(
    ("column", "op", "values", "parts"),
    [
        ("Colour", Op.IS, ("RED",), ["bolt"]),
        ("Colour", Op.IS, ("red", "blue"), ["bolt", "nut"]),
        ("Colour", Op.NOT, ("red",), ["nut", "screw", "hook"]),
        ("Colour", Op.HAS, ("re",), ["bolt", "hook"]),
        ("Colour", Op.LACKS, ("re",), ["nut", "screw"]),
        ("Colour", Op.BLANK, (), ["screw"]),
        ("Colour", Op.FILLED, (), ["bolt", "nut", "hook"]),
        ("Price", Op.IS, (2.0,), ["nut", "hook"]),
        ("Price", Op.NOT, (2.0,), ["bolt", "screw"]),
        ("Price", Op.LESS, (2.0,), ["bolt"]),
        ("Price", Op.AT_MOST, (2.0,), ["bolt", "nut", "hook"]),
        ("Price", Op.MORE, (1.5,), ["nut", "hook"]),
        ("Price", Op.AT_LEAST, (1.5,), ["bolt", "nut", "hook"]),
        ("Weight", Op.IS, ("n/a",), ["nut"]),
        ("Weight", Op.NOT, ("n/a",), ["bolt", "screw", "hook"]),
        ("Weight", Op.NOT, (12,), ["nut", "screw", "hook"]),
        ("Checked", Op.NOT, ("2026-03-01",), ["nut", "screw"]),
    ],
)
def test_a_filter_lets_through(table, column, op, values, parts):
    assert table(Filter(column, op, values)) == parts
