"""Queries are fenced in: one SELECT over the table asked, under limits, and nothing else."""

import duckdb
import pytest

from rag.errors import TooLarge, UserError
from rag.runtime.budget import HangUp
from rag.tables.engine import parsed
from rag.tables.engine import run as run_all


@pytest.fixture
def files(tmp_path):
    path = tmp_path / "data.parquet"
    duckdb.execute(f"COPY (SELECT range AS n FROM range(2000)) TO '{path}'")
    return str(path)


def run(path, query, **limits):
    (answered,) = run_all(path, query.sql(dialect="duckdb"), **limits)
    return answered


REFUSED = [
    "ATTACH 'other.db' AS other",
    "COPY data TO 'stolen.csv'",
    "COPY (SELECT * FROM data) TO '/tmp/stolen.csv'",
    "SET enable_external_access = true",
    "PRAGMA database_list",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CREATE TABLE t AS SELECT 1",
    "DROP VIEW data",
    "DELETE FROM data",
    "UPDATE data SET n = 0",
    "CALL pragma_version()",
    "EXPORT DATABASE '/tmp/stolen'",
    "SELECT 1; DROP VIEW data",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('*')",
    "SELECT * FROM somebody_elses",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM duckdb_settings()",
    "SELECT getenv('HOME')",
    "SELECT current_setting('memory_limit')",
    "SELECT (SELECT content FROM read_text('/etc/passwd')) FROM data",
    "SELECT * FROM range(1000000000)",
    "SELECT * FROM data, generate_series(1, 1000000000)",
    "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r",
    "SELECT * FROM data WHERE n = ?",
    "this is no SQL (",
    "",
]


@pytest.mark.parametrize(("rows", "more"), [(1_999, True), (2_000, False), (2_001, False)])
def test_says_whether_there_are_more_rows_than_it_gives(files, rows, more):
    found = run(files, parsed("SELECT n FROM data", ["data"]), rows=rows)

    assert (len(found.rows), found.has_more) == (min(rows, 2_000), more)


class TestSqlOfAModel:
    @pytest.mark.parametrize("sql", REFUSED)
    def test_is_refused_unless_it_is_one_select_over_known_tables(self, sql):
        with pytest.raises(UserError):
            parsed(sql, ["data"])

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT count(*) FROM data WHERE n > 1000",
            "WITH big AS (SELECT n FROM data WHERE n > 10) SELECT max(n) FROM big",
            "SELECT n % 7 AS day, sum(n) FROM data GROUP BY day ORDER BY 2 DESC LIMIT 3",
        ],
    )
    def test_runs_when_it_is(self, files, sql):
        assert run(files, parsed(sql, ["data"])).rows

    def test_gives_no_more_rows_than_are_shown(self, files):
        answered = run(files, parsed("SELECT a.n FROM data a, data b", ["data"]))

        assert (len(answered.rows), answered.has_more) == (1_000, True)

    def test_is_stopped_when_it_takes_too_long_and_the_next_one_works(self, files):
        endless = "SELECT sum(a.n * b.n + c.n) FROM data a, data b, data c, data d"

        with pytest.raises(TooLarge, match=r"longer than 0\.3 seconds"):
            run(files, parsed(endless, ["data"]), seconds=0.3)

        assert run(files, parsed("SELECT count(*) FROM data", ["data"])).rows == [(2_000,)]

    def test_cannot_read_files_even_past_the_parser(self, files, tmp_path):
        from sqlglot import parse_one

        secret = tmp_path / "secret.csv"
        secret.write_text("a,b\n1,2\n")

        with pytest.raises(UserError) as caught:
            run(files, parse_one(f"SELECT * FROM read_csv('{secret}')", read="duckdb"))
        assert "1,2" not in str(caught.value)

    def test_that_fails_says_why_and_leaks_no_place(self, files):
        with pytest.raises(UserError) as caught:
            run(files, parsed("SELECT no_such_column FROM data", ["data"]))

        assert "no_such_column" in str(caught.value)
        assert files not in str(caught.value)

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT a.n FROM data a, data b, data c ORDER BY a.n + b.n * c.n",  # 8 · 10⁹ rows
            "SELECT list(a.n) FROM data a, data b, data c",
        ],
    )
    def test_that_would_give_billions_of_rows_is_stopped_and_the_next_one_works(self, files, sql):
        from sqlglot import parse_one

        with pytest.raises(TooLarge):
            run(files, parse_one(sql, read="duckdb"), seconds=1)

        assert run(files, parsed("SELECT count(*) FROM data", ["data"])).rows == [(2_000,)]


def test_who_leaves_after_a_query_has_ended_disturbs_nothing(files):
    hang_up = HangUp()
    with hang_up.heard_here():
        run_all(files, "SELECT n FROM data LIMIT 1")

    hang_up.now()

    assert hang_up.is_over
