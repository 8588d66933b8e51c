"""The rank of exp(q_i k_j), softmax of a rank-one score matrix, proved by ball arithmetic."""

import flint
import numpy as np


def log10_abs_det(q: np.ndarray, k: np.ndarray, max_bits: int = 2**16) -> tuple[float, int]:
    """log10 |det exp(q k^T)| of the real matrix, and the working precision in bits that told it.

    q and k have shape (N,); their doubles are taken as exact. The precision doubles until the ball
    around the determinant excludes zero, which proves rank N, and its logarithm has all digits of
    a double; row normalization divides the determinant by positive row sums. (For distinct q and
    distinct k it is never zero: exp(x y) is strictly totally positive, Karlin 1968.) Raises
    ArithmeticError beyond max_bits.
    """
    bits = 64
    before = flint.ctx.prec
    try:
        while bits <= max_bits:
            flint.ctx.prec = bits
            rows = [[(flint.arb(x) * flint.arb(y)).exp() for y in k.tolist()] for x in q.tolist()]
            det = abs(flint.arb_mat(rows).det())
            if det > 0:
                log10 = det.log() / flint.arb(10).log()
                if log10.rel_accuracy_bits() >= 53:
                    return float(log10), bits
            bits *= 2
    finally:
        flint.ctx.prec = before
    raise ArithmeticError(f"{max_bits} bits do not tell the determinant from zero")
