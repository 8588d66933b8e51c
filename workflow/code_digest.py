"""A digest of what a step's result depends on beside its inputs: its code and its environment."""

import ast
import hashlib
from functools import cache
from pathlib import Path

import yaml

sources: dict[Path, bytes] = {}
"""The bytes of every file that a digest was made of."""


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file, without docstrings: like comments, they change no result."""
    sources[path] = path.read_bytes()
    tree = ast.parse(sources[path])
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [
                statement
                for statement in node.body
                if not (
                    isinstance(statement, ast.Expr)
                    and isinstance(statement.value, ast.Constant)
                    and isinstance(statement.value.value, str)
                )
            ]
    return tree


def _imported(tree: ast.Module, package: str) -> set[str]:
    """The dotted names that a module of `package` may import, whatever they turn out to be."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".") if package else []
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


@cache
def imports(path: Path, root: Path) -> tuple[Path, ...]:
    """The files below `root` that `path` may import itself."""
    package = ".".join(path.relative_to(root).parent.parts)
    found = set()
    for name in _imported(parsed(path), package):
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            stem = root.joinpath(*parts[:depth])
            candidates = (stem.with_suffix(".py"), stem / "__init__.py")
            found.update(candidate for candidate in candidates if candidate.is_file())
    return tuple(sorted(found))


@cache
def fingerprint(path: Path) -> bytes:
    """SHA-256 of a file's syntax tree."""
    return hashlib.sha256(ast.dump(parsed(path)).encode()).digest()


@cache
def pins(environment: Path) -> bytes:
    """What an environment's file says, comments and layout aside, and what it is made with: the
    wheels of all of them, and its own conda packages by platform. What a deployment writes beside
    these, NAME.wheels.pin.txt, it derives from them.
    """
    said = repr(yaml.safe_load(environment.read_text(encoding="utf-8"))).encode()
    pinned = {*environment.parent.glob(f"{environment.stem}.*.pin.txt")}
    pinned -= {environment.with_suffix(".wheels.pin.txt")}
    paths = [environment.parent / "wheels.txt", *sorted(pinned)]
    return said + b"".join(path.read_bytes() for path in paths)


def import_closure(script: Path) -> tuple[Path, ...]:
    """The files beside `script` that it imports, directly or not, and itself, sorted."""
    closure, pending = set(), [script]
    while pending:
        path = pending.pop()
        if path not in closure:
            closure.add(path)
            pending += imports(path, script.parent)
    return tuple(sorted(closure))


def code_digest(script: Path, environment: Path, packages: str = "") -> str:
    """SHA-256 over the syntax trees of `script`'s import closure, the environment's content, and
    what is known of the packages beyond that: whence they are."""
    digest = hashlib.sha256(pins(environment) + packages.encode())
    for path in import_closure(script):
        digest.update(path.relative_to(script.parent).as_posix().encode())
        digest.update(fingerprint(path))
    return digest.hexdigest()
