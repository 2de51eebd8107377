"""What one begins with: models, the palette, what was added, versions, charts; for everybody."""

import re

import pytest
from playwright.sync_api import expect

from rag.documents.files import IncomingFile
from tests.browser.test_conversation_in_browser import long_conversation
from tests.browser.test_evidence_in_browser import AXE, LOOKS, found_by_axe
from tests.openai_server import OpenAIServer, reply

PRICES = "product,month,price_eur\n" + "".join(
    f"{name},{month},{price}\n"
    for name, price in (("Lamp A", 120), ("Lamp B", 190), ("Lamp C", 240), ("Lamp D", 90))
    for month in ("January", "February")
)
ASKED = "Average price_eur by product"


@pytest.fixture(scope="module")
def charted(live):
    """The path of a conversation whose second question was edited, with a chart in it."""
    application = live.application
    list(application.ingestion.ingest([IncomingFile("lamps.csv", lambda most: PRICES.encode())]))
    session = application.store.create("local")
    for question in ("How heavy is the Aero 5?", "What is in the box?"):
        list(application.assistant.ask(session, question))
    branch = session.branch(2)
    end = list(application.assistant.ask(branch, ASKED))[-1]
    list(application.assistant.ask(branch, end.message.answer.offers[0].label))
    return f"/sessions/{branch.id}"


@pytest.mark.parametrize("look", LOOKS)
def test_pages_can_be_read_by_everybody(open_page, charted, look):
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make clients")
    page = open_page(charted, **LOOKS[look])
    expect(page.locator(".versions [aria-current]")).to_have_text("2 of 2")
    expect(page.locator("figure.picture svg")).to_be_visible()
    assert found_by_axe(page, look) == []
    paths = ("/settings/models", "/documents/added", "/long-talk", f"{charted}/settings")
    for path in (*paths, f"{charted}?edit=0", f"{charted}/delete"):
        page.goto(path)
        assert found_by_axe(page, look) == [], path
        sideways = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not page.evaluate(sideways), path


@pytest.mark.parametrize("look", LOOKS)
def test_the_palette_can_be_used_by_everybody(open_page, charted, look):
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make clients")
    page = open_page("/", **LOOKS[look])
    page.keyboard.press("Control+k")
    expect(page.locator("#palette li").first).to_be_visible()
    assert found_by_axe(page, look) == []

    page.keyboard.type("lamps")
    expect(page.locator("#palette li")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/documents/"))


def test_a_chart_tells_its_figures_and_is_taken_away(open_page, charted):
    page = open_page(charted)
    picture = page.locator("figure.picture svg").first

    assert "Lamp C" in picture.get_attribute("aria-label")
    for name, ending in (("CSV", ".csv"), ("Chart as SVG", ".svg"), ("as PNG", ".png")):
        with page.expect_download() as download:
            page.get_by_role("link", name=name, exact=True).first.click()
        assert download.value.suggested_filename.endswith(ending)
    expect(page.locator(".result-rows td").first).to_be_visible()


def test_on_a_phone_models_and_colours_are_within_reach(open_page):
    page = open_page("/", **LOOKS["phone"])

    page.get_by_label("More", exact=True).click()
    page.get_by_role("button", name="Dark").first.click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_label("More", exact=True).click()
    page.get_by_role("link", name="Models").click()
    expect(page.get_by_role("heading", name="Models")).to_be_visible()


def test_a_model_is_connected_and_another_picked_for_one_conversation(open_page, live, monkeypatch):
    monkeypatch.setattr("rag.wiring.application.CONNECTION_LOOK_SECONDS", 0.0)
    models = [{"id": name, "object": "model"} for name in ("small", "large")]
    with OpenAIServer(reply("The Aero 5 weighs 410 g [1]."), models=models) as server:
        page = open_page("/settings/models")
        page.get_by_label(re.compile("Address of a server")).fill(server.url)
        page.get_by_role("button", name="Look at its models").last.click()
        page.locator("#choose-model select").select_option("small")
        page.get_by_role("checkbox", name="large").check()
        page.get_by_role("button", name="Answer with it from now on").click()
        page.get_by_role("link", name="New conversation").first.click()
        page.get_by_label("Answered by").select_option("large")
        page.locator("#question").fill("How heavy is the Aero 5?")
        page.keyboard.press("Enter")
        expect(page.locator(".answer[data-status=complete]")).to_have_count(1)
        asked = {each.body["model"] for each in server.requests}
        page.reload()

        assert "large" in asked
        expect(page.get_by_label("Answered by")).to_have_value("large")
        page.get_by_role("link", name="New conversation").first.click()
        expect(page.get_by_label("Answered by")).to_have_value(re.compile("^$|small"))
        page.goto("/settings/models")
        page.get_by_role("button", name="Disconnect it").click()
        expect(page.get_by_text("No model: the passages themselves.")).to_be_visible()


MOST_KILOBYTES, MOST_REQUESTS = 60, 25


@pytest.mark.parametrize("path", ["/", "/documents", "/settings/models", "a long conversation"])
def test_pages_are_light(open_page, live, path):
    """What a first visit loads; of a conversation the newest turns alone, however many it has."""
    if path == "a long conversation":
        path = f"/sessions/{long_conversation(live, turns=120).id}"
    page, sizes = open_page("about:blank"), []
    page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
    page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    page.goto(path, wait_until="networkidle")

    assert len(sizes) <= MOST_REQUESTS
    assert sum(sizes) / 1000 <= MOST_KILOBYTES
