"""Seeds belong to identities, and draws are standard normal."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from causalrank.ensembles import gaussian, seed_of
from conftest import ROOT

CELL = ("gaussian", 40, 6, 2)


def digest(*cell) -> str:
    return hashlib.sha256(b"".join(x.tobytes() for x in gaussian(*cell, scale=1.0))).hexdigest()


def test_the_identity_is_the_entropy():
    word = hashlib.sha256(b"gaussian").digest()
    words = [int.from_bytes(word[i : i + 4], "little") for i in range(0, 32, 4)]
    assert seed_of("gaussian", 512, 8, 3).entropy == [*words, 512, 8, 3]


def test_every_part_of_an_identity_counts():
    identities = [
        (),
        ("a",),
        ("a", 0),
        ("a", 0, 0),
        ("a", 1),
        ("a1",),
        ("a", "1"),
        ("1", "a"),
        (1, "a"),
        ("b", 1),
        ("a", 12, 3),
        ("a", 1, 23),
    ]
    states = {tuple(seed_of(*identity).generate_state(4)) for identity in identities}
    assert len(states) == len(identities)


def test_draws_do_not_depend_on_other_draws():
    alone = digest(*CELL)
    for other in (("gaussian", 41, 6, 2), ("gaussian", 40, 7, 2), ("gaussian", 40, 6, 1)):
        assert digest(*other) != alone
        assert gaussian(*other, 1.0)[0].flat[0] != gaussian(*CELL, 1.0)[0].flat[0]
        assert digest(*CELL) == alone


def test_draws_repeat_in_another_process():
    code = f"""
import hashlib
from causalrank.ensembles import gaussian
print(hashlib.sha256(b"".join(x.tobytes() for x in gaussian(*{CELL!r}, scale=1.0))).hexdigest())
"""
    folder = ROOT / "scripts"
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert run.stdout.strip() == digest(*CELL), run.stderr


def test_q_k_v_are_independent_standard_normal():
    draws = [x.ravel() for x in gaussian("moments", 200, 50, 0, 1.0)]
    n = draws[0].size
    for x in draws:
        # Five standard deviations of the mean, and of the second moment (variance 2 / n).
        assert abs(x.mean()) < 5 / np.sqrt(n)
        assert abs((x * x).mean() - 1) < 5 * np.sqrt(2 / n)
        assert stats.kstest(x, "norm").pvalue > 1e-6
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert abs((draws[i] * draws[j]).mean()) < 5 / np.sqrt(n)


@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_scale_multiplies_the_same_draws(scale):
    for x, y in zip(gaussian(*CELL, scale=scale), gaussian(*CELL, scale=1.0), strict=True):
        assert x.shape == (40, 6)
        np.testing.assert_array_equal(x, scale * y)
