"""The reading process and its limits."""

import pytest

from rag.documents.guard import GuardedLoader
from rag.documents.limits import LoadLimits
from rag.errors import TooLarge, Unreadable
from tests.documents import office_files


@pytest.fixture
def loader_with():
    loaders = []

    def open_loader(**limits):
        loaders.append(GuardedLoader(LoadLimits(**limits)))
        return loaders[-1]

    yield open_loader
    for loader in loaders:
        loader.close()


class TestGuardedLoader:
    def test_reads_as_load_does_and_serves_many_files(self, loader_with):
        loader = loader_with()

        first = loader.load("a.md", b"# Aero 5\n\nText \xf0\x9f\x98\x80.")
        second = loader.load("b.pdf", office_files.pdf([["Hello."]]))

        assert (first.title, first.sections[0].text) == ("Aero 5", "Text 😀.")
        assert (second.sections[0].page, second.sections[0].heading_path) == (1, ())

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
        slow = office_files.pdf([[f"Line {n}" for n in range(60)]] * 400)
        loader.limits = LoadLimits(max_seconds=0.01)

        with pytest.raises(Unreadable, match=r"longer than 0\.01 seconds"):
            loader.load("slow.pdf", slow)
        loader.limits = LoadLimits()
        assert loader.load("next.md", b"next").sections[0].text == "next"

    def test_survives_the_death_of_the_reading_process(self, loader_with):
        loader = loader_with()
        loader.load("a.md", b"one")
        loader._process.kill()
        loader._process.wait()

        assert loader.load("b.md", b"two").sections[0].text == "two"

    def test_refuses_a_file_that_needs_too_much_memory(self, loader_with):
        loader = loader_with(max_memory_bytes=400 * 2**20)

        with pytest.raises(Unreadable, match="400 MiB of memory"):
            loader.load("a.txt", b"a b\n\n" * 10_000_000)
        assert loader.load("b.md", b"two").sections[0].text == "two"

    def test_refuses_an_empty_file_without_asking(self, loader_with):
        with pytest.raises(Unreadable, match="0 bytes"):
            loader_with().load("a.md", b"")
