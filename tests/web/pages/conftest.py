"""The pages over a fake application with a real library, read as people read them."""

import pytest

from tests.browser.paged_application import HTML, Page, PagedApplication


@pytest.fixture
def application(settings, engine):
    return PagedApplication(settings, engine)


@pytest.fixture
def session(application):
    handle = application.store.create("local")
    handle.register(application.retriever.hits)
    return handle


@pytest.fixture
def get(client):
    return lambda url: Page(client.get(url, headers=HTML))


@pytest.fixture
def post(client):
    return lambda url, **form: Page(client.post(url, data=form, headers=HTML))


@pytest.fixture
def asked(post):
    """The path of a conversation with one answer."""
    return post("/ask", content="How heavy is it?").location.partition("#")[0]
