"""Patterns that wait are the patterns that they stand for."""

import re as real
from importlib import import_module

import pytest

from rag.language.lazy_patterns import _LazyPattern, compile_all, re, regex


def test_a_pattern_behaves_as_if_it_had_been_compiled():
    pattern = re.compile(r"(?P<word>a+)b", re.IGNORECASE)

    assert pattern.fullmatch("AAb")["word"] == "AA"
    assert pattern.sub("x", "aab ab") == "x x"
    assert [found[0] for found in pattern.finditer("ab aab")] == ["ab", "aab"]
    assert (pattern.pattern, pattern.groups) == (r"(?P<word>a+)b", 1)
    assert regex.compile("abc").match("ab", partial=True)


def test_a_pattern_waits_until_it_is_used_or_all_are_made(monkeypatch):
    made = []

    def made_of(pattern, flags=0):
        made.append(pattern)
        return real.compile(pattern, flags)

    monkeypatch.setattr(re, "_module", type("Module", (), {"compile": staticmethod(made_of)}))
    used, waiting = re.compile("a"), re.compile("b")
    assert made == []

    used.match("a")
    used.search("a")
    assert made == ["a"]

    compile_all()
    assert "b" in made
    assert made.count("a") == 1
    assert waiting.match("b")


def test_all_that_a_module_has_is_there():
    assert re.escape(".") == real.escape(".")
    assert re.IGNORECASE is real.IGNORECASE
    with pytest.raises(AttributeError):
        _ = re.nonsense
    with pytest.raises(AttributeError):
        _ = re.compile("a").nonsense


def test_every_pattern_of_ours_can_be_compiled():
    for name in ("rag.wiring.application", "rag.llm.reply_text"):
        import_module(name)

    compile_all()

    assert _waiting() == []


def test_what_is_dropped_does_not_wait():
    for _ in range(3):
        re.compile("dropped")

    assert not [each for each in _waiting() if each._compile.args[0] == "dropped"]


def _waiting() -> list[_LazyPattern]:
    from rag.language import lazy_patterns

    return list(lazy_patterns._waiting)
