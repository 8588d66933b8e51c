"""How long a process is within the library, and how long within what a step does of a cell.

A copy of this file beside the steps, imported by the library's __init__.py, adds a line of two
numbers of CPU seconds to the file that $CLOCK names, when the process ends. The first, mathematics,
is of every call that enters a function, a method or a property of the library from outside of it,
numpy's and scipy's work for it included. The second is of what a batch does to make a cell's files
from others: reading, mathematics, writing, but not the receipts. Imports are in neither, wherever
they stand, nor bodies of generators in the first: a draw is mathematics, a table's row is not.
"""

import atexit
import builtins
import fcntl
import functools
import inspect
import os
import sys
import time
from collections.abc import Callable
from importlib.machinery import PathFinder
from types import ModuleType

PACKAGE = "causalrank"
import_as_ever = builtins.__import__


class Clock:
    """It runs in the outermost of the calls that it times."""

    def __init__(self) -> None:
        self.seconds, self.start = 0.0, None

    def timed(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*arguments, **options):
            if self.start is not None:
                return function(*arguments, **options)
            self.start = time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += time.process_time() - self.start
                self.start = None

        return call


mathematics, work = Clock(), Clock()


importing = False


def import_uncounted(*arguments, **options):
    """An import within what is timed moves its start, and what it imports itself does not."""
    global importing
    clocks = [clock for clock in (mathematics, work) if clock.start is not None]
    if importing or not clocks:
        return import_as_ever(*arguments, **options)
    importing = True
    start = time.process_time()
    try:
        return import_as_ever(*arguments, **options)
    finally:
        importing = False
        for clock in clocks:
            clock.start += time.process_time() - start


def time_attributes(owner: type | ModuleType, module: str) -> None:
    for name, value in list(vars(owner).items()):
        if inspect.isclass(value) and value.__module__ == module:
            time_attributes(value, module)
        elif isinstance(value, functools.cached_property):
            value.func = mathematics.timed(value.func)
        elif isinstance(value, property):
            setattr(owner, name, property(mathematics.timed(value.fget)))
        elif inspect.isfunction(value) and value.__module__ == module:
            setattr(owner, name, mathematics.timed(value))


def time_cells(module: ModuleType) -> None:
    compute_batch = module.compute_batch

    def timed_batch(manifest, folders, outputs, key_of, compute):
        compute_batch(manifest, folders, outputs, key_of, work.timed(compute))

    module.compute_batch = timed_batch


class Finder(PathFinder):
    """Has a module timed as soon as it is there."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if not name.startswith(f"{PACKAGE}.") and name != "cell_batch":
            return None
        spec = super().find_spec(name, path, target)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            time_cells(module) if name == "cell_batch" else time_attributes(module, name)

        spec.loader.exec_module = exec_module
        return spec


def note() -> None:
    with open(os.environ["CLOCK"], "a", encoding="utf-8") as file:  # noqa: PTH123
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{mathematics.seconds} {work.seconds}\n")


sys.meta_path.insert(0, Finder)
builtins.__import__ = import_uncounted
atexit.register(note)
