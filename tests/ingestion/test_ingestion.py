"""From files to chunks in the database and in the index."""

import io
import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from rag.documents import files
from rag.documents.chunking import cut
from rag.documents.files import IncomingFile, collect, safe_name
from rag.documents.sandbox import GuardedLoader
from rag.documents.store import EmbeddingClaims, SqlDocumentStore
from rag.errors import ModelUnavailable, NotFound, UserError
from rag.ingestion import pipeline
from rag.ingestion.pipeline import Ingestion
from rag.records import EVERYTHING, Chunk
from rag.runtime.budget import Budget, limited
from rag.runtime.progress import Stage
from rag.tables.store import TableFiles, TableStore
from tests.fakes import HashEmbedder, MemoryIndex
from tests.prepared import migrated
from tests.waiting import LONG

MANUAL = (
    "# Aero 5 manual\n\n## Setup\n\nPlug it in.\n\n## Reset\n\nHold the button for ten seconds.\n"
)


@pytest.fixture(scope="module")
def loader():
    loader = GuardedLoader()
    yield loader
    loader.close()


class House:
    """An ingestion with everything around it."""

    def __init__(self, folder: Path, loader: GuardedLoader) -> None:
        self.engine = migrated(folder / "groundnote.sqlite3")
        self.store = SqlDocumentStore(self.engine)
        self.embedder = HashEmbedder()
        self.index = MemoryIndex()
        self._tables = folder / "tables"
        tables = TableStore(self.engine, TableFiles(str(self._tables), folder / "cache"))
        self.ingestion = Ingestion(
            self.store, self.embedder, self.index, loader=loader, tables=tables
        )

    def ingest(self, *files: IncomingFile):
        return {report.name: report for report in self.ingestion.ingest(files) if report.is_final}

    def ingest_text(self, name: str, text: str):
        return self.ingest(IncomingFile.from_bytes(name, text.encode()))[name]

    def stored(self) -> list[Chunk]:
        documents = self.store.documents(EVERYTHING)
        return [each for one in documents for each in self.store.chunks_of(one.id, EVERYTHING)]

    def stored_ids(self) -> set[str]:
        return {chunk.id for chunk in self.stored()}

    def table_files(self) -> list[Path]:
        return list(self._tables.glob("*.parquet"))

    def is_level(self) -> bool:
        return (
            self.stored_ids() == self.index.chunk_ids()
            and not self.store.unembedded(1)
            and not self.store.removed(1)
        )


@pytest.fixture
def house(tmp_path, loader):
    house = House(tmp_path, loader)
    yield house
    house.engine.dispose()


class TestIngest:
    def test_makes_every_chunk_findable_in_both_indexes(self, house):
        report = house.ingest_text("manual.md", MANUAL)

        assert (report.stage, report.done, report.total) == (Stage.FINISHED, 2, 2)
        assert house.is_level()

    def test_opens_the_index_in_its_own_thread_before_anything_is_embedded(self, house):
        """What index and embedder load is loaded by one thread: two would meet it half loaded."""
        here, happened = threading.current_thread(), []
        embed = house.embedder.embed
        house.index.check = lambda: happened.append(("opened", threading.current_thread()))
        house.embedder.embed = lambda texts: happened.append(("embedded", here)) or embed(texts)

        house.ingest_text("manual.md", MANUAL)

        assert happened == [("opened", here), ("embedded", here)]

    def test_shows_the_heading_to_the_embedder_and_not_in_the_text(self, house):
        house.ingest_text("manual.md", MANUAL)

        assert "Aero 5 manual › Reset\nHold the button for ten seconds." in house.embedder.embedded
        assert "Reset" not in [chunk.text for chunk in house.stored()]

    def test_reports_each_file_from_reading_to_finished(self, house):
        reports = list(house.ingestion.ingest([IncomingFile.from_bytes("a.md", MANUAL.encode())]))

        assert [report.stage for report in reports] == [
            Stage.READING,
            Stage.EMBEDDING,
            Stage.EMBEDDING,
            Stage.FINISHED,
        ]
        assert [report.done for report in reports] == [0, 0, 2, 2]

    def test_of_an_unchanged_file_does_nothing(self, house):
        house.ingest_text("manual.md", MANUAL)
        embedded = len(house.embedder.embedded)

        report = house.ingest_text("manual.md", MANUAL)

        assert report.stage is Stage.UNCHANGED
        assert len(house.embedder.embedded) == embedded

    def test_of_a_changed_file_embeds_only_what_changed(self, house):
        house.ingest_text("manual.md", MANUAL)
        before = house.stored_ids()

        house.ingest_text("manual.md", MANUAL.replace("ten seconds", "three seconds"))

        assert len(before & house.stored_ids()) == 1
        assert len(house.embedder.embedded) == 3
        assert house.is_level()

    def test_of_a_file_that_lost_all_but_one_section_leaves_nothing_behind(self, house):
        house.ingest_text("manual.md", MANUAL)

        house.ingest_text("manual.md", "# Aero 5 manual\n\n## Setup\n\nPlug it in.\n")

        assert len(house.stored_ids()) == 1
        assert house.is_level()

    def test_goes_on_after_a_file_that_cannot_be_read(self, house):
        reports = house.ingest(
            IncomingFile.from_bytes("broken.pdf", b"%PDF-1.4 nothing"),
            IncomingFile.from_bytes("empty.md", b""),
            IncomingFile.from_bytes("good.md", MANUAL.encode()),
        )

        assert reports["broken.pdf"].stage is Stage.FAILED
        assert "cut off" in reports["broken.pdf"].reason
        assert "0 bytes" in reports["empty.md"].reason
        assert reports["good.md"].stage is Stage.FINISHED

    def test_goes_on_after_a_fault_of_its_own_and_says_whose_it_is(self, house, monkeypatch):
        def cut_or_not(document_id, name, *rest, **options):
            if name == "odd.md":
                raise ValueError("a fault")
            return cut(document_id, name, *rest, **options)

        monkeypatch.setattr(pipeline, "cut", cut_or_not)

        reports = house.ingest(
            IncomingFile.from_bytes("odd.md", MANUAL.encode()),
            IncomingFile.from_bytes("good.md", MANUAL.encode()),
        )

        assert reports["odd.md"].stage is Stage.FAILED
        assert "should not happen (ValueError)" in reports["odd.md"].reason
        assert reports["good.md"].stage is Stage.FINISHED

    def test_refuses_the_second_of_two_equal_names(self, house):
        reports = list(
            house.ingestion.ingest(
                [
                    IncomingFile.from_bytes("a.md", b"first text"),
                    IncomingFile.from_bytes("../a.md", b"second text"),
                ]
            )
        )

        failed = [report for report in reports if report.stage is Stage.FAILED]
        assert len(failed) == 1
        assert "another file of this name" in failed[0].reason
        assert [chunk.text for chunk in house.stored()] == ["first text"]

    def test_of_a_file_that_is_to_be_another_document_leaves_the_one_of_its_name(self, house):
        house.ingest_text("manual.md", MANUAL)

        other = IncomingFile("manual.md", lambda most: b"Other words", document_id="of-its-own")
        report = house.ingest(other)["manual.md"]

        assert report.stage is Stage.FAILED
        assert "another document has this name" in report.reason
        assert "Plug it in." in [chunk.text for chunk in house.stored()]

    def test_of_many_files_reports_each_exactly_once(self, house, monkeypatch):
        monkeypatch.setattr("rag.ingestion.pipeline.STORED_CHUNKS", 7)
        files = [IncomingFile.from_bytes(f"{n}.md", f"Text {n}".encode()) for n in range(40)]

        reports = [report for report in house.ingestion.ingest(files) if report.is_final]

        assert sorted(report.name for report in reports) == sorted(file.name for file in files)
        assert len(house.stored_ids()) == 40
        assert house.is_level()

    def test_embeds_the_first_while_the_last_are_not_read_yet(self, house, monkeypatch):
        monkeypatch.setattr("rag.ingestion.pipeline.SLOW_SECONDS", 60)
        first_is_done = threading.Event()

        def late(_max_bytes):
            assert first_is_done.wait(LONG)
            return b"Last"

        files = [IncomingFile.from_bytes(f"{n}.md", f"Text {n}".encode()) for n in range(60)]
        for report in house.ingestion.ingest([*files, IncomingFile("last.md", late)]):
            if report.stage is Stage.FINISHED:
                first_is_done.set()

        assert len(house.stored_ids()) == 61

    def test_finishes_the_others_while_a_slow_file_is_read(self, house, monkeypatch):
        monkeypatch.setattr("rag.ingestion.pipeline.SLOW_SECONDS", 0.01)
        go = threading.Event()

        slow = IncomingFile("slow.md", lambda _max_bytes: go.wait(60) and b"Slow")
        files = [slow, *(IncomingFile.from_bytes(name, b"Text") for name in ("a.md", "b.md"))]
        finished = []
        for report in house.ingestion.ingest(files):
            if report.is_final:
                finished.append(report.name)
            if len(finished) == 2:
                go.set()

        assert sorted(finished[:2]) == ["a.md", "b.md"]
        assert finished[2:] == ["slow.md"]

    def test_embeds_more_while_the_index_is_written(self, house, monkeypatch):
        monkeypatch.setattr("rag.ingestion.pipeline.EMBED_CHUNKS", 1)
        house.ingest_text("manual.md", MANUAL)
        house.store.mark_all_unembedded()
        house.embedder.embedded.clear()
        embed, add, is_second = house.embedder.embed, house.index.add, threading.Event()

        def embedding(texts):
            if house.embedder.embedded:
                is_second.set()
            return embed(texts)

        monkeypatch.setattr(house.embedder, "embed", embedding)
        monkeypatch.setattr(house.index, "add", lambda *rows: is_second.wait(60) and add(*rows))

        assert house.ingestion.synchronise() == 2
        assert is_second.is_set()
        assert house.is_level()

    def test_fails_the_files_that_could_not_be_embedded_and_keeps_them_for_later(self, house):
        working = house.embedder.embed
        house.embedder.embed = refuse
        report = house.ingest_text("manual.md", MANUAL)
        house.embedder.embed = working

        assert report.stage is Stage.FAILED
        assert "could not be embedded" in report.reason
        assert house.ingestion.synchronise() == 2
        assert house.is_level()


def refuse(_texts):
    raise ModelUnavailable("No embedding server at http://127.0.0.1:9.")


class TestAKilledIngest:
    def test_is_finished_by_synchronise(self, house):
        house.index.fail_at = 1
        with pytest.raises(KeyboardInterrupt):
            house.ingest_text("manual.md", MANUAL)
        assert house.store.unembedded(10)

        assert house.ingestion.synchronise() == 2
        assert house.is_level()
        assert house.ingestion.synchronise() == 0

    def test_can_be_run_again(self, house):
        house.index.fail_at = 1
        with pytest.raises(KeyboardInterrupt):
            house.ingest_text("manual.md", MANUAL)

        house.ingest_text("manual.md", MANUAL + "\n## More\n\nMore text.\n")

        assert house.is_level()
        assert len(house.stored_ids()) == 3


class TestDelete:
    def test_leaves_no_chunk_in_either_index(self, house):
        document_id = house.ingest_text("manual.md", MANUAL).document_id
        house.ingest_text("other.md", "Other text.")

        deleted = house.ingestion.delete(document_id)

        assert deleted.name == "manual.md"
        assert len(house.stored_ids()) == 1
        assert house.is_level()

    def test_of_an_unknown_document_says_so(self, house):
        with pytest.raises(NotFound, match="no document"):
            house.ingestion.delete("unknown")

    def test_and_ingesting_again_gives_the_same_ids(self, house):
        document_id = house.ingest_text("manual.md", MANUAL).document_id
        before = house.stored_ids()

        house.ingestion.delete(document_id)
        house.ingest_text("manual.md", MANUAL)

        assert house.stored_ids() == before
        assert house.is_level()

    @pytest.mark.parametrize("changed", [b"Part,Grams\nA,1\n", b"Part,Grams\nA,2\n"])
    @pytest.mark.parametrize("moment", ["its bytes are read", "it is cut"])
    def test_while_its_upload_is_done_again_stays_whenever_it_comes(self, house, changed, moment):
        """A killed process leaves jobs whose text had come in; they are done again at the start."""
        document_id = house.ingest_text("parts.csv", "Part,Grams\nA,1\n").document_id
        count_tokens, moments = house.embedder.count_tokens, []

        def come_to(name):
            moments.append(name)
            if name == moment and moments.count(name) == 1:
                house.ingestion.delete(document_id)

        def read(_max_bytes):
            come_to("its bytes are read")
            return changed

        def count(texts):
            come_to("it is cut")
            return count_tokens(texts)

        house.embedder.count_tokens = count
        house.ingest(IncomingFile("parts.csv", read, is_again=True, has_arrived=True))

        assert house.store.documents(EVERYTHING) == []
        assert house.table_files() == []
        assert house.is_level()

    def test_while_a_new_file_of_its_name_comes_in_loses_that_file_nothing(self, house):
        document_id = house.ingest_text("manual.md", MANUAL).document_id

        def read(_max_bytes):
            house.ingestion.delete(document_id)
            return b"# New\n\nNew text.\n"

        house.ingest(IncomingFile("manual.md", read))

        assert [chunk.text for chunk in house.stored()] == ["New text."]


class TestReindex:
    def test_builds_the_index_from_the_database(self, house):
        house.ingest_text("manual.md", MANUAL)
        house.index.rows = {"foreign": house.index.rows.popitem()[1]}

        progress = list(house.ingestion.reindex())

        assert progress == [(0, 2), (2, 2)]
        assert house.is_level()

    def test_what_another_process_writes_in_that_moment_is_embedded_again(
        self, house, loader, monkeypatch
    ):
        """It marks its vectors as written when they are gone."""
        house.ingest_text("manual.md", MANUAL)
        other = Ingestion(
            house.store, house.embedder, house.index, loader=loader, tables=house.ingestion._tables
        )
        for one in (house.ingestion, other):
            one.share_with(EmbeddingClaims(house.engine))
        marking, threads = house.store.mark_embedded, []
        coming, clearing = threading.Event(), threading.Event()

        class Claims(EmbeddingClaims):
            @contextmanager
            def one_writer(self):
                coming.set()
                with super().one_writer():
                    clearing.set()
                    yield

        def mark(ids):
            if not threads:
                other.share_with(Claims(house.engine))
                threads.append(threading.Thread(target=list, args=[other.reindex()]))
                threads[0].start()
                assert coming.wait(LONG)
                assert not clearing.wait(0.2)
            return marking(ids)

        monkeypatch.setattr(house.store, "mark_embedded", mark)
        house.ingest_text("news.md", "# News\n\nThe lamp is green.")
        threads[0].join()
        house.ingestion.synchronise()  # of what one of the two gave back unembedded when it ended

        assert house.is_level()


class TestCollect:
    def test_names_files_relative_to_the_folder_in_sorted_order(self, tmp_path):
        (tmp_path / "sub").mkdir()
        for name in ("b.md", "a.md", "sub/c.md", ".hidden.md"):
            (tmp_path / name).write_text("text")
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "x.md").write_text("text")

        assert [file.name for file in collect([tmp_path])] == ["a.md", "b.md", "sub/c.md"]

    def test_survives_links_that_lead_back(self, tmp_path):
        (tmp_path / "a.md").write_text("text")
        (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)

        assert [file.name for file in collect([tmp_path])] == ["a.md"]

    def test_of_a_missing_path_fails_that_path_only(self, house, tmp_path):
        (tmp_path / "a.md").write_text("text")

        reports = house.ingest(*collect([tmp_path / "no.md", tmp_path / "a.md"]))

        assert "no such file" in reports["no.md"].reason
        assert reports["a.md"].stage is Stage.FINISHED

    def test_follows_no_link_out_of_the_folder(self, house, tmp_path):
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "secret.md").write_text("# Secret\n\nThe key is 4711.")
        docs = tmp_path / "docs"
        docs.mkdir()
        (docs / "a.md").write_text("# A\n\nInside.")
        (docs / "within.md").symlink_to(docs / "a.md")
        (docs / "file.md").symlink_to(outside / "secret.md")
        (docs / "folder").symlink_to(outside, target_is_directory=True)

        reports = house.ingest(*collect([docs]))

        assert sorted(name for name, each in reports.items() if each.error) == ["file.md", "folder"]
        assert "leads out of the folder" in reports["file.md"].reason

    def test_of_a_broken_link_says_that_it_is_missing(self, house, tmp_path):
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "gone.md").symlink_to(tmp_path / "nowhere.md")

        reports = house.ingest(*collect([tmp_path / "docs"]))

        assert "no such file" in reports["gone.md"].reason

    def test_of_an_unreadable_file_says_whose_turn_it_is(self, house, tmp_path, monkeypatch):
        (tmp_path / "a.md").write_text("text")
        (tmp_path / "a.md").chmod(0)
        if os.geteuid() == 0:  # who may read everything
            monkeypatch.setattr(files, "_opened", lambda _path: deny())

        reports = house.ingest(*collect([tmp_path / "a.md"]))

        assert "permissions" in reports["a.md"].reason

    def test_of_an_unlistable_folder_fails_that_folder_only(self, house, tmp_path, monkeypatch):
        (tmp_path / "closed").mkdir()
        (tmp_path / "a.md").write_text("text")
        listing = Path.iterdir
        monkeypatch.setattr(
            Path, "iterdir", lambda path: deny() if path.name == "closed" else listing(path)
        )

        reports = house.ingest(*collect([tmp_path]))

        assert "permissions" in reports["closed"].reason
        assert reports["a.md"].stage is Stage.FINISHED

    def test_of_a_pipe_does_not_wait_for_it(self, house, tmp_path):
        os.mkfifo(tmp_path / "pipe.md")

        reports = house.ingest(*collect([tmp_path / "pipe.md"]))

        assert "no regular file" in reports["pipe.md"].reason

    def test_of_a_file_over_the_limit_says_both_numbers(self, tmp_path):
        (tmp_path / "a.md").write_text("x" * 100)
        (file,) = collect([tmp_path])

        with pytest.raises(UserError, match=r"100 bytes.* 99"):
            file.read(99)


def deny():
    raise PermissionError(13, "Permission denied")


class TestAFileThatChangesWhileItIsRead:
    def test_is_read_again_until_it_is_steady(self, tmp_path, monkeypatch):
        path = tmp_path / "a.md"
        path.write_text("half")
        touch_while_reading(monkeypatch, path, texts=["whole text"])

        (file,) = collect([path])

        assert file.read(1000) == b"whole text"

    def test_is_reported_when_it_never_is(self, tmp_path, monkeypatch):
        path = tmp_path / "a.md"
        path.write_text("1")
        touch_while_reading(monkeypatch, path, texts=[str(10**n) for n in range(1, 9)])

        (file,) = collect([path])

        with pytest.raises(UserError, match="being written to"):
            file.read(1000)


def touch_while_reading(monkeypatch, path, *, texts):
    opened, waiting = files._opened, list(texts)

    class Touched(io.BufferedReader):
        def read(self, *size):
            if waiting:
                path.write_text(waiting.pop(0))
            return super().read(*size)

    monkeypatch.setattr(files, "_opened", lambda path: Touched(opened(path).detach()))


class TestSafeName:
    @pytest.mark.parametrize(
        ("given", "safe"),
        [
            pytest.param("../../etc/passwd", "passwd", id="leads out of the folder"),
            pytest.param("C:\\Users\\me\\manual.pdf", "manual.pdf", id="of Windows"),
            pytest.param("a\x00b\n.md", "ab.md", id="control characters"),
            pytest.param("invoice\u202efdp.exe", "invoicefdp.exe", id="reversed for show"),
            pytest.param(".hidden.md", "hidden.md", id="hidden"),
            pytest.param("製品 ü.md", "製品 ü.md", id="other scripts stay"),
        ],
    )
    def test_is_the_last_part_without_tricks(self, given, safe):
        assert safe_name(given) == safe

    def test_of_a_very_long_name_keeps_its_ending(self):
        name = safe_name("ü" * 400 + ".pdf")

        assert len(name.encode()) <= 255
        assert name.endswith(".pdf")

    @pytest.mark.parametrize("given", ["", "..", "/", "\x00", "  ", "../"])
    def test_is_refused_when_nothing_is_left(self, given):
        with pytest.raises(UserError, match="no file name"):
            safe_name(given)


def test_an_unchanged_file_is_reported_once_it_is_in_the_index(house):
    house.ingest_text("a.md", "# A\n\nThe pump hums.")
    house.index.clear()
    house.store.mark_unembedded(house.stored_ids())

    house.ingest_text("a.md", "# A\n\nThe pump hums.")

    assert house.index.chunk_ids() == house.stored_ids()


class TestSeveralAtOnce:
    def test_who_comes_second_does_not_take_the_chunks_of_the_first_for_left_ones(self, house):
        house.ingest_text("a.md", "# A\n\nThe pump hums.")
        of_the_first = house.stored_ids()
        first = house.ingestion.ingest([IncomingFile.from_bytes("b.md", b"# B\n\nIt rests.")])
        next(first)
        house.index.clear()
        house.store.mark_unembedded(of_the_first)

        house.ingest_text("c.md", "# C\n\nThe lamp is blue.")

        assert not house.index.chunk_ids() & of_the_first
        assert list(first)[-1].stage is Stage.FINISHED

    @pytest.mark.slow
    def test_a_small_file_is_done_while_a_large_one_of_somebody_else_is_embedded(
        self, house, monkeypatch
    ):
        """Not behind it: each is embedded for a round, in turn."""
        monkeypatch.setattr(pipeline, "EMBED_CHUNKS", 4)
        monkeypatch.setattr(pipeline, "ROUND_CHUNKS", 8)
        begun, ends = threading.Event(), []
        embed = house.embedder.embed

        def slowly(texts):
            begun.set()
            time.sleep(0.02)
            return embed(texts)

        house.embedder.embed = slowly
        large = "".join(f"# Part {at}\n\nText {at}.\n\n" for at in range(400))

        def bring(name, text, owner):
            with limited(Budget(owner=owner)):
                ends.append((name, house.ingest_text(name, text).stage))

        annas = threading.Thread(target=bring, args=("large.md", large, "anna"))
        annas.start()
        assert begun.wait(LONG)
        bring("small.md", MANUAL, "ben")
        annas.join()

        assert ends == [("small.md", Stage.FINISHED), ("large.md", Stage.FINISHED)]
        assert house.is_level()
