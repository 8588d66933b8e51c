"""List the results whose cell has left the grid: kept on disk, gathered nowhere."""

import argparse

from whole_files import write_csv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", nargs="*", default=[], help="their folders")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    write_csv(args.output, ["folder"], [[folder] for folder in args.cells])


if __name__ == "__main__":
    main()
