"""What a text and a list of /openapi.json cost at a sixteenth, a quarter and the whole of it."""

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.served import model, spread
from rag.documents.files import IncomingFile
from rag.settings import Settings
from rag.wiring.application import build
from tests.web.hostile import KINDS, LISTED, MEGABYTE, Place
from tests.web.hostile_server import FILES, PARTS, Server, is_steep

LENGTHS = (MEGABYTE, 200_000, 50_000, 20_000, 10_000, 2_000, 1_000, 300)
COUNTS = (LISTED, 10_000, 1_000, 200, 128, 40, 16)
MOST_SECONDS = 10.0
SHOWN = 15


@contextmanager
def attacked() -> Iterator[Server]:
    """A whole application in this process, with the packaged embedding model and a model."""
    with tempfile.TemporaryDirectory() as folder, model() as url:
        settings = Settings(data_dir=Path(folder), llm={"base_url": url, "model": "fake"})
        application = build(settings)
        application.load()
        files = [IncomingFile.from_bytes(name, text.encode()) for name, text in FILES.items()]
        list(application.ingestion.ingest(files))
        try:
            yield Server(application)
        finally:
            application.stop()


def text_of(kind: str, length: int) -> str:
    """So many characters."""
    return KINDS[kind](length)


def entries_of(place: Place, length: int) -> list[Any]:
    """So many of what is allowed there."""
    return [place.of if place.of is not None else "x"] * length


def keys_of(_place: Place, length: int) -> dict[str, int]:
    """So many keys in place of entries."""
    return {f"k{at}": at for at in range(length)}


def longest(server: Server, place: Place) -> tuple[int, bool]:
    """How much may be there, and whether any of it is taken; what is refused is measured whole."""
    make = partial(entries_of, place) if place.is_list else partial(text_of, "words")
    sizes = COUNTS if place.is_list else LENGTHS if place.where == "body" else LENGTHS[2:]
    allowed = [min(place.most, sizes[0])] if place.most else []
    tried = [*allowed, *(each for each in sizes if not allowed or each < allowed[0])]
    for size in tried:
        if server.send(place, make(size))[0] < 300:
            return size, True
    return tried[0], False


def pairs(server: Server, name: str) -> list[tuple[Place, str, int, Any]]:
    """Every place with each kind, in an order that is no order."""
    found: list[tuple[Place, str, int, Any]] = []
    taken = 0
    chosen = [each for each in server.places() if name in str(each)]
    for place in chosen:
        server.begin_session()
        size, is_taken = longest(server, place)
        taken += is_taken
        if place.is_list:
            found.append((place, "entries", size, partial(entries_of, place)))
            found.append((place, "keys", size, partial(keys_of, place)))
        else:
            found += [(place, kind, size, partial(text_of, kind)) for kind in KINDS]
    click.echo(f"places {len(chosen)}, {taken} take something, pairs {len(found)}")
    random.Random(0).shuffle(found)
    return found


def told(what: str, costs: Sequence[float]) -> str:
    """A line of what was measured, with what is wrong with it."""
    one, four, whole = costs
    kind = "STEEP" if is_steep(costs) else "LONG" if whole > MOST_SECONDS else ""
    return f"{kind:5} 1x {one:5.2f}  4x {four:5.2f}  16x {whole:5.2f} s  {what}"


@click.command()
@click.option("--minutes", default=60.0, show_default=True, help="after which no more are sent")
@click.option("--only", default="", help="places whose name holds this")
def growth(minutes: float, only: str) -> None:
    """In this process, by processor time: what grows faster than its text, what takes too long."""
    measured: dict[str, list[float]] = {}
    with attacked() as server:
        wanted = pairs(server, only)
        end = time.monotonic() + minutes * 60
        for place, kind, size, make in wanted:
            if time.monotonic() > end:
                break
            values = [make(size // part) for part in PARTS]
            costs = server.growth(place, values)
            if is_steep(costs):  # again: the machine is others' as well
                costs = [*map(min, costs, server.growth(place, values))]
            measured[f"{place} {kind} {size}"] = costs
            if is_steep(costs) or costs[-1] > MOST_SECONDS:
                click.echo(told(f"{place} {kind} {size}", costs))
    wholes = [costs[-1] for costs in measured.values()]
    click.echo(f"measured {len(measured)} of {len(wanted)}; the whole: {spread(wholes)}")
    click.echo(f"over {MOST_SECONDS:g} s: {sum(each > MOST_SECONDS for each in wholes)}; "
               f"faster than the text: {sum(map(is_steep, measured.values()))}")  # fmt: skip
    for what in sorted(measured, key=lambda what: -measured[what][-1])[:SHOWN]:
        click.echo(told(what, measured[what]))
