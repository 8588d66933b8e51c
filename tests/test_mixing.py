"""Mixing matrices against exact sums, their two forms against each other, and their errors."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special

from causalrank.feature_maps import FEATURE_MAPS
from causalrank.mixing import (
    MASKS,
    NORMALIZATIONS,
    factored,
    matrix,
    normalized_factors,
    require_finite,
    running_sum,
    scores,
    softmax,
)

EPS = np.finfo(float).eps
POSITIVE = [name for name, phi in FEATURE_MAPS.items() if phi.nonnegative]
masks = pytest.mark.parametrize("mask", MASKS)


def gamma(n: int) -> float:
    """The relative error of n roundings (Higham 2002, lemma 3.1)."""
    return n * EPS / 2 / (1 - n * EPS / 2)


def draw(N: int, d: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, k, v = scale * np.random.default_rng(N).standard_normal((3, N, d))
    return q, k, v


@masks
def test_factored_against_fractions(mask):
    F, G, _ = draw(7, 3)
    A = factored(F, G, mask, "none")
    for i, j in np.ndindex(7, 7):
        pairs = zip(F[i].tolist(), G[j].tolist(), strict=True)
        products = [Fraction(f) * Fraction(g) for f, g in pairs]
        if mask == "causal" and j > i:
            assert A[i, j] == 0
        else:
            error = abs(Fraction(A[i, j]) - sum(products))
            assert error <= gamma(3) * sum(map(abs, products))


@masks
@pytest.mark.parametrize("name", POSITIVE)
def test_rows_sum_to_one_and_keep_their_directions(mask, name):
    phi, N = FEATURE_MAPS[name], 40
    F, G = map(phi, draw(N, 4)[:2])
    A, normalized = (factored(F, G, mask, norm) for norm in NORMALIZATIONS)
    empty = ~A.any(axis=1)
    np.testing.assert_allclose(normalized.sum(axis=1), ~empty, rtol=gamma(2 * N))
    np.testing.assert_allclose(normalized * A.sum(axis=1)[:, None], A, rtol=gamma(2))


@masks
def test_empty_rows_stay_zero(mask):
    F, G = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 1.0], [0.0, 1.0]])
    np.testing.assert_array_equal(factored(F, G, mask, "row"), [[0, 0], [1, 0]])


@masks
def test_cancelling_rows_have_no_normalization(mask):
    F, G = np.ones((3, 1)), np.array([[1.0], [2.0], [-3.0]])
    with pytest.raises(ZeroDivisionError, match=r"the entries of row [02] sum to zero"):
        factored(F, G, mask, "row")
    np.testing.assert_array_equal(factored(F, G, mask, "none")[2], [1, 2, -3])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("F", "G", "normalization", "message"),
    [
        ([[1e200], [1.0]], [[1e200], [1.0]], "none", "an entry of .* overflows float64"),
        ([[1e200, 1e200]], [[1e200, -1e200]], "none", "an entry of .* overflows float64"),
        ([[1.0], [1.0]], [[1e308], [1e308]], "row", "overflows float64"),
    ],
)
def test_overflow(F, G, normalization, message):
    with pytest.raises(OverflowError, match=message):
        factored(np.array(F), np.array(G), "bidirectional", normalization)


@pytest.mark.filterwarnings("error")
def test_a_quotient_that_overflows():
    F, G = np.ones((3, 1)), np.array([[1.0], [-1.0], [1e-310]])
    with pytest.raises(OverflowError, match="divided by its row's sum overflows"):
        factored(F, G, "bidirectional", "row")


@pytest.mark.parametrize("name", POSITIVE)
def test_normalized_factors_make_the_normalized_matrix(name):
    N, D = 30, 4
    F, G = map(FEATURE_MAPS[name], draw(N, D)[:2])
    # Positive sums of at most N D terms on both sides.
    expected = factored(F, G, "bidirectional", "row")
    left, right = normalized_factors(F, G)
    np.testing.assert_allclose(left @ right.T, expected, rtol=2 * gamma(N + 2 * D + 2))


def test_normalized_factors_of_tiny_rows():
    F, G = np.full((4, 1), 1.0), np.full((4, 1), np.exp(-720.0))
    left, right = normalized_factors(F, G)
    np.testing.assert_array_equal(left @ right.T, np.full((4, 4), 0.25))


@masks
def test_softmax_against_scipy(mask):
    N, d = 20, 4
    q, k, _ = (np.round(4 * x) / 4 for x in draw(N, d, 2.0))  # exact scores: d is a square
    S = np.array([[sum(x * y) / 2 for y in k] for x in q])
    np.testing.assert_array_equal(scores(q, k), S)
    S = S if mask == "bidirectional" else np.where(np.tri(N), S, -np.inf)
    # The same exponentials within 1 ulp, sums of N of them.
    rtol = 2 * gamma(N + 4)
    np.testing.assert_allclose(softmax(q, k, mask, "row"), special.softmax(S, axis=1), rtol=rtol)
    np.testing.assert_allclose(softmax(q, k, mask, "none"), np.exp(S), rtol=4 * EPS)


@pytest.mark.filterwarnings("error")
@masks
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_softmax_rows_sum_to_one_however_large_the_scores(mask, scale):
    q, k, _ = draw(50, 8, scale)
    sums = softmax(q, k, mask, "row").sum(axis=1)
    np.testing.assert_allclose(sums, 1.0, rtol=gamma(2 * 50))


def test_causal_softmax_is_the_softmax_of_each_prefix():
    N = 12
    q, k, _ = (np.round(x) for x in draw(N, 4, 2.0))  # exact scores
    A = softmax(q, k, "causal", "row")
    for i in range(N):
        prefix = softmax(q[: i + 1], k[: i + 1], "bidirectional", "row")[i]
        np.testing.assert_allclose(A[i, : i + 1], prefix, rtol=2 * gamma(N + 4))
        assert not A[i, i + 1 :].any()


@pytest.mark.filterwarnings("error")
def test_unnormalized_softmax_overflows():
    q = np.array([[30.0], [1.0]])
    with pytest.raises(OverflowError, match="exp overflows float64 at the score 900"):
        softmax(q, q, "causal", "none")
    assert np.isfinite(softmax(q, q, "causal", "row")).all()


def test_matrix_is_softmax_only_for_softmax():
    q, k, _ = draw(5, 2)
    for mask in MASKS:
        for norm in NORMALIZATIONS:
            expected = softmax(q, k, mask, norm)
            np.testing.assert_array_equal(matrix(q, k, "softmax", mask, norm), expected)
            expected = factored(q, k, mask, norm)
            np.testing.assert_array_equal(matrix(q, k, "identity", mask, norm), expected)


@pytest.mark.parametrize("name", POSITIVE)
def test_running_sum_is_the_masked_matrix(name):
    N, d = 64, 8
    q, k, v = draw(N, d)
    F, G = map(FEATURE_MAPS[name], (q, k))
    expected = factored(F, G, "causal", "row") @ v
    # Each form divides two sums of at most N D nonnegative products, the values aside.
    atol = 4 * gamma(N + d + 3) * np.abs(v).max()
    occupied = factored(F, G, "causal", "none").any(axis=1)
    with np.errstate(invalid="ignore"):
        got = running_sum(F, G, v)
    np.testing.assert_allclose(got[occupied], expected[occupied], rtol=0, atol=atol)
    np.testing.assert_array_equal(
        running_sum(F[:9], G[:9], v[:9], 0.5), running_sum(F, G, v, 0.5)[:9]
    )


def test_running_sum_adds_epsilon_to_the_denominator():
    one = np.ones((3, 1))
    got = running_sum(one, one, np.array([[1.0], [2.0], [6.0]]), epsilon=1.0)
    np.testing.assert_allclose(got, [[1 / 2], [3 / 3], [9 / 4]], rtol=2 * EPS)


def test_published_worked_example():
    """Mean absolute difference 0.2188, here by plain sums over pairs of tokens."""
    legacy = np.random.RandomState(42)
    q, k, v = (legacy.randn(32, 16).astype(np.float32).astype(float) for _ in range(3))
    phi = FEATURE_MAPS["elu_plus_one"]
    F, G = phi(0.5 * q), phi(0.5 * k)

    def output(i: int, tokens: int) -> np.ndarray:
        weights = [F[i] @ G[j] for j in range(tokens)]
        return sum(w * v[j] for j, w in enumerate(weights)) / (sum(weights) + 1e-6)

    rows = [np.abs(output(i, i + 1) - output(i, 32)).mean() for i in range(32)]
    assert round(float(np.mean(rows)), 4) == 0.2188
    causal = running_sum(F, G, v, 1e-6)
    np.testing.assert_allclose(causal[5], output(5, 6), rtol=0, atol=4 * gamma(50) * 4)


def exists(F: np.ndarray, G: np.ndarray, feature_map: str) -> bool:
    """Whether every mixing matrix can be formed."""
    try:
        for mask in MASKS:
            for norm in NORMALIZATIONS:
                matrix(F, G, feature_map, mask, norm)
    except (OverflowError, ZeroDivisionError):
        return False
    return True


def refused(F: np.ndarray, G: np.ndarray, feature_map: str) -> bool:
    try:
        require_finite(F, G, feature_map)
    except (OverflowError, ZeroDivisionError):
        return True
    return False


large = st.builds(lambda x, e: x * 10.0**e, st.floats(0, 9), st.integers(-10, 155))


@given(arrays(float, (2, 3, 2), elements=large))
def test_require_finite_agrees_with_forming_nonnegative_matrices(factors):
    with np.errstate(over="ignore"):
        assert refused(*factors, "relu") != exists(*factors, "relu")


def test_require_finite_refuses_row_sums_that_overflow():
    one = np.ones((2, 1))
    assert not refused(one, 0.8e308 * one, "relu")
    assert refused(one, 1e308 * one, "relu")


@given(arrays(float, (2, 3, 2), elements=st.integers(-2, 2).map(float)))
def test_require_finite_agrees_where_rows_cancel(factors):
    assert refused(*factors, "identity") != exists(*factors, "identity")


@given(arrays(float, (2, 3, 2), elements=st.floats(-40, 40)))
def test_require_finite_agrees_with_forming_softmax(factors):
    assert refused(*factors, "softmax") != exists(*factors, "softmax")
