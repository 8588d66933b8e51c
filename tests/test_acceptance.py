"""The four boxes, one by one, and what is measured for them."""

import numpy as np
import pytest

from causalrank.acceptance import BOXES, Criterion, contrast_kept, judgement, output_error

ASK = Criterion(contrast=0.5, output_error=0.1, rank_threshold=1e-6)
EPS = np.finfo(float).eps


def judged(after, error, kept):
    arrays = (np.array([4, 4]), np.array(after), np.array(error), np.array(kept))
    return judgement(*arrays, ASK)


@pytest.mark.parametrize(
    ("after", "error", "kept", "counts", "box"),
    [
        ([4, 4], [0.1, 0.0], [0.5, 1.0], (2, 2), 0),
        ([5, 4], [0.1, 0.0], [0.5, 1.0], (2, 2), 0),
        ([4, 4], [0.1, 0.11], [0.5, 1.0], (2, 1), 1),
        ([4, 4], [0.1, 0.0], [0.4, 1.0], (2, 1), 1),
        ([4, 4], [0.1, 0.0], [np.nan, 1.0], (2, 1), 1),
        ([4, 4], [np.inf, np.nan], [1.0, 1.0], (2, 0), 1),
        ([3, 4], [0.1, 0.0], [0.5, 1.0], (1, 2), 2),
        ([3, 3], [0.2, 0.2], [-1.0, 1.0], (0, 0), 3),
    ],
)
def test_boxes(after, error, kept, counts, box):
    found = judged(after, error, kept)
    assert (found.rank_kept, found.tolerance_met) == counts
    assert found.box == BOXES[box]


def test_output_error_is_relative():
    exact = np.array([[3.0, 0.0], [0.0, 4.0]])
    assert output_error(exact, exact + np.array([[0.0, 0.5], [0.0, 0.0]])) == pytest.approx(0.1)


def test_contrast_kept_is_a_projection():
    exact = np.array([[1.0, 2.0], [0.0, 2.0]])
    aside = np.array([[2.0, -1.0], [5.0, 0.0]])  # orthogonal to it
    for share in (1.0, 0.25, 0.0, -2.0):
        found = contrast_kept(exact, share * exact + aside)
        assert found == pytest.approx(share, abs=16 * EPS)
    assert np.isnan(contrast_kept(0 * exact, exact))
