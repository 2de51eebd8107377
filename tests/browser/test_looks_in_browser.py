"""What people see: nothing cut, everything readable, in both schemes and on narrow pages."""

import httpx
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.slow

PHONE = {"width": 390, "height": 844}
# Each visible text, and the hint in each empty field, with less contrast than WCAG AA wants.
TOO_PALE = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const light = (colour) => {
    const parts = colour.slice(0, 3).map((each) => each / 255)
      .map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ground = (element) => {
    const own = rgba(getComputedStyle(element).backgroundColor);
    if (own[3] === 1) return own;
    return over(own, element.parentElement ? ground(element.parentElement) : [255, 255, 255]);
  };
  const pale = [];
  const look = (element, style, text) => {
    const below = ground(element), colour = rgba(style.color);
    colour[3] *= Number(style.opacity);
    const [a, b] = [light(over(colour, below)), light(below)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (contrast < needed) pale.push(`${contrast.toFixed(2)} ${element.className} ${text}`);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim(), element = texts.currentNode.parentElement;
    const is_seen = text && element.checkVisibility({opacityProperty: true});
    if (is_seen) look(element, getComputedStyle(element), text.slice(0, 40));
  }
  for (const field of document.querySelectorAll("[placeholder]"))
    if (field.checkVisibility()) look(field, getComputedStyle(field, "::placeholder"), "(hint)");
  return pale;
}"""


@pytest.fixture(scope="module")
def conversation(live):
    """The address of a conversation that is longer than a phone."""
    client = httpx.Client(base_url=live.url)
    session_id = client.post("/api/v1/sessions", json={}).json()["id"]
    for question in ("How do I reset the Aero 5?", "What do its lights say?"):
        url = f"/api/v1/sessions/{session_id}/messages"
        assert client.post(url, json={"content": question}).status_code == 200
    return f"/sessions/{session_id}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(open_page, conversation, scheme):
    page = open_page(conversation, color_scheme=scheme, viewport=PHONE)

    for path in (conversation, "/", "/documents?q=reset", "/search", f"{conversation}/settings"):
        page.goto(path)
        assert page.evaluate(TOO_PALE) == [], path


# The sizes of all that is written, but for pictures.
SIZES = """() => {
  const sizes = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const is_seen = texts.currentNode.textContent.trim() && element.checkVisibility();
    if (is_seen && !element.closest("svg"))
      sizes.add(getComputedStyle(element).fontSize);
  }
  return [...sizes];
}"""


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 800}])
def test_all_pages_together_are_written_in_six_sizes(open_page, conversation, viewport):
    page = open_page(conversation, viewport=viewport)
    paths = (conversation, "/", "/documents", "/search?q=reset", f"{conversation}/settings")

    sizes = set()
    for path in (*paths, f"{conversation}/sources/1", "/sessions"):
        page.goto(path)
        sizes.update(page.evaluate(SIZES))

    assert len(sizes) <= 6, sizes


def test_what_is_away_is_said_beside_the_question(open_page, live, conversation, monkeypatch):
    monkeypatch.setitem(live.application.last_checks, "index", False)
    live.application.tried.set()

    page = open_page(conversation, viewport=PHONE)

    expect(page.get_by_role("status").filter(has_text="words alone")).to_be_in_viewport(ratio=1)
    page.goto("/documents")
    assert (
        page.locator(".away .note").bounding_box()["y"]
        > page.locator(".bar").bounding_box()["height"]
    )


def test_a_first_page_that_fits_is_not_scrolled(open_page):
    page = open_page("/", viewport=PHONE)

    assert page.evaluate("[scrollY, document.documentElement.scrollHeight]") == [0, 844]


def test_the_counts_of_collections_follow_what_is_read(open_page, live):
    httpx.post(f"{live.url}/api/v1/collections", json={"name": "Another"}).raise_for_status()
    page = open_page("/documents")
    count = page.get_by_role("link", name="Library").locator(".quiet")
    before = int(count.inner_text())

    file = {"name": "counted.md", "mimeType": "text/markdown", "buffer": b"# Counted\n\nIt counts."}
    page.locator("#files").set_input_files([file])

    expect(count).to_have_text(str(before + 1))
