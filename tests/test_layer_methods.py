"""The methods that stand in for attention, each against what defines it."""

import numpy as np
import pytest

from causalrank.attention_layer import attend
from causalrank.ensembles import seed_of
from causalrank.layer_methods import linear_attention, methods, uniform_attention
from causalrank.mixing import running_sum

EPS = np.finfo(float).eps
N, W = 10, 3


def case(mask: str, scale: float = 1.5):
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, N, W))
    return attend(q, k, v, mask, scale, None)


def generator_of(name: str, strength: object) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed_of(name, str(strength))))


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_every_method(mask):
    """test_approximations.py has what defines them; here each head has its own."""
    passage = case(mask)
    A = passage.attention
    ladders = {"rounding": ["float32", "bfloat16"], "noise": [0.1], "truncation": [1, N - 1, N]}
    ladders |= {"linformer": [4], "adversary": [0.1], "window": [3, 2 * N], "nystrom": [2 * N]}
    ladders |= {"top_k": [N - 1, N]}
    found = {
        (m.name, m.strength): m.attention
        for m in methods(passage, mask, 1.5, ladders, generator_of)
    }
    linformer = {("linformer", 4)} if mask == "bidirectional" else set()
    given = {("rounding", "float32"), ("rounding", "bfloat16"), ("noise", 0.1), ("window", 3)}
    given |= {
        ("truncation", 1),
        ("truncation", N - 1),
        ("top_k", N - 1),
        ("linear", "elu_plus_one"),
        ("uniform", ""),
    }
    assert set(found) == {("exact", "")} | given | linformer
    assert found["exact", ""] is A
    assert all(found[key].shape == A.shape for key in found)
    for precision, bits in (("float32", 24), ("bfloat16", 8)):
        error = np.abs(found["rounding", precision] - A)
        assert (error <= A * 2.0**-bits).all() and error.any()
    z = (found["noise", 0.1][A > 0] / A[A > 0] - 1) / 0.1
    assert abs((z * z).mean() - 1) < 5 * np.sqrt(2 / z.size)
    for h in range(2):
        sigma = np.linalg.svd(A[h], compute_uv=False)
        distance = np.linalg.norm(A[h] - found["truncation", 1][h], 2)
        # Eckart and Young; eigenvectors of A^T A err as `leading_right_vectors` says.
        assert distance == pytest.approx(sigma[1], rel=1e-6)
    for name, strength in (("linear", "elu_plus_one"), ("uniform", "")):
        np.testing.assert_allclose(found[name, strength].sum(axis=2), 1.0, rtol=2 * N * EPS)


def test_the_same_seed_gives_the_same_noise():
    """On values that differ and attention that does not."""
    passage = case("causal")
    other = attend(passage.q, passage.k, 2 * passage.v, "causal", 1.5, None)
    ladders = {"noise": [0.5], "performer": [4]}
    for one, two in zip(
        *(methods(p, "causal", 1.5, ladders, generator_of) for p in (passage, other)), strict=True
    ):
        np.testing.assert_array_equal(one.attention, two.attention)


def test_causal_linear_attention_is_the_running_sum():
    passage = case("causal")
    share = np.sqrt(1.5 / np.sqrt(W))

    def phi(x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, x + 1, np.exp(x))

    A = linear_attention(passage.q, passage.k, "causal", 1.5)
    for h in range(2):
        F, G = phi(share * passage.q[h]), phi(share * passage.k[h])
        expected = running_sum(F, G, passage.v[h])
        # Sums of N D positive products, over another such sum; values below 4.
        np.testing.assert_allclose(A[h] @ passage.v[h], expected, atol=4 * 4 * N * W * EPS)


def test_uniform_attention():
    causal, both = (uniform_attention(3, 4, mask) for mask in ("causal", "bidirectional"))
    np.testing.assert_array_equal(both, np.full((3, 4, 4), 0.25))
    np.testing.assert_array_equal(causal[2], np.tri(4) / np.arange(1, 5)[:, None])
    assert np.linalg.matrix_rank(both[0]) == 1 and np.linalg.matrix_rank(causal[0]) == 4
