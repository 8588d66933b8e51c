"""What the two steps that measure concentration share: options, and the file that they write."""

import argparse
from collections.abc import Iterable, Sequence

import numpy as np

from causalrank.concentration import head_singular_values, read_off
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.mixing import MASKS, NORMALIZATIONS
from whole_files import fail, save_arrays

KEYS = ("source", "N", "d")
Kind = tuple[str, str, str]


def kind(text: str) -> Kind:
    """A feature map, a mask and a normalization, of map/mask/normalization."""
    feature_map, mask, normalization = text.split("/")
    known = feature_map in (*FEATURE_MAPS, "softmax")
    if not (known and mask in MASKS and normalization in NORMALIZATIONS):
        raise ValueError(f"no such matrix: {text}")
    return feature_map, mask, normalization


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, help="the source's name")
    parser.add_argument(
        "--kinds", nargs="+", type=kind, required=True, help="each map/mask/normalization"
    )
    parser.add_argument("--output", required=True, help=".npz")


def measure(q: np.ndarray, k: np.ndarray, kinds: Sequence[Kind]) -> np.ndarray:
    """The quantities of one head, shape (kinds, quantities), for q, k of shape (N, d)."""
    try:
        return np.array([read_off(head_singular_values(q, k, *name)) for name in kinds])
    except ArithmeticError as error:
        fail(f"concentration: {error}")


def save(path: str, key: tuple[str, int, int], kinds: Sequence[Kind], values: Iterable) -> None:
    """Write values of shape (windows, layers, heads, kinds, quantities), or (members, ...)."""
    named = dict(zip(KEYS, map(np.array, key), strict=True))
    save_arrays(path, **named, kinds=np.array(kinds), values=np.array(values))
