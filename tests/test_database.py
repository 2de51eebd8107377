"""The migrations give exactly the schema that the code works with."""

import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from rag.database import metadata, migrate, open_engine, reading, storable, writing
from rag.errors import SetupError

OURS_BY_HAND = {
    "messages_words", "messages_substrings", "chunks_fts", "chunks_grams", "text_positions",
    "chunks_words", "chunks_letters", "words", "letters",
}  # fmt: skip


def differences(engine):
    """What autogenerate would change, text indexes and their columns apart."""

    def is_ours(thing, name, kind, reflected, other):
        if kind in ("table", "index", "column") and name is not None:
            return not any(name == each or name.startswith(f"{each}_") for each in OURS_BY_HAND)
        return True

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_ours})
        return compare_metadata(context, metadata)


class TestMigrations:
    def test_lead_to_the_schema_of_the_code(self, any_engine):
        assert differences(any_engine) == []

    def test_may_be_run_again_by_every_process(self, any_engine):
        migrate(any_engine)

        with reading(any_engine) as connection:
            rows = connection.execute(text("SELECT version_num FROM alembic_version")).all()
        assert len(rows) == 1


class TestEngine:
    def test_refuses_a_database_that_we_do_not_support(self):
        with pytest.raises(SetupError, match="expected a URL that starts with sqlite"):
            open_engine("mysql://localhost/x")

    def test_rolls_back_a_write_that_raises(self, any_engine):
        def write_and_fail():
            with writing(any_engine) as connection:
                connection.execute(text("INSERT INTO removed_chunks (id) VALUES ('x')"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            write_and_fail()

        with reading(any_engine) as connection:
            assert connection.execute(text("SELECT count(*) FROM removed_chunks")).scalar() == 0

    def test_never_tells_what_was_being_written(self, any_engine):
        assert any_engine.hide_parameters


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param("plain", "plain", id="ascii"),
        pytest.param("语言 😀 é", "语言 😀 é", id="unicode"),
        pytest.param("a\x00b", "a\ufffdb", id="NUL"),
        pytest.param("a\ud800b", "a\ufffdb", id="lone surrogate"),
        pytest.param("\ud83d\ude00", "😀", id="surrogate pair"),
    ],
)
def test_text_is_made_fit_for_every_database(given, kept):
    assert storable(given) == kept


def test_postgresql_without_its_driver_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(SetupError, match=r"pip install 'groundnote\[postgresql\]'"):
        open_engine("postgresql://someone:secret@127.0.0.1:1/notes")


@pytest.mark.slow
def test_postgresql_plans_for_each_query_and_compiles_none(postgres):
    """A plan for any value reads the whole table for a common word, or for a rare one."""
    with postgres.connect() as connection:
        told = [
            connection.exec_driver_sql(f"SHOW {name}").scalar()
            for name in ("jit", "plan_cache_mode")
        ]

    assert told == ["off", "force_custom_plan"]
