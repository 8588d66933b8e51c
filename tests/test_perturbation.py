"""Noise by its moments; worst values by the bound that they attain."""

import numpy as np
import pytest

from causalrank.bound import original, rounding_allowance, row_errors
from causalrank.perturbation import adversarial_values, noisy


def test_noise_is_relative_and_keeps_zeros():
    A = np.tril(np.full((40, 40), 3.0))
    A_hat = noisy(A, 0.01, np.random.default_rng(0))
    assert (A_hat[A == 0] == 0).all()
    z = (A_hat[A != 0] / 3.0 - 1) / 0.01
    # Five standard deviations of mean and second moment of a standard normal sample.
    assert abs(z.mean()) < 5 / np.sqrt(z.size)
    assert abs((z * z).mean() - 1) < 5 * np.sqrt(2 / z.size)
    np.testing.assert_array_equal(noisy(A, 0.0, np.random.default_rng(0)), A)


@pytest.mark.parametrize(("N", "d_v"), [(1, 1), (5, 3), (64, 16)])
def test_the_worst_values_attain_the_bound_where_the_drawn_ones_do_not(N, d_v):
    generator = np.random.default_rng(N)
    A, v = np.tril(generator.uniform(0, 1, (N, N))), generator.standard_normal((N, d_v))
    A_hat = noisy(A, 0.1, generator)
    worst = adversarial_values(A_hat - A, v)
    start = generator.standard_normal(N)
    errors = row_errors(original(A, worst), A_hat, start)
    row = int(np.argmax(errors.row_l1_error))
    allowance = rounding_allowance(N, d_v)
    np.testing.assert_allclose(errors.tightness[row], 1.0, rtol=allowance)
    assert errors.violations == 0
    assert original(A, worst).value_norm_max == original(A, v).value_norm_max
    drawn = row_errors(original(A, v), A_hat, start)
    assert N == 1 or drawn.tightness[row] < 1 - 1e-3


def test_signs_are_those_of_the_worst_row():
    E = np.array([[1.0, -1.0, 0.0], [2.0, 3.0, -4.0], [0.0, 0.0, 1.0]])
    v = np.array([[1.0, 0.0], [0.0, -5.0], [2.0, 2.0]])
    np.testing.assert_array_equal(adversarial_values(E, v), [[0, -5], [0, -5], [0, 5]])
