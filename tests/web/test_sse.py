import json
import threading

import httpx
import pytest

from rag.errors import IndexMismatch, ModelUnavailable
from rag.records import Compacted, Failed, Resolved, Text, ToolUsed
from rag.web.api.sse import encode, frame
from tests.waiting import LONG
from tests.web.fake_application import REPORT


class TestEncoding:
    @pytest.mark.parametrize(
        ("event", "name", "values"),
        [
            (Text("a\nb"), "delta", {"text": "a\nb"}),
            (
                Resolved("q", True, "rules"),
                "resolved",
                {"query": "q", "is_followup": True, "method": "rules"},
            ),
            (
                ToolUsed("search", "{}", "1 hit"),
                "tool",
                {"name": "search", "arguments": "{}", "outcome": "1 hit"},
            ),
        ],
    )
    def test_names_each_event(self, event, name, values):
        assert encode(event, session_id="s") == (name, values)

    def test_reports_a_compaction(self):
        name, values = encode(Compacted(0, 4, REPORT), session_id="s")

        assert name == "compaction"
        assert (values["end"], values["report"]["citations_kept"]) == (4, 1)

    def test_tells_the_users_message_of_a_failure(self):
        failed = Failed(ModelUnavailable("raw"), "The model is away.", 3)

        name, values = encode(failed, session_id="s")

        assert name == "error"
        assert (values["detail"], values["index"], values["status"]) == (
            "The model is away.",
            3,
            503,
        )

    @pytest.mark.parametrize("error", [IndexMismatch("/srv/secret"), RuntimeError("secret")])
    def test_keeps_what_is_for_the_operator_in_the_log(self, error):
        _, values = encode(Failed(error, str(error), 3), session_id="s")

        assert "secret" not in values["detail"]

    def test_never_breaks_a_line(self):
        text = frame(*encode(Text("a\r\n\n\u2028data: b"), session_id="s"))

        assert text.count("\n") == 3
        assert json.loads(text.splitlines()[1].removeprefix("data: "))["text"].startswith("a\r\n")


@pytest.mark.slow
class TestLiveServer:
    def question(self, live):
        with httpx.Client(base_url=live.url) as client:
            session_id = client.post("/api/v1/sessions", json={}).json()["id"]
        return f"/api/v1/sessions/{session_id}/messages"

    def test_a_slow_model_blocks_nobody_else(self, live, application):
        application.assistant.wait = threading.Event()
        url = self.question(live)
        answers = []

        def ask():
            answers.append(httpx.post(live.url + url, json={"content": "a"}, timeout=LONG))

        slow = threading.Thread(target=ask)
        slow.start()
        quick = httpx.get(f"{live.url}/api/v1/sessions", timeout=LONG)
        application.assistant.wait.set()
        slow.join(LONG)

        assert quick.status_code == 200
        assert answers[0].json()["content"] == "It weighs 120 g [1]."
