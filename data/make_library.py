"""Make the binary files of the sample library from data/sources.

    python data/make_library.py [--out FOLDER]

The result is committed, so only someone who changes a source needs this script (and reportlab,
which comes with the dev extra). The same sources give the same bytes on every day.
"""

import argparse
from pathlib import Path

from markup import read_blocks
from write_office import write_docx, write_pptx, write_xlsx
from write_pdf import write_pdf

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "sources"
LIBRARY = HERE / "library"

# The file in the library, its source, and the title in its properties.
FILES = (
    ("networking/kontor-service-manual.pdf", "kontor-service-manual.md", "Kontor service manual"),
    ("networking/lofthav-quick-start.pdf", "lofthav-quick-start.md", "Lofthav Mesh quick start"),
    (
        "networking/office-planning-guide.pdf",
        "office-planning-guide.md",
        "Planning guide for offices, cafés and schools",
    ),
    ("audio/etude-and-hora-manual.docx", "etude-and-hora-manual.md", "Étude and Höra manual"),
    ("company/returns-policy.docx", "returns-policy.md", "Returns and warranty policy"),
    ("company/sales-deck.pptx", "sales-deck.md", "Nornwick range for dealers"),
    ("company/price-list-2026.xlsx", "price-list-2026.json", "Price list 2026"),
)
WRITERS = {".pdf": write_pdf, ".docx": write_docx, ".pptx": write_pptx}


def make_library(out: Path) -> list[Path]:
    """Write every binary file below `out` and return their paths."""
    written = []
    for name, source, title in FILES:
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".xlsx":
            write_xlsx(path, title, SOURCES / source)
        else:
            WRITERS[path.suffix](path, title, read_blocks(SOURCES / source))
        written.append(path)
    return written


def main() -> None:
    """Write the files and say where they are."""
    parser = argparse.ArgumentParser(description="Make the binary files of the sample library.")
    parser.add_argument("--out", type=Path, default=LIBRARY, help="default: data/library")
    for path in make_library(parser.parse_args().out):
        print(path)


if __name__ == "__main__":
    main()
