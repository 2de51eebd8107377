"""The reading process and its limits."""

import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rag.documents.limits import LoadLimits
from rag.documents.sandbox import GuardedLoader
from rag.errors import TooLarge, Unreadable
from tests.documents import office_files

SLOW = b"[" * 300_000  # a Markdown reader looks for the end of each
NESTED = b"".join(b" " * 2 * depth + b"- a\n" for depth in range(1180))  # 1.4 MB

KILLED = """
import time
from rag.documents.sandbox import GuardedLoader

loader = GuardedLoader(readers=1)
loader.load("a.md", b"one")
print("read", flush=True)
time.sleep(60)
"""


@pytest.fixture
def loader_with():
    loaders = []

    def open_loader(**limits):
        loaders.append(GuardedLoader(LoadLimits(**limits)))
        return loaders[-1]

    yield open_loader
    for loader in loaders:
        loader.close()


WORD_DOCUMENT = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    "<w:body>{}</w:body></w:document>"
)


def package(parts):
    """A Word file of these parts."""
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types, relations = (
        f"http://schemas.openxmlformats.org/package/2006/{name}"
        for name in ("content-types", "relationships")
    )
    leads = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{types}"><Override PartName="/word/document.xml" '
        f'ContentType="{kind}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" '
        f'Type="{leads}" Target="word/document.xml"/></Relationships>',
        **parts,
    }
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return data.getvalue()


class TestGuardedLoader:
    def test_reads_as_load_does_and_serves_many_files(self, loader_with):
        loader = loader_with()

        first = loader.load("a.md", b"# Aero 5\n\nText \xf0\x9f\x98\x80.")
        second = loader.load("b.pdf", office_files.pdf([["Hello."]]))

        assert (first.title, first.sections[0].text) == ("Aero 5", "Text 😀.")
        assert (second.sections[0].page, second.sections[0].heading_path) == (1, ())

    def test_has_a_process_before_the_first_file(self, loader_with):
        loader = loader_with()

        loader.start()
        process = loader._readers[0]._process
        loader.start()
        loader.load("a.md", b"one")

        assert process is not None
        assert loader._readers[0]._process is process

    def test_hands_errors_over_with_name_and_reason(self, loader_with):
        loader = loader_with(max_characters=10)

        with pytest.raises(Unreadable, match="cut off") as caught:
            loader.load("a.pdf", b"%PDF-1.7 x")
        with pytest.raises(TooLarge, match="more than 10 characters"):
            loader.load("a.md", b"word word word word")
        assert caught.value.name == "a.pdf"

    def test_stops_a_file_that_takes_too_long_and_reads_the_next(self, loader_with):
        loader = loader_with(max_seconds=1.0)
        loader.load("warm.md", b"started")
        loader.limits = LoadLimits(max_seconds=0.01)

        with pytest.raises(Unreadable, match=r"more than 0\.01 seconds of processor time"):
            loader.load("slow.md", SLOW)
        loader.limits = LoadLimits()
        assert loader.load("next.md", b"next").sections[0].text == "next"

    def test_survives_the_death_of_the_reading_process(self, loader_with):
        loader = loader_with()
        loader.load("a.md", b"one")
        process = loader._readers[0]._process
        process.kill()
        process.wait()

        assert loader.load("b.md", b"two").sections[0].text == "two"

    def test_refuses_a_file_that_needs_too_much_memory(self, loader_with):
        loader = loader_with(max_memory_bytes=300 * 2**20)

        with pytest.raises(Unreadable, match="300 MiB of memory"):
            loader.load("a.txt", b"a b\n\n" * 6_000_000)
        assert loader.load("b.md", b"two").sections[0].text == "two"

    def test_says_of_an_office_file_that_it_needs_too_much_memory(self, loader_with):
        """The parser of XML calls that an unknown error, and it was told as damage."""
        paragraph = f"<w:p><w:r><w:t>{'word ' * 20}</w:t></w:r></w:p>"
        document = package({"word/document.xml": WORD_DOCUMENT.format(paragraph * 250_000)})
        loader = loader_with(max_memory_bytes=180 * 2**20, max_unpacked_ratio=10**6)

        with pytest.raises(Unreadable, match="180 MiB of memory"):
            loader.load("a.docx", document)

    def test_refuses_an_empty_file_without_asking(self, loader_with):
        with pytest.raises(Unreadable, match="0 bytes"):
            loader_with().load("a.md", b"")

    def test_reads_a_list_of_a_thousand_levels_within_the_limit(self, loader_with):
        loader = loader_with(max_seconds=4)

        assert len(loader.load("nested.md", NESTED).sections) == 1

    def test_reads_other_files_beside_a_slow_one(self):
        loader = GuardedLoader(LoadLimits(), readers=2)
        loader.load("first.md", b"starts a reading process")
        process = loader._readers[0]._process
        process.send_signal(signal.SIGSTOP)  # whatever it reads takes as long as we like

        with ThreadPoolExecutor() as pool:
            slow = pool.submit(loader.load, "slow.md", b"slow")
            while loader._idle.qsize():
                time.sleep(0.001)
            try:
                beside = pool.submit(loader.load, "b.md", b"beside").result(timeout=60)
                assert not slow.done()
            finally:
                process.send_signal(signal.SIGCONT)
        loader.close()

        assert beside.sections[0].text == "beside"
        assert slow.result().sections[0].text == "slow"

    def test_keeps_keys_and_settings_from_the_reading_process(self, loader_with, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        loader = loader_with()
        loader.load("a.md", b"one")
        process = loader._readers[0]._process

        environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        folder = Path(f"/proc/{process.pid}/cwd").resolve()

        assert b"secret" not in environment
        assert folder != Path.cwd()
        assert list(folder.iterdir()) == []

    def test_that_is_killed_leaves_no_folder_behind(self, tmp_path):
        owner = subprocess.Popen(
            [sys.executable, "-c", KILLED],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
        )
        assert owner.stdout.readline() == b"read\n"
        assert len(list(tmp_path.iterdir())) == 1

        owner.kill()

        owner.communicate()
        for _ in range(3000):  # its reading process ends when it sees that nobody asks any more
            if not list(tmp_path.iterdir()):
                break
            time.sleep(0.01)
        assert list(tmp_path.iterdir()) == []

    def test_leaves_no_network_to_the_reading_process(self, loader_with):
        loader = loader_with()
        loader.load("a.md", b"one")
        network = Path(f"/proc/{loader._readers[0]._process.pid}/net/route")
        interfaces = network.read_text().splitlines()[1:]

        if os.geteuid() == 0:
            assert interfaces == []
