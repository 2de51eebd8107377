import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from rag.records import EVERYTHING, Readable
from rag.search import lexical, word_index, word_tables
from rag.search.lexical import LexicalIndex
from rag.search.word_index import HEADING_WEIGHT, NOWHERE, Term, counts_in, in_a_row, plain
from rag.search.word_tables import _Stems
from tests.search.conftest import Library
from tests.waiting import until


@pytest.fixture(params=["engine", pytest.param("postgres", marks=pytest.mark.slow)])
def library(request: pytest.FixtureRequest) -> Library:
    return Library(request.getfixturevalue(request.param))


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library has more chunks than are held; its words are read before a query goes on."""
    knowing = LexicalIndex._knowing

    def known_at_once(own: LexicalIndex, connection: Connection) -> object:
        if (
            own._library_words is None
            or own._library_words.newest != connection.execute(lexical._NEWEST).scalar()
        ):
            own._read_beside()
        return knowing(own, connection)

    monkeypatch.setattr(LexicalIndex, "_knowing", known_at_once)
    monkeypatch.setattr(word_index, "MOST_OF_ALL", 0)


@pytest.fixture(params=["everything", "a large library", "a collection"])
def readable(request: pytest.FixtureRequest) -> Readable:
    """By what is held, or by the database's index."""
    if request.param == "a large library":
        request.getfixturevalue("large")
    return Readable(frozenset({"1"})) if request.param == "a collection" else EVERYTHING


def titles(
    library: Library, query: str, readable: Readable = EVERYTHING, *, limit: int = 10
) -> list[str]:
    found = library.lexical.search(query, readable, limit=limit)
    chunks = library.store.chunks([chunk_id for chunk_id, _ in found], readable)
    return [chunks[chunk_id].document_title for chunk_id, _ in found]


def test_nothing_is_found_in_nothing(library: Library, readable: Readable) -> None:
    assert library.lexical.search("reset", readable, limit=5) == []
    assert library.lexical.coverage("reset", readable, ["nowhere"]) == {"nowhere": 0.0}


def test_any_word_finds_and_more_words_rank_higher(library: Library, readable: Readable) -> None:
    library.add("One", "The light of the lamp.")
    library.add("Two", "The lamp is dimmed with the slider.")
    library.add("Three", "Nothing of the kind.")

    assert titles(library, "how do I dim the lamp slider?", readable) == ["Two", "One"]


def test_a_rare_word_weighs_more_than_a_common_one(library: Library, readable: Readable) -> None:
    for number in range(20):
        library.add(f"Router {number}", "Settings of the router are here.")
    library.add("Lamp", "The firmware is here.")

    assert titles(library, "router settings firmware", readable)[0] == "Lamp"


def noting_counts(library: Library, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The tokens of every term that is counted from now on."""
    words = library.lexical._words
    count, counted = words.frequencies, []

    def noted(connection, terms, readable, most):  # type: ignore[no-untyped-def]
        counted.extend(term.tokens for term in terms)
        return count(connection, terms, readable, most)

    monkeypatch.setattr(words, "frequencies", noted)
    return counted


@pytest.mark.usefixtures("large")
def test_words_that_the_vocabulary_knows_are_not_counted_again(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add("Lamp", "The light of the lamp.")
    counted = noting_counts(library, monkeypatch)

    assert titles(library, "lamp light zeppelin") == ["Lamp"]
    assert ("zeppelin",) in counted
    assert not {("lamp",), ("light",)} & set(counted)


@pytest.mark.usefixtures("large")
def test_letters_without_blanks_that_are_all_common_are_not_counted_side_by_side(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag.search.lexical.MOST_COUNTED", 1)
    for name, place in (("One", "北京大学"), ("Two", "北大的京学"), ("Three", "学大京北")):
        library.add(name, place)
    counted = noting_counts(library, monkeypatch)

    assert titles(library, "北京大学")[0] == "One"
    assert counted == []


def test_a_word_in_the_heading_weighs_more(library: Library, readable: Readable) -> None:
    library.add("Other", "Wi-Fi, cables and pairing are told of here.")
    library.add("Guide", "Cables and other things are told of here.", heading_path=("Pairing",))

    assert titles(library, "pairing", readable)[0] == "Guide"


@pytest.mark.parametrize(
    ("query", "title"),
    [
        pytest.param("AX-5400 price", "AX-5400", id="a code"),
        pytest.param("ax 5400 price", "AX-5400", id="with a blank"),
        pytest.param("WH-1000XM4 battery", "WH-1000XM4", id="a long code"),
        pytest.param("Aero 5 Pro battery", "Aero 5 Pro", id="the longer name"),
        pytest.param("Aero 5 battery", "Aero 5", id="the shorter name"),
        pytest.param("résumé", "Resume", id="accents"),
        pytest.param("dimming lamps", "Lamp", id="other endings"),
    ],
)
def test_product_names_and_word_forms_are_found(library: Library, readable, query, title) -> None:
    for name in ("AX-5400", "AX-5500", "WH-1000XM4", "WH-1000XM5", "Aero 5", "Aero 5 Pro"):
        library.add(name, f"The {name} has a battery and a price.")
    library.add("Resume", "Send your resume to us.")
    library.add("Lamp", "Dim the lamp.")

    assert titles(library, query, readable)[0] == title


@pytest.mark.parametrize(
    ("query", "title"),
    [
        pytest.param("路由器怎么重置", "Chinese", id="Chinese"),
        pytest.param("器", "Chinese", id="one letter"),
        pytest.param("リセットボタン", "Japanese", id="Japanese"),
        pytest.param("การรีเซ็ต", "Thai", id="Thai"),
        pytest.param("공유기", "Korean", id="Korean without the particle"),
        pytest.param("WH-1000XM4", "Mixed", id="a code between letters"),
        pytest.param("नमस्ते", "Hindi", id="Hindi"),
    ],
)
def test_scripts_without_spaces_are_searched(library: Library, readable, query, title) -> None:
    library.add("Chinese", "按住路由器背面的按钮十秒钟即可重置。")
    library.add("Japanese", "背面のリセットボタンを10秒間押します。")
    library.add("Thai", "กดปุ่มเพื่อทำการรีเซ็ตเราเตอร์")
    library.add("Korean", "공유기를 초기화하려면 버튼을 누르세요.")
    library.add("Mixed", "使用WH-1000XM4耳机。")
    library.add("Hindi", "नमस्ते दुनिया")

    assert titles(library, query, readable)[0] == title


@pytest.mark.parametrize(
    "query",
    [
        pytest.param('"', id="quote"),
        pytest.param('reset" OR "x', id="quotes"),
        pytest.param("reset AND NOT (lamp OR", id="operators"),
        pytest.param("heading:reset NEAR(a b, 3) ^x -y* {z}", id="more operators"),
        pytest.param("a & b | !c <-> d:* \\ '", id="operators of PostgreSQL"),
        pytest.param("reset\0lamp", id="NUL"),
        pytest.param("reset \ud800", id="lone surrogate"),
        pytest.param("reset " * 20_000, id="a hundred thousand characters"),
        pytest.param("%s :name {x}", id="placeholders"),
    ],
)
def test_any_text_is_a_safe_query(library: Library, readable, query) -> None:
    library.add("Router", "Reset the router.")

    found = titles(library, query, readable)

    assert found == (["Router"] if "reset" in query else [])
    assert all(
        share >= 0 for share in library.lexical.coverage(query, readable, ["nowhere"]).values()
    )


def test_the_index_follows_the_database(library: Library, readable: Readable) -> None:
    (old,) = library.add("Router", "Reset the router. 路由器")
    library.add("Router", "Pair the router.")
    assert titles(library, "reset 路由", readable) == []
    assert titles(library, "pair", readable) == ["Router"]

    library.store.delete(old.document_id)
    assert titles(library, "pair router", readable) == []


def test_at_most_the_limit_is_found(library: Library, readable: Readable) -> None:
    for number in range(6):
        library.add(f"Router {number}", "Reset the router.")

    assert len(library.lexical.search("reset", readable, limit=4)) == 4
    assert library.lexical.search("reset", readable, limit=0) == []


def test_coverage_is_the_weighted_share_of_the_words(library: Library, readable: Readable) -> None:
    for number in range(10):
        library.add(f"Filler {number}", "The router stands here.")
    (whole,) = library.add("Whole", "The firmware of the router.")
    (common,) = library.add("Common", "A router.")
    (none,) = library.add("None", "Something else.")

    covered = library.lexical.coverage("router firmware", readable, [whole.id, common.id, none.id])

    assert covered[whole.id] == pytest.approx(1.0)
    assert 0.0 < covered[common.id] < 0.3
    assert covered[none.id] == 0.0


def test_a_word_that_no_chunk_holds_lowers_every_coverage(
    library: Library, readable: Readable
) -> None:
    (chunk,) = library.add("Router", "Reset the router.")

    known = library.lexical.coverage("reset", readable, [chunk.id])[chunk.id]
    unknown = library.lexical.coverage("reset zeppelin", readable, [chunk.id])[chunk.id]

    assert unknown < known == pytest.approx(1.0)


@pytest.mark.parametrize("library", ["engine"], indirect=True)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=80))
def test_no_text_breaks_a_search(library: Library, query: str) -> None:
    assert library.lexical.search(query, EVERYTHING, limit=3) == []


@pytest.fixture
def short_of_time(large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a library where a common word is in more chunks than can be scored."""
    monkeypatch.setattr(word_index, "MOST_SCORED", 10)
    monkeypatch.setattr(lexical, "MOST_SCORED", 10)


@pytest.mark.usefixtures("short_of_time")
def test_of_words_that_very_many_chunks_hold_the_rare_ones_decide(library: Library) -> None:
    texts = [f"The pump of the plant number{n} hums." for n in range(30)]
    chunks = library.add("Plant", *texts)

    found = library.lexical.search("Which pump hums at plant number7?", EVERYTHING, limit=5)

    assert found[0][0] == chunks[7].id


@pytest.mark.usefixtures("short_of_time")
def test_common_words_rank_what_a_rare_one_finds(library: Library) -> None:
    library.add("Filler", *(f"The pump of plant {n} hums. The valve hisses." for n in range(30)))
    texts = ("Zeolite is here, as told above.", "Zeolite in the pump hums.")
    _, both = library.add("Two", *texts)

    assert library.lexical.search("pump hums with zeolite", EVERYTHING, limit=5)[0][0] == both.id


@pytest.mark.usefixtures("short_of_time")
def test_chunks_that_hold_common_words_together_are_found(library: Library) -> None:
    library.add("Pumps", *(f"The pump of plant {n} hums." for n in range(30)))
    library.add("Valves", *(f"The valve of plant {n} hisses." for n in range(30)))
    (both,) = library.add("Both", "A valve beside a pump.")

    assert library.lexical.search("pump and valve", EVERYTHING, limit=5)[0][0] == both.id
    assert library.lexical.search(
        "Does a pump hum?", EVERYTHING, limit=5
    )  # only frequent ones: still found


@pytest.mark.parametrize("stray", ["\u0301", "\u0300\u0301", "\u094d"])
def test_a_mark_without_its_letter_breaks_no_search(library: Library, stray: str) -> None:
    library.add("Lamp", f"The light {stray} of the lamp.")

    assert titles(library, "lamp") == ["Lamp"]
    assert titles(library, f"lamp {stray}") == ["Lamp"]


def test_a_large_library_reads_its_words_beside_the_query(library: Library, monkeypatch) -> None:
    monkeypatch.setattr(word_index, "MOST_OF_ALL", 3)
    texts = [f"The graphite lamp {n}." for n in range(9)]
    library.add("Lamp", *texts)

    assert titles(library, "lamp", limit=1) == ["Lamp"]  # before the words are known
    until(lambda: library.lexical.respelled("garphite", EVERYTHING) == "graphite")


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("docters certificate", "Leave"),
        ("garphite colour", "Lamp"),
        ("Was ist die Konfiguration", "Deutsch"),
    ],
)
def test_a_word_that_the_library_does_not_know_meets_its_own(
    library, readable, query, title
) -> None:
    library.add("Leave", "Send the doctor's note on the third day. A certificate follows.")
    library.add("Lamp", "It comes in graphite and in white.")
    library.add("Deutsch", "Die Konfiguration liegt im Ordner.")
    library.add("Other", "Colours fade in the sun. A certificate is where it is.")

    query = library.lexical.respelled(query, readable)
    assert titles(library, query, readable)[0] == title


def test_a_name_that_the_library_does_not_know_is_no_other_name(
    library: Library, readable: Readable
) -> None:
    library.add("Lamp", "The Zephyr is a heavy lamp: it weighs two kilos.")

    def respelled(query):
        return library.lexical.respelled(query, readable)

    assert respelled("How heavy is the Zephir lamp?") == "How heavy is the Zephir lamp?"
    assert respelled("how heavy is the zephir lamp?") == "how heavy is the zephyr lamp?"


def test_the_name_of_the_file_is_looked_up_too(library: Library, readable: Readable) -> None:
    library.add("Report", "Sales rose.", name="reports/2023_Q1-ACME.pdf")
    library.add("Report", "Sales rose.", name="reports/2023_Q2-ACME.pdf")

    found = library.lexical.search("ACME sales Q2", readable, limit=1)
    chunks = library.store.chunks([chunk_id for chunk_id, _ in found], readable)
    assert [chunk.document_name for chunk in chunks.values()] == ["reports/2023_Q2-ACME.pdf"]


def test_an_english_word_is_no_part_of_another(library: Library, readable: Readable) -> None:
    library.add("Network", "A transport of passengers.")

    assert titles(library, "Where is the port?", readable) == []


def test_words_of_documents_that_came_since_are_known(library: Library, readable: Readable) -> None:
    library.add("One", "A lamp.")
    assert library.lexical.respelled("garphite", readable) == "garphite"
    library.add("Two", "Grafit is dear, graphite is not.")

    assert library.lexical.respelled("garphite", readable) == "graphite"


@pytest.mark.parametrize(
    ("quick", "is_new"),
    [pytest.param(60, True, id="quickly"), pytest.param(0, False, id="slowly")],
)
@pytest.mark.parametrize(
    "library", [pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)
def test_postgresql_counts_again_at_once_what_it_counts(
    library: Library, monkeypatch, quick, is_new
) -> None:
    monkeypatch.setattr(word_tables, "QUICK", quick)
    monkeypatch.setattr(word_tables, "SHARE_OF_TIME", 1e-6)
    library.add("One", "A lamp.")

    def vocabulary() -> dict[str, int]:
        with library.lexical.engine.connect() as connection:
            return library.lexical._words.vocabulary(connection)

    assert "graphit" not in vocabulary()
    library.add("Two", "It is of graphite.")

    assert ("graphit" in vocabulary()) is is_new


def test_all_chunks_are_found_that_hold_words_one_after_the_other(
    library: Library, readable: Readable
) -> None:
    library.add("One", "A refund is paid late.", "The Aero 5 is white.")
    library.add("Two", "Refunds of the E-Strand 5.", "An Aero and five more.")

    def holding(phrase: str, limit: int = 10) -> list[str]:
        found = library.lexical.holding(phrase, readable, limit=limit)
        return [library.store.chunks([key], readable)[key].text for key in found]

    assert holding("refund") == ["A refund is paid late.", "Refunds of the E-Strand 5."]
    assert holding("aero 5") == ["The Aero 5 is white."]
    assert holding("e-strand") == ["Refunds of the E-Strand 5."]
    assert len(holding("refunds", limit=1)) == 1
    assert holding("…") == []


@pytest.mark.parametrize(
    ("word", "is_known"),
    [("Gandhi", True), ("routers", True), ("Bedigo", True), ("Teal", False), ("Quagga", False)],
)
def test_a_word_is_known_in_any_form_and_but_for_a_slip_of_the_keyboard(
    library: Library, word, is_known
) -> None:
    library.add("Places", "Gandhi never saw Bendigo, nor any router.")

    assert library.lexical.is_known(word, EVERYTHING) is is_known


WRITTEN = st.text(alphabet="abcAÀ _-.1’", max_size=40)


@given(WRITTEN, WRITTEN)
def test_common_words_are_counted_in_a_text_as_word_by_word(heading: str, told: str) -> None:
    terms = [
        Term(("abc",)),
        Term(("ab",)),
        Term(("a", "abc")),
        Term(("abc", "abca")),
    ]
    stems = _Stems("porter", terms)

    stems.read(7, heading, told)
    places = stems.places()

    for term in terms:
        wanted = list(stems.of_term[term])
        counted = 0.0
        for part, weight in ((heading, HEADING_WEIGHT), (told, 1.0)):
            words = [stems._stem(word) for word in re.findall(r"[^\W_]+", plain(part))]
            starts = range(len(words) - len(wanted) + 1)
            counted += weight * sum(words[at : at + len(wanted)] == wanted for at in starts)
        found = in_a_row([places.get(stem, NOWHERE) for stem in wanted])
        assert counts_in(np.array([7]), found).tolist() == [counted]


def test_terms_of_nearly_every_chunk_rank_nothing_beside_rarer_ones() -> None:
    def weighed(word: str, frequency: int) -> word_index.WeighedTerm:
        return word_index.WeighedTerm(Term((word,)), frequency, word_index.idf(10_000, frequency))

    def words(*asked: word_index.WeighedTerm) -> list[str]:
        return [each.term.tokens[0] for each in word_index.Plan.of(asked).all]

    rare, common, unknown = weighed("lamp", 9), weighed("press", 9_900), weighed("lxmp", 0)

    assert words(common, rare, unknown) == ["lxmp", "lamp"]
    assert words(common, unknown) == ["lxmp", "press"]
