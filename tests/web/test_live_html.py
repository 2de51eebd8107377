"""What streams to a page is what stands in it afterwards."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.records import Discarded, Text
from rag.render.answers import LiveHtml, Register, answer_html
from tests.web.conftest import events_of

STREAM = {"Accept": "text/event-stream"}
LONG = """# Weight

It weighs 🙂 120 g [1].

- [x] $x^2$ [2]
- b

| a | b |
|---|--:|
| 1 | 2 [1] |
"""


class Page:
    """What a browser keeps: UTF-16 units."""

    def __init__(self):
        self.html = b""

    def take(self, change):
        if change is not None:
            self.html = self.html[: 2 * change["keep"]] + change["html"].encode("utf-16-le")


class NoSources:
    def sources(self, numbers):
        return []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, len(LONG)), max_size=8))
def test_however_it_is_cut_the_page_ends_with_the_standing_html(cuts):
    live, page, at = LiveHtml(NoSources(), "/s"), Page(), 0
    for cut in [*sorted(cuts), len(LONG)]:
        live.take(Text(LONG[at:cut]))
        page.take(live.change(at_once=True))
        at = max(at, cut)

    assert page.html.decode("utf-16-le") == answer_html(LONG, Register("/s", {}))


def test_what_is_discarded_goes():
    live, page = LiveHtml(NoSources(), "/s"), Page()
    for event in (Text("Let me look."), Discarded("Anew."), Text("So.")):
        live.take(event)
        page.take(live.change(at_once=True))

    assert page.html.decode("utf-16-le") == answer_html("So.", Register("/s", {}))


@pytest.mark.parametrize("path", ["messages", "messages/1/events"])
def test_pages_get_html_with_links_to_the_sources_in_place_of_text(client, session_id, path):
    url = f"/api/v1/sessions/{session_id}/messages"
    response = client.post(f"{url}?html=true", json={"content": "How heavy?"}, headers=STREAM)
    if path.endswith("events"):
        response.get_data()  # to its end, so that the turn is known
        response = client.get(
            f"{url}/1/events?html=true", headers=STREAM | {"Last-Event-ID": "1-0-2"}
        )
    events = events_of(response)
    page = Page()
    for name, told in events:
        if name == "html":
            page.take(json.loads(told))

    assert events[-1][0] == "final"
    assert "delta" not in [name for name, _ in events]
    shown = page.html.decode("utf-16-le")
    assert "It weighs 120" in shown
    assert f'href="/sessions/{session_id}/sources/1#passage"' in shown
