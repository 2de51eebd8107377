"""Bytes to clean text."""

import pytest

from rag.documents.cleaning import clean, decode, shorten, tidy


class TestDecode:
    @pytest.mark.parametrize(
        ("text", "encoding"),
        [
            pytest.param(
                "Größe und Länge für die Geräte überprüfen. Preis 5 €", "cp1252", id="German"
            ),
            pytest.param("Подключите маршрутизатор к сети и подождите", "cp1251", id="Russian"),
            pytest.param(
                "ルーターの電源を入れて、しばらくお待ちください。説明書をご覧ください。",
                "cp932",
                id="Japanese",
            ),
            pytest.param(
                "路由器的电源接通以后请稍等片刻，然后打开应用程序。", "gb18030", id="Chinese"
            ),
            pytest.param("Plain text", "utf-32", id="with a byte order mark"),
            pytest.param("Ünïcödé", "utf-16-be", id="UTF-16 without a mark"),
        ],
    )
    def test_guesses_what_it_is_not_told(self, text, encoding):
        assert decode(text.encode(encoding)) == text

    def test_believes_a_declaration_that_fits(self):
        assert decode("naïve".encode("mac_roman"), declared="mac_roman") == "naïve"

    @pytest.mark.parametrize("declared", ["no-such-encoding", "ascii"])
    def test_does_not_believe_a_declaration_that_does_not(self, declared):
        assert decode("Größe der Geräte überprüfen".encode("cp1252"), declared=declared)[0] == "G"

    def test_survives_a_last_character_that_was_cut(self):
        assert decode("Preis 5 €".encode()[:-1]) == "Preis 5 \ufffd"

    def test_never_fails(self):
        assert isinstance(decode(bytes(range(256)) * 3), str)


class TestClean:
    def test_drops_what_nobody_sees_and_what_no_database_takes(self):
        assert clean("a\x00b\ud800c\u200bd\ufeffe\u00adf") == "abcdef"

    def test_keeps_tabs_line_ends_and_joined_emoji(self):
        assert clean("a\tb\r\nc\u2028d 👩‍💻") == "a\tb\nc\nd 👩‍💻"

    def test_composes_letters(self):
        assert clean("E\u0301tude") == "Étude"


class TestTidy:
    def test_keeps_paragraphs_and_drops_needless_blanks(self):
        assert tidy("  a\u00a0  b \n\n\n\n c\t") == "a b\n\nc"


class TestShorten:
    def test_cuts_at_a_word_with_an_ellipsis(self):
        assert shorten("one two three four", 11) == "one two…"
        assert shorten("x" * 20, 5) == "xxxx…"
        assert shorten("short", 5) == "short"
