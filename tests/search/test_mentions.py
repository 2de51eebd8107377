from dataclasses import replace

from rag.records import EVERYTHING, Chunk
from rag.search.lexical import MOST_CHUNKS, NameMentions


def chunk(number, text, document):
    return Chunk(
        f"c{number}", document, f"{document}.md", document.upper(), 0, 0, (), "", text, 0, 1
    )


class Library:
    """A word index that finds every chunk, and a store that holds them."""

    def __init__(self, *chunks):
        self._chunks = {each.id: each for each in chunks}

    def holding(self, phrase, readable, *, limit):
        return list(self._chunks)[:limit]

    def chunks(self, ids, readable):
        return {key: self._chunks[key] for key in ids}


def mention(name, *chunks):
    library = Library(*chunks)
    return NameMentions(library, library)(name, EVERYTHING)


def test_documents_are_counted_once_and_in_order():
    found = mention(
        "Aero 5",
        chunk(1, "The Aero 5 is white.", "b"),
        chunk(2, "An Aero 5 weighs 410 g.", "b"),
        chunk(3, "Not for the Aero 5.", "a"),
    )

    assert (found.count, [link.name for link in found.documents]) == (2, ["a.md", "b.md"])


def test_documents_of_one_title_are_told_apart_by_the_names_of_their_files():
    list_, sheet = chunk(1, "The Aero 5.", "list"), chunk(2, "The Aero 5.", "sheet")
    same = replace(list_, document_title="Prices"), replace(sheet, document_title="Prices")

    found = mention("Aero 5", *same, chunk(3, "The Aero 5.", "manual"))

    assert [link.title for link in found.documents] == ["list.md", "MANUAL", "sheet.md"]


def test_a_longer_name_is_another_one():
    assert (
        mention("Aero 5", chunk(1, "The Aero 5.", "a"), chunk(2, "The Aero 5 Pro is.", "b")) is None
    )


def test_too_many_are_not_counted():
    chunks = [chunk(n, "The Aero 5.", f"d{n}") for n in range(MOST_CHUNKS)]

    assert mention("Aero 5", *chunks) is None


def everywhere(words, *chunks, lexicon=()):
    library = Library(*chunks)
    found = NameMentions(library, library, lambda readable: lexicon).everywhere(words, EVERYTHING)
    return [chunk.text for chunk in found]


def test_a_known_name_is_meant_however_it_is_typed():
    texts = chunk(1, "The Aero 5.", "a"), chunk(2, "The Aero 5 Pro.", "b")

    assert everywhere("aero 5", *texts, lexicon=("Aero 5", "Aero 5 Pro")) == ["The Aero 5."]


def test_words_that_are_no_name_stand_in_any_form():
    assert everywhere("refund", chunk(1, "Refunds are late.", "a")) == ["Refunds are late."]


def test_capitals_are_meant():
    texts = chunk(1, "Ask IT for it.", "a"), chunk(2, "Take it.", "b")

    assert everywhere("IT", *texts) == ["Ask IT for it."]
