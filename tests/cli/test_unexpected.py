"""No command ends in a traceback: what nobody expected is a sentence, and its details are kept."""

import logging
import threading

import pytest
from click.testing import CliRunner

from rag import cli
from rag.cli import ingest
from rag.runtime import error_log
from rag.runtime.error_log import ErrorLog


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDNOTE_DATA_DIR", str(tmp_path / "var"))
    return lambda *arguments: CliRunner().invoke(cli.main, [*map(str, arguments)])


@pytest.fixture
def broken(monkeypatch):
    """Says what a command is to stumble over."""

    def breaks(error):
        def fail(*_arguments, **_options):
            raise error

        monkeypatch.setattr(ingest, "ingest_paths", fail)

    return breaks


@pytest.fixture
def errors(tmp_path):
    log = ErrorLog()
    log.folder = tmp_path / "var"
    return log


class TestACommand:
    @pytest.mark.parametrize(
        "error",
        [
            AttributeError("partially initialized module 'httpx' has no attribute 'Response'"),
            RuntimeError(),
            MemoryError(),
            RecursionError("maximum recursion depth exceeded"),
            OSError(28, "No space left on device"),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_that_stumbles_says_so_and_where_the_details_are(self, run, broken, tmp_path, error):
        broken(error)

        result = run("ingest", tmp_path)

        kept = tmp_path / "var" / error_log.FILE
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit)
        assert type(error).__name__ in result.output
        assert str(kept) in result.output.replace("\n", "")
        assert "Traceback" not in result.output
        assert "Traceback" in kept.read_text()
        assert kept.stat().st_mode & 0o077 == 0

    def test_whose_settings_make_it_stumble_says_so_too(self, run, monkeypatch, tmp_path):
        monkeypatch.setattr("rag.settings.load_settings", lambda named: 1 / 0)
        monkeypatch.setattr(error_log.ERRORS, "folder", tmp_path)

        result = run("sessions")

        assert (result.exit_code, "ZeroDivisionError" in result.output) == (1, True)

    def test_that_is_left_is_no_error(self, run, broken, tmp_path):
        broken(KeyboardInterrupt())

        assert "should not" not in run("ingest", tmp_path).output
        assert not (tmp_path / "var" / error_log.FILE).exists()


class TestTheLog:
    def test_of_a_thread_that_ends_with_an_error(self, errors, capsys):
        with errors.watching():
            thread = threading.Thread(target=lambda: 1 / 0)
            thread.start()
            thread.join()

        said = capsys.readouterr().err
        assert "ZeroDivisionError: division by zero" in said
        assert "Traceback" not in said
        assert "Traceback" in (errors.folder / error_log.FILE).read_text()

    def test_of_what_is_logged_where_nobody_set_up_logs(self, errors, capsys, monkeypatch):
        monkeypatch.setattr(logging.getLogger(), "handlers", [])
        with errors.watching():
            try:
                raise OSError("the disk is away")
            except OSError:
                logging.getLogger("rag.of.nobody").exception("job %s failed", "7")
            logging.getLogger("rag.of.nobody").warning("half of it is there")

        said = capsys.readouterr().err
        assert said.startswith("job 7 failed: This should not have happened (OSError: the disk")
        assert said.endswith("half of it is there\n")
        assert "Traceback" not in said

    def test_leaves_everything_as_it_was(self, errors):
        before = threading.excepthook, logging.lastResort

        with errors.watching():
            assert (threading.excepthook, logging.lastResort) != before

        assert (threading.excepthook, logging.lastResort) == before

    def test_does_not_grow_for_ever(self, errors, monkeypatch):
        monkeypatch.setattr(error_log, "LARGEST", 2_000)

        sizes = [errors.keep(ValueError("x" * 500)).stat().st_size for _ in range(20)]

        assert max(sizes) < 4_000

    def test_is_kept_elsewhere_where_its_folder_is_none(self, errors, monkeypatch, tmp_path):
        (tmp_path / "file").write_text("no folder")
        errors.folder = tmp_path / "file"
        monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))

        assert errors.keep(ValueError("x")) == tmp_path / "groundnote" / error_log.FILE

        monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "file"))
        assert "could not be written down" in errors.report(ValueError("x"))
