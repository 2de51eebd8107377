"""A backup is whole, or says what it lacks; what is put back is what was there."""

import gzip
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import insert, select

from rag.cli import main
from rag.db import audit, documents, open_engine, writing
from rag.db.blobs import FolderBlobs, deletions_put_off, deletions_wait, open_blobs
from rag.db.engine import upgrade
from rag.errors import Conflict, SetupError, StorageFailed, UserError
from rag.operations import backup as backup_module
from rag.operations.backup import UNFINISHED, back_up, restore
from rag.operations.repository import BackupRepository, opened_for_backup, opened_for_restore
from rag.records import EVERYTHING, DocumentSource, JobState
from rag.settings import Settings
from rag.wiring.application import build
from rag.wiring.stores import empty_library, library_of, open_database, without_secrets
from tests.applications import application_of
from tests.conftest import postgres_database
from tests.fakes import HashEmbedder
from tests.waiting import until

ROOT = Path(__file__).parents[2]
FILES = {
    "refunds.md": b"# Refunds\n\nRefunds take five days.\n",
    "again/refunds.md": b"# Refunds\n\nRefunds take five days.\n",
    "prices.csv": b"Product,Price\nAero 5,100\nAero 6,200\n",
    "notes.txt": b"The Nimbus weighs 940 g.",
}


def opened(settings):
    """The application; a copied database is laid below it only where it is a file."""
    is_file = settings.database_url.startswith("sqlite")
    return application_of(settings) if is_file else build(settings, embedder=HashEmbedder())


class World:
    """A library, places for backups, and places to put them back to."""

    def __init__(self, root, **settings):
        self.root = root
        self.settings = Settings(data_dir=root / "one", **settings)
        self.application = opened(self.settings)

    def add(self, files):
        for name, data in files.items():
            self.application.jobs.submit_ingest(name, data)
        self.application.jobs.run_waiting()

    def library(self):
        return library_of(self.settings, self.application.engine)

    def back_up(self, place="backups", **options):
        with opened_for_backup(str(self.root / place)) as repository:
            return back_up(self.library(), repository, **options)

    def restore(self, place="backups", to="two", backup_id=""):
        target = Settings(data_dir=self.root / to)
        with opened_for_restore(str(self.root / place)) as repository:
            restore(repository, repository.manifest(backup_id), empty_library(target))
        return target

    def repository(self, place="backups"):
        return BackupRepository(open_blobs(self.root / place))

    def original(self, name):
        (found,) = self.named(name)
        return self.application.documents.original(found)

    def named(self, name):
        return [d for d in self.application.documents.documents(EVERYTHING) if d.name == name]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A data folder with a few documents and a conversation."""
    made = World(tmp_path_factory.mktemp("filled"))
    made.add(FILES)
    made.application.store.create("local", title="a talk")
    made.application.stop()
    return made.settings.data_dir


@pytest.fixture
def world(filled, tmp_path):
    """A world of this test's own over a copy of it."""
    shutil.copytree(filled, tmp_path / "one")
    made = World(tmp_path)
    yield made
    made.application.stop()


def contents(settings):
    """All documents with their files, and the rows of tables; all of it has to open."""
    application = opened(settings)
    try:
        found = {}
        for document in application.documents.documents(EVERYTHING):
            path = application.documents.original(document)
            found[document.name] = path.read_bytes() if path else None
        assert application.without_rows(reads=True) == set()
        assert application.without_original(reads=True) == {}
        return found
    finally:
        application.stop()


def test_what_is_put_back_is_what_was_there(world):
    made = world.back_up()

    assert made.missing == {}
    target = world.restore()
    assert contents(target) == FILES
    talks = application_of(target).store.sessions("local", limit=10)
    assert [talk.title for talk in talks] == ["a talk"]


@pytest.mark.parametrize("place", ["backups", "one.zip", "memory://backups-of-a-test"])
def test_a_folder_an_archive_and_a_url_hold_the_same(world, place):
    target = place if "://" in place else str(world.root / place)
    with opened_for_backup(target) as repository:
        made = back_up(world.library(), repository)
    back = Settings(data_dir=world.root / "two")
    with opened_for_restore(target) as repository:
        assert repository.lacking(made, reads=True) == []
        restore(repository, repository.manifest(), empty_library(back))

    assert contents(back) == FILES


def test_only_what_is_new_is_written_again(world, monkeypatch):
    world.back_up()
    written = []
    real = FolderBlobs.write

    def noted(self, name, parts):
        written.append(name)
        real(self, name, parts)

    world.add({"later.md": b"# Later\n\nThis is new."})
    monkeypatch.setattr(FolderBlobs, "write", noted)
    world.back_up()

    assert len([name for name in written if name.startswith("originals/")]) == 1
    monkeypatch.undo()
    assert contents(world.restore()) == {**FILES, "later.md": b"# Later\n\nThis is new."}


def test_an_earlier_backup_can_be_taken(world):
    first = world.back_up()
    (document,) = world.named("notes.txt")
    world.application.ingestion.delete(document.id)
    world.back_up()

    assert contents(world.restore(to="now")) == {
        name: data for name, data in FILES.items() if name != "notes.txt"
    }
    assert contents(world.restore(to="then", backup_id=first.id)) == FILES


class TestAMissingOriginal:
    @pytest.fixture
    def lost(self, world):
        world.original("notes.txt").unlink()
        return world

    def test_is_named_and_the_rest_is_kept(self, lost, monkeypatch):
        monkeypatch.setattr(backup_module, "LATE_SECONDS", 0.1)

        made = lost.back_up()

        ((_, names),) = made.missing.items()
        assert names == ["notes.txt"]
        target = lost.restore()
        application = application_of(target)
        assert list(application.without_original().values()) == ["notes.txt"]
        application.stop()

    def test_makes_the_command_fail_after_it_wrote_all_else(self, lost, monkeypatch):
        monkeypatch.setattr(backup_module, "LATE_SECONDS", 0.1)

        told = run("backup", lost.root / "b.zip", data_dir=lost.settings.data_dir)

        assert told.exit_code == 1
        assert "notes.txt" in told.output
        assert (lost.root / "b.zip").exists()

    def test_that_is_another_file_now_counts_as_missing(self, world, monkeypatch):
        monkeypatch.setattr(backup_module, "LATE_SECONDS", 0.1)
        path = world.original("notes.txt")
        path.write_bytes(b"x" * path.stat().st_size)

        made = world.back_up()

        assert list(made.missing.values()) == [["notes.txt"]]
        assert world.repository().lacking(made, reads=True) == []


def run(*arguments, data_dir, **variables):
    environment = {"GROUNDNOTE_DATA_DIR": str(data_dir), **variables}
    return CliRunner().invoke(main, [*map(str, arguments)], env=environment)


class TestRestoreRefuses:
    def test_a_backup_that_lacks_what_its_manifest_promises(self, world):
        world.back_up()
        next((world.root / "backups" / "originals").rglob("*/*")).unlink()

        with pytest.raises(UserError, match="is not whole: 1 of"):
            world.restore()
        assert not (world.root / "two" / "groundnote.db").exists()

    def test_a_file_that_is_another_one(self, world):
        world.back_up()
        path = next((world.root / "backups" / "tables").iterdir())
        path.write_bytes(b"x" * path.stat().st_size)

        with pytest.raises(UserError, match="its checksum is another"):
            world.restore()
        with pytest.raises(SetupError, match="did not come to its end"):
            open_database(Settings(data_dir=world.root / "two"))

    def test_an_archive_that_was_cut_off(self, world):
        world.back_up("a.zip")
        os.truncate(world.root / "a.zip", (world.root / "a.zip").stat().st_size // 2)

        with pytest.raises(UserError, match="no whole archive"):
            world.restore("a.zip")

    def test_a_newer_version(self, world):
        made = world.back_up()
        path = world.root / "backups" / "manifests" / f"{made.id}.json.gz"
        values = json.loads(gzip.decompress(path.read_bytes()))
        values["format"] += 1
        path.write_bytes(gzip.compress(json.dumps(values).encode()))

        with pytest.raises(SetupError, match="newer than this one"):
            world.restore()

    def test_a_manifest_that_was_changed(self, world):
        made = world.back_up()
        path = world.root / "backups" / "manifests" / f"{made.id}.json.gz"
        values = json.loads(gzip.decompress(path.read_bytes()))
        values["files"].popitem()
        path.write_bytes(gzip.compress(json.dumps(values).encode()))

        with pytest.raises(UserError, match="its checksum is another"):
            world.restore()

    def test_a_folder_that_holds_anything(self, world):
        world.back_up()
        (world.root / "two").mkdir()
        (world.root / "two" / "groundnote.db").touch()

        with pytest.raises(Conflict, match="is not empty"):
            world.restore()

    def test_a_store_that_holds_anything(self, world):
        world.back_up()
        (world.root / "store").mkdir()
        (world.root / "store" / "x").touch()
        target = Settings(
            data_dir=world.root / "two", documents={"originals_url": str(world.root / "store")}
        )

        with (
            opened_for_restore(str(world.root / "backups")) as repository,
            pytest.raises(Conflict, match="store is not empty"),
        ):
            restore(repository, repository.manifest(), empty_library(target))

    def test_what_is_no_backup(self, world):
        (world.root / "empty").mkdir()

        with pytest.raises(UserError, match="holds no whole backup"):
            world.restore("empty")
        with pytest.raises(UserError, match="There is no backup"):
            world.restore("nowhere")


class TestBesideALibraryInUse:
    def test_deletions_are_put_off_until_it_has_ended(self, world):
        path = world.original("notes.txt")
        (document,) = world.named("notes.txt")

        with deletions_put_off(world.application.engine):
            world.application.ingestion.delete(document.id)
            assert path.exists()
            world.application.ingestion.synchronise()
            assert path.exists()

        assert not deletions_wait(world.application.engine)
        world.application.ingestion.synchronise()
        assert not path.exists()

    def test_a_document_deleted_meanwhile_is_in_it_with_its_file(self, world):
        (document,) = world.named("notes.txt")

        def delete_at_the_first_file(done, total):
            if done == 1:
                world.application.ingestion.delete(document.id)

        made = world.back_up(report=delete_at_the_first_file)

        assert made.missing == {}
        assert contents(world.restore()) == FILES

    def test_uploads_that_wait_are_in_it_and_wait_for_a_yes(self, world):
        job = world.application.jobs.submit_ingest("waits.md", b"# Waits\n\nIt waits.")
        world.back_up()
        world.application.jobs.run_waiting()

        restored = application_of(world.restore())
        restored.jobs.start()
        later = restored.jobs.submit_ingest("later.md", b"# Later\n\nIt came since.")
        until(lambda: restored.jobs.job(later.id).state is JobState.DONE)
        assert restored.jobs.job(job.id).state is JobState.QUEUED
        assert run("resume", data_dir=world.root / "two").output == "They go on.\n"
        restored.jobs.submit_ingest("waits.md", b"# Waits\n\nIt waits.")
        until(lambda: restored.jobs.job(job.id).state is JobState.DONE)
        restored.stop()

    def test_syncs_wait_for_a_yes(self, world, tmp_path):
        (tmp_path / "docs").mkdir()
        wish = DocumentSource(
            "", str(tmp_path / "docs"), "", "", "1", "", every_seconds=60, is_operators=True
        )
        world.application.sources.add(wish)
        world.back_up()

        restored = application_of(world.restore())
        (source,) = restored.sources.table.sources()
        restored.sources.table.change(source.id, next_due_at=source.created_at)
        assert restored.sources.table.claim_due() == []
        run("resume", data_dir=world.root / "two")
        assert [each.id for each in restored.sources.table.claim_due()] == [source.id]
        restored.stop()


class TestRetention:
    def test_is_off_unless_asked_for(self, world):
        for _ in range(3):
            world.back_up()

        assert len(world.repository().ids()) == 3

    def test_keeps_what_a_backup_that_stays_names(self, world):
        world.back_up()
        world.add({"later.md": b"# Later\n\nThis is new."})
        world.back_up()
        (document,) = world.named("later.md")
        world.application.ingestion.delete(document.id)
        last = world.back_up()

        assert world.repository().keep(1) == 2

        repository = world.repository()
        assert repository.ids() == [last.id]
        assert repository.lacking(last, reads=True) == []
        assert set(repository.blobs.sizes()) == {
            *last.all_files, f"manifests/{last.id}.json.gz",
        }  # fmt: skip

    def test_never_takes_the_last_whole_one_for_newer_ones_that_are_not(self, world):
        whole = world.back_up()
        broken = world.back_up()
        for name in broken.database:
            world.repository().blobs.remove([name])

        world.repository().keep(1)

        assert contents(world.restore(backup_id=whole.id)) == FILES

    def test_waits_while_another_backup_is_made_there(self, world):
        world.back_up()
        world.back_up()
        repository = world.repository()

        with repository.being_made("another"):
            assert repository.keep(1) == 0
        assert repository.keep(1) == 1


class TestRoom:
    def test_is_looked_at_before_it_begins(self, world, monkeypatch):
        monkeypatch.setattr(FolderBlobs, "free", lambda _self: 1 << 20)

        with pytest.raises(StorageFailed, match=r"needs up to \d+ MiB, and the disk of .+ has 1 M"):
            world.back_up()
        assert not (world.root / "backups" / "databases").exists()

    def test_counts_the_files_that_are_copied_and_none_that_is_linked(self, world, monkeypatch):
        monkeypatch.setattr("rag.operations.backup._size", lambda _file: 1 << 30)
        monkeypatch.setattr(FolderBlobs, "free", lambda _self: 1 << 30)

        with pytest.raises(StorageFailed, match=r"needs up to \d,\d{3} MiB"):
            world.back_up()
        assert world.back_up(links=True).files

    def test_that_ends_in_the_middle_leaves_the_backups_before_it(self, world, monkeypatch):
        first = world.back_up()
        world.add({"later.md": b"# Later\n\nThis is new."})
        real = FolderBlobs.write

        def full(self, name, parts):
            if name.startswith("originals/"):
                raise OSError(28, "No space left on device")
            real(self, name, parts)

        monkeypatch.setattr(FolderBlobs, "write", full)
        with pytest.raises(OSError, match="No space"):
            world.back_up()

        monkeypatch.undo()
        assert world.repository().ids() == [first.id]
        assert not deletions_wait(world.application.engine)
        assert contents(world.restore()) == FILES


class TestSecrets:
    def test_are_in_no_backup(self, tmp_path):
        world = World(
            tmp_path,
            auth={"mode": "tokens", "tokens": {"tok-1234567890": "ada"}},
            sources={"passwords": {"wiki": "pw-1234567890"}},
            jobs={"url": None},
            web={"metrics_token": "met-1234567890", "rate_limit_storage": "redis://u:pw-9@h/0"},
        )
        made = world.back_up("a.zip")
        world.application.stop()

        told = json.dumps(made.settings)
        for secret in ("tok-1234567890", "pw-1234567890", "met-1234567890", "pw-9"):
            assert secret not in told
        assert {"auth.tokens", "web.metrics_token", "sources.passwords"} <= set(made.secrets)
        with zipfile.ZipFile(tmp_path / "a.zip") as archive:
            assert not any(b"1234567890" in archive.read(name) for name in archive.namelist())

    def test_settings_that_are_none_stay(self):
        values, secrets = without_secrets({"llm": {"model": "m", "max_tokens": 5}})

        assert (values, secrets) == ({"llm": {"model": "m", "max_tokens": 5}}, [])

    def test_files_are_for_their_owner_alone(self, world):
        world.back_up()
        world.back_up("a.zip")

        modes = {p.stat().st_mode & 0o077 for p in (world.root / "backups").rglob("*")}
        assert modes == {0}
        assert (world.root / "a.zip").stat().st_mode & 0o077 == 0


class TestAnOlderVersion:
    @pytest.fixture
    def old(self, world, tmp_path):
        """The library as an earlier version left it: the first schema, with the same rows."""
        world.application.stop()
        path = world.settings.data_dir / "groundnote.db"
        newer = path.rename(path.with_name("newer.db"))
        older = open_engine(f"sqlite:///{path}")
        with writing(older, follows_keys=False) as connection:
            upgrade(connection, "0018")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("ATTACH DATABASE ? AS newer", (str(newer),))
            for table in ("collections", "documents", "sections", "chunks", "tables", "sessions"):
                info = connection.execute(f"PRAGMA main.table_info({table})").fetchall()
                columns = ", ".join(f'"{column[1]}"' for column in info)
                connection.execute(
                    f"INSERT OR REPLACE INTO main.{table} ({columns}) "
                    f"SELECT {columns} FROM newer.{table}"
                )
        older.dispose()
        newer.unlink()
        return world

    def test_is_backed_up_before_it_is_changed_and_can_be_gone_back_to(self, old):
        application = application_of(old.settings)
        application.stop()

        repository = old.repository("one/backups")
        made = repository.manifest()
        assert made.revision == "0018"
        assert repository.lacking(made, reads=True) == []
        assert contents(old.restore("one/backups")) == FILES

    def test_is_not_changed_where_there_is_no_room_for_a_way_back(self, old, monkeypatch):
        monkeypatch.setattr(FolderBlobs, "free", lambda _self: 1 << 20)

        with pytest.raises(StorageFailed, match=r"needs up to .*1 MiB left.*migrate --wi"):
            open_database(old.settings)

        told = run("migrate", "--without-backup", data_dir=old.settings.data_dir)
        assert told.exit_code == 0
        open_database(old.settings)

    def test_needs_no_room_for_its_files(self, old):
        application_of(old.settings).stop()

        copies = (old.root / "one" / "backups" / "originals").rglob("*/*")
        assert {path.stat().st_nlink for path in copies} == {2}


def command(world, *arguments, data_dir):
    return subprocess.Popen(
        [sys.executable, "-m", "rag.cli", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "GROUNDNOTE_DATA_DIR": str(data_dir)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def killed_once(process, has_begun):
    while process.poll() is None and not has_begun():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A data folder with many files: there is a middle to be killed in."""
    made = World(tmp_path_factory.mktemp("many"))
    made.add(FILES | {f"many/{n}.txt": f"Number {n}.".encode() * 50 for n in range(150)})
    made.application.stop()
    return made.settings.data_dir


@pytest.mark.slow
class TestAKill:
    @pytest.fixture
    def large(self, many, tmp_path):
        """A world of this test's own over a copy of it."""
        shutil.copytree(many, tmp_path / "one")
        made = World(tmp_path)
        yield made
        made.application.stop()

    @pytest.mark.parametrize("count", [0, 20, 100])
    def test_during_a_backup_leaves_the_one_before_it_and_the_next_is_whole(self, large, count):
        before = large.back_up()
        shutil.rmtree(large.root / "backups" / "originals")
        shutil.rmtree(large.root / "backups" / "manifests")
        place = large.root / "backups" / "originals"
        process = command(large, "backup", large.root / "backups", data_dir=large.settings.data_dir)
        killed_once(process, lambda: len([*place.glob("*/*")]) >= count)

        assert before.id not in large.repository().ids()
        large.back_up()

        assert len(contents(large.restore())) == len(FILES) + 150

    @pytest.mark.parametrize("count", [1, 20, 100])
    def test_during_a_restore_opens_nothing_and_it_can_be_run_again(self, large, count):
        large.back_up()
        two = large.root / "two"
        process = command(large, "restore", large.root / "backups", data_dir=two)
        killed_once(process, lambda: len([*(two / "originals").glob("*/*")]) >= count)

        if (two / UNFINISHED).exists():
            with pytest.raises(SetupError, match="did not come to its end"):
                open_database(Settings(data_dir=two))
            large.restore()
        assert len(contents(Settings(data_dir=two))) == len(FILES) + 150


@pytest.mark.slow
def test_postgresql_is_put_back_with_its_files(tmp_path, postgres_of_its_own, postgres_template):
    url = postgres_of_its_own.url.render_as_string(hide_password=False)
    world = World(tmp_path, sessions={"database_url": url})
    world.add(FILES)
    made = world.back_up("a.zip")
    with writing(world.application.engine) as connection:
        rows = connection.execute(select(documents.c.id)).all()
    world.application.stop()

    with postgres_database(f"restored_{os.getpid()}", like="template0") as other:
        target = Settings(data_dir=tmp_path / "two", sessions={"database_url": other})
        with opened_for_restore(str(tmp_path / "a.zip")) as repository:
            manifest = repository.manifest()
            assert manifest == made
            restore(repository, manifest, empty_library(target))
            with pytest.raises(Conflict, match="not empty"):
                restore(repository, manifest, empty_library(
                    Settings(data_dir=tmp_path / "three", sessions={"database_url": other})
                ))  # fmt: skip
        restored = opened(target)
        with writing(restored.engine) as connection:
            assert connection.execute(select(documents.c.id)).all() == rows
            connection.execute(
                insert(audit).values(
                    at=datetime.now(UTC), owner="a", action="b", subject="c", address="d"
                )
            )
        restored.stop()
        assert contents(target) == FILES


class TestOriginalsBehindAUrl:
    def test_are_opened_by_each_node_and_old_ones_are_read_where_they_lie(self, tmp_path):
        url = f"memory://originals-{os.getpid()}-{tmp_path.name}"
        world = World(tmp_path)
        world.add(FILES)
        world.application.stop()
        shared = world.settings.model_copy(
            update={"documents": world.settings.documents.model_copy(
                update={"originals_url": url}
            )}
        )  # fmt: skip
        world.application = application_of(shared)

        assert world.original("notes.txt").read_bytes() == FILES["notes.txt"]
        world.add({"new.txt": b"The new one weighs 5 g."})
        assert len(open_blobs(url).sizes()) == 1
        brought = world.application.documents.bring_originals(
            FolderBlobs(tmp_path / "one" / "originals")
        )
        assert brought == 3
        shutil.rmtree(tmp_path / "one" / "originals")
        for name in FILES:
            assert world.original(name).read_bytes() == FILES[name]
        (document,) = world.named("notes.txt")
        world.application.ingestion.delete(document.id)
        assert len(open_blobs(url).sizes()) == 3
        world.application.stop()

    def test_are_copied_from_the_folder_of_another_service_by_a_command(self, world):
        other = world.root / "other"
        other.mkdir()
        shutil.move(world.root / "one" / "originals", other / "originals")
        lacking = run("originals", data_dir=world.settings.data_dir)
        assert lacking.exit_code == 1
        assert "no file: notes.txt" in lacking.output

        told = run(
            "originals",
            other,
            data_dir=world.settings.data_dir,
            GROUNDNOTE_DOCUMENTS__ORIGINALS_URL=str(world.root / "shared"),
        )

        assert (told.exit_code, told.output.split(";")[0]) == (0, "3 files were copied")


def test_a_command_tells_and_checks(world):
    place = world.root / "backups"
    told = run("backup", place, "--json", data_dir=world.settings.data_dir)
    assert told.exit_code == 0, told.output
    values = json.loads(told.stdout)
    assert values["counts"]["documents"] == 4
    assert run("backup", place, "--check", data_dir=world.settings.data_dir).exit_code == 0

    path = next((place / "originals").rglob("*/*"))
    path.write_bytes(b"x" * path.stat().st_size)
    checked = run("backup", place, "--check", data_dir=world.settings.data_dir)
    assert checked.exit_code == 1
    assert "not whole" in checked.output

    two = run("restore", place, data_dir=world.root / "two")
    assert two.exit_code == 1
    assert "checksum" in two.output


def test_an_archive_is_never_written_over(world):
    world.back_up("a.zip")

    with pytest.raises(UserError, match="is there already"):
        world.back_up("a.zip")
