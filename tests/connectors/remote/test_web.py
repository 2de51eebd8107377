"""Pages, sites, sitemaps and feeds as sources."""

import gzip

import pytest

from rag.connectors.web import open_web
from rag.connectors.web.fetch import Scope, normal
from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load
from rag.errors import SourceAway, TooLarge, Unreadable, UserError
from rag.seams import SourceOptions
from tests.connectors.remote.site import Site, running
from tests.documents import office_files

POOL = """<!doctype html><html><head><title>Fees · Riverside Pool</title></head><body>
<div class="top"><ul><li><a href="/pool/">Home</a></li>
<li><a href="/pool/news">News</a></li></ul></div>
<div id="wrap"><div class="content"><h1>Fees of the pool</h1>
<p>The pool is open from May to September. Tickets are sold at the gate, and season cards at the
town hall only.</p><h2>Single tickets</h2>
<table><tr><th>Who</th><th>Price</th></tr><tr><td>Adults</td><td>6.50</td></tr>
<tr><td>Children</td><td>3.00</td></tr></table>
<h2>Rules</h2><ol><li>No glass</li><li>No dogs<ul><li>except guide dogs</li></ul></li></ol>
<p>We may close the pool when it storms, and tickets are not paid back in that case.</p></div>
<div class="side"><h3>Weather</h3><p>Sunny</p></div></div>
<div class="footer"><p>Imprint and cookies</p></div></body></html>"""
PRIVATE = ("127.0.0.1",)


def page(text: str, *links: str, title: str = "A page", head: str = "") -> str:
    linked = "".join(f'<a href="{link}">more</a> ' for link in links)
    words = " ".join(f"word{number}" for number in range(20))
    return (
        f"<!doctype html><html><head><title>{title}</title>{head}</head><body><nav>Menu {linked}"
        f"</nav><main><h1>{text}</h1><p>{text} {words}</p></main></body></html>"
    )


class Visitor:
    """Opens a source anew for each look, as a sync does."""

    def __init__(self, address: str, aside=None, **options) -> None:
        self.address, self.aside = address, aside
        self.options = SourceOptions(private_hosts=PRIVATE, aside=aside, **options)

    def look(self) -> dict[str, str]:
        return {file.name: file.mark for file in self.files()}

    def files(self):
        source = open_web(self.address, self.options)
        try:
            return list(source.listed())
        finally:
            source.close()

    def read(self, name: str) -> str:
        source = open_web(self.address, self.options)
        try:
            file = next(each for each in source.listed() if each.name == name)
            return source.read(file).decode()
        finally:
            source.close()


@pytest.fixture
def pool(site, tmp_path):
    site["/pool/"] = page("Welcome", "fees.html", "/pool/news", "/town/", "https://other.test/")
    site["/pool/fees.html"] = POOL
    site["/pool/news"] = page("News", "/pool/2026/june", "/files/plan.pdf", "style.css", "a.png")
    site["/pool/2026/june"] = page("June", "/pool/2026/june/more")
    site["/pool/2026/june/more"] = page("More of June", "/pool/deep")
    site["/pool/deep"] = page("Deep")
    site["/town/"] = page("The town")
    plan = office_files.pdf([["Plan of the pool"]])
    site["/files/plan.pdf"] = (200, {"Content-Type": "application/pdf"}, plan)
    return site


def visitor(site, path="/pool/", aside=None, **options):
    return Visitor(site.url + path, aside, **options)


class TestASite:
    def test_is_followed_below_its_address_with_the_files_it_links_to(self, pool):
        assert sorted(visitor(pool).look()) == [
            "2026/june.html", "2026/june/more.html", "fees.html", "files/plan.pdf",
            "index.html", "news.html",
        ]  # fmt: skip
        assert "/town/" not in pool.paths()

    def test_is_followed_as_deep_as_was_said(self, pool):
        assert sorted(visitor(pool, depth=0).look()) == ["index.html"]
        assert sorted(visitor(pool, depth=1).look()) == ["fees.html", "index.html", "news.html"]
        assert "deep.html" in visitor(pool, depth=4).look()

    def test_tells_where_each_page_is_opened(self, pool):
        urls = {file.name: file.url for file in visitor(pool).files()}

        assert urls["2026/june.html"] == f"{pool.url}/pool/2026/june"
        assert urls["files/plan.pdf"] == f"{pool.url}/files/plan.pdf"

    def test_reads_files_as_they_are(self, pool):
        source = open_web(pool.url + "/pool/", SourceOptions(private_hosts=PRIVATE))
        file = next(each for each in source.listed() if each.name.endswith(".pdf"))

        assert file.size == len(pool["/files/plan.pdf"][2])
        assert source.read(file) == pool["/files/plan.pdf"][2]

    def test_with_too_many_pages_is_refused_whole(self, pool):
        with pytest.raises(SourceAway, match="more than 3 pages"):
            visitor(pool, most_files=3).look()

    def test_that_makes_pages_without_end_is_bounded(self, site, monkeypatch):
        monkeypatch.setattr("rag.connectors.web.source.MOST_PAGES", 30)
        site.get = lambda path, _headers: (
            200, {"Content-Type": "text/html"}, page(path, f"{path}x", f"{path}y").encode(),
        )  # fmt: skip

        with pytest.raises(SourceAway, match="more than 30 pages"):
            visitor(site, "/", depth=9).look()

    def test_keeps_one_of_two_addresses_of_a_page(self, site):
        site["/"] = page("Home", "/a", "/a/", "/a?utm_source=mail", "/a#part", "/A/../a", "/copy")
        site["/a"] = site["/a/"] = page("One")
        site["/copy"] = page("One")

        assert sorted(visitor(site, "/").look()) == ["a.html", "index.html"]

    def test_believes_a_canonical_address_of_the_same_page_only(self, site):
        site["/"] = page("Home", "/a?sort=up", "/b")
        site["/a?sort=up"] = page("Sorted", head='<link rel="canonical" href="/a">')
        site["/b"] = page("B", head='<link rel="canonical" href="/">')

        assert {file.name: file.url for file in visitor(site, "/").files()} == {
            "index.html": f"{site.url}/", "a.html": f"{site.url}/a", "b.html": f"{site.url}/b",
        }  # fmt: skip

    def test_gives_two_pages_of_one_name_two_names(self, site):
        site["/"] = page("Home", "/a", "/a.html")
        site["/a"], site["/a.html"] = page("Without"), page("With")

        names = sorted(visitor(site, "/").look())
        assert len(names) == 3
        assert names == sorted(visitor(site, "/").look())

    def test_is_judged_by_type_and_content(self, site):
        pdf = office_files.pdf([["A plan"]])
        site["/"] = page("Home", "/get?id=5", "/soft.pdf", "/notes", "/film", "/vague")
        site["/get?id=5"] = (200, {"Content-Type": "application/octet-stream"}, pdf)
        site["/soft.pdf"] = (200, {"Content-Type": "application/pdf"}, page("Please log in"))
        site["/notes"] = (200, {"Content-Type": "text/plain"}, "Just notes")
        site["/film"] = (200, {"Content-Type": "video/mp4"}, b"\0" * 1000)
        site["/vague"] = (200, {"Content-Type": ""}, page("Vague"))

        names = sorted(visitor(site, "/").look())
        assert [name.split("-")[0] for name in names] == [
            "get", "index.html", "notes.txt", "soft.pdf", "vague.html",
        ]  # fmt: skip
        assert names[0].endswith(".pdf")
        with pytest.raises(Unreadable, match="such as a login"):
            visitor(site, "/").read("soft.pdf")

    def test_leads_nowhere_else_by_redirects(self, site):
        site["/"] = page("Home", "/out", "/in", "/secret")
        site["/out"] = (302, {"Location": site.url.replace("127.0.0.1", "localhost") + "/x"}, "")
        site["/in"] = (302, {"Location": "/here"}, "")
        site["/secret"] = (302, {"Location": "http://169.254.169.254/"}, "")
        site["/here"] = site["/x"] = page("Here")
        private = SourceOptions(private_hosts=(*PRIVATE, "localhost"))
        found = list(open_web(site.url, private).listed())

        assert sorted(file.name for file in found) == ["here.html", "index.html"]


class TestRobots:
    def test_are_respected(self, pool):
        pool["/robots.txt"] = "User-agent: *\nDisallow: /pool/2026\nDisallow: /files/"

        assert sorted(visitor(pool).look()) == ["fees.html", "index.html", "news.html"]
        assert "/pool/2026/june" not in pool.paths()

    def test_say_more_the_longer_they_are_wherever_they_stand(self, pool):
        pool["/robots.txt"] = "User-agent: *\nDisallow: /pool\nAllow: /pool/news\nAllow: /pool/$"

        assert sorted(visitor(pool).look()) == ["files/plan.pdf", "index.html", "news.html"]

    def test_may_hold_for_the_end_or_the_middle_of_addresses(self, pool):
        pool["/robots.txt"] = "User-agent: *\nDisallow: /*/2026/\nDisallow: /*.pdf$"

        assert sorted(visitor(pool).look()) == ["fees.html", "index.html", "news.html"]

    def test_may_speak_to_us_alone(self, pool):
        pool["/robots.txt"] = "User-agent: Groundnote\nDisallow: /\n\nUser-agent: *\nAllow: /"

        with pytest.raises(SourceAway, match=r"robots\.txt"):
            visitor(pool).look()

    def test_that_cannot_be_read_now_forbid_everything(self, pool):
        pool["/robots.txt"] = (503, {}, "")

        with pytest.raises(SourceAway, match="503"):
            visitor(pool).look()

    def test_may_ask_to_be_left_time_within_bounds(self, pool, monkeypatch):
        waited = []
        monkeypatch.setattr("rag.connectors.web.fetch.time.sleep", waited.append)
        pool["/robots.txt"] = "User-agent: *\nCrawl-delay: 86400"

        visitor(pool, depth=1).look()

        assert max(waited) <= 5
        assert max(waited) > 4


class TestTheNextLook:
    def test_fetches_nothing_that_is_as_it_was(self, pool, tmp_path):
        first = visitor(pool, aside=tmp_path).look()
        pool.asked.clear()
        second = visitor(pool, aside=tmp_path).look()

        assert first == second
        assert pool.paths() == ["/pool/"]  # the address itself; its redirects are looked at
        assert len(pool.paths(304)) == len(first)

    def test_sees_what_changed_and_what_is_gone(self, pool, tmp_path):
        first = visitor(pool, aside=tmp_path).look()
        pool["/pool/news"] = page("News of today")
        del pool["/pool/fees.html"]
        second = visitor(pool, aside=tmp_path).look()

        assert first["news.html"] != second["news.html"]
        assert first["index.html"] == second["index.html"]
        assert sorted(second) == ["index.html", "news.html"]

    def test_takes_a_page_that_changes_around_its_text_for_the_same(self, pool):
        before = visitor(pool).look()
        pool["/pool/news"] = pool["/pool/news"][2].decode().replace("Menu", "Menu 14:31")

        assert visitor(pool).look() == before

    @pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
    def test_keeps_a_page_that_cannot_be_seen_now(self, status, pool, tmp_path):
        first = visitor(pool, aside=tmp_path).look()
        pool["/pool/news"] = (status, {}, "no")

        assert visitor(pool, aside=tmp_path).look() == first

    def test_leaves_out_a_page_that_never_could_be_seen(self, pool, tmp_path):
        pool["/pool/fees.html"] = (403, {}, "no")

        assert "fees.html" not in visitor(pool, aside=tmp_path).look()

    @pytest.mark.parametrize("status", [401, 403, 404, 410, 500, 503])
    def test_of_an_address_that_fails_removes_nothing(self, status, pool, tmp_path):
        visitor(pool, aside=tmp_path).look()
        pool["/pool/"] = (status, {}, "no")

        with pytest.raises(SourceAway, match=str(status)):
            visitor(pool, aside=tmp_path).look()

    def test_of_a_site_that_goes_away_meanwhile_removes_nothing(self, site, tmp_path):
        site["/"] = page("Home", *(f"/{number}" for number in range(30)))
        for number in range(30):
            site[f"/{number}"] = (503, {}, "")

        with pytest.raises(SourceAway, match="503"):
            visitor(site, "/", aside=tmp_path).look()

    def test_without_memory_removes_nothing_either(self, pool):
        pool["/pool/news"] = (500, {}, "no")

        with pytest.raises(SourceAway):
            visitor(pool).look()

    def test_survives_nonsense_in_what_was_kept(self, pool, tmp_path):
        first = visitor(pool, aside=tmp_path).look()
        (tmp_path / "seen.json").write_text('{"version": 1, "seen": {"x": {"y": 2}}}')

        assert visitor(pool, aside=tmp_path).look() == first

    def test_reads_again_what_a_broken_sync_did_not(self, pool, tmp_path):
        visitor(pool, aside=tmp_path).look()

        assert "Fees of the pool" in visitor(pool, aside=tmp_path).read("fees.html")


class TestSitemaps:
    def fill(self, site, pages):
        entries = "".join(f"<url><loc>{site.url}{each}</loc></url>" for each in pages)
        space = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        return f'<?xml version="1.0"?>\n<urlset {space}>{entries}</urlset>'

    def test_name_the_pages(self, pool):
        pool["/sitemap.xml"] = self.fill(pool, ["/pool/fees.html", "/town/", "/pool/gone"])

        assert sorted(visitor(pool, "/sitemap.xml").look()) == ["pool/fees.html", "town.html"]
        assert "/pool/news" not in pool.paths()  # what they link to is not followed

    def test_may_be_packed_and_in_parts(self, pool):
        parts = "".join(f"<sitemap><loc>{pool.url}/s{n}.xml.gz</loc></sitemap>" for n in (1, 2))
        pool["/sitemap.xml"] = f"<!-- all --><sitemapindex>{parts}</sitemapindex>"
        for number, path in ((1, "/pool/news"), (2, "/town/")):
            packed = gzip.compress(self.fill(pool, [path]).encode())
            pool[f"/s{number}.xml.gz"] = (200, {"Content-Type": "application/gzip"}, packed)

        assert sorted(visitor(pool, "/sitemap.xml").look()) == ["pool/news.html", "town.html"]

    def test_of_which_a_part_is_away_remove_nothing(self, pool):
        pool["/sitemap.xml"] = (
            f"<sitemapindex><sitemap><loc>{pool.url}/s.xml</loc></sitemap></sitemapindex>"
        )

        with pytest.raises(SourceAway, match="404"):
            visitor(pool, "/sitemap.xml").look()

    @pytest.mark.parametrize(
        "hostile",
        ['<!DOCTYPE urlset [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><urlset><url><loc>&c;</loc></url>'
         "</urlset>",
         '<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>&x;</loc></url>'
         "</urlset>", "<urlset><url><loc>http://x"],
    )  # fmt: skip
    def test_that_are_hostile_or_cut_off_remove_nothing(self, hostile, site):
        site["/sitemap.xml"] = hostile

        with pytest.raises(SourceAway):
            visitor(site, "/sitemap.xml").look()

    def test_that_name_this_network_or_others_reach_nobody(self, pool):
        pool["/sitemap.xml"] = (
            "<urlset><url><loc>http://169.254.169.254/</loc></url>"
            "<url><loc>http://other.test/</loc></url><url><loc>file:///etc/passwd</loc></url></urlset>"
        )

        assert visitor(pool, "/sitemap.xml").look() == {}

    def test_that_name_themselves_end(self, pool):
        pool["/sitemap.xml"] = (
            f"<sitemapindex><sitemap><loc>{pool.url}/sitemap.xml</loc></sitemap></sitemapindex>"
        )

        assert visitor(pool, "/sitemap.xml").look() == {}


RSS = "<rss version='2.0'><channel><title>News</title>{}</channel></rss>"
ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'>{}</feed>"


class TestFeeds:
    @pytest.mark.parametrize(
        ("shape", "entry"),
        [(RSS, "<item><link>{}</link></item>"), (RSS, "<item><guid>{}</guid></item>"),
         (ATOM, "<entry><link rel='self' href='/self'/><link href='{}'/></entry>"),
         (ATOM, "<entry><id>{}</id></entry>")],
    )  # fmt: skip
    def test_name_the_pages(self, shape, entry, pool):
        paths = ("/pool/news", "/pool/2026/june")
        pool["/feed"] = shape.format("".join(entry.format(pool.url + path) for path in paths))

        assert sorted(visitor(pool, "/feed").look()) == ["pool/2026/june.html", "pool/news.html"]

    def test_keep_what_they_named_before_until_its_page_is_gone(self, pool, tmp_path):
        item = f"<item><link>{pool.url}{{}}</link></item>"
        pool["/feed"] = RSS.format(item.format("/pool/news") + item.format("/pool/deep"))
        visitor(pool, "/feed", aside=tmp_path).look()
        pool["/feed"] = RSS.format(item.format("/town/"))
        assert sorted(visitor(pool, "/feed", aside=tmp_path).look()) == [
            "pool/deep.html", "pool/news.html", "town.html",
        ]  # fmt: skip
        del pool["/pool/news"]

        assert sorted(visitor(pool, "/feed", aside=tmp_path).look()) == [
            "pool/deep.html", "town.html",
        ]  # fmt: skip


class TestReading:
    def parsed(self, site):
        return load("fees.html", visitor(site).read("fees.html").encode(), limits=LoadLimits())

    def test_keeps_headings_tables_and_lists_and_leaves_menus_out(self, pool):
        found = self.parsed(pool)

        assert found.title == "Fees of the pool"
        told = {section.heading_path[-1:]: section.text for section in found.sections}
        assert "| Adults | 6.50 |" in told["Single tickets",]
        assert "except guide dogs" in told["Rules",]
        whole = " ".join(told.values())
        assert "paid back" in whole
        assert "Home" not in whole

    def test_keeps_tables_that_the_search_for_the_main_text_loses(self, pool):
        rows = "".join(f"<tr><td>Item {n}</td><td>{n}.00</td></tr>" for n in range(40))
        pool["/pool/fees.html"] = (
            f"<html><body><p>See below.</p><table>{rows}</table></body></html>"
        )

        assert "| Item 39 | 39.00 |" in " ".join(each.text for each in self.parsed(pool).sections)

    def test_keeps_letters_of_other_encodings(self, pool):
        text = page("Gebühr für Schüler").replace("<head>", '<head><meta charset="iso-8859-1">')
        pool["/pool/fees.html"] = (200, {"Content-Type": "text/html"}, text.encode("latin-1"))

        assert "Gebühr für Schüler" in visitor(pool).read("fees.html")

    def test_says_what_went_meanwhile(self, pool):
        source = open_web(pool.url + "/pool/", SourceOptions(private_hosts=PRIVATE))
        file = next(each for each in source.listed() if each.name.endswith(".pdf"))
        del pool["/files/plan.pdf"]

        with pytest.raises(Unreadable, match="not there any more"):
            source.read(file)

    def test_says_what_is_too_large(self, pool):
        source = open_web(
            pool.url + "/pool/", SourceOptions(private_hosts=PRIVATE, max_bytes=3_000)
        )
        pool["/pool/news"] = page("x" * 4_000)
        found = {file.name: file for file in source.listed()}

        with pytest.raises(TooLarge, match="3,000"):
            source.read(found["news.html"])


@pytest.mark.parametrize("address", ["", "ftp://x", "https://", "mailto:a@b.c", "http://[::1"])
def test_what_is_no_address_is_told(address):
    with pytest.raises(UserError):
        open_web(address, SourceOptions())


@pytest.mark.parametrize(
    ("url", "name"),
    [("https://a.test/docs/", "index.html"), ("https://a.test/docs", "index.html"),
     ("https://a.test/docs/v1.2", "v1.2.html"),
     ("https://a.test/docs/a%20b/%C3%BC.php", "a b/ü.html"),
     ("https://a.test/docs/../../etc/passwd", "etc/passwd.html"),
     ("https://a.test/docs/%2e%2e/%2fetc%2fpasswd", "-etc-passwd.html"),
     ("https://b.test/x", "b.test/x.html"), ("https://b.test/", "b.test/index.html")],
)  # fmt: skip
def test_names_are_readable_and_lead_nowhere(url, name):
    assert Scope.of("https://a.test/docs/").name_of(normal(url), ".html").endswith(name)
    assert ".." not in Scope.of("https://a.test/docs/").name_of(normal(url), ".html").split("/")


class Endless(Site):
    """Each page is the same one, and leads to others."""

    def get(self, path, headers):
        self.asked.append((path, 404 if path == "/robots.txt" else 200))
        number = path.rpartition("/")[2] or "0"
        return self.asked[-1][1], {"Content-Type": "text/html"}, page("Day", f"{number}1").encode()


@pytest.mark.parametrize(("bound", "most"), [("MOST_ASKED", 7), ("MOST_SECONDS", -1.0)])
def test_a_site_without_an_end_is_left(bound, most, monkeypatch):
    monkeypatch.setattr(f"rag.connectors.web.source.{bound}", most)
    with running(Endless()) as site, pytest.raises(SourceAway, match="leads to more than"):
        visitor(site, "/days/", depth=20).look()

    assert len(site.asked) < 12


def test_no_more_sitemaps_are_read_than_there_may_be_pages(site, monkeypatch):
    monkeypatch.setattr("rag.connectors.web.source.MOST_ASKED", 2)
    parts = "".join(f"<sitemap><loc>{site.url}/{n}.xml</loc></sitemap>" for n in range(9))
    site["/sitemap.xml"] = f"<sitemapindex>{parts}</sitemapindex>"
    for number in range(9):
        locs = "".join(f"<url><loc>{site.url}/{number}/{n}</loc></url>" for n in range(3))
        site[f"/{number}.xml"] = f"<urlset>{locs}</urlset>"

    with pytest.raises(SourceAway, match="leads to more than"):
        visitor(site, "/sitemap.xml").look()

    assert site.paths() == ["/sitemap.xml", "/0.xml"]


def test_a_page_keeps_what_its_head_says_of_it(site):
    head = (
        "<meta name='author' content='Ines &amp; Vidal'><meta name='viewport' content='x'>"
        "<meta property='article:modified_time' content='2025-07-01T10:00:00Z'>"
        "<meta name='keywords' content='water, pool'>"
    )
    site["/a"] = page("Fees", title="Fees of the pool", head=head)
    look = visitor(site, "/a")
    html = look.read(next(iter(look.look())))
    document = load("a.html", html.encode(), limits=LoadLimits())

    assert document.title == "Fees"
    assert (document.report.author, document.report.date) == ("Ines & Vidal", "2025-07-01")
    assert document.report.tags == ("water", "pool")
    assert "viewport" not in html


class TestALookThatIsLeft:
    def begun(self, pool, aside, **options):
        """Left after three pages, as by a job that lets others go before it."""
        source = open_web(f"{pool.url}/pool/", self.options(aside, **options))
        listing = source.listed()
        names = [next(listing).name for _ in range(3)]
        source.keep()
        source.close()
        pool.asked.clear()
        return names

    def options(self, aside, **options):
        return SourceOptions(private_hosts=PRIVATE, aside=aside, **options)

    def rest(self, pool, aside, **options):
        source = open_web(f"{pool.url}/pool/", self.options(aside, **options))
        files = list(source.listed())
        texts = [source.read(file) for file in files]
        source.close()
        return [file.name for file in files], texts

    def test_goes_on_where_it_was_with_what_it_read(self, pool, tmp_path):
        whole = [*Visitor(f"{pool.url}/pool/").look()]
        seen = self.begun(pool, tmp_path)

        names, texts = self.rest(pool, tmp_path)

        assert names == whole
        assert any(b"season cards" in text for text in texts)
        assert not {"/pool/fees.html", "/pool/"} & set(pool.paths())
        assert seen == whole[:3]
        assert [path.name for path in tmp_path.iterdir()] == ["seen.json"]

    @pytest.mark.parametrize("other", [{"last_look": "later"}, {"depth": 1}])
    def test_begins_anew_where_it_was_another_one(self, pool, tmp_path, other):
        self.begun(pool, tmp_path)

        self.rest(pool, tmp_path, **other)

        assert "/pool/fees.html" in pool.paths()

    def test_of_which_half_a_line_was_written_goes_on_before_it(self, pool, tmp_path):
        self.begun(pool, tmp_path)
        log = tmp_path / "look.jsonl"
        log.write_bytes(log.read_bytes()[:-9])

        names, _texts = self.rest(pool, tmp_path)

        assert len(pool.paths()) < len(names)
        assert len(names) == len(set(names)) == len(Visitor(f"{pool.url}/pool/").look())

    @pytest.mark.parametrize("behind", [b'["half', b'["http://elsewhere.example/", null]\n'])
    def test_goes_on_behind_a_line_that_does_not_fit_as_well(self, pool, tmp_path, behind):
        self.begun(pool, tmp_path)
        log = tmp_path / "look.jsonl"
        log.write_bytes(log.read_bytes() + behind)
        source = open_web(f"{pool.url}/pool/", self.options(tmp_path))
        listing = source.listed()
        first = [(next(listing).name, source.is_replaying) for _ in range(4)]
        source.keep()
        source.close()
        pool.asked.clear()

        names, _texts = self.rest(pool, tmp_path)

        assert [is_replaying for _, is_replaying in first] == [True, True, True, False]
        assert first[3][0] in names
        assert len(set(pool.paths())) == len(names) - 4, "the fourth is not asked for again"
