"""Logging in and out at a login provider, in Chromium."""

from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from rag.settings import Settings
from tests.applications import app_of, application_of, served
from tests.web.oidc_provider import running_provider

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def provider():
    with running_provider() as provider:
        provider.set_user("ada", email="ada@example.org", email_verified=True, groups=["support"])
        yield provider


@pytest.fixture
def live(tmp_path, provider):
    oidc = {
        "discovery_url": f"{provider.url}/.well-known/openid-configuration",
        "client_id": "groundnote",
        "client_secret": "secret",
    }
    application = application_of(Settings(data_dir=tmp_path, auth={"mode": "oidc", "oidc": oidc}))
    with served(app_of(application)) as url:
        yield SimpleNamespace(url=url)
    application.stop()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_somebody_logs_in_at_the_provider_and_out_again(chromium, live, scripts):
    context = chromium.new_context(base_url=live.url, java_script_enabled=scripts)
    page = context.new_page()
    page.goto("/documents")
    page.get_by_role("link", name="Log in at 127.0.0.1").click()
    page.locator("input[name=sub]").fill("ada")
    page.get_by_role("button", name="Authorize").click()

    expect(page.get_by_role("heading", name="Documents", level=1)).to_be_visible()
    assert page.url == f"{live.url}/documents"
    kept = {each["name"]: each for each in context.cookies()}
    assert list(kept) == ["groundnote"]
    assert (kept["groundnote"]["httpOnly"], kept["groundnote"]["sameSite"]) == (True, "Lax")

    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="You are logged out")).to_be_visible()
    page.get_by_role("link", name="Log out at 127.0.0.1, too").click()
    assert "/oauth2/end_session" in page.url
    page.goto(f"{live.url}/documents")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    context.close()
