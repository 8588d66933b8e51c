"""Why two rank verdicts on one matrix differ."""

import pytest

from causalrank.verdict import why


@pytest.mark.parametrize(
    ("exact", "numerical", "reason"),
    [
        (None, 3, "exact rank not computed at this N"),
        (None, None, "exact rank not computed at this N"),
        (3, None, "no singular values at this N"),
        (0, 0, "agree"),
        (8, 8, "agree"),
        (
            8,
            5,
            "3 directions lie below 1.1e-13 sigma_max: nonzero, but out of sight of "
            "double precision",
        ),
        (5, 7, "rounding errors lift 2 zero singular values above the tolerance"),
    ],
)
def test_reason(exact, numerical, reason):
    assert why(exact, numerical, 512 * 2.0**-52) == reason
