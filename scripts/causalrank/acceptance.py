"""Acceptance of an approximate layer: declared before, beside what happens to its rank."""

from dataclasses import dataclass

import numpy as np

BOXES = (
    "rank kept, tolerance met",
    "rank kept, tolerance not met",
    "rank lost, tolerance met",
    "rank lost, tolerance not met",
)


@dataclass(frozen=True)
class Criterion:
    """What is asked of a method: the share of the exact contrast that the output must keep, the
    largest relative error of the output, and the threshold, over sigma_max, of the rank."""

    contrast: float
    output_error: float
    rank_threshold: float


@dataclass(frozen=True)
class Judgement:
    """In how many seeds a method keeps the rank and meets the tolerance, and its box."""

    rank_kept: int
    tolerance_met: int
    box: str


def output_error(exact: np.ndarray, approximate: np.ndarray) -> float:
    """||O_hat - O||_F / ||O||_F, for outputs of one shape."""
    return float(np.linalg.norm(approximate - exact) / np.linalg.norm(exact))


def contrast_kept(exact: np.ndarray, approximate: np.ndarray) -> float:
    """<D_hat, D> / <D, D>: how much of the contrast D of two outputs an approximation has.

    1 for the exact contrast, 0 for one that is orthogonal to it or absent, negative for one that
    points away; a contrast that is merely as large does not count. NaN if D is zero.
    """
    square = float(np.vdot(exact, exact))
    return float(np.vdot(approximate, exact)) / square if square else float("nan")


def judgement(
    rank_before: np.ndarray,
    rank_after: np.ndarray,
    error: np.ndarray,
    kept: np.ndarray,
    ask: Criterion,
) -> Judgement:
    """The judgement over seeds, arrays of shape (seeds,).

    A rank that is not smaller is kept. The tolerance is met when the error is small enough and
    enough of the contrast is kept; NaN meets nothing. A box says what holds in every seed: its
    rank is lost, or its tolerance not met, if it is so in one.
    """
    same = rank_after >= rank_before
    met = (error <= ask.output_error) & (kept >= ask.contrast)
    box = BOXES[2 * (not same.all()) + (not met.all())]
    return Judgement(int(same.sum()), int(met.sum()), box)
