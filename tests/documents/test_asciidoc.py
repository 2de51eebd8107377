"""AsciiDoc to sections."""

import time

import pytest

from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load

MANUAL = """= Lamp Aero 5
Anna Example <anna@example.org>
:product: Aero 5
:toc:

The *{product}* is a lamp, see <<care,how to care>> and https://example.org/x[the shop].
// a remark of the writer

== Data

.What it needs
[cols="1,2*"]
|===
|Name |Value
|Unit

|Weight |410
|g

|Power
|12
a|W
|===

=== Care [[care]]

[WARNING]
Pull the plug first.

* Wipe it
** with a _dry_ cloth
. Then switch it on

Bulb:: An E27 bulb.

[source,bash]
----
echo *not bold* | cat
----

include::/etc/passwd[]

,===
Part,Price
Shade,"12,50"
,===
"""


def sections(text, name="a.adoc"):
    document = load(name, text.encode(), limits=LoadLimits())
    return document, {each.heading_path[-1:]: each.text for each in document.sections}


def test_headings_lists_and_tables_are_read():
    document, told = sections(MANUAL)

    assert document.title == "Lamp Aero 5"
    assert "The Aero 5 is a lamp, see how to care and the shop." in told[()]
    assert "| Name | Value | Unit |\n| --- | --- | --- |\n| Weight | 410 | g |" in told[("Data",)]
    assert "| Power | 12 | W |" in told[("Data",)]
    care = told[("Care",)]
    assert "Warning: Pull the plug first." in care
    assert "- Wipe it\n  - with a dry cloth" in care
    assert "Bulb: An E27 bulb." in care
    assert "    echo *not bold* | cat" in care
    assert "| Shade | 12,50 |" in care


def test_what_is_no_text_is_left_out_and_nothing_is_included():
    whole = " ".join(sections(MANUAL)[1].values())

    for word in ("remark", "passwd", ":toc:", "cols=", "|===", "[source"):
        assert word not in whole


def test_cells_whose_text_is_a_letter_are_no_styles():
    text = "= T\n\n|===\n^h| Code ^h| Name\n| s | Strong\n| h | Header\n|===\n"

    assert "| Code | Name |\n| --- | --- |\n| s | Strong |\n| h | Header |" in sections(text)[1][()]


@pytest.mark.parametrize(
    "hostile",
    ["|===\n" * 2_000, "*" * 200_000, "[" * 200_000, "<<" * 100_000, "a::" * 70_000,
     "|a " * 100_000,
     "|===\n" + "|" * 200_000, "_a " * 70_000, "{" * 200_000, "https://" * 30_000],
)  # fmt: skip
def test_hostile_texts_take_no_time(hostile):
    began = time.process_time()
    sections(f"= T\n\ntext\n\n{hostile}")

    assert time.process_time() - began < 5
