"""Where sections are cut, and what a chunk carries."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.documents.chunking import cut, document_id_for, fit_title, spans
from rag.records import Section
from tests.fakes import HashEmbedder

SENTENCE = "The router sends its light through the whole house at night. "


def chunks_of(*sections: Section, title="Aero 5 manual", max_tokens=256):
    embedder = HashEmbedder(max_tokens=max_tokens)
    return cut(
        "document",
        "manual.md",
        title,
        sections,
        count_tokens=embedder.count_tokens,
        max_tokens=max_tokens,
    )


def section(text: str, *, index=0, path=("Setup",)) -> Section:
    return Section(index, path, "§ " + " › ".join(path), text)


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in spans(text)]


class TestSpans:
    def test_of_a_short_section_are_one(self):
        assert pieces("One.\n\nTwo.") == ["One.\n\nTwo."]

    def test_keep_paragraphs_whole(self):
        paragraphs = [f"{n} {SENTENCE * 4}".strip() for n in range(6)]

        found = pieces("\n\n".join(paragraphs))

        assert [piece.split("\n\n") for piece in found] == [
            paragraphs[0:2],
            paragraphs[2:4],
            paragraphs[4:6],
        ]

    def test_cut_a_long_paragraph_after_sentences_without_overlap(self):
        text = (SENTENCE * 40).strip()

        found = pieces(text)

        assert len(found) > 3
        assert all(piece.endswith(".") for piece in found)
        assert " ".join(found) == text

    def test_cut_lists_between_entries(self):
        entries = [f"- entry {n}: {SENTENCE.strip()}" for n in range(30)]

        found = pieces("\n".join(entries))

        assert "\n".join(found).split("\n") == entries

    def test_cut_long_code_between_its_lines(self):
        code = [f"    option_{n}: the value {n} and a word or two" for n in range(40)]

        found = pieces("Set them so:\n\n" + "\n".join(code))

        assert len(found) > 2
        assert [line for piece in found for line in piece.split("\n") if line][1:] == code

    def test_keep_a_small_table_whole(self):
        table = "| A | B |\n| --- | --- |\n" + "\n".join(f"| row {n} | 1 |" for n in range(12))

        assert pieces(f"{SENTENCE * 6}\n\n{table}")[-1] == table

    def test_of_a_sentence_without_end_overlap_by_some_words(self):
        text = " ".join(f"word{n}" for n in range(400))

        found = [piece.split() for piece in pieces(text)]

        assert len(found) > 3
        assert all(first[-12:] == second[:12] for first, second in zip(found, found[1:]))  # noqa: B905, RUF007
        assert all(len(words) <= 130 for words in found)

    def test_let_a_tiny_rest_join_the_piece_before(self):
        text = f"{SENTENCE * 8}\n\nSee above."

        assert len(pieces(text)) == 1

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(
            st.sampled_from(
                [SENTENCE, "\n\n", "\n- ", "| a | b |\n", "x" * 300, "製品は", ". ", " "]
            ),
            max_size=60,
        ).map("".join)
    )
    def test_cover_all_that_is_not_blank_in_order(self, text):
        found = spans(text)

        covered = {at for start, end in found for at in range(start, end)}
        assert all(letter.isspace() for at, letter in enumerate(text) if at not in covered)
        assert found == sorted(found)
        assert all(text[start:end].strip() for start, end in found)


class TestCut:
    def test_gives_exact_offsets_positions_and_places(self):
        first, second = section(SENTENCE * 30), section("Short.", index=1, path=("Reset", "Hard"))

        found = chunks_of(first, second)

        texts = {0: first.text, 1: second.text}
        assert all(
            chunk.text == texts[chunk.section_index][chunk.start : chunk.end] for chunk in found
        )
        assert [chunk.position for chunk in found] == list(range(len(found)))
        assert found[-1].locator == "§ Reset › Hard"
        assert found[-1].embedded_text == "Aero 5 manual › Reset › Hard\nShort."

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("x" * 10_000, id="one word of 10,000 characters"),
            pytest.param("製品の説明書をよくお読みください" * 200, id="text without blanks"),
            pytest.param("| a | " + "b1/c2;" * 900 + " |", id="a huge table row"),
            pytest.param("1.2.3.4.5.6.7.8.9;" * 300, id="all punctuation"),
            pytest.param("\n".join("- x" for _ in range(3000)), id="thousands of tiny entries"),
        ],
    )
    def test_never_exceeds_the_embedder(self, text):
        embedder = HashEmbedder(max_tokens=64)

        found = chunks_of(section(text), max_tokens=64)

        assert max(embedder.count_tokens([chunk.embedded_text for chunk in found])) <= 64
        covered = {at for chunk in found for at in range(chunk.start, chunk.end)}
        assert all(text[at].isspace() for at in range(len(text)) if at not in covered)

    def test_shortens_heading_paths_that_leave_no_room(self):
        path = ("An outer heading " * 20, "An inner heading " * 20)

        found = chunks_of(section(SENTENCE, path=path), max_tokens=64)

        assert HashEmbedder().count_tokens([found[0].embedded_text])[0] <= 64
        assert path[1].startswith(found[0].heading_path[-1])

    def test_shortens_titles_that_leave_no_room(self):
        embedder = HashEmbedder()
        title = "A very long title " * 30

        short = fit_title(title, count_tokens=embedder.count_tokens, max_tokens=64)

        assert title.startswith(short)
        assert embedder.count_tokens([short])[0] < 32

    def test_keeps_the_ids_of_chunks_that_stayed_when_others_change(self):
        kept = section("Kept text.", index=1, path=("Reset",))
        before = chunks_of(section("Old text."), kept)

        after = chunks_of(section("New text."), section("More.", path=("More",)), kept)

        assert before[1].id == after[2].id
        assert before[0].id not in {chunk.id for chunk in after}

    def test_tells_equal_chunks_apart(self):
        found = chunks_of(section("Same."), section("Same.", index=1))

        assert len({chunk.id for chunk in found}) == 2

    def test_of_another_document_has_other_ids(self):
        assert document_id_for("a.md") != document_id_for("b.md")

    def test_of_nothing_is_nothing(self):
        assert chunks_of() == []
