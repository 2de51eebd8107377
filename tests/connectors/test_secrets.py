"""Passwords and tokens of addresses stay where they are kept: nobody is shown them."""

import base64
from itertools import permutations

import pytest
from pydantic import SecretStr

from rag.connectors.kinds import (
    check_no_password,
    hidden,
    masked,
    normalised_address,
    opened_address,
    passwords_in_query,
    revealed,
    sealed,
    without_login,
    without_secrets,
)
from rag.connectors.web import open_web
from rag.errors import UserError
from rag.llm.discovery import SecretBox
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


HUSH = "hush7319"
NAMES = """token TOKEN access_token refresh-token sig signature X-Amz-Signature X-Amz-Security-Token
X-Goog-Signature api_key apikey api-key apiKey key private_token PRIVATE-TOKEN auth authkey
oauth_token authorization jwt pwd pass passwd password secret client_secret credential access_key
accesskey subscription-key x-functions-key code pat sid session sessionid bearer hmac hash ticket
sas otp pin private_key license_key webhook %74oken tok%65n to%6Ben token[] token%5B%5D token%00"""
WRITTEN = [
    *(f"https://h.test/x?lang=de&{name}={HUSH}" for name in NAMES.split()),
    f"https://ada:{HUSH}@h.test/x", f"HTTPS://ADA:{HUSH}@H.test/x", f"https://{HUSH}@h.test/x.git",
    f"https://:{HUSH}@h.test/", f"https://ada:x@y{HUSH}@h.test/", f"https://ada:{HUSH}@[::1]/x",
    f"https://ada:h {HUSH}@h.test/", f"https://ada:h\t{HUSH}@h.test/", f"https://a:{HUSH}/@h.test/",
    f"zip://a.md::https://ada:{HUSH}@h.test/x.zip", f"zip::https://h.test/x.zip?token={HUSH}",
    f"zip://a.md::zip://b.zip::smb://W;ada:{HUSH}@h.test/s", f"git+ssh://ada:{HUSH}@h.test/r.git",
    f"ssh://ada:{HUSH}@h.test/r.git", f"sftp://ada:{HUSH}@h.test/d", f"s3://AKIA:{HUSH}@b/x",
    f"https://h.test/x;token={HUSH}", f"https://h.test/x;token={HUSH}/more", f"s3://b/x?key={HUSH}",
    f"https://h.test/x?a=1;token={HUSH}", f"https://h.test/x?token=a;{HUSH}", f"https://h.test/?sig={HUSH}#x",
    f"https://h.test/x#access_token={HUSH}", f"https://h.test/x#a=1&token={HUSH}",
    f"https://h.test/x?amp;token={HUSH}", f"https://h.test/x?a=b&&token={HUSH}",
    f"https://h.test/x?a=https%3A%2F%2Fada%3A{HUSH}%40i.test", f"https://h.test/x?a=?token={HUSH}",
    f"https://h.test/x?next=https://ada:{HUSH}@i.test/", f"https://h.test/x?a=%26token%3D{HUSH}",
    f"https://h.test/x?blob={HUSH}0123456789abcdef", f"github://owner:name@main/?token={HUSH}",
]  # fmt: skip
ECHOED = [
    "%68%75%73%68%37%33%31%39", "hus%68731%39", "%25252568ush7319", "&amp;#104;ush7319",
    "h\\u0075\\u0073\\u00687319", "&#x0068;&#x75;sh7319",
    HUSH, "%68ush7319", "h%75s%68%37319", "%2568ush7319", "%252568ush7319", "&#104;ush7319",
    "&#x68;ush7319", "&#0104;ush7319", "h&amp;#117;sh7319", "\\u0068ush7319", "h\\u0075sh7319",
    r"\\u0068ush7319", "&#X68;ush7319",
]  # fmt: skip
SIGNS = [
    "h+/= &", "h%2B%2F%3D%20%26", "h%2b%2f%3d%20%26", "h%2B%2F%3D+%26",
    "h%252B%252F%253D%2520%2526", "h+/= &amp;",
    "h+\\/= &", "h&#43;&#47;&#61;&#32;&#38;", "h\\u002b\\u002F\\u003d\\u0020\\u0026",
    "h%2B/%3D &", "h&#x2b;/=+&", "h%2B%2F%3D%20&", "h%25252B/= %26",
]  # fmt: skip


def normalised_or_refused(written):
    """The address, or what is said of it."""
    try:
        return normalised_address(written), ""
    except UserError as error:
        return "https://h.test/", str(error)


@pytest.mark.parametrize("written", WRITTEN)
def test_are_neither_kept_nor_shown_however_they_are_written(written, tmp_path):
    box = SecretBox(tmp_path)
    address, refusal = normalised_or_refused(written)
    assert HUSH not in refusal
    kept = sealed(address, box)

    assert HUSH not in kept
    assert HUSH not in masked(f"Looked at {address}, and again.")
    assert HUSH not in without_secrets(without_login(address))
    assert opened_address(kept, {}, box).address == address


@pytest.mark.parametrize("parameter", [
    "lang=de", "page=2", "author=Ada", "keyword=pool", "q=tokens", "ref=main", "passage=4",
    "sort=-date", "design=flat", "since=2024-01-01", "path=/docs/2024/quarterly",
])  # fmt: skip
def test_are_not_seen_in_what_is_none(parameter, tmp_path):
    address = f"https://h.test/x?{parameter}#part"

    assert sealed(address, SecretBox(tmp_path)) == masked(address) == address


@pytest.mark.parametrize(("secret", "echoed"), [
    *((HUSH, each) for each in ECHOED), *(("h%2B%2F%3D%20%26", each) for each in SIGNS),
])  # fmt: skip
def test_are_taken_out_of_what_a_server_says_however_it_spells_them(secret, echoed):
    assert hidden(f"403 for '{echoed}'!", ((secret, "{wiki}"),)) == "403 for '{wiki}'!"


def test_that_were_sealed_for_one_source_are_opened_for_no_other(tmp_path):
    stolen = sealed(f"https://h.test/?token={HUSH}", SecretBox(tmp_path)).partition("?")[2]

    for address in (f"https://evil.example/?{stolen}", f"https://evil.example/?a=1&{stolen}"):
        with pytest.raises(UserError, match="sealed for one source"):
            check_no_password(address)


EARLIER = [  # what only the innermost parameter was sealed of, or named in
    "https://h.test/x?url=https://i.test/f?token={}", "https://h.test/x?feed=1?token={}",
    "https://h.test/x;jsessionid=abc?key={}", "https://h.test/x?lang=de&url=//i.test/?sig={}#part",
]  # fmt: skip


@pytest.mark.parametrize("written", EARLIER)
def test_that_earlier_code_sealed_within_a_value_are_opened_after_the_next_sync(written, tmp_path):
    box = SecretBox(tmp_path)
    old = written.format(f"{{sealed.{box.close(HUSH)}}}")
    whole = written.format(HUSH)
    kept = sealed(old, box)

    assert opened_address(old, {}, box).address == whole
    assert opened_address(kept, {}, box).address == whole
    assert sealed(kept, box) == kept


@pytest.mark.parametrize("written", EARLIER)
def test_that_are_named_within_a_value_are_put_in_and_checked(written, tmp_path):
    box, passwords = SecretBox(tmp_path), {"wiki": SecretStr(HUSH)}
    kept = sealed(written.format("{wiki}"), box)

    assert passwords_in_query(kept) == ["wiki"]
    assert opened_address(kept, passwords, box).address == written.format(HUSH)


def test_that_were_sealed_twice_are_opened(tmp_path):
    box = SecretBox(tmp_path)
    inner = f"https://i.test/f?token={{sealed.{box.close(HUSH)}}}"
    kept = f"https://h.test/x?url={{sealed.{box.close(inner)}}}"

    opened = opened_address(kept, {}, box)

    assert opened.address == f"https://h.test/x?url=https://i.test/f?token={HUSH}"
    assert HUSH not in hidden(f"{HUSH} at {opened.address}", opened.secrets)


def test_that_stand_sealed_name_no_password_of_the_settings(tmp_path):
    box = SecretBox(tmp_path)
    kept = f"https://h.test/x?url={{sealed.{box.close('https://i.test/?token={wiki}')}}}"

    assert HUSH not in opened_address(kept, {"wiki": SecretStr(HUSH)}, box).address


@pytest.mark.parametrize("query", [
    f"?token={first}&code={second}&sig={third}"
    for first, second, third in permutations(["abcdef", "Y", "1", "2024", "abcdefgh", "sealed"], 3)
])  # fmt: skip
def test_are_hidden_and_revealed_beside_each_other(query, tmp_path):
    box = SecretBox(tmp_path)
    address = f"https://h.test/docs/{query}"
    kept = sealed(address, box)
    secrets = opened_address(kept, {}, box).secrets

    assert hidden(address, secrets) == kept
    assert revealed(kept, secrets) == address


@pytest.mark.parametrize("parameter", ["code=1", "session=2024", "pin=page", "hash=s"])
def test_that_are_short_rename_no_page(parameter, tmp_path):
    box = SecretBox(tmp_path)
    address = f"https://h.test/docs/?{parameter}"
    secrets = opened_address(sealed(address, box), {}, box).secrets

    page = "https://h.test/docs/page1-2024.html"
    assert hidden(page, secrets) == page
    assert hidden(address, secrets) != address


def test_of_a_login_are_hidden_however_short():
    assert (
        hidden("https://ada:abc@h.test/abc", (("abc", "{wiki}"),))
        == "https://ada:{wiki}@h.test/abc"
    )


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
