"""Make the files anew: `python -m tests.goldens [NAME…]`, and read the difference."""

import argparse
import json
from pathlib import Path

from tests.goldens.made import files

FOLDER = Path(__file__).parent


def lines_of(made):
    """One JSON object a line, as people can read it."""
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in made)


def file_of(name):
    return FOLDER / f"{name}.jsonl"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(files()))
    for name in parser.parse_args().names or files():
        file_of(name).write_text(lines_of(files()[name]()), encoding="utf-8")


if __name__ == "__main__":
    main()
