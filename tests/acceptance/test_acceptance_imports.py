"""Transcripts from elsewhere, however strange: nothing is lost, and answers go on."""

import pytest

from rag.citations.markers import find_markers

pytestmark = pytest.mark.slow

ODD = [
    pytest.param(
        [("user", "Weight?"), ("assistant", "It weighs 120 g [3], said elsewhere [12].")],
        id="numbers without a source",
    ),
    pytest.param([("user", "a" * 200_000), ("assistant", "b " * 100_000)], id="very long"),
    pytest.param([("user", "\ud800 half"), ("assistant", "a \udfff pair [1]")], id="surrogates"),
    pytest.param(
        [*(("system", f"Rule {n}.") for n in range(10)), ("user", "Hi"), ("assistant", "Hello")],
        id="ten system messages",
    ),
    pytest.param([("narrator", "Once"), ("user", "Hi"), ("judge", "[5]")], id="unknown roles"),
    pytest.param(
        [("user", "Weight?"), ("assistant", None), ("tool", "120 g [7]"), ("assistant", "OK [1].")],
        id="tool messages",
    ),
    pytest.param([("user", "One?"), ("user", "Two?"), ("user", "Three?")], id="no answers"),
    pytest.param([("user", "[1]" * 500), ("assistant", "[1][2][3]" * 200)], id="only markers"),
    pytest.param([("user", "Aero 5"), ("assistant", "Aero 5 Pro, Aero 5 " * 500)], id="only names"),
]  # fmt: skip


@pytest.mark.parametrize("transcript", ODD)
def test_an_odd_transcript_is_kept_and_the_conversation_goes_on(shared, transcript):
    library = shared
    session_id = library.session(context_config={"recent_message_count": 2})
    messages = [{"role": role, "content": content} for role, content in transcript]

    library.post(f"/sessions/{session_id}/import", json={"messages": messages}, status=201)
    kept = library.get(f"/sessions/{session_id}/messages")["messages"]
    answer = library.ask(session_id, "How much does the Aero 5 weigh?")
    library.post(f"/sessions/{session_id}/compact", json={}, status=200)
    context = library.get(f"/sessions/{session_id}/context")
    page = library.page(f"/sessions/{session_id}")

    assert [each["role"] for each in kept] == [role for role, _ in transcript]
    for (_, given), stored in zip(transcript, kept, strict=True):
        plain = (given or "").encode("utf-8", "replace").decode()
        assert len(stored["content"]) == len(plain)
        assert "\ud800" in (given or "") or "\udfff" in (given or "") or stored["content"] == plain
    assert "120 g" in answer["content"]
    assert context["stats"]["tokens"] <= context["stats"]["budget"]
    assert page.status_code == 200
    assert library.page(f"/sessions/{session_id}/summaries").status_code == 200


class TestNumbersWithoutASource:
    MESSAGES = (
        {"role": "user", "content": "Weight?"},
        {"role": "assistant", "content": "It weighs 300 g [3], it is said [1]."},
    )

    def test_are_never_given_to_another_source(self, library):
        session_id = library.session()
        library.post(f"/sessions/{session_id}/import", json={"messages": self.MESSAGES}, status=201)

        answer = library.ask(session_id, "How much does the Aero 5 weigh?")

        new = {each["n"] for each in answer["citations"]}
        assert new
        assert not new & {1, 3}

    def test_open_and_say_that_nothing_is_known_of_them(self, library):
        session_id = library.session()
        library.post(f"/sessions/{session_id}/import", json={"messages": self.MESSAGES}, status=201)

        for number in (1, 3):
            source = library.get(f"/sessions/{session_id}/sources/{number}")
            assert source["n"] == number
            assert source["state"] == "deleted"
            assert library.page(f"/sessions/{session_id}/sources/{number}").status_code == 200

    def test_stay_in_summaries(self, library):
        session_id = library.session(context_config={"recent_message_count": 0})
        library.post(f"/sessions/{session_id}/import", json={"messages": self.MESSAGES}, status=201)

        library.post(f"/sessions/{session_id}/compact", json={}, status=200)

        text = library.get(f"/sessions/{session_id}/summaries")["summaries"][0]["text"]
        assert {n for marker in find_markers(text) for n in marker.numbers} == {1, 3}
