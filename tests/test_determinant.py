"""log |det A| against fractions and high precision."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from causalrank import determinant
from causalrank.determinant import (
    causal_log_det,
    causal_log_row_sums,
    causal_softmax_log_det,
    dense_log_det,
    dense_log_row_sums,
    log_row_sums,
    softmax_log_row_sums,
)
from causalrank.mixing import factored, softmax

EPS = np.finfo(float).eps


def log_det_of_triangle(F: np.ndarray, G: np.ndarray) -> float:
    """The sum of the logarithms of exact diagonal entries."""
    with mpmath.workdps(50):
        total = mpmath.mpf(0)
        for f, g in zip(F.tolist(), G.tolist(), strict=True):
            dot = abs(sum(Fraction(x) * Fraction(y) for x, y in zip(f, g, strict=True)))
            total += mpmath.log(dot.numerator) - mpmath.log(dot.denominator)
        return float(total)


positive = st.builds(lambda x, e: x * 2.0**e, st.floats(1, 2), st.integers(-1074, 1022))


@given(st.data(), st.integers(1, 5), st.integers(1, 4))
def test_causal_log_det_of_positive_factors(data, N, D):
    F, G = (data.draw(arrays(float, (N, D), elements=positive)) for _ in range(2))
    # Nothing cancels, so a dot product errs relatively by its D + 3 roundings; its logarithm, at
    # most 1420 in size, and the sum of the logarithms add as many eps of that size.
    tolerance = N * (D + 3) * EPS + N * (N + 3) * 1420 * EPS
    got = causal_log_det(F, G, np.zeros(N, bool))
    np.testing.assert_allclose(got, log_det_of_triangle(F, G), rtol=0, atol=tolerance)


def test_causal_log_det_of_mixed_signs():
    F, G = np.array([[3.0, -2.0], [1.0, 4.0]]), np.array([[1.0, 5.0], [-2.0, 1.0]])
    got = causal_log_det(F, G, np.zeros(2, bool))
    assert got == pytest.approx(math.log(7 * 2), abs=8 * EPS)


def test_causal_log_det_of_a_singular_matrix():
    assert causal_log_det(np.ones((2, 1)), np.ones((2, 1)), np.array([False, True])) == -np.inf


@pytest.mark.filterwarnings("error")
def test_causal_log_det_is_unknown_where_a_nonzero_sum_rounds_to_zero():
    F, G = np.array([[1.0, 1.0, 1.0]]), np.array([[1e16, 1.0, -1e16]])
    assert np.isnan(causal_log_det(F, G, np.array([False])))


@pytest.mark.parametrize("N", [1, 4, 12])
def test_dense_log_det_against_mpmath(N):
    A = np.random.default_rng(N).standard_normal((N, N))
    sigma = np.linalg.svd(A, compute_uv=False)
    with mpmath.workdps(60):
        expected = float(mpmath.log(abs(mpmath.det(mpmath.matrix(A.tolist())))))
    # LU is exact for a matrix within N gamma_N growth sigma_1 (Higham 2002, theorem 9.5; growth
    # at most 2^(N - 1), in practice below N), and |d log det| <= N ||dA|| / sigma_N.
    tolerance = N**4 * EPS * sigma[0] / sigma[-1]
    np.testing.assert_allclose(dense_log_det(A, sigma), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("sigma", "known"),
    [
        ([1.0, 3 * EPS], True),
        ([1.0, 2 * EPS], False),
        ([1.0, 0.0], False),
        ([0.0, 0.0], False),
        ([np.nan, np.nan], False),
    ],
)
def test_dense_log_det_is_unknown_below_the_floor(sigma, known):
    assert np.isnan(dense_log_det(np.eye(2), np.array(sigma))) == (not known)


@pytest.mark.parametrize("N", [1, 5, 30])
def test_causal_softmax_log_det(N):
    q, k = np.random.default_rng(N).standard_normal((2, N, 3))
    A = softmax(q, k, "causal", "none")
    np.testing.assert_array_equal(A, np.tril(A))
    # Logarithms of exponentials of scores below 10 in size, summed over N entries.
    tolerance = 10 * N * (N + 8) * EPS
    expected = np.log(np.diagonal(A)).sum()
    assert causal_softmax_log_det(q, k) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_log_row_sums_are_what_normalization_takes(mask):
    F, G = np.random.default_rng(0).uniform(0.5, 2.0, (2, 6, 6))
    A, normalized = (factored(F, G, mask, norm) for norm in ("none", "row"))
    condition = np.linalg.cond(A) + np.linalg.cond(normalized)
    difference = np.linalg.slogdet(A)[1] - np.linalg.slogdet(normalized)[1]
    assert log_row_sums(F, G, "identity", mask) == pytest.approx(
        difference, abs=6**4 * EPS * condition
    )


@pytest.mark.filterwarnings("error")
def test_dense_log_row_sums_of_an_empty_row():
    assert dense_log_row_sums(np.array([[1.0, 0.0], [0.0, 0.0]])) == -np.inf
    assert dense_log_row_sums(np.array([[-2.0, 0.0], [1.0, 2.0]])) == pytest.approx(math.log(6))


@pytest.mark.filterwarnings("error")
def test_dense_log_row_sums_that_overflow():
    got = dense_log_row_sums(np.full((2, 4), 1e308))
    np.testing.assert_allclose(got, 2 * (math.log(4) + 308 * math.log(10)), rtol=8 * EPS)


@pytest.mark.parametrize("N", [1, 5, 700])
@pytest.mark.parametrize("sign", [False, True])
def test_causal_log_row_sums_are_those_of_the_matrix(N, sign):
    """In one chunk and in several."""
    F, G = np.random.default_rng(N).uniform(0.5, 2.0, (2, N, 3))
    F, G = F * np.exp2(np.arange(N) % 7 - 3)[:, None], G * (-1.0 if sign else 1.0)
    expected = dense_log_row_sums(factored(F, G, "causal", "none"))
    # Sums of one sign err by fewer than 2 N + 2 D roundings each, on either side, and logarithms
    # below 20 in size by as many eps when they are added.
    tolerance = 2 * N * (2 * N + 6) * EPS + 20 * N * (N + 2) * EPS
    assert causal_log_row_sums(F, G) == pytest.approx(expected, abs=tolerance)


any_double = st.floats(allow_nan=False, allow_infinity=False)
entries = st.one_of(st.just(0.0), st.integers(-2, 2).map(float), any_double)


@given(st.data(), st.integers(1, 6), st.integers(1, 3), st.sampled_from([1, 2, 256]))
def test_causal_log_row_sums_are_exact_or_unknown(data, N, D, chunk):
    F, G = (data.draw(arrays(float, (N, D), elements=entries)) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(determinant, "CHUNK", chunk)
        got = causal_log_row_sums(F, G)
    empty = [not ((F[i] != 0) & (G[: i + 1] != 0).any(axis=0)).any() for i in range(N)]
    if any(empty):
        assert got == -np.inf or math.isnan(got)
        return
    if math.isnan(got):
        return
    with mpmath.workdps(50):
        expected = mpmath.mpf(0)
        for i in range(N):
            sums = [sum(map(Fraction, column)) for column in G[: i + 1].T.tolist()]
            total = abs(sum(Fraction(f) * s for f, s in zip(F[i].tolist(), sums, strict=True)))
            expected += mpmath.log(total.numerator) - mpmath.log(total.denominator)
    assert got == pytest.approx(float(expected), abs=N * 1.1e-6)


@pytest.mark.filterwarnings("error")
def test_causal_log_row_sums_at_the_edges():
    one = np.ones((2, 1))
    assert causal_log_row_sums(np.array([[1.0], [0.0]]), one) == -np.inf
    assert causal_log_row_sums(one, np.array([[0.0], [1.0]])) == -np.inf
    huge = causal_log_row_sums(np.full((2, 1), 1e308), np.full((2, 1), 1e308))
    assert huge == pytest.approx(4 * math.log(1e308) + math.log(2), rel=8 * EPS)
    tiny = causal_log_row_sums(np.full((2, 1), 5e-324), np.full((2, 1), 5e-324))
    assert tiny == pytest.approx(4 * math.log(5e-324) + math.log(2), rel=8 * EPS)
    # g_1 + g_2 cancels to its rounding error; g_1 is lost beside g_2.
    cancelling = np.array([[0.1], [-0.1 + 1e-17]])
    assert np.isnan(causal_log_row_sums(one, cancelling))
    assert np.isnan(causal_log_row_sums(one, np.array([[1e-320], [1e300]])))


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
@pytest.mark.parametrize("block", [1, 20, 2**20])
def test_softmax_log_row_sums_are_those_of_the_matrix(monkeypatch, mask, block):
    monkeypatch.setattr(determinant, "BLOCK", block)
    q, k = np.random.default_rng(0).standard_normal((2, 9, 3))
    expected = dense_log_row_sums(softmax(q, k, mask, "none"))
    assert softmax_log_row_sums(q, k, mask) == pytest.approx(expected, abs=9**2 * 8 * EPS)
    # Scores of 1000 overflow exp, and not its logarithm; adding c to a row's scores adds c.
    assert softmax_log_row_sums(np.full((2, 1), 1e3), np.ones((2, 1)), mask) == pytest.approx(
        2000 + math.log(2) * (2 if mask == "bidirectional" else 1)
    )
