"""The registry: names, reasons, masks, row sums, seeds."""

import numpy as np
import pytest

import study
from causalrank.approximations import (
    APPROXIMATIONS,
    NO_CAUSAL_FORM,
    ROWS_ONLY,
    SOFTMAX_ONLY,
)
from causalrank.feature_maps import FEATURE_MAPS
from causalrank.head import Head

EPS = np.finfo(float).eps
N, D = 12, 3
STRENGTHS = {
    **dict.fromkeys(("truncation", "linformer", "projection", "window", "top_k"), 4),
    **{
        "nystrom": 3,
        "nystromformer": 3,
        "performer": 8,
        "performer_orthogonal": 8,
        "taylor": 2,
        "decay": 0.9,
    },
    **{"rounding": "bfloat16", "quantization": 8, "noise": 0.1, "adversary": 0.1},
}
ROW_SOFTMAX = {"linformer", "nystromformer"}
UNMASKED = ROW_SOFTMAX | {"projection", "nystrom"}
every_approximation = pytest.mark.parametrize("name", APPROXIMATIONS)


def head(feature_map: str, mask: str, normalization: str) -> Head:
    q, k = np.random.default_rng(0).standard_normal((2, N, D))
    phi = FEATURE_MAPS.get(feature_map, lambda x: x)
    return Head(phi(q), phi(k), feature_map, mask, normalization, largest_rank=4)


def approximate(name: str, one: Head, seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed) if APPROXIMATIONS[name].draws else None
    return APPROXIMATIONS[name].function(one, STRENGTHS[name], generator)


def test_names_are_those_of_the_schema():
    properties = study.read_schema("study")["properties"]["approximations"]["properties"]
    assert list(properties) == list(APPROXIMATIONS)
    for name, ladder in properties.items():
        assert all(APPROXIMATIONS[name].kind(x) == x for x in ladder["default"])


@every_approximation
def test_where_there_is_no_form_the_reason_says_so(name):
    for feature_map in ("elu_plus_one", "softmax"):
        for mask in ("bidirectional", "causal"):
            for normalization in ("none", "row"):
                reason = APPROXIMATIONS[name].lacks(
                    head(feature_map, mask, normalization), STRENGTHS[name]
                )
                kernel = ROW_SOFTMAX | {"performer", "performer_orthogonal", "taylor"}
                if name in UNMASKED and mask == "causal":
                    assert reason == NO_CAUSAL_FORM
                elif name in kernel and feature_map != "softmax":
                    assert reason == SOFTMAX_ONLY
                elif name in ROW_SOFTMAX and normalization == "none":
                    assert reason == ROWS_ONLY
                else:
                    assert reason == ""


def test_more_landmarks_than_tokens_have_no_form():
    lacks = APPROXIMATIONS["nystrom"].lacks
    one = head("elu_plus_one", "bidirectional", "row")
    assert lacks(one, N) == "" and lacks(one, N + 1)


@every_approximation
def test_shape_mask_and_seed(name):
    """The mask's zeros stay for all but truncation, the best matrix of its rank; seeds repeat."""
    mask = "bidirectional" if name in UNMASKED else "causal"
    one = head("softmax", mask, "row")
    A_hat = approximate(name, one)
    assert A_hat.shape == (N, N) and np.isfinite(A_hat).all()
    assert A_hat.tobytes() == approximate(name, one).tobytes()
    other = approximate(name, one, seed=2)
    assert (A_hat.tobytes() != other.tobytes()) == APPROXIMATIONS[name].draws
    if one.mask == "causal":
        assert (np.triu(A_hat, 1) == 0).all() == (name != "truncation")


@pytest.mark.parametrize(
    "name", ["nystrom", "performer", "performer_orthogonal", "taylor", "window", "top_k", "decay"]
)
def test_rows_of_a_normalized_matrix_sum_to_one(name):
    for mask in ("bidirectional", "causal"):
        one = head("softmax", mask, "row")
        if APPROXIMATIONS[name].lacks(one, STRENGTHS[name]):
            continue
        A_hat = approximate(name, one)
        slack = N * EPS * np.abs(A_hat).sum(axis=1).max()
        np.testing.assert_allclose(A_hat.sum(axis=1), 1.0, rtol=0, atol=slack)


def test_nystromformer_by_its_formula():
    """Row softmaxes through the means of tokens, and six steps towards the middle one's inverse."""
    one = head("softmax", "bidirectional", "row")
    f, g = (X.reshape(4, 3, D).mean(axis=1) for X in (one.F, one.G))

    def rows(q, k):
        P = np.exp(q @ k.T / np.sqrt(D))
        return P / P.sum(axis=1, keepdims=True)

    middle = rows(f, g)
    Z = middle.T / (np.linalg.norm(middle, 1) * np.linalg.norm(middle, np.inf))
    for _ in range(6):
        X = middle @ Z
        Z = (13 * Z - 15 * Z @ X + 7 * Z @ X @ X - Z @ X @ X @ X) / 4
    A_hat = APPROXIMATIONS["nystromformer"].function(one, 4, None)
    expected = rows(one.F, g) @ Z @ rows(f, one.G)
    np.testing.assert_allclose(A_hat, expected, rtol=0, atol=1e4 * EPS * np.abs(Z).max())


def test_window_and_kernel_agree_with_the_matrix_where_nothing_is_lost():
    """A whole window, all keys, and as many landmarks as features give A back."""
    one = head("elu_plus_one", "bidirectional", "row")
    generator = np.random.default_rng(0)
    for name, strength in (("window", 2 * N), ("top_k", N), ("nystrom", D)):
        A_hat = APPROXIMATIONS[name].function(one, strength, generator)
        # The pseudoinverse of three landmarks has a condition number below 1e4 here.
        atol = 1e4 * N * EPS if name == "nystrom" else N * EPS
        np.testing.assert_allclose(A_hat, one.A, rtol=0, atol=atol)


@every_approximation
def test_a_causal_row_does_not_depend_on_later_tokens(name):
    """But for truncation, an analysis of the matrix: the last query and key change all rows."""
    for normalization in ("none", "row"):
        one = head("softmax", "causal", normalization)
        if APPROXIMATIONS[name].lacks(one, STRENGTHS[name]):
            assert name in UNMASKED
            continue
        q, k = one.F.copy(), one.G.copy()
        q[-1], k[-1] = 2.0, -1.0
        other = Head(q, k, "softmax", "causal", normalization, largest_rank=4)
        before, after = (approximate(name, x)[:-1] for x in (one, other))
        if name == "truncation":
            assert np.abs(before - after).max() > 1e-3
        else:
            np.testing.assert_array_equal(before, after)


def test_a_row_without_any_entry_stays_empty_with_landmarks():
    """Of a query that ReLU leaves no coordinate but one that it leaves no key."""
    one = head("relu", "bidirectional", "row")
    F, G = one.F.copy(), one.G.copy()
    F[0], G[:, 2] = [0.0, 0.0, 1.0], 0.0
    A_hat = approximate("nystrom", Head(F, G, "relu", "bidirectional", "row"))
    np.testing.assert_array_equal(A_hat[0], np.zeros(N))
    np.testing.assert_allclose(A_hat[1:].sum(axis=1), F[1:, :2].any(axis=1), atol=1e4 * N * EPS)


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_what_leaves_nothing_out_is_the_matrix(mask):
    """From the first strength that is complete on; one less is not the matrix."""
    one = Head(*np.random.default_rng(3).standard_normal((2, N, D)), "softmax", mask, "row", N)
    # Of truncation, as it states; landmarks are inverted with a condition number below 1e6.
    atol = {"truncation": N * N * EPS, "nystrom": 1e6 * N * EPS}
    for name in ("truncation", "nystrom", "window", "top_k"):
        approximation = APPROXIMATIONS[name]
        if approximation.lacks(one, 1):
            continue
        first = next(s for s in range(1, 3 * N) if approximation.complete(s, N, mask))
        assert not approximation.complete(first - 1, N, mask)
        errors = [np.abs(approximation.function(one, s, None) - one.A) for s in (first - 1, first)]
        assert errors[0].max() > 10 * errors[1].max()
        assert errors[1].max() <= atol.get(name, N * EPS)


def test_every_method_has_a_default_strength_that_leaves_something_out():
    """Of the default study's layers, 64 tokens."""
    properties = study.read_schema("study")["properties"]["approximations"]["properties"]
    for name, ladder in properties.items():
        complete = APPROXIMATIONS[name].complete
        for mask in ("bidirectional", "causal"):
            assert not all(complete(strength, 64, mask) for strength in ladder["default"])


@pytest.mark.parametrize("feature_map", ["elu_plus_one", "softmax"])
@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
@pytest.mark.parametrize("normalization", ["none", "row"])
def test_truncation_is_the_best_of_its_rank(feature_map, mask, normalization):
    """By whichever way its vectors come, from factors or from the matrix."""
    one = head(feature_map, mask, normalization)
    sigma = np.linalg.svd(one.A, compute_uv=False)
    for r in (1, 2, 4):
        A_hat = APPROXIMATIONS["truncation"].function(one, r, None)
        best = (sigma[r:] ** 2).sum()
        excess = 2 * r * N * EPS * sigma[0] ** 2
        rounding = N * N * EPS * sigma[0]
        assert np.linalg.norm(one.A - A_hat) <= np.sqrt(best + excess) + rounding
        assert np.linalg.matrix_rank(A_hat, tol=rounding) <= r
