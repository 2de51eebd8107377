"""Colours are chosen for a browser, and a few letters lead to any place of the caller's."""

import re

import pytest


def posted(client, path, **fields):
    token = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/documents").text)
    return client.post(path, data=fields | ({"csrf_token": token[1]} if token else {}))


class TestTheColours:
    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_stay_as_chosen_on_every_page(self, client, theme):
        answer = posted(client, "/preferences/theme", theme=theme, next="/documents")

        assert answer.location == "/documents"
        assert f'data-theme="{theme}"' in client.get("/").text

    def test_are_the_systems_again(self, client):
        posted(client, "/preferences/theme", theme="dark", next="/")
        posted(client, "/preferences/theme", theme="", next="/")

        assert "data-theme=" not in client.get("/").text.partition("<body")[0]

    def test_lead_to_no_other_site(self, client):
        answer = posted(client, "/preferences/theme", theme="dark", next="//evil.example/")

        assert answer.location == "/"

    def test_are_no_place_for_markup(self, client):
        client.set_cookie("groundnote-theme", '"><script>')

        assert "<script>" not in client.get("/").text.partition("</head>")[0].replace(
            "<script type", ""
        )


class TestPlaces:
    def names(self, client, query):
        return [each["name"] for each in client.get(f"/places?q={query}").get_json()["places"]]

    def test_are_found_by_a_few_letters(self, client, application):
        application.store.create("local", title="Refunds of last week")

        assert "Refunds of last week" in self.names(client, "refund week")
        assert self.names(client, "all conv") == ["All conversations"]

    def test_of_others_are_not(self, client, application):
        application.store.create("somebody else", title="Secret plans")

        assert self.names(client, "secret") == []

    def test_are_documents_too(self, client, application):
        page = client.get("/places?q=manual").get_json()["places"]

        assert [each["kind"] for each in page] == ["document"] * len(page)
        assert page
