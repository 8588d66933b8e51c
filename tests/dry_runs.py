"""Dry runs of one repository, each a fork of a process that has what they share.

    python dry_runs.py FOLDER

reads a study's path from each line and answers, in a line of JSON, with Snakemake's exit status and
what it says. Shared are the imports and the digests of the code, which take three quarters of a dry
run; so the code must not change while this process lives.
"""

import gc
import json
import os
import sys
import tempfile
from pathlib import Path

import pandas  # noqa: F401  Snakemake imports it when it compares parameters
import snakemake.cli
import snakemake.dag
import snakemake.workflow


def read_code(folder: Path) -> None:
    """Have the modules of the Snakefile remember what they read of the code."""
    sys.path.insert(0, str(folder / "workflow"))
    import code_digest
    import study

    for script in sorted((folder / "scripts").glob("*.py")):
        for path in code_digest.import_closure(script):
            code_digest.fingerprint(path)
    study.read_schema("study")


def dry_run(study: str) -> tuple[int, str]:
    """Snakemake's exit status and both of its streams."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            try:
                snakemake.cli.main(["-n", "--configfile", study])
            except SystemExit as end:  # as the interpreter ends
                if isinstance(end.code, str):
                    print(end.code, file=sys.stderr)
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(end.code if isinstance(end.code, int) else 1)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read()


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    os.chdir(folder)
    read_code(folder)
    gc.freeze()  # or each fork copies what its collector looks at
    for line in sys.stdin:
        print(json.dumps(dry_run(line.rstrip("\n"))), flush=True)


if __name__ == "__main__":
    main()
