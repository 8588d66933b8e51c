"""Download one wheel of a known hash with pip, from whatever index the user's pip is set to."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from whole_files import fail, file_digest, whole

WHEEL = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?==[A-Za-z0-9][A-Za-z0-9.!+]*"
SHA256 = r"[0-9a-f]{64}"


def matching(pattern: str, form: str) -> Callable[[str], str]:
    """An argparse type: the text itself if all of it matches the pattern."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise argparse.ArgumentTypeError(f"{text!r} is not {form}")
        return text

    return check


def reason(report: str) -> str:
    """What pip's report says went wrong: a broken connection before its consequences."""
    broken = re.search(r"connection broken by '(.*?)': /", report)
    if broken:
        cause = broken[1].split(">: ")[-1].rstrip("')")
        return f"the package index cannot be reached ({cause})"
    lines = [line for line in report.splitlines() if line.strip()]
    # After "ERROR: Exception:" comes a traceback, whose last line says what it was.
    errors = [line for line in lines if re.match(r"ERROR: (?!Exception:)", line)]
    return (errors or lines or ["no message"])[-1].removeprefix("ERROR: ")


def other_hash(wheel: str, expected: str, got: str) -> NoReturn:
    fail(f"{wheel} has another hash: expected sha256 {expected}, got {got}")


def download(wheel: str, sha256: str, folder: Path) -> Path:
    """Have pip put the wheel into an empty folder; return its path there."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{wheel} --hash=sha256:{sha256}\n", encoding="utf-8")
    # --only-binary: a source archive would run its own code to say what it is.
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:"]
    command = [sys.executable, "-m", "pip", "download", *options]
    command += ["-r", str(requirements), "-d", str(folder)]
    pip = subprocess.run(command, capture_output=True, text=True, errors="replace")
    got = re.search(rf"\bGot\s+({SHA256})\b", pip.stderr)
    if pip.returncode and got:
        other_hash(wheel, sha256, got[1])
    if pip.returncode:
        fail(f"pip could not download {wheel}: {reason(pip.stderr)}")
    (path,) = folder.glob("*.whl")
    return path


def is_there(path: Path, sha256: str) -> bool:
    return path.exists() and file_digest(path) == sha256


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", required=True, type=matching(WHEEL, "NAME==VERSION"))
    parser.add_argument(
        "--sha256", required=True, type=matching(SHA256, "64 lower-case hexadecimal digits")
    )
    parser.add_argument("--output", required=True, type=Path, help="where to put the .whl")
    arguments = parser.parse_args(argv)

    with tempfile.TemporaryDirectory() as folder:
        if is_there(arguments.output, arguments.sha256):
            wheel = arguments.output
        else:
            wheel = download(arguments.wheel, arguments.sha256, Path(folder))
        with whole(arguments.output) as part:
            shutil.copyfile(wheel, part)
            # Of the bytes that stay, since pip's own check is only as good as the user's pip.
            got = file_digest(part)
            if got != arguments.sha256:
                other_hash(arguments.wheel, arguments.sha256, got)


if __name__ == "__main__":
    main()
