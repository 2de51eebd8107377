"""One line of a passage, word for word."""

from rag.answers.units import Kind, Unit

_MOST_COLUMNS = 6  # of a row that is quoted whole


def line_of(unit: Unit) -> str:
    """The unit in one line; of a row its cells below what its table calls them."""
    if unit.kind is not Kind.ROW:
        return " ".join(unit.text.split())
    cells = unit.cells
    if not unit.header or len(unit.header) != len(cells):
        return "; ".join(filter(None, cells))
    told = [
        f"{name}: {cell}" if name and name != cell else cell
        for name, cell in list(zip(unit.header, cells, strict=True))[1:_MOST_COLUMNS]
        if cell
    ]
    return " — ".join(filter(None, (cells[0], "; ".join(told))))
