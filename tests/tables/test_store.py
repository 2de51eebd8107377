"""Tables come, change and go with their documents."""

import pytest

from rag.documents.files import IncomingFile
from rag.errors import NotFound
from rag.records import EVERYTHING, ColumnType
from rag.settings import Settings
from rag.tables.plan import Kind, Measure, TablePlan
from tests.applications import application_of

SALES = 'Product,Quarter,Revenue\nAero 5,Q1,"1,200.50"\nAero 6,Q2,900.00\nTotal,,"2,100.50"\n'


@pytest.fixture
def application(tmp_path):
    application = application_of(Settings(data_dir=tmp_path))
    yield application
    application.stop()


def ingest(application, name, text):
    file = IncomingFile.from_bytes(name, text.encode())
    (final,) = [each for each in application.ingestion.ingest([file]) if each.is_final]
    return final


def parquet_files(application):
    return sorted((application.settings.data_dir / "tables").glob("*"))


class TestTablesOfADocument:
    def test_are_typed_and_kept_beside_the_database(self, application):
        ingest(application, "sales.csv", SALES)

        (table,) = application.tables.tables(EVERYTHING)
        assert (table.name, table.row_count) == ("sales", 2)
        types = [(column.name, column.type) for column in table.columns]
        assert types == [
            ("Product", ColumnType.TEXT),
            ("Quarter", ColumnType.QUARTER),
            ("Revenue", ColumnType.NUMBER),
        ]
        assert [path.stem for path in parquet_files(application)] == [table.id]

    def test_cost_nothing_when_the_file_is_unchanged(self, application):
        ingest(application, "sales.csv", SALES)
        before = parquet_files(application)[0].stat().st_mtime_ns

        assert ingest(application, "sales.csv", SALES).stage == "unchanged"
        assert parquet_files(application)[0].stat().st_mtime_ns == before

    def test_are_replaced_when_the_file_changes(self, application):
        ingest(application, "sales.csv", SALES)
        (before,) = application.tables.ids(EVERYTHING)

        ingest(application, "sales.csv", SALES.replace("Aero 6", "Aero 7"))

        (after,) = application.tables.ids(EVERYTHING)
        assert before != after
        assert [path.stem for path in parquet_files(application)] == [after]

    def test_leave_nothing_when_the_document_is_deleted(self, application):
        document_id = ingest(application, "sales.csv", SALES).document_id

        application.ingestion.delete(document_id)

        assert application.tables.ids(EVERYTHING) == ()
        assert parquet_files(application) == []

    def test_a_very_long_one_is_embedded_by_its_profile_and_a_sample(self, application):
        rows = "".join(f"SKU-{i},{i % 9},{i}.50\n" for i in range(12_000))

        ingest(application, "stock.csv", "Code,Shelf,Price\n" + rows)

        (document,) = application.documents.documents(EVERYTHING)
        assert document.chunk_count < 40
        hits = application.retriever.search("table stock columns rows", EVERYTHING, limit=3)
        assert any("12,000 rows" in hit.passage for hit in hits)


def test_a_table_that_changes_while_it_is_asked_is_gone_and_the_next_question_works(application):
    ingest(application, "sales.csv", SALES)
    (before,) = application.tables.tables(EVERYTHING)
    plan = TablePlan(before.id, measures=(Measure(Kind.SUM, "Revenue"),))
    ingest(application, "sales.csv", SALES.replace("900.00", "1000.00"))

    with pytest.raises(NotFound, match="ingest its document again"):
        application.table_answers.library.run(before, plan)

    asked = application.table_answers.ask("total revenue", EVERYTHING)
    assert asked.rows == ((2200.5,),)
