"""The library as Python code uses it."""

import subprocess
import sys

import pytest

import groundnote
from groundnote import GroundnoteError, Library, check
from tests.asynchronous import finished
from tests.fakes import HashEmbedder

HANDBOOK = "# Refunds\n\nA refund is paid within five business days.\n"


@pytest.fixture
def library(tmp_path):
    with Library(tmp_path / "var", embedder=HashEmbedder()) as library:
        yield library


@pytest.fixture
def filled(library):
    library.add("handbook.md", HANDBOOK.encode())
    return library


class TestDocuments:
    def test_come_from_files_and_folders(self, library, tmp_path):
        folder = tmp_path / "docs"
        folder.mkdir()
        (folder / "handbook.md").write_text(HANDBOOK)
        (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")

        first, second = library.ingest(folder), library.ingest(folder)

        assert first.added == ("handbook.md",)
        assert list(first.failed) == ["broken.pdf"]
        assert "broken.pdf" in first.failed["broken.pdf"]
        assert second.unchanged == ("handbook.md",)
        assert [each.name for each in library.documents()] == ["handbook.md"]

    def test_that_do_not_exist_are_refused_by_name(self, library, tmp_path):
        ingested = library.ingest(tmp_path / "nothing.md")

        assert "nothing.md" in str(ingested.failed)

    def test_are_searched(self, filled):
        (hit,) = filled.search("How long does a refund take?", limit=1)

        assert "five business days" in hit.chunk.text

    def test_are_removed_and_stay_cited(self, filled):
        chat = filled.chat()
        chat.ask("How long does a refund take?")
        filled.remove(filled.documents()[0].id)

        assert filled.documents() == []
        assert "five business days" in chat.sources()[1].text


class TestConversations:
    def test_answer_with_sources_by_number(self, filled):
        answer = filled.ask("How long does a refund take?")

        assert "five business days" in str(answer)
        assert answer.citations[0].number == 1
        assert answer.sources[1].document_name == "handbook.md"

    def test_keep_numbers_over_turns_and_processes(self, tmp_path):
        with Library(tmp_path / "var", embedder=HashEmbedder()) as library:
            library.add("handbook.md", HANDBOOK.encode())
            chat = library.chat()
            first = chat.ask("How long does a refund take?")
        with Library(tmp_path / "var", embedder=HashEmbedder()) as library:
            again = library.chat(chat.session_id).ask("How long does a refund take?")

        assert again.sources[1].chunk_id == first.sources[1].chunk_id
        assert again.session_id == first.session_id

    def test_are_streamed(self, filled):
        chat = filled.chat()
        words = "".join(chat.stream("How long does a refund take?"))

        assert "five business days" in words
        assert chat.messages()[-1].content == words

    def test_are_asked_by_asyncio(self, filled):
        async def asked():
            chat = filled.chat()
            answer = await chat.aask("How long does a refund take?")
            words = [text async for text in chat.astream("How long does a refund take?")]
            found = await filled.asearch("refund")
            return answer, "".join(words), found, await filled.aask("refund")

        answer, words, found, _ = finished(asked())

        assert "five" in answer.text
        assert "five" in words
        assert found

    def test_refuse_an_empty_question(self, filled):
        with pytest.raises(GroundnoteError, match="empty"):
            filled.ask("  ")

    def test_of_nobody_are_not_found(self, filled):
        with pytest.raises(GroundnoteError, match="session"):
            filled.chat("unknown")


class TestVerdicts:
    def test_are_given_for_each_number_of_any_text(self):
        sources = ["The Aero 5 weighs 410 g.", "It has two ports."]
        found = check("The Aero 5 weighs 410 g [1]. The Aero 5 weighs 500 g [1].", sources)

        assert [str(each.verdict) for each in found.citations] == ["supported", "contradicted"]

    def test_take_sources_under_their_own_numbers(self):
        found = check("The Aero 5 weighs 410 g [7].", {7: "The Aero 5 weighs 410 g."})

        assert [str(each.verdict) for each in found.citations] == ["supported"]

    def test_refuse_numbers_below_one(self):
        with pytest.raises(ValueError, match="begin at 1"):
            check("a [1]", {0: "a"})

    def test_come_with_citations_from_the_library(self, filled):
        found = filled.check("A refund is paid within five business days.")

        assert found.text == "A refund is paid within five business days [1]."
        assert found.sources[1].document_name == "handbook.md"

    def test_are_given_from_a_conversations_sources(self, filled):
        chat = filled.chat()
        chat.ask("How long does a refund take?")
        found = chat.check("A refund is paid within nine business days [1].")

        assert [str(each.verdict) for each in found.citations] == ["contradicted"]


class TestPackage:
    def test_tells_all_its_names(self):
        assert all(getattr(groundnote, name) is not None for name in groundnote.__all__)
        assert sorted(groundnote.__all__) == sorted(groundnote._HOMES)
        assert not hasattr(groundnote, "nothing")

    def test_loads_nothing_before_it_is_used(self):
        code = (
            "import sys, groundnote; before = set(sys.modules);"
            "from groundnote import Library, check;"
            "heavy = {'flask', 'torch', 'chromadb', 'openvino', 'openai', 'duckdb'};"
            "print(sorted(heavy & set(sys.modules)), 'rag' in before)"
        )
        told = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )

        assert told.stdout.split() == ["[]", "False"]

    @pytest.mark.slow
    def test_needs_no_flask_to_answer(self, tmp_path):
        code = (
            "import sys; sys.modules['flask'] = None\n"
            "from groundnote import Library\n"
            "from tests.fakes import HashEmbedder\n"
            f"with Library({str(tmp_path / 'var')!r}, embedder=HashEmbedder()) as library:\n"
            f"    library.add('a.md', {HANDBOOK.encode()!r})\n"
            "    print(library.ask('How long does a refund take?'))\n"
        )
        told = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )

        assert "five business days" in told.stdout
