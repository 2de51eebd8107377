"""What is drawn of a result, and when."""

import re

import pytest

from rag.documents.files import IncomingFile
from rag.records import EVERYTHING
from rag.render.tables import chart_of, standalone
from rag.settings import Settings
from tests.applications import application_of

ORDERS = "region,month,orders,change\n" + "".join(
    f"{region},{month},{10 * place + number},{number - 2}\n"
    for place, region in enumerate(("North", "South", "East"), start=1)
    for number, month in enumerate(("January", "February", "March"), start=1)
)
BY_BOTH = "Total orders by month and region as a chart"


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("charts")))
    list(application.ingestion.ingest([IncomingFile("orders.csv", lambda _: ORDERS.encode())]))
    yield application.table_answers
    application.stop()


def widths(svg):
    """Of the parts of each bar, without the legend."""
    found = re.findall(r'class="chart-part is-(\d)" x="[\d.]+" y="(\d+)" width="([\d.]+)"', svg)
    bars = {}
    for _, y, width in found:
        bars.setdefault(int(y), []).append(float(width))
    return [bar for y, bar in sorted(bars.items())][:3]


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Total orders by region as a chart", "bar"),
        ("Total orders by region as a pie chart", "share"),
        ("Total orders by month as a line chart", "line"),
    ],
)
def test_whoever_asks_for_a_picture_has_it_at_once(asked, question, kind):
    choices = asked.library.understand(question, EVERYTHING)

    assert asked.claimed(choices) is not None
    assert chart_of(asked.ask(question, EVERYTHING)).kind == kind


def test_without_one_a_group_is_offered_as_before(asked):
    assert asked.claimed(asked.library.understand("Total orders by region", EVERYTHING)) is None


def test_parts_of_each_month_are_stacked_in_the_order_of_the_year(asked):
    chart = chart_of(asked.ask(BY_BOTH, EVERYTHING))

    assert chart.kind == "bar"
    assert [told.partition(":")[0] for told in chart.text.split("; ")] == [
        "January",
        "February",
        "March",
    ]
    assert "January: East 31, North 11, South 21" in chart.text
    january, *_ = widths(chart.svg)
    assert january[0] / january[1] == pytest.approx(31 / 11, rel=0.01)


def test_shares_of_each_month_fill_bars_of_one_length(asked):
    chart = chart_of(asked.ask(BY_BOTH, EVERYTHING), "share")

    lengths = [sum(bar) for bar in widths(chart.svg)]
    assert lengths == pytest.approx([lengths[0]] * 3, abs=0.2)
    assert "(49.2%)" in chart.svg  # 31 of 63


def test_lines_of_several_parts_share_one_scale_and_are_named(asked):
    chart = chart_of(asked.ask(BY_BOTH, EVERYTHING), "line")

    assert re.findall(r'<polyline class="chart-line is-(\d)"', chart.svg) == ["1", "2", "3"]
    assert re.findall(r'class="chart-words"[^>]*>([^<]+)', chart.svg) == ["East", "North", "South"]
    assert ".chart-line.is-3{stroke:" in standalone(chart)


def test_what_can_be_no_part_of_a_whole_is_drawn_one_by_one(asked):
    chart = chart_of(asked.ask("Total change by month and region as a chart", EVERYTHING))

    assert "share" not in chart.others
    assert "January · North: -1" in chart.text.replace("−", "-")
