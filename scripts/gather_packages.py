"""Gather the environments' lists of packages into one table, in the order of their names."""

import argparse
import csv

from list_packages import COLUMNS
from whole_files import intact, write_csv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", nargs="+", required=True, help="CSVs of list_packages.py")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    rows = []
    for path in args.input:
        with intact(path).open(newline="", encoding="utf-8") as file:
            rows += csv.DictReader(file)
    write_csv(args.output, COLUMNS, [[row[column] for column in COLUMNS] for row in rows])


if __name__ == "__main__":
    main()
