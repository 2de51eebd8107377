"""Questions to plans without a model.

Each word of a question is taken for a column, a value, a time, a figure, a way to put rows
together or one end of an order; a plan is made of what was found. A word that the plan does not
use stays open, and what two readings say alike is both of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rag.language.words import language_of
from rag.records import ColumnType, TableColumn
from rag.tables.asking.conditions import filters_of, read_conditions
from rag.tables.asking.ends import is_end, ranked
from rag.tables.asking.index import TableIndex, Use
from rag.tables.asking.matching import NAMED, Matched, readings
from rag.tables.asking.words import (
    ADJECTIVES,
    ASKED,
    FIGURES,
    LISTING,
    PARTS,
    YES_OR_NO,
    Adjective,
    has_years,
    is_added,
    is_of_money,
    measured_by,
    said_in,
    words_of,
)
from rag.tables.plan import (
    MEASURED,
    ROWS,
    Filter,
    Key,
    Kind,
    Measure,
    Op,
    Order,
    Part,
    TablePlan,
    Understood,
    named_columns,
)
from rag.tables.wordforms import is_identifier

DRAWINGS = {"pie": "share", "bar": "bar", "line": "line", "chart": "auto"}
FIRST = f"{MEASURED}1"
KINDS = {"sum": Kind.SUM, "average": Kind.AVERAGE, "median": Kind.MEDIAN}
MOST_FIGURES = 4
TIMES = (ColumnType.DATE, ColumnType.QUARTER, ColumnType.DURATION)
MOST_WAYS = 3  # to take a question, of columns that fit alike


def understand(text: str, index: TableIndex) -> list[Understood]:
    """What a question may ask of one table, the surest first; nothing where it asks nothing."""
    found: dict[TablePlan, Understood] = {}
    if language_of(text).code == "en" and words_of(text)[:1] and words_of(text)[0] in YES_OR_NO:
        return []  # a yes or a no is left to people
    for reading in _ways(text, index):
        plan = _plan(reading)
        if plan is None:
            continue
        plan = replace(plan, chart=chart_of(reading))
        _explain(reading, plan)
        is_partly = not all(e.is_whole for e in reading.of("value"))
        doubts = tuple(dict.fromkeys(reading.doubts))
        made = Understood(plan, reading.score(), reading.unused(), doubts, is_partly)
        if plan not in found:
            found[plan] = made
    return sorted(found.values(), key=lambda each: (len(each.unused), -each.score))


def _ways(text: str, index: TableIndex) -> Iterator[Matched]:
    """The readings with their conditions; of columns that fit alike, one after the other."""
    for reading in readings(text, index):
        way = 0
        while way < min(reading.ways, MOST_WAYS):
            tried = Matched(reading.words, reading.uses, index, way=way)
            read_conditions(tried)
            yield tried
            reading.ways, way = max(reading.ways, tried.ways), way + 1


def _explain(reading: Matched, plan: TablePlan) -> None:
    """Words that call the rows what they are change nothing."""
    reading.use(*reading.of("rows"))
    figures = [each for each in plan.measures if each.column != ROWS]
    if figures or plan.columns or reading.index.is_of_people:
        reading.use(*reading.of("people"))
    said = [
        reading.index.column(name) for name in named_columns(plan) if name in reading.index.by_name
    ]
    for each in reading.of("adjective"):
        if isinstance(each.told, Adjective) and each.told.degree == "plain":
            reading.use(*[each][: len(measured_by(each.told, said))])
    for each in reading.of("column"):
        if each.name == reading.index.subject or any(e.name == each.name for e in reading.used):
            reading.use(each)


def _plan(reading: Matched) -> TablePlan | None:
    plan = _read_plan(reading)
    return plan if plan is None or _gives_what_is_asked(reading, plan) else None


def _gives_what_is_asked(reading: Matched, plan: TablePlan) -> bool:
    """Not rows to "how much" or "when": a figure, or a time."""
    if plan.measures or not plan.filters:
        return True
    shown = [reading.index.column(name) for name in plan.columns]
    if reading.of("much"):
        return any(column.type in FIGURES for column in shown)
    is_of_time = any(each.type in TIMES or has_years(each) for each in shown)
    return is_of_time or reading.words[0] != "when"


def _read_plan(reading: Matched) -> TablePlan | None:
    groups, filters = groups_of(reading), filters_of(reading)
    if reading.takes("share"):
        return _share(reading, groups, filters)
    if reading.takes("spread"):
        return _spread(reading, filters)
    end = next((each for each in reading.of("adjective") if is_end(each, reading)), None)
    if end is not None:
        return ranked(reading, end, groups, filters)
    count = next(iter(reading.of("count")), None)
    if count is not None:
        return _count(reading, count, groups, filters)
    kind = next((KINDS[e.kind] for e in reading.of(*KINDS)), None)
    if kind is not None or groups:
        return _figures(reading, kind, groups, filters)
    return _cells(reading, filters)


def chart_of(reading: Matched) -> str:
    """ "As a chart", "as bars", "as a table": how it is to be drawn."""
    taken = {i for e in reading.of("column", "value") for i in range(e.start, e.end)}
    found = [e for e in said_in(reading.words, "table", *DRAWINGS) if e[0] not in taken]
    reading.use(*(Use(start, end, "chart") for start, end, _name in found))
    names = [name for *_at, name in found]
    drawn = next((DRAWINGS[name] for name in DRAWINGS if name in names), "")
    return "none" if "table" in names else drawn


# ── Groups ───────────────────────────────────────────────────────────────────────────────────


def groups_of(reading: Matched) -> tuple[Key, ...]:
    """What follows "by", "per" or "for each"; and more behind "and"."""
    found: list[Key] = []
    for use in reading.of("group"):
        at, keys = use.end, list[Key]()
        while True:
            named = reading.after(at)
            key = _keys(reading, at, named)
            if not key:
                break
            keys += key
            end = named.end if named is not None and named.kind == "column" else at + 1
            if end >= len(reading.words) or reading.words[end] not in ("and", "und"):
                break
            at = end + 1
        if keys:
            reading.use(use)
            found += [key for key in keys if key not in found]
    return tuple(found)


def _keys(reading: Matched, at: int, named: Use | None) -> list[Key]:
    word = reading.words[at].removesuffix("s") if at < len(reading.words) else ""
    part = PARTS.get(word, Part.WHOLE)
    if named is not None and named.kind == "column":
        column = reading.column(named)
        if column.type not in FIGURES or is_identifier(column):
            reading.use(named)
            return [Key(column.name)]
        return []
    keys = part_keys(reading, part) if part else []
    if keys:
        reading.use(Use(at, at + 1, "group"))
    return keys


def part_keys(reading: Matched, part: Part) -> list[Key]:
    """By what to put rows together "per month": a month of which year, where there are several."""
    dates = [c for c in reading.index.table.columns if c.type is ColumnType.DATE]
    if not dates:
        return []
    name, spans_years = dates[0].name, dates[0].low[:4] != dates[0].high[:4]
    is_more = spans_years and part is not Part.YEAR
    return [*([Key(name, Part.YEAR)] if is_more else []), Key(name, part)]


# ── Ways to put rows together ────────────────────────────────────────────────────────────────


def _share(
    reading: Matched, groups: tuple[Key, ...], filters: tuple[Filter, ...]
) -> TablePlan | None:
    """What part of the whole each group is, or the rows that meet a condition."""
    added = [each for each in reading.free(figures=True) if is_added(reading.column(each))]
    reading.use(*added[:1])
    base = Measure(Kind.SUM, added[0].name) if added else Measure(Kind.COUNT)
    share = Measure(Kind.SHARE, base.column)
    if groups:
        return TablePlan("", filters, groups, (base, share), (Order(FIRST, True),))
    return TablePlan("", filters, (), (share, base)) if len(filters) == 1 else None


def _spread(reading: Matched, filters: tuple[Filter, ...]) -> TablePlan | None:
    """ "The difference in points between A and B"."""
    figures = reading.free(figures=True)
    pair = next((each for each in filters if each.op is Op.IS and len(each.values) == 2), None)
    priced = [c for c in reading.index.table.columns if is_of_money(c)]
    name = figures[0].name if figures else priced[0].name if len(priced) == 1 else ""
    if not name or pair is None:
        return None
    reading.use(*figures[:1], *reading.of("between", "and"))
    if reading.index.repeats(pair.column):
        key, measure = Key(pair.column), Measure(Kind.SUM, name)
        return TablePlan("", filters, (key,), (measure,), outer=Kind.SPREAD)
    return TablePlan("", filters, measures=(Measure(Kind.SPREAD, name),))


def _count(
    reading: Matched, count: Use, groups: tuple[Key, ...], filters: tuple[Filter, ...]
) -> TablePlan | None:
    """ "How many orders …": a figure that the table holds, different values, or rows."""
    reading.use(count, *reading.of("much"))
    order = (Order(FIRST, True),) if groups else ()
    is_different = reading.takes("distinct")
    noun = reading.after(reading.of("distinct")[-1].end if is_different else count.end)
    noun = noun if noun is not None and noun.kind == "column" else None
    figure = _counted(reading, noun)
    if figure is not None and not is_different:
        reading.use(figure)
        column = reading.column(figure)
        if not groups and picks_row(reading, filters):
            return TablePlan("", filters, columns=(column.name,))
        kind = next((KINDS[e.kind] for e in reading.of(*KINDS)), None)
        reading.takes(*KINDS)
        if kind is None and figure is not noun:
            reading.doubts.append(f"added up {column.name}")
        measures = (Measure(kind or Kind.SUM, column.name),)
        return TablePlan("", filters, groups, measures, order)
    reading.use(noun)
    if noun is not None and noun.name not in {each.column for each in filters}:
        differ = reading.column(noun).distinct < 0.8 * reading.index.table.row_count
        differ = differ and noun.weight >= NAMED  # not the "customers" of a "customer type"
        if is_different or (differ and reading.column(noun).type not in FIGURES):
            return TablePlan("", filters, groups, (Measure(Kind.DISTINCT, noun.name),), order)
    return TablePlan("", filters, groups, (Measure(Kind.COUNT),), order)


def _counted(reading: Matched, noun: Use | None) -> Use | None:
    """The figure that is counted already: "how many goals", "how many dishes were *sold*"."""
    compared = {each.column for _at, each in reading.filters}
    is_of_rows = noun is None or noun.name in (reading.index.subject, *compared)
    others = [e for e in reading.free(figures=True) if is_added(reading.column(e))]
    others = [each for each in others if each.name not in compared and each.weight >= NAMED]
    for each in [*([noun] if noun else []), *(others if is_of_rows else [])]:
        column = reading.column(each)
        is_figure = column.type in FIGURES and not is_identifier(column)
        if is_figure and not _numbers_rows(column, reading.index.table.row_count):
            return each
    return None


def _numbers_rows(column: TableColumn, rows: int) -> bool:
    """Whether it only counts the rows of its table: 1, 2, 3 …"""
    return column.distinct == rows and column.high in (str(rows), str(rows - 1))


def picks_row(reading: Matched, filters: Sequence[Filter]) -> bool:
    """Whether single rows are named, whose cells are asked for and not a sum of them."""
    table = reading.index.table
    keys = {each.name for each in table.columns if each.distinct == table.row_count}
    named = {each.column for each in filters if each.op is Op.IS and not each.part}
    return bool(named & {reading.index.subject, *keys})


def _figures(
    reading: Matched, kind: Kind | None, groups: tuple[Key, ...], filters: tuple[Filter, ...]
) -> TablePlan | None:
    """A sum, an average or a median; figures by groups."""
    reading.takes(*KINDS, "much")
    named = reading.free(figures=True)[:MOST_FIGURES]
    columns = [reading.column(each) for each in named] or _by_adjective(reading)
    reading.use(*named)
    if not columns and groups and kind is None:
        return TablePlan("", filters, groups, (Measure(Kind.COUNT),))
    having = _having(reading, kind, groups, filters)
    if having is not None or not columns:
        return having
    wanted = kind or (Kind.SUM if is_added(columns[0]) else Kind.AVERAGE)
    measures = dict.fromkeys(Measure(wanted, each.name) for each in columns)
    return TablePlan("", filters, groups, tuple(measures))


def _having(
    reading: Matched, kind: Kind | None, groups: tuple[Key, ...], filters: tuple[Filter, ...]
) -> TablePlan | None:
    """ "Which districts have an average rent above 2,000": the bound is one of the groups."""
    bounds = [e for e in filters if e.op not in (Op.IS, Op.NOT) and not e.other]
    bounds = [e for e in bounds if reading.index.column(e.column).type in FIGURES]
    named = [e for e in reading.free(figures=False) if reading.index.repeats(e.name)]
    keys = groups or tuple(Key(each.name) for each in named[:1])
    if kind is None or not bounds or not keys:
        return None
    reading.use(*(named[:1] if not groups else ()))
    rest = [each for each in filters if each not in bounds]
    figures = [replace(each, column=FIRST) for each in bounds]
    return TablePlan("", (*rest, *figures), keys, (Measure(kind, bounds[0].column),))


def _by_adjective(reading: Matched) -> list[TableColumn]:
    """ "How heavy is …": the column that an adjective speaks of."""
    for use in reading.of("adjective"):
        if isinstance(use.told, Adjective) and use.told.degree == "plain":
            found = measured_by(use.told, reading.index.table.columns)
            if found:
                reading.use(use)
                return [each for each in [reading.choose(found)] if each]
    return []


# ── Cells ────────────────────────────────────────────────────────────────────────────────────


def _cells(reading: Matched, filters: tuple[Filter, ...]) -> TablePlan | None:
    """The cells of rows that are named; the rows of a condition."""
    if not filters:
        return None
    conditioned = {each.column for each in filters}
    named = [each for each in reading.free() if each.name not in conditioned]
    reading.use(*named)
    columns = [each.name for each in named]
    columns += [each.name for each in _by_adjective(reading)] if not columns else []
    columns += asked_columns(reading, conditioned) if not columns else []
    if not columns and reading.of("much"):
        priced = [c for c in reading.index.table.columns if is_of_money(c)]
        chosen = reading.choose(priced or [c for c in reading.index.table.columns if _is_price(c)])
        if chosen is None:
            return None
        columns.append(chosen.name)
    reading.takes("much")
    if columns and reading.of("much") and not picks_row(reading, filters):
        added = reading.index.column(columns[0])
        if is_added(added):
            return TablePlan("", filters, measures=(Measure(Kind.SUM, added.name),))
    if not columns and not _lists(reading):
        return None
    if not columns and reading.index.subject in conditioned:
        is_one = picks_row(reading, filters) and not reading.index.repeats(reading.index.subject)
        return None if is_one else TablePlan("", filters)
    is_of_one = picks_row(reading, filters) and all(len(each.values) == 1 for each in filters)
    shown = [*([] if is_of_one else [reading.index.subject]), *columns]
    return TablePlan("", filters, columns=tuple(dict.fromkeys(shown)))


def _lists(reading: Matched) -> bool:
    """ "Which boats …", "boats with …": rows are asked for, not only named."""
    first = reading.after(0)
    is_rows = first is not None and (first.kind == "rows" or first.name == reading.index.subject)
    return is_rows or bool(LISTING & set(reading.words))


def _is_price(column: TableColumn) -> bool:
    return column.type in FIGURES and measured_by(ADJECTIVES["cheap"], [column]) != []


def asked_columns(reading: Matched, without: set[str]) -> list[str]:
    """The column that "where" or "when" asks for."""
    for word, hints in ASKED.items():
        if word in reading.words:
            for hint in hints:
                for column in reading.index.table.columns:
                    is_fit = column.name not in without and column.type not in FIGURES
                    if is_fit and hint in column.name.casefold():
                        return [column.name]
    return []
