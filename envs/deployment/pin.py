"""Pin the environments again: solve every envs/NAME.yaml and write envs/NAME.linux-64.pin.txt.

Needs conda-forge, or a folder of its repodata. The packages of the environments are solved together
first, so that they share as many as can be: one Python, one BLAS. Where conda-forge has no such
package, that environment's pin file is left out, and its YAML is solved on the user's machine.
"""

import argparse
import sys
from pathlib import Path

from rattler import RepoDataRecord

import dependencies
import explicit
import solving
from situation import ALIAS, ROOT, channel_url

SUBDIR = "linux-64"
MACHINE = {"__glibc": "2.28", "__unix": "0", "__linux": "4.18", "__archspec": "1"}  # RHEL 8's


def pin_file(environment: Path) -> Path:
    return environment.with_suffix(f".{SUBDIR}.pin.txt")


def solutions(environments: list[Path], channel: str) -> dict[Path, list[RepoDataRecord]]:
    """The packages of each environment that can be solved, sharing as many as can be."""
    machine = [solving.virtual_package(*item) for item in MACHINE.items()]

    def solve(specs: list[str], prefer: list[RepoDataRecord] = ()) -> list[RepoDataRecord]:
        return solving.solve(specs, channel, SUBDIR, machine, prefer)

    solve(["python"])  # what cannot fail, unless there is no channel
    solvable = []
    for environment in environments:
        try:
            solve(dependencies.specs(environment))
            solvable.append(environment)
        except ValueError as error:
            if "No candidates were found" not in str(error):
                raise
            print(f"{environment.relative_to(ROOT)} stays without pins: {error}", file=sys.stderr)
    together = solve(sorted({spec for env in solvable for spec in dependencies.specs(env)}))
    return {env: solve(dependencies.specs(env), together) for env in solvable}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=Path, help="a folder with linux-64/ and noarch/")
    args = parser.parse_args()
    channel = args.records.resolve().as_uri() if args.records else channel_url()
    environments = sorted((ROOT / "envs").glob("*.yaml"))
    try:
        found = solutions(environments, channel)
    except ValueError as error:
        sys.exit(f"error: {error}")
    for environment in environments:
        pin_file(environment).unlink(missing_ok=True)
        if environment in found:
            packages = [solving.package_of(record) for record in found[environment]]
            at_home = [
                p._replace(url=f"{ALIAS}/conda-forge/{p.subdir}/{p.file_name}") for p in packages
            ]
            text = explicit.write(at_home, [f"platform: {SUBDIR}"])
            pin_file(environment).write_text(text, encoding="utf-8")
            print(f"{pin_file(environment).relative_to(ROOT)}: {len(packages)} packages")


if __name__ == "__main__":
    main()
