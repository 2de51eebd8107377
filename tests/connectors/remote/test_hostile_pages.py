"""Pages are read in a process of their own: one that ends it costs nothing but itself."""

import os
from contextlib import suppress

import pytest

from rag.connectors.web import open_web, pages, source
from rag.connectors.web.pages import page_of
from rag.errors import TooLarge, Unreadable
from rag.seams import SourceOptions
from tests.connectors.remote.site import Site, running
from tests.connectors.test_secrets import PAGE

MARKUP = PAGE.format("First", '<a href="/second">more</a>').encode()


def reader():
    return pages._reader()._readers[0]._process.pid


def test_are_read_elsewhere_and_by_another_after_one_that_ended_its_reader():
    page = page_of(MARKUP, "http://h.test/first", "utf-8")
    assert page.links == ("http://h.test/second",)
    assert b"First is told here" in page.html
    ended = reader()
    assert ended != os.getpid()

    os.kill(ended, 9)
    with suppress(Unreadable):  # the one that ended it
        page_of(MARKUP, "http://h.test/first")

    assert page_of(MARKUP, "http://h.test/first") == page
    assert reader() != ended


def test_what_their_reader_refuses_is_told():
    with pytest.raises(TooLarge, match="nested"):
        page_of(b"<html><body>" + b"<div>" * 6_000, "http://h.test/deep")


@pytest.mark.parametrize("error", [Unreadable("x", "reading it took too long."), TooLarge("large")])
def test_of_a_site_are_listed_so_that_reading_tells_why(monkeypatch, error):
    def read(data, url, declared=None):
        if url.endswith("/bad"):
            raise error
        return page_of(data, url, declared)

    monkeypatch.setattr(source, "page_of", read)
    with running(Site()) as site:
        site["/"] = PAGE.format("First", '<a href="/bad">one</a><a href="/good">two</a>')
        site["/bad"] = PAGE.format("Bad", "")
        site["/good"] = PAGE.format("Good", "")
        opened = open_web(f"{site.url}/", SourceOptions(private_hosts=("127.0.0.1",)))
        listed = {file.name: file for file in opened.listed()}

        assert set(listed) == {"index.html", "bad.html", "good.html"}
        assert b"Good is told here" in opened.read(listed["good.html"])
        with pytest.raises(type(error)):
            opened.read(listed["bad.html"])
        opened.close()
