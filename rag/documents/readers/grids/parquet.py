"""Parquet to sections: the rows of its one table."""

import io
from collections.abc import Iterator
from typing import Any

from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.grids.grid import CellCount, write_rows
from rag.documents.readers.grids.sheets import cell_of
from rag.errors import Unreadable


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; what is nested in a cell is told as Python writes it."""
    from pyarrow import ArrowException, parquet

    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        rows = list(CellCount(outline.name, limits).counted(_rows(file)))
    except (ArrowException, OSError, ValueError) as error:
        raise Unreadable(outline.name, "the table is damaged or was cut off.") from error
    write_rows(rows, outline, place="rows")


def _rows(file: Any) -> Iterator[tuple[int, list[str]]]:
    yield 1, list(map(str, file.schema_arrow.names))
    number = 1
    for batch in file.iter_batches(batch_size=1_000):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            number += 1
            yield number, [cell_of(value, number, at) for at, value in enumerate(row, 1)]
