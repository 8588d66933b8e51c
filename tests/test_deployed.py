"""Every deployed form against its N x N matrix times V, for the same draws."""

import numpy as np
import pytest

from causalrank.approximations import APPROXIMATIONS
from causalrank.deployed import CHUNK, DEPLOYED, linear_attention
from causalrank.head import Head
from causalrank.mixing import factored

EPS = np.finfo(float).eps
N, D = 2 * CHUNK + 37, 4
STRENGTHS = {
    "nystrom": 5,
    "nystromformer": 5,
    "linformer": 20,
    "performer": 30,
    "performer_orthogonal": 30,
}
STRENGTHS |= {"taylor": 2, "window": 9, "exact": ""}


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
@pytest.mark.parametrize("name", DEPLOYED)
def test_the_output_is_that_of_the_matrix(name, mask):
    q, k, v = 0.5 * np.random.default_rng(0).standard_normal((3, N, D))
    head = Head(q, k, "softmax", mask, "row")
    if name in APPROXIMATIONS:
        if APPROXIMATIONS[name].lacks(head, STRENGTHS[name]):
            pytest.skip("no form")
        A_hat = APPROXIMATIONS[name].function(head, STRENGTHS[name], np.random.default_rng(1))
    else:
        A_hat = head.A
    output = DEPLOYED[name].function(head, v, STRENGTHS[name], np.random.default_rng(1))
    # Sums of N products of one size, and a quotient: of entries that cancel, as those of the
    # landmarks' factors, which grow by the condition number of a 5 x 5 kernel, below 1e6 here.
    growth = 1e6 if name in ("nystrom", "nystromformer") else 1
    slack = N * EPS * growth * np.abs(A_hat).sum(axis=1).max() * np.abs(v).max()
    np.testing.assert_allclose(output, A_hat @ v, rtol=0, atol=slack)


@pytest.mark.parametrize("tokens", [1, CHUNK, CHUNK + 1])
def test_linear_attention_at_the_edges_of_chunks(tokens):
    F, G = np.random.default_rng(2).uniform(0.5, 1, (2, tokens, 3))
    v = np.random.default_rng(3).standard_normal((tokens, 2))
    for mask in ("bidirectional", "causal"):
        expected = factored(F, G, mask, "row") @ v
        slack = tokens * EPS * np.abs(v).max()
        np.testing.assert_allclose(linear_attention(F, G, v, mask), expected, rtol=0, atol=slack)
