"""The strengths of every approximation, as options of a command line."""

import argparse

from causalrank.approximations import APPROXIMATIONS, Strength

Ladders = dict[str, list[Strength]]


def add_ladders(parser: argparse.ArgumentParser) -> None:
    for name, approximation in APPROXIMATIONS.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(
            option, type=approximation.kind, nargs="*", default=[], help=approximation.strength
        )


def ladders_of(args: argparse.Namespace) -> Ladders:
    return {name: getattr(args, name) for name in APPROXIMATIONS}
