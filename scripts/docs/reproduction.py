"""Write docs/reproduction.md from the results of `sojourn reproduce all`: `make reproduction RESULTS=…`."""

import argparse
from pathlib import Path

from sojourn.studies.reproduction import page, read_all

OUT = Path(__file__).parents[2] / "docs" / "reproduction.md"


def main() -> None:
    """Read the verdicts of every study below a directory and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="the directory that `sojourn reproduce all --out` wrote")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    given.out.write_text(page(read_all(given.results)), encoding="utf-8")


if __name__ == "__main__":
    main()
