"""Window, top-k and decay, entry by entry."""

import numpy as np
import pytest

from causalrank.sparsity import decay, top_k, window

N = 9
A = np.random.default_rng(0).standard_normal((N, N))


@pytest.mark.parametrize("width", [1, 2, 5, 9, 40])
def test_a_causal_window_has_the_last_tokens(width):
    kept = window(np.tril(A), width, "causal")
    for i in range(N):
        for j in range(N):
            inside = 0 <= i - j < width
            assert kept[i, j] == (A[i, j] if inside else 0.0)


@pytest.mark.parametrize("width", [1, 2, 5, 40])
def test_a_window_without_a_mask_has_half_its_width_on_each_side(width):
    kept = window(A, width, "bidirectional")
    for i in range(N):
        for j in range(N):
            assert kept[i, j] == (A[i, j] if abs(i - j) <= width // 2 else 0.0)


@pytest.mark.parametrize("k", [1, 3, 8, 9, 40])
def test_top_k_by_sorting(k):
    kept = top_k(A, k)
    for row, got in zip(A.tolist(), kept.tolist(), strict=True):
        largest = sorted(range(N), key=lambda j: -abs(row[j]))[:k]
        assert got == [x if j in largest else 0.0 for j, x in enumerate(row)]


def test_ties_with_the_kth_stay_and_masked_zeros_do_no_harm():
    B = np.array([[1.0, -1.0, 0.5], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(top_k(B, 1), [[1, -1, 0], [2, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(top_k(B, 2), [[1, -1, 0], [2, 0, 0], [0, 0, 0]])


def test_decay_entry_by_entry():
    damped = decay(A, 0.75)
    expected = [[A[i, j] * 0.75 ** abs(i - j) for j in range(N)] for i in range(N)]
    # A power by repeated squaring and by the library differ by roundings of N factors.
    np.testing.assert_allclose(damped, expected, rtol=N * np.finfo(float).eps)
