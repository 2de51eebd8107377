"""What the reading process answers."""

import io
import json

import pytest

from rag.documents import sandbox_worker
from rag.documents.limits import LoadLimits
from rag.errors import TooLarge, Unreadable


def reply_to(name: str, data: bytes, **limits):
    return sandbox_worker.from_json(sandbox_worker.answer(name, data, LoadLimits(**limits)))


class TestAnswer:
    def test_is_the_document(self):
        document = reply_to("a.md", b"# Aero 5\n\n## Setup\n\nPlug in.")

        assert (document.title, document.names) == ("Aero 5", ("Aero 5",))
        assert document.sections[0].heading_path == ("Setup",)

    def test_is_the_reason_for_a_refusal(self):
        with pytest.raises(Unreadable, match=r"^a\.md: .*no text"):
            reply_to("a.md", b" ")
        with pytest.raises(TooLarge, match="more than 3 characters"):
            reply_to("a.md", b"long text", max_characters=3)

    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            pytest.param(MemoryError(), "more than 1,280 MiB of memory", id="memory"),
            pytest.param(RecursionError(), "nested too deeply", id="depth"),
        ],
    )
    def test_is_a_reason_too_when_python_gives_up(self, monkeypatch, error, reason):
        def give_up(*_arguments, **_options):
            raise error

        monkeypatch.setattr(sandbox_worker, "load", give_up)

        with pytest.raises(Unreadable, match=reason):
            reply_to("a.md", b"text")


class TestMessages:
    def test_arrive_as_they_were_sent(self):
        pipe = io.BytesIO()
        sandbox_worker.send(pipe, b"one")
        sandbox_worker.send(pipe, b"")
        pipe.seek(0)

        assert [sandbox_worker.receive(pipe), sandbox_worker.receive(pipe)] == [b"one", b""]

    def test_that_break_off_say_that_the_other_side_is_gone(self):
        pipe = io.BytesIO()
        sandbox_worker.send(pipe, b"whole")

        with pytest.raises(EOFError, match="other process"):
            sandbox_worker.receive(io.BytesIO(pipe.getvalue()[:-1]))

    def test_hold_no_pickles(self):
        message = sandbox_worker.answer("a.md", b"text", LoadLimits())

        assert json.loads(message)["document"]["title"] == "a"
