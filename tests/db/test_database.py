"""The migrations give exactly the schema that the code works with."""

import os
import shutil
import sys
from contextlib import nullcontext

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import BIGINT, INTEGER, inspect, text
from sqlalchemy.exc import OperationalError

import rag.db.engine
from rag.db import (
    MIGRATIONS,
    metadata,
    migrate,
    newest_revision,
    open_engine,
    reading,
    revisions,
    storable,
    waiting_for_database,
    writing,
)
from rag.db.engine import upgrade
from rag.errors import SetupError
from tests.conftest import postgres_database

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


def described(engine):
    """All that the database itself knows of its schema, whatever order it was made in."""
    with engine.connect() as connection:
        seen = inspect(connection)
        facts = {name: facts_of(seen, name) for name in seen.get_table_names()}
        if engine.dialect.name == "sqlite":
            made = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' OR sql LIKE '%fts5%'"
        else:
            made = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
        facts["by hand"] = sorted(tuple(row) for row in connection.exec_driver_sql(made))
        rows = connection.exec_driver_sql("SELECT * FROM collections").mappings().all()
        facts["first rows"] = [dict(row) for row in rows]
        if "text_positions" in facts:
            counted = "SELECT count(*), max(n) FROM text_positions"
            facts["positions"] = tuple(connection.exec_driver_sql(counted).one())
        return facts


def facts_of(seen, table):
    columns = {
        each["name"]: (str(each["type"]), each["nullable"], each["default"], each.get("computed"))
        for each in seen.get_columns(table)
    }
    keys = sorted(
        (*each["constrained_columns"], each["referred_table"], str(each["options"]))
        for each in seen.get_foreign_keys(table)
    )
    unique = [(each["name"], each["column_names"]) for each in seen.get_unique_constraints(table)]
    indexes = [
        (each["name"], each["column_names"], bool(each["unique"]))
        for each in seen.get_indexes(table)
    ]
    primary = seen.get_pk_constraint(table)["constrained_columns"]
    return columns, primary, keys, sorted(unique), sorted(indexes)


class TestMigrations:
    def test_lead_to_the_schema_of_the_code(self, any_engine):
        assert differences(any_engine) == []

    def test_lead_to_what_a_new_database_is_made_as(self, own_engine, empty_engine):
        with writing(empty_engine, follows_keys=False) as connection:
            upgrade(connection, "head")

        assert described(own_engine) == described(empty_engine)

    def test_number_rows_with_64_bits(self, any_engine):
        seen = inspect(any_engine)
        of = [table.name for table in metadata.sorted_tables if "row" in table.primary_key]
        columns = [column for table in of for column in seen.get_columns(table)]
        types = {column["type"].__class__ for column in columns if column["name"] == "row"}

        assert {"chunks", "messages", "audit"} <= set(of)
        # SQLite's own numbers are of 64 bits where the type is called so.
        assert types == {BIGINT if any_engine.dialect.name == "postgresql" else INTEGER}

    def test_may_be_run_again_by_every_process(self, any_engine):
        migrate(any_engine)

        with reading(any_engine) as connection:
            rows = connection.execute(text("SELECT version_num FROM alembic_version")).all()
        assert len(rows) == 1

    def test_that_fail_leave_the_database_as_it_was_and_can_be_run_again(
        self, own_engine, next_revision
    ):
        next_revision("raise OSError('No space left on device')")
        before = revision_and_tables(own_engine)

        with pytest.raises(OSError, match="No space"):
            migrate(own_engine)

        assert revision_and_tables(own_engine) == before
        next_revision("pass")
        migrate(own_engine)
        revision, tables = revision_and_tables(own_engine)
        assert (revision, tables - before[1]) == ("9998", {"more"})

    @pytest.mark.parametrize(
        ("revision", "told"),
        [
            ("9999", "a newer version of Groundnote may have used it"),
            ("0012", "Start it once with"),
        ],
    )
    def test_refuse_a_database_of_another_version(self, own_engine, revision, told):
        with writing(own_engine) as connection:
            connection.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))
        before = revision_and_tables(own_engine)

        with pytest.raises(SetupError, match=told):
            migrate(own_engine)

        assert revision_and_tables(own_engine) == before


def revision_and_tables(engine):
    with reading(engine) as connection:
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
        return revision, set(inspect(connection).get_table_names())


@pytest.fixture(params=["engine", pytest.param("postgres_of_its_own", marks=pytest.mark.slow)])
def own_engine(request):
    """A database that nobody else works with: its schema will not be that of others."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def empty_engine(own_engine, tmp_path):
    """A database of the same kind in which nothing is."""
    if own_engine.dialect.name == "sqlite":
        urls = nullcontext(f"sqlite:///{tmp_path / 'empty.db'}")
    else:
        urls = postgres_database(f"empty_{os.getpid()}")
    with urls as url:
        engine = open_engine(url)
        yield engine
        engine.dispose()


@pytest.fixture
def next_revision(tmp_path, monkeypatch):
    """Write a revision after the newest: it adds a table, and then does what it is told."""
    copy = shutil.copytree(MIGRATIONS, tmp_path / "migrations")
    newest = newest_revision()
    monkeypatch.setattr(rag.db.engine, "MIGRATIONS", copy)

    def write(then):
        (copy / "versions" / "9998_next.py").write_text(
            f"""
from alembic import op
revision = "9998"
down_revision = "{newest}"
def upgrade():
    op.execute("CREATE TABLE more (id INTEGER)")
    {then}
"""
        )
        revisions.cache_clear()

    yield write
    monkeypatch.undo()
    revisions.cache_clear()


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


def test_a_database_that_is_away_is_waited_for_there_alone_where_an_answer_is_kept(monkeypatch):
    monkeypatch.setattr(rag.db.engine, "TRY_AGAIN_SECONDS", 0.01)
    engine, tries = open_engine("postgresql://groundnote@127.0.0.1:1/nowhere"), []

    def away(*_where, **_options):
        tries.append("again")
        if len(tries) > 3:
            raise TimeoutError("it is waited for")
        raise engine.dialect.loaded_dbapi.OperationalError("it is away")

    monkeypatch.setattr(engine.dialect, "connect", away)
    with waiting_for_database(), pytest.raises(TimeoutError):
        engine.connect()
    tries.clear()

    with pytest.raises(OperationalError):
        engine.connect()


@pytest.mark.slow
def test_postgresql_plans_for_each_query_and_compiles_none(postgres):
    """A plan for any value reads the whole table for a common word, or for a rare one."""
    with postgres.connect() as connection:
        told = [
            connection.exec_driver_sql(f"SHOW {name}").scalar()
            for name in ("jit", "plan_cache_mode")
        ]

    assert told == ["off", "force_custom_plan"]
