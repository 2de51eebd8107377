"""reStructuredText as a reader of the built page sees it."""

import time

import pytest

from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load

LIMITS = LoadLimits()


def sections(text: str, name: str = "a.rst") -> list[tuple[tuple[str, ...], str]]:
    document = load(name, text.encode(), limits=LIMITS)
    return [(section.heading_path, section.text) for section in document.sections]


def body(text: str) -> str:
    ((_path, found),) = sections(text)
    return found


def test_headings_are_told_by_their_underlines_and_comments_are_dropped():
    found = sections(
        ".. Licensed under\n   some licence.\n\nGuide\n=====\n\nIntro over\ntwo lines.\n\n"
        "Setup\n-----\n\nPlug in.\n"
    )

    assert found == [((), "Intro over two lines."), (("Setup",), "Plug in.")]


def test_roles_links_literals_and_escapes_are_their_words():
    text = (
        "Call :func:`~app.views.run` with ``debug=True``, see :doc:`the guide </guide>`\n"
        "and `the site <http://x.test>`_, :py:class:`.Lamp`, :weird:role:`x`, a\\*b and *so* on"
        " [1]_, [CIT]_, :math:`a<b`.\n\n.. [1] A note.\n\n.. [CIT] A book.\n"
    )

    assert body(text) == (
        "Call run with debug=True, see the guide and the site, Lamp, x, a*b and so on ,"
        " CIT, a<b.\n\nA note.\n\nA book."
    )


def test_a_reference_is_the_title_that_it_points_to():
    found = sections(
        "Guide\n=====\n\nSee :ref:`wifi`, :ref:`elsewhere-too` and :ref:`this <wifi>`.\n\n"
        ".. _wifi:\n\nJoin the network\n----------------\n\nPress it.\n"
    )

    assert found[0][1] == "See Join the network, elsewhere too and this."


def test_substitutions_are_put_in():
    assert body(".. |lamp| replace:: Aero 5\n\nThe |lamp| in |where|.\n") == (
        "The Aero 5 in |where|."
    )


def test_tables_of_every_kind_have_their_header():
    text = (
        ".. list-table:: Ports\n   :header-rows: 1\n   :strange: yes\n\n"
        "   * - Port\n     - Use\n   * - USB\n     - power\n\n"
        "=====  =====\nA      B\n=====  =====\n1      2\n=====  =====\n\n"
        "+---+---+\n| C | D |\n+===+===+\n| x | 1 |\n|   +---+\n|   | 2 |\n+---+---+\n\n"
        ".. csv-table::\n   :header: E, F\n\n   3, 4\n"
    )

    assert body(text) == (
        "Ports\n\n| Port | Use |\n| --- | --- |\n| USB | power |\n\n"
        "| A | B |\n| --- | --- |\n| 1 | 2 |\n\n| C | D |\n| --- | --- |\n| x | 1 |\n| x | 2 |\n\n"
        "| E | F |\n| --- | --- |\n| 3 | 4 |"
    )


def test_the_first_row_of_a_table_without_a_header_is_no_header():
    assert body("===  ===\nred  off\ngrn  on\n===  ===\n") == "- red: off\n- grn: on"


def test_code_keeps_its_indents_and_its_language_is_not_said():
    text = (
        "Run it::\n\n  ./serve \\\n    --port=80\n\n.. code-block:: python\n   :linenos:\n\n"
        "       if x:\n           y()\n       else:\n           z()\n\n.. code::\n   a = 1\n"
        "\n>>> 1 + 1\n2\n"
    )

    assert body(text) == (
        "Run it:\n\n    ./serve \\\n      --port=80\n\n    if x:\n        y()\n    else:\n"
        "        z()\n\n    a = 1\n\n    >>> 1 + 1\n    2"
    )


def test_boxes_keep_their_kind_and_their_title():
    text = (
        ".. warning::\n    Not in production.\n\n    Ever.\n\n.. note:: Short\n   one.\n\n"
        ".. admonition:: Mind\n\n   The gap.\n\n.. versionadded:: 2.1\n   The lamp.\n\n"
        ".. deprecated:: 3.0\n"
    )

    assert body(text) == (
        "Warning: Not in production.\n\nEver.\n\nNote: Short one.\n\nMind\n\nThe gap.\n\n"
        "Added in version 2.1: The lamp.\n\nDeprecated since version 3.0"
    )


def test_what_is_described_stands_under_its_name():
    found = sections(
        "API\n===\n\nAll of it.\n\n.. py:function:: run(debug=False)\n   :async:\n\n   Runs.\n\n"
        "   :param debug: Says more.\n\n.. confval:: PORT\n\n   Where.\n\nAfter.\n"
    )

    assert found == [
        ((), "All of it."),
        (("run(debug=False)",), "Runs.\n\nparam debug: Says more."),
        (("PORT",), "Where."),
        ((), "After."),
    ]


def test_unknown_directives_lose_no_text():
    text = (
        ".. tabs::\n\n   .. group-tab:: Linux\n\n      Use the shell.\n\n"
        ".. grid:: 2\n   :gutter: 1\n\n   .. grid-item-card:: Start\n\n      Here.\n"
    )

    assert body(text) == "Linux\n\nUse the shell.\n\nStart\n\nHere."


def test_lists_definitions_and_options():
    text = (
        "- one\n\n  more\n\n  - in\n\n- word\n   Its sense.\n\n3. three\n\n   ::\n\n     code\n\n"
        "#. four\n\nterm : kind\n   Its meaning.\n\n-o FILE  where to\n\n| a\n| b\n"
    )

    assert body(text) == (
        "- one\n  more\n  - in\n- word: Its sense.\n- 3. three\n\n    code\n\n- 4. four\n\n"
        "term : kind\nIts meaning.\n\n-o FILE\nwhere to\n\na\nb"
    )


def test_nothing_of_another_file_and_nothing_raw_comes_in(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden,words")
    text = (
        f"Shown.\n\n.. include:: {secret}\n\n.. literalinclude:: {secret}\n\n"
        f".. csv-table::\n   :file: {secret}\n\n.. raw:: html\n   :file: {secret}\n\n"
        ".. raw:: html\n\n   <b>bold</b>\n\n.. role:: html(raw)\n   :format: html\n\n"
        ".. toctree::\n\n   other\n\nSeen.\n"
    )

    assert body(text) == "Shown.\n\nSeen."


def test_pictures_are_their_words():
    text = (
        ".. figure:: a.png\n   :alt: a lamp\n   :width: 12zz\n\n   The caption.\n\n"
        ".. image:: b.png\n\n.. image:: c.png\n   :alt: a door\n\n"
        ".. image:: d.png\n   :alt: a key\n"
    )

    assert body(text) == "a lamp\n\nThe caption.\n\na door\n\na key"


def test_markup_that_is_broken_stays_as_text():
    text = (
        "Guide\n==\n\n- a\nb\n\n*open and `more\n\n+--+\n| x\n+--+\n\n.. list-table::\n\n   words\n"
    )

    found = "\n".join(each for _path, each in sections(text))
    assert all(word in found for word in ("- a", "*open and `more", "x", "words"))


def test_a_title_with_too_short_a_line_is_said_once():
    found = sections("-----\nThe Guide\n-----\n\nIntro.\n\nSetting up\n====\n\nPlug in.\n")

    assert found == [((), "Intro."), (("Setting up",), "Plug in.")]


def test_thousands_of_levels_are_read():
    text = "\n".join(" " * depth + f"word{depth}" for depth in range(1100))

    assert "word1099" in "".join(each for _path, each in sections(text))


@pytest.mark.parametrize("mark", ["`a <", "*a ", "a_ ", "|a ", "\\`a <", "`a\n<", "**a `"])
def test_marks_that_nothing_closes_take_no_time_that_grows_with_their_square(mark):
    begun = time.process_time()

    found = body(mark * 50_000)

    assert "a" in found
    assert time.process_time() - begun < 5


def test_a_long_manual_is_still_markup():
    many = "\n\n".join(f"Call ``run{n}`` with *one* or `two`_ of them." for n in range(2_000))

    assert "``" not in sections(many)[0][1]


def test_what_stands_behind_an_object_is_not_its_description():
    text = (
        "Guide\n=====\n\nPumps\n-----\n\n.. function:: fill(litres)\n\n   Opens the valve.\n\n"
        "All of it ends at noon.\n"
    )

    assert sections(text) == [
        (("Pumps", "fill(litres)"), "Opens the valve."),
        (("Pumps",), "All of it ends at noon."),
    ]
