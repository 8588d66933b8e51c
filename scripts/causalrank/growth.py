"""How fast the inverse of a causal mixing matrix grows with N: the top Lyapunov exponent.

A = tril(F G^T) has rows f_i of F and g_i of G. Forward substitution for A x = b carries
S_i = sum_{j<=i} g_j x_j, and x_i = (b_i - f_i . S_{i-1}) / (f_i . g_i) makes it

    S_i = P_i S_{i-1} + g_i b_i / (f_i . g_i),    P_i = I - g_i f_i^T / (f_i . g_i),

so that ||A^-1|| grows with N like the product of the oblique projections P_i, as exp(lambda N),
where lambda is their top Lyapunov exponent (Viswanath and Trefethen 1998 for random triangular
matrices). A decay gamma per step, A_ij gamma^(i-j), multiplies each P_i by gamma, which makes it
lambda + ln gamma.

All rates are natural logarithms per token. P_i depends on neither row's length, so rows are scaled
by powers of two, which rounds nothing. Where some f_i . g_i is zero A is singular and no exponent
is defined; it is NaN then, with the reason, also where f_i . g_i is too small to divide by.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, gammaln, ndtr, stdtrit

from .intervals import mean_interval

PAIRED = 16
"""Chains of a group. With m of them, the variance of a group's mean is (a + b / m) / m per step, a
from states or rows alone and b from both together; b / a was 5 to 13 for elu+1, exp and relu."""
SMALLEST = 1e-300
"""Of f . g beside the largest entries of f and g, so that quotients stay in float64."""
BATCHES = 32
FEWEST_BATCHES = 3

Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Exponent:
    """A growth rate with its 95 % confidence interval, per token; `reason` says why it is NaN.

    `variance` is the asymptotic variance of the logarithm of the growth, per token: over N tokens
    one draw scatters about lambda N with the standard deviation sqrt(N variance).
    """

    value: float
    low: float
    high: float
    variance: float
    reason: str = ""


def undefined(reason: str) -> Exponent:
    return Exponent(math.nan, math.nan, math.nan, math.nan, reason)


NO_GROWTH = Exponent(-math.inf, -math.inf, -math.inf, math.nan)
"""D = 1: P_i = 0, and the inverse of A is bidiagonal."""


def scaled(rows: np.ndarray) -> np.ndarray:
    """Rows, shape (..., D), times powers of two that bring their largest entries into [1/2, 1)."""
    _, power = np.frexp(np.abs(rows).max(axis=-1, keepdims=True))
    half = -power // 2
    return rows * np.ldexp(1.0, half) * np.ldexp(1.0, -power - half)


def _exponent(values: np.ndarray, variance: float) -> Exponent:
    """The mean of independent values, shape (n,), with its t interval."""
    mean, half = map(float, mean_interval(values))
    return Exponent(mean, mean - half, mean + half, variance)


def top_exponent(rows: Iterator[Rows], steps: int) -> Exponent:
    """The exponent of independent rows: `rows` yields (f, g) of the next token of every chain.

    f and g have shape (chains, D), chains a multiple of PAIRED. lambda = E ln(|P u| / |u|) with u
    from the invariant law of the state and P independent of it (Furstenberg and Kesten 1960,
    Furstenberg 1963). Every group of PAIRED chains estimates it over all pairs of its states and
    its draws; groups share nothing, and the interval is that of their means. The first 4 D steps
    are left out: each projects one of D dimensions away. `variance` comes from the chains' own
    growth over `steps`.
    """
    f, g = next(rows)
    chains, D = f.shape
    if not (usable := _usable(_dots(scaled(f), scaled(g)))).all():
        return _singular(usable)
    if D == 1:
        return NO_GROWTH
    burn_in = 4 * D
    state, growth = g, np.zeros(chains)
    means = np.zeros(chains // PAIRED)
    for step in range(burn_in + steps):
        size = np.abs(state).max(axis=1)
        if not size.all():
            return undefined("the state vanishes")
        state = state / size[:, None]
        if step == burn_in:
            growth = -_log_norm(state)
        elif step > burn_in:
            growth += np.log(size)
        f, g = map(scaled, next(rows))
        dots = _dots(f, g)
        if not (usable := _usable(dots)).all():
            return _singular(usable)
        if step >= burn_in:
            means += _paired_growth(state, f, g, dots)
        state = state - g * (_dots(f, state) / dots)[:, None]
    growth += _log_norm(state)
    return _exponent(means / steps, float(growth.var(ddof=1) / steps))


def _dots(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    return np.einsum("...d,...d->...", f, g)


def _usable(dots: np.ndarray) -> np.ndarray:
    return np.abs(dots) > SMALLEST


def _singular(usable: np.ndarray) -> Exponent:
    count = usable.size - np.count_nonzero(usable)
    return undefined(
        f"f . g is zero, cancels or is below {SMALLEST:g} of its entries"
        f" at {count} of {usable.size} tokens"
    )


def _log_norm(x: np.ndarray) -> np.ndarray:
    """ln |x| over the last axis, whose squares may leave float64."""
    size = np.abs(x).max(axis=-1)
    return np.log(size) + np.log(np.linalg.norm(x / size[..., None], axis=-1))


def _paired_growth(u: np.ndarray, f: np.ndarray, g: np.ndarray, dots: np.ndarray) -> np.ndarray:
    """Means over a group's pairs of ln(|P_i u_j| / |u_j|), shape (groups,); u, f, g (chains, D).

    P u = u - c g with c = f . u / f . g has a part across g, of the length that u's has, and one
    along it. Where both are small beside u, rounding has eaten digits of the lengths, so that the
    vector itself is formed.
    """
    u, f, g = (x.reshape(-1, PAIRED, x.shape[1]) for x in (u, f, g))
    dots = dots.reshape(-1, PAIRED, 1)
    lengths = np.linalg.norm(u, axis=2)[:, None, :]
    g_length = np.linalg.norm(g, axis=2)[:, :, None]
    c = f @ u.transpose(0, 2, 1) / dots
    along = g @ u.transpose(0, 2, 1) / g_length
    across = np.sqrt(np.maximum(lengths**2 - along**2, 0.0))
    ratio = np.hypot(across, along - c * g_length) / lengths
    group, i, j = np.nonzero(ratio < 1e-3)
    difference = u[group, j] - c[group, i, j, None] * g[group, i]
    ratio[group, i, j] = np.linalg.norm(difference, axis=1) / lengths[group, 0, j]
    return np.log(ratio).mean(axis=(1, 2))


def along_sequence(F: np.ndarray, G: np.ndarray) -> Exponent:
    """The growth rate along one given sequence of tokens, F and G of shape (N, D).

    It is the mean increment per token of ln ||P_i ... P_1||_F, for which no start vector has to be
    chosen. The first D tokens or a few more, in which the product turns to its top direction, are
    left out; the rest is cut into at most BATCHES batches of D tokens or more, whose increments
    give interval and variance. These suppose that the sequence is stationary and forgets within a
    batch. Text need not be: then the value is still what this window's inverse grew by, but the
    interval tells only how uneven the batches are, not what another window would give.
    """
    N, D = F.shape
    F, G = scaled(F), scaled(G)
    dots = _dots(F, G)
    if not (usable := _usable(dots)).all():
        return _singular(usable)
    if D == 1:
        return NO_GROWTH
    count = min(N // D - 1, BATCHES)
    if count < FEWEST_BATCHES:
        return undefined(f"{N} tokens are fewer than {(FEWEST_BATCHES + 1) * D}")
    length = (N - D) // count
    ends = N - 1 - length * np.arange(count, -1, -1)
    batches = np.diff(_product_growth(F, G, dots)[ends]) / length
    if not np.isfinite(batches).all():
        return undefined("the product of the projections vanishes")
    return _exponent(batches, float(batches.var(ddof=1) * length))


def _product_growth(F: np.ndarray, G: np.ndarray, dots: np.ndarray) -> np.ndarray:
    """ln ||P_i ... P_1||_F after every token i, shape (N,); NaN once the product is zero."""
    product, scale = np.eye(F.shape[1]), 0.0
    growth = np.full(len(F), np.nan)
    for i, (f, g, dot) in enumerate(zip(F, G, dots, strict=True)):
        product -= np.outer(g, f @ product / dot)
        size = max(product.max(), -product.min())
        if size == 0.0:
            break
        product /= size
        scale += math.log(size)
        growth[i] = scale + math.log(np.linalg.norm(product))
    return growth


def with_decay(exponent: Exponent, decay: float) -> Exponent:
    """The exponent when every step multiplies the state by `decay` as well."""
    shift = math.log(decay)
    ends = (exponent.value + shift, exponent.low + shift, exponent.high + shift)
    return Exponent(*ends, exponent.variance, exponent.reason)


@dataclass(frozen=True)
class Line:
    """A fitted line: its slope with a 95 % interval, and the point (N, y) about which it turns."""

    slope: float
    low: float
    high: float
    N: float
    y: float


def fit_line(N: np.ndarray, y: np.ndarray) -> Line:
    """Weighted least squares of y on N, both of shape (n,), for n > 2 and more than one N.

    The weights are 1 / N, for the logarithm of a growth over N tokens has a variance in
    proportion to N. t interval with n - 2 degrees of freedom.
    """
    weights = 1 / N
    N_mean, y_mean = (float(np.average(x, weights=weights)) for x in (N, y))
    spread = float(weights @ (N - N_mean) ** 2)
    slope = float(weights @ ((N - N_mean) * (y - y_mean))) / spread
    residual = y - y_mean - slope * (N - N_mean)
    variance = float(weights @ residual**2) / (len(N) - 2)
    half = float(stdtrit(len(N) - 2, 0.975)) * math.sqrt(variance / spread)
    return Line(slope, slope - half, slope + half, N_mean, y_mean)


def slope_excess(exponent: float, variance: float, N: np.ndarray, normalized: bool) -> np.ndarray:
    """By what fraction of lambda > 0 the slope of ln ||A^-1|| at N exceeds it; shape of N.

    Two effects of a small N, to leading order. The inverse has an entry for every span of tokens,
    from j to i: with growth exp(lambda (i - j)), ||A^-1||_F^2 is in proportion to the integral of
    exp(2 lambda (i - j)) over j < i < N, times j^2 if rows are normalized, since A^-1 is then
    multiplied by row sums, which are in proportion to j. That is exp(x) less its Taylor polynomial
    of m terms, with x = 2 lambda N and m = 2, or 4; half the derivative of its logarithm is lambda
    (1 + p / P), with p and P density and distribution function at x of the gamma law of shape m.
    And the best span starts and ends where the fluctuations favour it: the mean maximum of a
    Brownian motion with drift lambda has the derivative lambda Phi(z) + sqrt(variance / N) phi(z),
    with z = lambda sqrt(N / variance) (Spitzer 1956, E max = int_0^N E[W_t^+] / t dt), which
    exceeds lambda by the fraction phi(z) / z - Phi(-z); that counts once for each end.
    """
    m = 4 if normalized else 2
    x = 2 * exponent * N
    z = exponent * np.sqrt(N / variance)
    spans = np.exp((m - 1) * np.log(x) - x - gammaln(m)) / gammainc(m, x)
    ends = 2 * (np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) / z - ndtr(-z))
    return spans + ends
