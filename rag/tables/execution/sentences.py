"""A result as a person would say it: "Cantoro Duo is the most expensive, at €329."

What no sentence says is said in the words of its plan.
"""

import re
from collections.abc import Mapping, Sequence

from rag.language.languages import meanings, read_lists
from rag.language.words import language_of
from rag.tables.execution.result import SHOWN_IN_TEXT, TableResult, cell_text, markdown, unmarked
from rag.tables.plan import (
    MEASURED,
    ROWS,
    Filter,
    Key,
    Kind,
    Measure,
    Op,
    Scalar,
    TablePlan,
    column_words,
    in_words,
    is_extreme,
    key_words,
    part_words,
    plan_from,
)
from rag.tables.wordforms import normalised

_TOLD = read_lists("rows")
_FORMS = {code: _TOLD[f"said_{code}"] for code in ("en", "de")}
_OPS = {code: meanings(forms["ops"]) for code, forms in _FORMS.items()}
_FIGURES = _TOLD["figures"]
_CURRENCIES = frozenset(_FIGURES["currencies"].split())
_SUPERLATIVE, _DECLINED, _PLAIN = (
    re.compile(_FIGURES[name], re.IGNORECASE) for name in ("superlative", "declined", "plain")
)
_OFFERED = {code: _TOLD[f"offered_{code}"] for code in ("en", "de", "fr")}
KINDS = (Kind.SUM, Kind.AVERAGE, Kind.MEDIAN, Kind.MAX, Kind.MIN, Kind.DISTINCT)


def describe_result(result: TableResult, marker: str) -> str:
    """The result in Markdown, with its number."""
    words, plan = unmarked(result.words), plan_from(result.plan)
    code = language_of(result.question).code
    forms = _FORMS.get(code, _FORMS["en"])
    if not result.rows or (result.is_figure and result.rows[0][0] in (None, "")):
        form = "none" if plan.measures or not result.rows else "blank"
        text = forms[form].format(table=unmarked(result.table_name), conditions=words)
        return f"{_begun(text)} {marker}"
    sentence = "" if result.is_sql else ResultPhrases(result, plan, code, forms).sentence()
    if result.is_figure:
        return f"{sentence or f'{_begun(words)}: **{result.shown(result.rows[0])[0]}**'} {marker}"
    count, more = len(result.rows), ""
    if count > SHOWN_IN_TEXT or result.has_more:
        whole = "more than 1,000" if result.has_more else f"{count:,}"
        first = min(count, SHOWN_IN_TEXT)
        more = f"\n\nThese are the first {first} of {whole} rows; {marker} has them."
    return f"{sentence or _begun(words) + ':'} {marker}\n\n{markdown(result)}{more}"


def offer_words(plan: TablePlan, table: str, code: str) -> str:
    """What a plan gives, in plain words of a language, as on the button that chooses it."""
    if any((plan.among, plan.step, plan.outer, plan.each)) or _bounds_figures(plan):
        return _begun(in_words(plan))
    forms = _OFFERED.get(code, _OFFERED["en"])
    text = _offered_subject(plan, table, forms)
    if plan.group:
        keys = f" {forms['and']} ".join(map(key_words, plan.group))
        text += forms["by"].format(key=keys)
    if plan.filters:
        signs = dict(pair.split(": ") for pair in forms["ops"].split("; "))
        told = [_offered_condition(each, signs, forms) for each in plan.filters]
        text += forms["with"].format(conditions=f" {forms['and']} ".join(told))
    return _begun(text + _offered_end(plan, forms))


def _bounds_figures(plan: TablePlan) -> bool:
    return any(filter_.column.startswith(MEASURED) for filter_ in plan.filters)


def _offered_subject(plan: TablePlan, table: str, forms: Mapping[str, str]) -> str:
    if is_extreme(plan):
        by, names = plan.order[0], [name for name in plan.columns if name != plan.order[0].by]
        return forms["end" if plan.limit == 1 else "ends"].format(
            column=_joined(names, forms),
            side=forms["highest" if by.descending else "lowest"],
            by=column_words(by.by),
            count=plan.limit,
        )
    if not plan.measures:
        return forms["columns" if plan.columns else "all"].format(
            column=_joined(plan.columns, forms), table=table
        )
    said = [
        forms["count" if measure.column == ROWS else str(measure.kind)].format(
            column=column_words(measure.column), table=table
        )
        for measure in plan.measures
    ]
    return ", ".join(said)


def _joined(names: Sequence[str], forms: Mapping[str, str]) -> str:
    return f" {forms['and']} ".join(map(column_words, names))


def _offered_condition(filter_: Filter, signs: Mapping[str, str], forms: Mapping[str, str]) -> str:
    """ "Fee above 2", "Depot Mole or Rime"."""
    values = [part_words(value, filter_.part) for value in filter_.values[:6]]
    told = f" {forms['or']} ".join(values) or column_words(filter_.other)
    name = key_words(Key(filter_.column, filter_.part))
    return " ".join(filter(None, (name, signs.get(str(filter_.op), ""), told)))


def _offered_end(plan: TablePlan, forms: Mapping[str, str]) -> str:
    """What comes first, and how many."""
    if is_extreme(plan) or not plan.order:
        return ""
    text = forms["falling" if plan.order[0].descending else "rising"]
    return text + (forms["first"].format(count=plan.limit) if plan.limit else "")


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


class ResultPhrases:
    """One result in one language."""

    def __init__(
        self, result: TableResult, plan: TablePlan, code: str, forms: Mapping[str, str]
    ) -> None:
        self.result, self.plan, self.forms = result, plan, forms
        self.ops = _OPS.get(code, _OPS["en"])

    def sentence(self) -> str:
        """Nothing where the plan says more than a sentence does."""
        plan = self.plan
        is_more = (plan.among, plan.step, plan.outer, plan.each, plan.group[1:])
        if any(is_more) or any(filter_.column.startswith(MEASURED) for filter_ in plan.filters):
            return ""
        if plan.order:
            made = self._end()
        elif plan.measures:
            made = self._figure()
        else:
            made = self._cells()
        return _begun(made)

    def _say(self, form: str, **parts: str) -> str:
        where = self._where()
        named = [e.values for e in self.plan.filters if e.op is Op.IS and not (e.part or e.other)]
        values = [unmarked(" / ".join(map(str, each))) for each in named if _is_of_words(each)]
        is_plain = bool(values) and len(values) == len(self.plan.filters)
        of_those = self.forms["of_those"].format(values=", ".join(values)) if is_plain else where
        return self.forms[form].format(where=where, of_those=of_those, **parts)

    def _where(self, without: Filter | None = None) -> str:
        told = [self._condition(filter_) for filter_ in self.plan.filters if filter_ is not without]
        joined = f" {self.forms['and']} ".join(told)
        return self.forms["where"].format(conditions=joined) if told else ""

    def _condition(self, filter_: Filter) -> str:
        name = unmarked(key_words(Key(filter_.column, filter_.part)))
        values = [unmarked(part_words(value, filter_.part)) for value in filter_.values[:6]]
        values = values or ([unmarked(filter_.other)] if filter_.other else [])
        return " ".join(filter(None, (name, self.ops[str(filter_.op)], " / ".join(values))))

    def _end(self) -> str:
        """One row at an end of an order."""
        result, by = self.result, self.plan.order[0]
        if len(result.rows) != 1 or self.plan.limit != 1 or by.by == ROWS:
            return ""
        if len(result.columns) != 2:
            return ""
        row, value = (cell_text(each) for each in result.shown(result.rows[0]))
        row = f"**{row}**"
        column = self.plan.measures[0].column if self.plan.measures else by.by
        match = _SUPERLATIVE.search(result.question)
        if (match and not _PLAIN.search(match[0].split()[0])) or _is_adjective(match):
            word = match[0] if match else ""
            word = _DECLINED.sub("sten", word)  # "am teuersten"
            return self._say("end", row=row, word=word.lower(), value=value)
        if column == ROWS:
            side, name = ("most" if by.descending else "fewest"), self.forms["rows"]
        else:
            side, name = ("highest" if by.descending else "lowest"), _spoken(column)
        return self._say("side", row=row, side=self.forms[side], column=name, value=value)

    def _figure(self) -> str:
        """One figure; rows that are counted."""
        if not self.result.is_figure:
            return ""
        measure = self.plan.measures[0]
        value = f"**{self.result.shown(self.result.rows[0])[0]}**"
        if measure == Measure(Kind.COUNT):
            is_one = self.result.rows[0][0] == 1
            rows = self.forms["row" if is_one else "rows"]
            if not self.plan.filters:
                rows += self.forms["of_table"].format(table=unmarked(self.result.table_name))
            return self._say("counted_one" if is_one else "counted", value=value, rows=rows)
        if measure.kind not in KINDS:
            return ""
        kind = self.forms[str(measure.kind)]
        return self._say("figure", kind=kind, column=_spoken(measure.column), value=value)

    def _cells(self) -> str:
        """One cell of a row that is named; rows of a condition."""
        result, plan = self.result, self.plan
        if not result.is_figure:
            rows = self.forms["row" if len(result.rows) == 1 else "rows"]
            count = f"{len(result.rows):,}"
            return "" if result.has_more else self._say("listed", count=count, rows=rows)
        value, name = f"**{cell_text(result.shown(result.rows[0])[0])}**", plan.columns[0]
        return self._say("figure", kind="", column=_spoken(name), value=value)


def _is_of_words(values: Sequence[Scalar]) -> bool:
    """Values that say alone what they are of: "speakers", not "yes" or "4"."""
    return all(isinstance(value, str) and len(value) > 3 for value in values)


def _is_adjective(match: re.Match[str] | None) -> bool:
    """ "Most expensive", not "most points": what follows "most" is no column."""
    said = normalised(match[0]).split() if match else []
    return len(said) == 2 and said[1] in _ADJECTIVES


_ADJECTIVES = {
    word
    for line in _TOLD["adjectives"]["lines"].splitlines()
    for word in line[2:].split("|")[-1].split()
}


def _spoken(name: str) -> str:
    """A column's name in a sentence: "price_eur" is a price, whose figure has its currency."""
    words = re.sub(r"[_.]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)).split()
    kept = [word for word in words if word.casefold() not in _CURRENCIES] or words
    return unmarked(" ".join(kept))
