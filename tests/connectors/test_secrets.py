"""Passwords and tokens of addresses stay where they are kept: nobody is shown them."""

import base64

import pytest

from rag.connectors.kinds import masked, normalised_address, without_login
from rag.connectors.web import open_web
from rag.errors import UserError
from rag.seams import SourceOptions
from tests.connectors.remote.site import Site, running

PAGE = (
    "<html><body><main><h1>{0}</h1><p>{0} is told here at some length.</p>{1}</main></body></html>"
)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://ada:hush@h.test/x", "https://ada:…@h.test/x"),
        ("https://ada:hu@sh@h.test/x", "https://ada:…@h.test/x"),
        ("git+https://hush@h.test/o/n.git#main", "git+https://…@h.test/o/n.git#main"),
        ("confluence://me@h.test:hush@site.test/KEY", "confluence://me@h.test:…@site.test/KEY"),
        ("smb://WORK;ada:hush@h.test/s", "smb://WORK;ada:…@h.test/s"),
        ("https://h.test/feed?lang=de&access_token=hush", "https://h.test/feed?lang=de&access_token=…"),
        ("a word of https://ada:hush@h.test/x, twice http://hush@i.test.",
         "a word of https://ada:…@h.test/x, twice http://…@i.test."),
        # No secrets:
        ("github://owner:name@main/docs", "github://owner:name@main/docs"),
        ("sftp://ada@h.test/docs", "sftp://ada@h.test/docs"),
        ("https://h.test/@ada/x?keyword=pool", "https://h.test/@ada/x?keyword=pool"),
        ("https://h.test:8443/x@y", "https://h.test:8443/x@y"),
    ],
)  # fmt: skip
def test_are_not_shown(address, told):
    assert masked(address) == told


def test_are_no_part_of_a_link():
    assert without_login("https://ada:hush@h.test/a@b") == "https://h.test/a@b"


@pytest.mark.parametrize(
    "address",
    ["https://[::1", "git+https://[::1", "git+https://h.test:99999999/x", "confluence://[::1/K",
     "confluence://a:hush@h.test:70000/K", "webdavs://ada:hu/sh@h.test/x"],
)  # fmt: skip
def test_of_an_address_that_cannot_be_read_are_not_repeated(address):
    with pytest.raises(UserError, match="cannot be read") as refused:
        normalised_address(address)

    assert "hu" not in str(refused.value)


class Locked(Site):
    """A site that wants a login for all but its robots.txt."""

    def get(self, path, headers):
        wanted = "Basic " + base64.b64encode(b"ada:hush").decode()
        if path != "/robots.txt" and headers.get("Authorization") != wanted:
            self.asked.append((path, 401))
            return 401, {"Content-Type": "text/plain"}, b"who is it?"
        return super().get(path, headers)


@pytest.fixture
def locked():
    with running(Locked()) as made:
        made.login = made.url.replace("://", "://ada:hush@")
        yield made


def listed(address):
    source = open_web(address, SourceOptions(private_hosts=("127.0.0.1",)))
    try:
        return [(file.name, file.url, source.read(file)) for file in source.listed()]
    finally:
        source.close()


def test_of_a_site_are_told_to_it_for_every_page_and_stand_in_no_link(locked):
    locked["/docs/"] = PAGE.format("First", f'<a href="{locked.url}/docs/second">more</a>')
    locked["/docs/second"] = PAGE.format("Second", "")

    found = listed(f"{locked.login}/docs/")

    assert [name for name, _url, _data in found] == ["index.html", "second.html"]
    assert all("hush" not in url for _name, url, _data in found)


def test_of_a_site_are_told_to_it_for_its_sitemap(locked):
    locked["/sitemap.xml"] = f"<urlset><url><loc>{locked.url}/a</loc></url></urlset>"
    locked["/a"] = PAGE.format("Page", "")

    assert [name for name, _url, _data in listed(f"{locked.login}/sitemap.xml")] == ["a.html"]


def test_of_a_site_go_to_no_other(locked):
    with running(Site()) as other:
        other["/b"] = PAGE.format("Other", "")
        locked["/feed.xml"] = (
            f"<rss><channel><item><link>{other.url}/b</link></item></channel></rss>"
        )

        found = listed(f"{locked.login}/feed.xml")

    assert len(found) == 1
    assert not any("Authorization" in headers for headers in other.headers)
