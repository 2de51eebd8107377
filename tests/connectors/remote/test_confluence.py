"""A space of Confluence against a server that answers as its documentation says."""

import base64
import json
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from rag.connectors import kinds
from rag.connectors.confluence import open_confluence
from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load
from rag.errors import Forbidden, SourceAway, Unreadable, UserError
from rag.seams import SourceOptions

LOGIN = "Basic " + base64.b64encode(b"anna@example.org:to:ken").decode()
PRIVATE = ("127.0.0.1",)


class Wiki:
    """The part of the API that is asked: spaces by key, pages of a space by cursor, one page."""

    def __init__(self, site):
        self.pages, self.people = {}, {}
        self.at_once = 2
        self.next = "/wiki/api/v2/spaces/77/pages?cursor={}"
        site.get = self.get

    def write(self, key, title, body, *, parent=None, version=1):
        self.pages[key] = {
            "id": key, "status": "current", "title": title, "spaceId": "77", "parentId": parent,
            "version": {"number": version}, "_links": {"webui": f"/spaces/TEAM/pages/{key}"},
            "body": {"view": {"representation": "view", "value": body}},
        }  # fmt: skip

    def get(self, path, headers):
        found = urlsplit(path)
        if headers.get("Authorization") != LOGIN:
            return self.answer(401, {})
        asked = parse_qs(found.query)
        if found.path == "/wiki/api/v2/spaces":
            spaces = [{"id": "77", "key": "TEAM"}] if asked["keys"] == ["TEAM"] else []
            return self.answer(200, {"results": spaces, "_links": {}})
        if found.path == "/wiki/api/v2/spaces/77/pages":
            start = int(asked.get("cursor", ["0"])[0])
            shown = [{key: each[key] for key in each.keys() - {"body", "labels"}} for each in
                     list(self.pages.values())[start : start + self.at_once]]  # fmt: skip
            is_last = start + self.at_once >= len(self.pages)
            links = {} if is_last else {"next": self.next.format(start + self.at_once)}
            return self.answer(200, {"results": shown, "_links": links})
        if found.path == "/wiki/rest/api/user":
            name = self.people.get(asked["accountId"][0])
            return self.answer(200 if name else 403, {"displayName": name})
        page = self.pages.get(found.path.removeprefix("/wiki/api/v2/pages/"))
        if page and asked.get("include-labels") != ["true"]:
            page = {key: page[key] for key in page.keys() - {"labels"}}
        return self.answer(200, page) if page else self.answer(404, {})

    @staticmethod
    def answer(status, content):
        return status, {"Content-Type": "application/json"}, json.dumps(content).encode()


@pytest.fixture
def wiki(site):
    made = Wiki(site)
    made.write("1", "Team", "<p>Welcome.</p>")
    made.write("2", "Holidays", "<table><tr><th>Who</th><th>Days</th></tr><tr><td>All</td>"
               "<td>30</td></tr></table>", parent="1")  # fmt: skip
    made.write("3", "A/B test", "<p>We test.</p>", parent="2")
    made.address = (
        f"confluence://anna%40example.org:to%3Aken@{site.url.removeprefix('http://')}/TEAM"
    )
    return made


def opened(wiki, *, private=PRIVATE):
    return open_confluence(wiki.address, SourceOptions(private_hosts=private), scheme="http")


def names(wiki):
    return {file.name: file.mark for file in opened(wiki).listed()}


def test_pages_come_in_the_tree_of_their_titles_over_several_answers(wiki):
    assert names(wiki) == {
        "Team.html": "1-1", "Team/Holidays.html": "2-1", "Team/Holidays/A-B test.html": "3-1",
    }  # fmt: skip


def test_a_page_is_read_with_its_tables_and_leads_to_where_it_is(wiki, site):
    source = opened(wiki)
    file = next(each for each in source.listed() if "Holidays.html" in each.name)
    document = load("Holidays.html", source.read(file), limits=LoadLimits())

    assert document.title == "Holidays"
    assert "| All | 30 |" in document.sections[0].text
    assert file.url == f"{site.url}/wiki/spaces/TEAM/pages/2"


def test_a_new_version_has_another_mark_and_a_page_that_went_is_not_listed(wiki):
    wiki.write("2", "Holidays", "<p>31 days</p>", parent="1", version=2)
    del wiki.pages["3"]

    assert names(wiki) == {"Team.html": "1-1", "Team/Holidays.html": "2-2"}


def test_two_pages_of_one_title_have_two_names(wiki):
    wiki.write("4", "Holidays", "<p>others</p>", parent="1")

    assert "Team/Holidays 4.html" in names(wiki)


def test_a_page_that_went_meanwhile_is_told(wiki):
    source = opened(wiki)
    files = list(source.listed())
    del wiki.pages["3"]

    with pytest.raises(Unreadable, match="not there any more"):
        source.read(files[-1])


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [("to%3Aken", "wrong", "login is refused"), ("/TEAM", "/NONE", "no space 'NONE'")],
)
def test_what_cannot_be_seen_removes_nothing(wiki, before, after, told):
    wiki.address = wiki.address.replace(before, after)

    with pytest.raises(SourceAway, match=told):
        names(wiki)


@pytest.mark.parametrize("elsewhere", ["http://evil.test/?{}", "//evil.test/{}", "/other/{}"])
def test_the_login_goes_nowhere_else(wiki, elsewhere):
    wiki.next = elsewhere

    with pytest.raises(SourceAway, match="another place"):
        names(wiki)


@pytest.mark.parametrize("answer", [b"no json", b"[]", b"{}", b'{"results": 5}'])
def test_answers_of_another_form_remove_nothing(wiki, site, answer):
    site.get = lambda _path, _headers: (200, {"Content-Type": "application/json"}, answer)

    with pytest.raises(SourceAway):
        names(wiki)


def test_a_chain_of_answers_that_leads_back_ends(wiki):
    wiki.next = "/wiki/api/v2/spaces/77/pages?cursor=0"

    assert len(names(wiki)) == 2


def test_this_network_is_refused(wiki):
    with pytest.raises(Forbidden):
        list(opened(wiki, private=()).listed())


@pytest.mark.parametrize(
    "address",
    ["confluence://x.atlassian.net/TEAM", "confluence://a:b@x.test/", "confluence://a:b@/TEAM",
     "confluence://a:b@x.test/a/b"],
)  # fmt: skip
def test_an_address_without_what_is_needed_says_how_it_is_written(address):
    with pytest.raises(UserError, match=r"EMAIL:\{name\}@SITE"):
        open_confluence(address, SourceOptions())


def test_it_is_a_package_of_its_own_to_the_rest(monkeypatch):
    """Known by an entry point alone, as that of any other package is."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    named = project["project"]["entry-points"][kinds.GROUP_OF_KINDS]["confluence"]
    point = EntryPoint("confluence", named, kinds.GROUP_OF_KINDS)
    monkeypatch.setattr(kinds, "entry_points", lambda **_wanted: [point])
    address = "confluence://a:b@example.com/TEAM"

    assert kinds.kind_of(address) == "confluence"
    kinds.open_source(address, SourceOptions()).close()


def test_a_page_has_its_author_day_and_labels(wiki):
    wiki.pages["2"] |= {
        "version": {"number": 2, "authorId": "acc:7", "createdAt": "2025-05-06T07:08:09.000Z"},
        "labels": {"results": [{"name": "leave"}, {"name": "hr & pay"}]},
    }
    wiki.people["acc:7"] = "Ines <Vidal>"
    wiki.pages["3"]["version"] |= {"authorId": "nobody"}
    source = opened(wiki)
    reports = {
        file.name: load(file.name, source.read(file), limits=LoadLimits()).report
        for file in source.listed()
    }

    told = reports["Team/Holidays.html"]
    assert (told.author, told.date, told.tags) == (
        "Ines <Vidal>", "2025-05-06", ("leave", "hr & pay"),
    )  # fmt: skip
    assert (reports["Team.html"].author, reports["Team/Holidays/A-B test.html"].author) == ("", "")
