"""Fixtures that many tests share, and the rule that CI skips nothing."""

import gc
import os
import shutil
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis  # noqa: F401  # before a queue in a file does without: others here are in Redis
from hypothesis import settings
from sqlalchemy import text
from sqlalchemy.engine import make_url

from rag.db import collections, metadata, migrate, open_engine, reading
from rag.runtime import error_log
from tests import canary
from tests.done_once import do_once
from tests.prepared import migrated
from tests.vectors_once import remember

# Settings of whoever runs the tests must not reach them: they would write into a real library.
for name in [key for key in os.environ if key.startswith("GROUNDNOTE_")]:
    if not name.startswith(("GROUNDNOTE_TEST_", "GROUNDNOTE_BENCH_")):
        del os.environ[name]
for name in ("HOST", "PORT", "CONTEXT_MESSAGE_PAIRS"):
    os.environ.pop(name, None)
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Thousands of small databases are written: into memory, where there is enough of it.
IN_MEMORY = Path("/dev/shm")
if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > 4 * 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
# Asserts are told of in tests alone: no module of ours, or of a plug-in, is compiled anew for them.
for finder in sys.meta_path:
    if hasattr(finder, "mark_rewrite"):
        finder._must_rewrite.clear()
        finder._marked_for_rewrite_cache.clear()
do_once()
remember()
gc.disable()  # until all is loaded: nothing of it is garbage
gc.set_threshold(20_000, 20, 20)  # a test makes little garbage, and looking for it costs more
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
DATA = Path(os.environ.get("GROUNDNOTE_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))


def together(nodeid):
    """What runs in one process: a file's tests share what its fixtures build."""
    return nodeid.partition("::")[0]


def pytest_xdist_auto_num_workers():
    """Two more than processors: while some wait for a server or a clock others run."""
    return (os.cpu_count() or 1) + 2


def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return together(nodeid)

    config.option.loadscopereorder = False  # they are in order
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    cache = cache_of(config)
    longest_first(cache.get(SECONDS, {}) if cache else {}, items)
    try_fewer_examples(items, FEWER if config.option.markexpr == "not slow" else FEW)
    if config.pluginmanager.hasplugin("_cov"):
        leave_unmeasured(items)


def pytest_ignore_collect(collection_path, config):
    """Folders of slow tests alone are not even loaded where none is wanted."""
    if config.option.markexpr == "not slow" and collection_path.name in ("browser", "deployment"):
        return True
    return None


def cache_of(config):
    """None for `-p no:cacheprovider`."""
    return getattr(config, "cache", None)


def longest_first(known, items):
    """What took long the last time begins first: at the end no process waits for another."""
    guessed = Counter()
    for item in items:
        guessed[together(item.nodeid)] += 10 if item.get_closest_marker("slow") else 0.05

    def order(item):
        name = together(item.nodeid)
        return -known.get(name, guessed[name]), name

    items.sort(key=order)


FEW, FEWER = 3, 16  # a part of the generated examples: all are tried where `EXAMPLES` says so
EXAMPLES = "GROUNDNOTE_TEST_ALL_EXAMPLES"


def try_fewer_examples(items, part):
    """They are the same in each run of CI: the first of them fail for what fails at all."""
    if os.environ.get(EXAMPLES):
        return
    for test in {getattr(item, "function", None) for item in items}:
        if getattr(test, "is_hypothesis_test", False):
            wanted = getattr(test, "_hypothesis_internal_use_settings", None) or settings.default
            test._hypothesis_internal_use_settings = settings(
                wanted, max_examples=-(-wanted.max_examples // part)
            )


def leave_unmeasured(items):
    """Coverage doubles the time of a test; hundreds of generated examples show few more lines."""
    for item in items:
        if getattr(getattr(item, "function", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.no_cover)


def pytest_collection_finish():
    """What is loaded by now stays to the end: no search for garbage looks at it again."""
    if "rag.wiring.application" in sys.modules or "rag.cli" in sys.modules:
        canary.watch_all()
        canary.watch_commands()
    gc.freeze()
    gc.enable()


def pytest_unconfigure():
    """What ends with the process is no garbage to look for."""
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_told_before():
    """What is told once a minute is told in each test."""
    error_log._last_times.clear()


@pytest.fixture(autouse=True)
def no_secret_is_left(request):
    """In logs, in streams, in rows, in what a test over an application wrote beside its data."""
    watched = canary.Watched()
    with watched.logs():
        yield
    watched.end(request.node.funcargs.get("tmp_path"))


def folder_of_the_run(tmp_path_factory):
    """A folder that all processes of these tests share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture
def engine(tmp_path):
    """A migrated SQLite database on disk."""
    engine = migrated(tmp_path / "groundnote.db")
    yield engine
    engine.dispose()


@contextmanager
def postgres_database(name, *, like="template1", variable="GROUNDNOTE_TEST_POSTGRES_URL"):
    """A PostgreSQL database of this name while the block runs."""
    url = os.environ.get(variable)
    if not url:
        pytest.skip(f"{variable} names no PostgreSQL server")
    server = open_engine(url)
    own = make_url(url).set(database=name).render_as_string(hide_password=False)
    with server.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f'DROP DATABASE IF EXISTS "{name}"'))
        connection.execute(text(f'CREATE DATABASE "{name}" TEMPLATE "{like}"'))
        yield own
        connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    server.dispose()


@pytest.fixture(scope="session")
def postgres_template():
    """The name of a migrated PostgreSQL database that nobody is connected to."""
    name = f"template_{os.getpid()}"
    with postgres_database(name) as url:
        engine = open_engine(url)
        migrate(engine)
        engine.dispose()
        yield name


@pytest.fixture
def postgres_of_its_own(tmp_path, postgres_template):
    """A migrated PostgreSQL database made for this test: whoever is left of it meets no other."""
    name = "test_" + tmp_path.name.replace("-", "_").lower()[-40:] + f"_{os.getpid()}"
    with postgres_database(name, like=postgres_template) as url:
        engine = open_engine(url)
        yield engine
        canary.watch_rows(engine)
        engine.dispose()


@pytest.fixture(scope="session")
def postgres_kept(postgres_template):
    """A migrated PostgreSQL database of this process, and the rows that migrations laid there."""
    with postgres_database(f"test_{os.getpid()}", like=postgres_template) as url:
        engine = open_engine(url)
        with reading(engine) as connection:
            first = [dict(row) for row in connection.execute(collections.select()).mappings()]
        engine.dispose()
        yield url, first


@pytest.fixture
def postgres(postgres_kept):
    """It, emptied: far sooner there than another one."""
    url, first = postgres_kept
    engine = open_engine(url)
    empty(engine, first)
    yield engine
    canary.watch_rows(engine)
    engine.dispose()


def empty(engine, first):
    """Nobody else is connected, and nothing is there but these collections."""
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        sequences = connection.exec_driver_sql("SELECT sequencename FROM pg_sequences").scalars()
        again = [f"ALTER SEQUENCE {name} RESTART" for name in sequences]
        rows = [f"DELETE FROM {table}" for table in reversed(metadata.sorted_tables)]
        counted = "DROP TABLE IF EXISTS chunk_word_counts"  # which may be of a moment before
        connection.exec_driver_sql("; ".join([counted, *rows, *again]))
        connection.execute(collections.insert(), first)


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)],
)
def any_engine(request):
    """Each database that we support, in turn."""
    return request.getfixturevalue("engine" if request.param == "sqlite" else "postgres")


@pytest.fixture(scope="session")
def public_data():
    """The folder of public data sets."""
    if not DATA.is_dir():
        pytest.skip(f"there are no public data sets at {DATA}")
    return DATA


MANY = 60  # seconds of tests
SECONDS = "groundnote/seconds"  # where they are kept for the next time
skipped: list[str] = []
spent: Counter[str] = Counter()


def pytest_runtest_logreport(report):
    spent[together(report.nodeid)] += report.duration
    if report.skipped and not hasattr(report, "wasxfail"):
        skipped.append(f"{report.nodeid}: {report.longrepr}")


def pytest_sessionfinish(session, exitstatus):
    """In CI a skipped test is one that never runs anywhere: it counts as failed."""
    cache = cache_of(session.config)
    if cache and sum(spent.values()) > MANY and not hasattr(session.config, "workerinput"):
        cache.set(SECONDS, dict(spent))
    if os.environ.get("CI") and skipped and exitstatus == 0:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    if sum(spent.values()) > MANY:
        terminalreporter.write_line("Files that took longest, in seconds of the clock:")
        for file, seconds in spent.most_common(10):
            terminalreporter.write_line(f"{seconds:8.1f} {file}")
    if os.environ.get("CI") and skipped:
        terminalreporter.write_line("Skipped in CI, which counts as a failure:", red=True)
        for line in skipped:
            terminalreporter.write_line(f"  {line}")
