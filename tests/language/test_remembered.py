from rag.language.words import LONGEST, memoised


def test_a_text_is_read_once_and_a_long_one_each_time():
    read = []

    @memoised
    def length(text):
        read.append(text[:5])
        return len(text)

    assert [length("short"), length("short"), length("other")] == [5, 5, 5]
    assert [length("x" * LONGEST * 2) for _ in range(2)] == [LONGEST * 2] * 2
    assert read == ["short", "other", "xxxxx", "xxxxx"]
