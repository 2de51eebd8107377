"""Fit the weights of answer cards, and print how they do on each set without it.

python -m benchmarks.fit --data DIR [--cache DIR] [--dry]
"""

import json
from pathlib import Path

import click

from benchmarks.cards.fit import fit_cards, of_sets
from benchmarks.corpora import data_option

TARGET = Path(__file__).parents[1] / "rag" / "answers" / "weights.json"


@click.command()
@data_option
@click.option("--cache", type=click.Path(path_type=Path), help="Keep vectors here between runs.")
@click.option("--dry", is_flag=True, help="Print only; write nothing.")
def main(data: Path, cache: Path | None, dry: bool) -> None:
    """Write the weights, and print them with what they do held out."""
    told = json.dumps(fit_cards(of_sets(data, cache)), indent=1)
    print(told)
    if not dry:
        TARGET.write_text(told + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
