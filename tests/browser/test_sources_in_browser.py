"""The page of a collection's sources in Chromium."""

import os

import pytest
from playwright.sync_api import expect

from rag.records import DEFAULT_COLLECTION, DocumentSource
from tests.browser.test_evidence_in_browser import AXE, found_by_axe

pytestmark = pytest.mark.slow
PATH = f"/collections/{DEFAULT_COLLECTION}/sources"
PHONE = {"width": 390, "height": 844}
LOOKS = {
    "wide": {"viewport": {"width": 1280, "height": 800}},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": PHONE},
    "dark phone": {"viewport": PHONE, "color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def folder(live, tmp_path_factory):
    """Twelve manuals and a file that is broken, added by whoever runs the server."""
    made = tmp_path_factory.mktemp("place") / "a-folder-of-manuals-with-a-rather-long-name"
    made.mkdir()
    for number in range(12):
        (made / f"manual-{number}.md").write_text(f"# Manual {number}\n\nIt has {number} watts.")
        os.utime(made / f"manual-{number}.md", (1_600_000_000,) * 2)
    (made / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    wish = DocumentSource("", str(made), "", "", every_seconds=3600, is_operators=True)
    live.application.sources.add(wish)
    return made


def card(page):
    return page.locator(".source-card")


def test_is_reached_by_links_and_says_what_is_wrong_at_the_field(page, folder, expected_complaints):
    expected_complaints.append("403")
    page.goto("/documents")
    page.get_by_role("link", name="Keep it in step").click()
    expect(page.get_by_role("heading", name="Sources of Library")).to_be_visible()
    page.get_by_label("Its address").fill("http://169.254.169.254/latest/")
    page.get_by_role("button", name="Add it").click()

    expect(page.get_by_role("alert")).to_contain_text("an address of this network")
    expect(page.get_by_label("Its address")).to_be_focused()
    expect(page.get_by_label("Its address")).to_have_value("http://169.254.169.254/latest/")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_removals_wait_and_are_followed_without_a_click(open_page, folder, scripts):
    page = open_page(PATH, has_scripts=scripts)
    expect(card(page)).to_contain_text("In step")
    gone = sorted(folder.glob("manual-*.md"))[: 4 if scripts else 3]
    for path in gone:
        path.unlink()
    page.get_by_role("button", name="Look now").click()
    expect(card(page)).to_contain_text(f"{len(gone)} documents are not there any more")
    page.get_by_text("Which", exact=True).click()
    expect(card(page)).to_contain_text(gone[0].name)
    page.get_by_role("button", name="Yes, remove them").click()
    back = page.get_by_role("button", name=f"Have back {len(gone)} removed")
    expect(back).to_be_visible()
    back.click()

    expect(back).not_to_be_visible()
    expect(card(page)).to_contain_text("In step")


@pytest.mark.parametrize("look", LOOKS)
def test_can_be_read_by_everybody_and_fits(open_page, folder, look):
    page = open_page(PATH, **LOOKS[look])
    expect(card(page)).to_contain_text("1 file could not be read")
    for summary in page.locator("main summary").all():
        summary.click()

    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    if os.environ.get("PICTURES_IN"):
        name = f"{os.environ['PICTURES_IN']}/sources-{look.replace(' ', '-')}.png"
        page.screenshot(path=name, full_page=True)
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make clients")
    assert found_by_axe(page, look) == []


def test_is_gone_through_with_the_keyboard(page, folder):
    page.goto(PATH)
    page.get_by_role("button", name="Look now").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Remove it, keep the documents")).to_be_visible()
    for _field in range(4):
        page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.textContent") == "Keep"
