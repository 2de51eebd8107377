import io
import zipfile
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import FileStorage

from rag.errors import TooLarge, Unreadable
from rag.web.api.documents import library_name, sort_upload


class TestNames:
    @pytest.mark.parametrize(
        ("given_name", "name"),
        [
            ("a.md", "a.md"),
            ("./a/b.md", "a/b.md"),
            ("a\\b.md", "a/b.md"),
            ("a//b.md", "a/b.md"),
            ("価格.csv", "価格.csv"),
            ("..a.md", "..a.md"),
        ],
    )
    def test_are_relative_with_forward_slashes(self, given_name, name):
        assert library_name(given_name) == name

    @pytest.mark.parametrize(
        "given_name",
        ["", ".", "/", "..", "../a", "a/../b", "..\\a", "/a", "\\a", "C:\\a", "a\x00\n", "a" * 256],
    )
    def test_never_lead_out_of_the_library(self, given_name):
        with pytest.raises(Unreadable):
            library_name(given_name)

    def test_that_are_too_long_are_refused_with_both_numbers(self):
        with pytest.raises(Unreadable, match=r"has 300 characters.* at most 255"):
            library_name("a" * 297 + ".md")

    @given(st.text(st.sampled_from("./\\:ab\x00\n"), max_size=12))
    def test_have_only_plain_parts(self, given_name):
        try:
            parts = library_name(given_name).split("/")
        except Unreadable:
            return
        assert all(part not in ("", ".", "..") for part in parts)


def test_each_file_is_taken_or_refused():
    uploads = [
        FileStorage(BytesIO(data), name)
        for name, data in (("a.md", b"a"), ("a.md", b"b"), ("big.md", b"x" * 2000), ("", b"c"))
    ]

    accepted, refused = sort_upload(uploads, max_file_mb=0.001)

    assert {name: read() for name, read in accepted.items()} == {"a.md": b"a"}
    assert [type(file.error) for file in refused] == [Unreadable, TooLarge, Unreadable]


class TestArchives:
    def test_are_taken_file_by_file(self, client):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("a/lamps.md", "# Lamps")
            archive.writestr("gas.txt", "Gas is lit.")
        packed.seek(0)
        answer = client.post("/api/v1/documents", data={"file": [(packed, "offers.zip")]})

        assert answer.status_code == 202
        names = [job["document"] for job in answer.get_json()["jobs"]]
        assert names == ["offers.zip/a/lamps.md", "offers.zip/gas.txt"]

    def test_that_cannot_be_opened_are_refused_by_name(self, client):
        answer = client.post(
            "/api/v1/documents", data={"file": [(io.BytesIO(b"PK cut"), "offers.zip")]}
        )

        assert answer.status_code == 422
        assert "offers.zip: the archive is damaged" in answer.get_json()["detail"]
