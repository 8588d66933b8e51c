"""List the packages of the environment that runs this: what made the results, and whence."""

import argparse
import json
import platform
import sys
from importlib import metadata
from pathlib import Path

from whole_files import fail, write_csv

COLUMNS = ["environment", "packages_from", "package", "version", "build", "md5"]


def packages() -> list[tuple[str, str, str, str]]:
    """(name, version, build, md5) of each, by conda's records or, without any, by Python's own."""
    records = [json.loads(p.read_text()) for p in Path(sys.prefix, "conda-meta").glob("*.json")]
    if records:
        return sorted((r["name"], r["version"], r["build"], r.get("md5", "")) for r in records)
    found = {(d.metadata["Name"].lower(), d.version, "", "") for d in metadata.distributions()}
    return sorted(found | {("python", platform.python_version(), "", "")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", required=True, help="its name")
    parser.add_argument("--packages-from", required=True, help="the situation it was deployed in")
    parser.add_argument("--pins", nargs="*", default=[], help="NAME=VERSION that must be there")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    found = packages()
    versions = {name: version for name, version, *_ in found}
    for name, version in (pin.split("=") for pin in args.pins):
        if versions.get(name) != version:
            fail(
                f"environment {args.environment} has {name} {versions.get(name, 'not at all')},"
                f" and envs/{args.environment}.yaml asks for {version}"
            )
    rows = [[args.environment, args.packages_from, *package] for package in found]
    write_csv(args.output, COLUMNS, rows)


if __name__ == "__main__":
    main()
