"""Filters by what files say of themselves: one right set of documents for each question."""

import io

import pytest
from docx import Document as WordDocument

from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load
from rag.errors import UserError
from rag.records import EVERYTHING, Filters
from tests.applications import app_of, application_over

LIMITS = LoadLimits()


def page(title, author, date, *tags):
    return (
        f"---\ntitle: {title}\nauthor: {author}\ndate: {date}\ntags: [{', '.join(tags)}]\n"
        f"internal_code: never shown\n---\nThe pump of {title or 'the house'} runs at night.\n"
    )


def word_file():
    document = WordDocument()
    document.add_paragraph("The pump of the greenhouse runs at noon.")
    document.core_properties.author = "Ines Vidal"
    document.core_properties.title = "Greenhouse"
    document.core_properties.keywords = "water, glass"
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


FILES = {
    "garden/pump.md": page("Garden pump", "Ines Vidal", "2024-02-01", "water"),
    "garden/deep/well.md": page("Well", "Tomas Berg", "2025-06-30", "Water", "depth"),
    "house/index.md": page("", "Tomas Berg", "2025-01-15", "heating"),
    "house/boiler.html": "<html><head><title>Boiler</title>"
    "<meta name='author' content='INES VIDAL'>"
    "<meta property='article:modified_time' content='2025-07-01T10:00:00Z'></head>"
    "<body><p>The pump of the boiler runs all day.</p></body></html>",
    "house/greenhouse.docx": word_file(),
    "notes.txt": "The pump was loud.",
}
QUESTIONS = [
    ({"author": "ines vidal"}, {"garden/pump.md", "house/boiler.html", "house/greenhouse.docx"}),
    ({"folder": "garden"}, {"garden/pump.md", "garden/deep/well.md"}),
    ({"folder": "garden/deep/"}, {"garden/deep/well.md"}),
    ({"type": "markdown"}, {"garden/pump.md", "garden/deep/well.md", "house/index.md"}),
    ({"tag": "water"}, {"garden/pump.md", "garden/deep/well.md", "house/greenhouse.docx"}),
    (
        {"after": "2025-01-15", "before": "2025-07-01"},
        {"garden/deep/well.md", "house/index.md"},
    ),
    ({"title": "garden PUMP"}, {"garden/pump.md"}),
    ({"author": "Tomas Berg", "folder": "house", "tag": "heating"}, {"house/index.md"}),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    with application_over(tmp_path_factory.mktemp("library"), FILES) as application:
        yield application


@pytest.mark.parametrize(("filters", "names"), QUESTIONS)
def test_a_search_finds_the_right_set(library, filters, names):
    hits = library.retriever.search(
        "When does the pump run?", EVERYTHING, limit=50, filters=Filters(**filters)
    )

    assert {hit.chunk.document_name for hit in hits} == names


def test_one_of_too_many_passages_to_compare_all_is_filtered_too(library, monkeypatch):
    monkeypatch.setattr("rag.search.hybrid.FILTERED", 0)

    hits = library.retriever.search("pump", EVERYTHING, filters=Filters(folder="garden"))

    assert {hit.chunk.document_name for hit in hits} == {"garden/pump.md", "garden/deep/well.md"}


def test_what_no_document_is_of_finds_nothing(library):
    assert library.retriever.search("pump", EVERYTHING, filters=Filters(author="Nobody")) == []


def test_a_day_that_is_none_is_an_error(library):
    with pytest.raises(UserError, match=r"after is '31\.3\.2025'; expected a day such as"):
        library.retriever.search("pump", EVERYTHING, filters=Filters(after="31.3.2025"))


def test_facets_count_readable_documents_only(library):
    own = library.collections.create("ines", "Own")
    everything = library.documents.facets(EVERYTHING)

    assert everything["author"] == {"Ines Vidal": 3, "Tomas Berg": 2}
    assert everything["folder"] == {"house": 3, "garden": 2, "garden/deep": 1}
    assert everything["tag"] == {"water": 3, "depth": 1, "heating": 1, "glass": 1}
    assert library.documents.facets(EVERYTHING.only([own.id]))["author"] == {}


def test_front_matter_is_no_passage_and_a_page_of_a_folder_is_called_by_it():
    document = load("house/index.md", FILES["house/index.md"].encode(), limits=LIMITS)

    assert [section.text for section in document.sections] == [
        "The pump of the house runs at night."
    ]
    assert document.title == "house"
    assert load("index.md", b"Text.", limits=LIMITS).title == "index"


class TestEdges:
    @pytest.fixture(scope="class")
    def client(self, library):
        return app_of(library).test_client()

    def test_the_api_says_what_was_filtered(self, client):
        asked = {"query": "pump", "filters": {"folder": "house", "author": "Tomas Berg"}}
        found = client.post("/api/v1/search", json=asked).get_json()

        assert found["filtered"] == {
            "filters": {"author": "Tomas Berg", "folder": "house"},
            "documents": 1,
        }
        assert [hit["document"] for hit in found["hits"]] == ["house/index.md"]

    def test_the_api_names_a_filter_that_is_none(self, client):
        answer = client.post("/api/v1/search", json={"query": "x", "filters": {"writer": "I"}})

        assert answer.status_code == 422
        assert "writer" in answer.get_data(as_text=True)

    def test_the_page_offers_the_facets_and_says_what_was_filtered(self, client):
        html = client.get("/documents?q=pump&author=Tomas+Berg").get_data(as_text=True)

        assert '<option value="Ines Vidal" >Ines Vidal (3)</option>' in html
        assert "Only author “Tomas Berg”: 0 of 6 documents." in html
        assert "The pump was loud" not in html

    def test_the_page_says_what_is_wrong_with_a_day(self, client):
        html = client.get("/documents?after=soon").get_data(as_text=True)

        assert "after is &#39;soon&#39;; expected a day" in html


def test_filters_are_told_from_memory_until_the_documents_change(tmp_path, monkeypatch):
    with application_over(tmp_path, FILES) as application:
        documents = application.documents
        read = []
        every = type(documents).documents
        monkeypatch.setattr(type(documents), "documents", lambda *a: read.append(a) or every(*a))
        first = documents.filtered(Filters(folder="garden"), EVERYTHING)

        assert documents.filtered(Filters(folder="garden"), EVERYTHING) == first
        assert len(read) == 1

        [gone] = documents.find_named(["garden/pump.md"], EVERYTHING)
        documents.delete(gone.id)

        assert documents.filtered(Filters(folder="garden"), EVERYTHING).names == (
            "garden/deep/well.md",
        )
