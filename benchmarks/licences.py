"""The licences of all packages that are locked, as each package states its own.

What LICENCES.md says below its table, of files that come with the pages, stays as it is.

    python -m benchmarks.licences      (or `make sbom`)

A package says it by an expression, by classifiers, or in a line of its own; what none of them says
is told by the licence text that it carries, else by hand.
"""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = "requirements.lock"
TABLE = ROOT / "LICENCES.md"
MIT = "Permission is hereby granted, free of charge"
PINNED = re.compile(r"(?m)^([\w.-]+)==([^\s;\\]+)")
LONGEST = 60
HEAD = """# Licences

What Groundnote installs (`requirements.lock`), with the licence that each package states.
Written by `make sbom`.

| package | licence |
|---|---|"""


def licence_of(package: Distribution) -> str:
    """In the package's own words, on one line."""
    told = package.metadata
    classified = [
        each.rpartition("::")[2].strip()
        for each in told.get_all("Classifier", ())
        if each.startswith("License ::") and each.count("::") > 1
    ]
    line = " ".join((told["License"] or "").split())
    short = line if 0 < len(line) <= LONGEST else ""
    return told["License-Expression"] or "; ".join(classified) or short or _carried(package)


def _carried(package: Distribution) -> str:
    for file in package.files or ():
        if re.match(r"(?i)licen[cs]e|copying", file.name):
            text = Path(str(file.locate())).read_text(errors="replace").strip()
            return "MIT" if MIT in text else text.partition("\n")[0].strip()[:LONGEST]
    return ""


def main() -> None:
    """Write the table; what is said of packages that are not installed here stays as it is."""
    listed = known(TABLE)
    names = sorted({name for name, _ in PINNED.findall((ROOT / LOCK).read_text())})
    rows = []
    for name in names:
        try:
            licence = licence_of(distribution(name))
        except PackageNotFoundError:
            licence = ""
        rows.append(f"| {name} | {licence or listed.get(name, '')} |")
    _, heading, rest = TABLE.read_text().partition("\n## ")
    TABLE.write_text("\n".join([HEAD, *rows]) + "\n" + heading + rest)


def known(table: Path) -> dict[str, str]:
    """The licences that a table lists, by package."""
    rows = re.findall(r"(?m)^\| ([\w.-]+) \| (.+?) \|$", table.read_text())
    return dict(rows[1:])  # without the head


if __name__ == "__main__":
    main()
