"""How much memory the largest files and answers take at the most.

    python -m benchmarks.peak [KIND…] [--megabytes N…] [--read]

Each in a process of its own: the peak of it, and of the process that reads files. A file is
uploaded, searched and asked about what stands at its end. `packed` is a Word file whose XML is so
large, `word` one of this size. With `--read` files are only read, as far as the limits of a file
let them. Words are made; the embedding model is a fake that holds its texts.
"""

import io
import random
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import click
from PIL import Image
from reportlab.lib.utils import ImageReader

from rag.documents.limits import LoadLimits
from rag.documents.sandbox import GuardedLoader
from rag.errors import UserError
from rag.render.answers import Register, answer_html
from rag.render.gate import MarkdownGate
from rag.settings import Settings
from rag.web import create_app
from rag.wiring.application import build
from tests.fakes import HashEmbedder

MOST = 1_500  # MiB, of both processes together
MEGABYTE = 1_000_000
LAST = "Zorbium"  # at the end of each file
ENDING = f"\n\nThe {LAST} weighs 77 kg.\n"
WORDS = [f"{first}{last}" for first in ("bor", "len", "mat", "ric") for last in ("an", "el", "is")]
DOCX = {
    "[Content_Types].xml": '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/'
    'package/2006/content-types"><Default Extension="rels" ContentType="application/'
    'vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main'
    '+xml"/></Types>',
    "_rels/.rels": '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/'
    'package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/'
    'officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>'
    "</Relationships>",
}


def text(size: int) -> bytes:
    """Paragraphs of some hundred words."""
    chance, paragraphs = random.Random(1), 1_000
    made = [" ".join(chance.choices(WORDS, k=120)) + f" {n}.\n\n" for n in range(paragraphs)]
    once = "".join(made).encode()
    return (once * (size // len(once) + 1))[: size - 60] + ENDING.encode()


def table(size: int) -> bytes:
    """A row of three columns a line."""
    rows = size // 25
    lines = (f"item {row:09},{2000 + row % 30},{row % 997}\n" for row in range(rows))
    return ("name,year,amount\n" + "".join(lines) + f"{LAST},2031,77\n").encode()


def packed(size: int) -> bytes:
    """A Word file, its XML of this size."""
    archived = io.BytesIO()
    with zipfile.ZipFile(archived, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in DOCX.items():
            archive.writestr(name, part)
        with archive.open("word/document.xml", "w", force_zip64=True) as document:
            document.write(
                b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/'
                b'main"><w:body>'
            )
            for paragraph in text(size).strip().split(b"\n\n"):
                document.write(b"<w:p><w:r><w:t>%b</w:t></w:r></w:p>" % paragraph)
            document.write(b"</w:body></w:document>")
    return archived.getvalue()


def padded(size: int) -> bytes:
    """A Word file of this size: some text, and a picture that cannot be packed."""
    whole = packed(2 * MEGABYTE)
    archived = io.BytesIO(whole)
    with zipfile.ZipFile(archived, "a") as archive:
        archive.writestr("word/media/a.bin", random.Random(1).randbytes(size - len(whole)))
    return archived.getvalue()


def pdf(size: int) -> bytes:
    """Pages of text, each with a picture that cannot be packed."""
    from reportlab.pdfgen.canvas import Canvas

    made, pages, chance = io.BytesIO(), 600, random.Random(1)
    canvas = Canvas(made, pageCompression=1)
    side = int((size / pages / 1.4 / 3) ** 0.5)  # of a picture; its bytes are written as text
    for number in range(pages):
        for line in range(40):
            words = " ".join(chance.choices(WORDS, k=12))
            canvas.drawString(50, 780 - 12 * line, f"{number}.{line} {words}")
        picture = Image.frombytes("RGB", (side, side), chance.randbytes(3 * side * side))
        canvas.drawImage(ImageReader(picture), 50, 50, 200, 200)
        canvas.showPage()
    canvas.drawString(50, 700, ENDING.strip())
    canvas.save()
    return made.getvalue()


FILES: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "text": ("large.md", text),
    "table": ("large.csv", table),
    "packed": ("large.docx", packed),
    "word": ("large.docx", padded),
    "pdf": ("large.pdf", pdf),
}


def ingest(name: str, data: bytes) -> str:
    """Uploaded, searched and asked about, as by a browser."""
    with tempfile.TemporaryDirectory() as folder:
        application = build(Settings(data_dir=Path(folder)), embedder=HashEmbedder())
        client = create_app(application).test_client()
        sent = client.post("/api/v1/documents", data={"file": (io.BytesIO(data), name)})
        del data
        application.jobs.run_waiting()
        job = client.get(f"/api/v1/jobs/{sent.get_json()['jobs'][0]['id']}").get_json()
        hits = client.post("/api/v1/search", json={"query": LAST}).get_json()["hits"]
        session = client.post("/api/v1/sessions", json={}).get_json()["id"]
        asked = {"content": f"What is the amount of {LAST}?"}
        answer = client.post(f"/api/v1/sessions/{session}/messages", json=asked).get_json()
        application.stop()
    is_found = any(LAST in hit["text"] for hit in hits)
    is_answered = "77" in answer["content"]
    return ", ".join(
        [job["state"], *(["found"] if is_found else []), *(["answered"] if is_answered else [])]
    )


def read(name: str, data: bytes) -> str:
    """What came back from the process that reads."""
    loader = GuardedLoader(LoadLimits())
    try:
        return f"a reply of {len(loader.ask(name, data)) / MEGABYTE:.1f} MB"
    except UserError as error:
        return str(error)[:90]
    finally:
        loader.close()


def answer(size: int) -> str:
    """Through the gate in small pieces, and as HTML."""
    words = "It weighs 410 g ![x](http://e.example/x) <b>y</b> [1]. " * (size // 54)
    gate = MarkdownGate()
    pieces = [gate.feed(words[start : start + 50]) for start in range(0, len(words), 50)]
    return f"{len(answer_html(''.join(pieces) + gate.finish(), Register('/s', {})))} of HTML"


def measure(kind: str, size: int, *, by: Callable[[str, bytes], str]) -> None:
    """In this process."""
    file = FILES.get(kind)
    data = file[1](size) if file else b""
    began = time.monotonic()
    became = by(file[0], data) if file else answer(size)
    seconds = time.monotonic() - began
    peaks = [
        resource.getrusage(who).ru_maxrss >> 10
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    click.echo(
        f"| {kind} | {size / MEGABYTE:g} | {peaks[0]} | {peaks[1]} | {seconds:.1f} | {became} |"
    )
    if sum(peaks) > MOST:
        raise SystemExit(f"{sum(peaks)} MiB are more than {MOST}.")


@click.command()
@click.argument("kinds", nargs=-1, type=click.Choice([*FILES, "answer"]))
@click.option("--megabytes", multiple=True, type=float, default=(1, 4))
@click.option("--read", "is_read", is_flag=True)
def main(kinds: tuple[str, ...], megabytes: tuple[float, ...], is_read: bool) -> None:
    """Peak memory by kind and size."""
    if len(kinds) == len(megabytes) == 1:
        measure(kinds[0], int(megabytes[0] * MEGABYTE), by=read if is_read else ingest)
        return
    click.echo("| kind | MB | MiB | MiB of the reader | s | |\n|---|---:|---:|---:|---:|---|")
    for kind in kinds or (*FILES, "answer"):
        for size in megabytes:
            command = [sys.executable, "-m", "benchmarks.peak", kind, "--megabytes", str(size)]
            subprocess.run(command + ["--read"] * is_read, check=False)


if __name__ == "__main__":
    main()
