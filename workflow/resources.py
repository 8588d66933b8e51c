"""Memory and time of a cell's jobs, from N, D and members: upper estimates, checked by a test."""

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

STEPS = (
    "build_cell",
    "compute_singular_values",
    "compute_extremes",
    "measure_rank",
    "measure_spectrum",
    "measure_baselines",
    "check_bound",
)
INTERPRETER_MB = 100
SNAKEMAKE_MB = 400
"""Of the two Snakemake processes around the step of a cluster's job: 150 each with small grids."""
STARTING_MINUTES = 10
"""Of a submission: both of them, and the environment's modules, from a shared file system."""
GROWTH_CHAINS = 512
"""As many as scripts/estimate_growth.py follows."""
ENCODER_MB = 500
"""Of a window of 512 tokens: the weights, their double-precision copies, a layer's attention."""
ENCODER_SECONDS = 5
"""Of such a window, through all layers."""
PROJECTIONS = 500
"""As many as scripts/projection_tables.py draws at once."""
UNIFORM_N = 1024
"""Up to which N scripts/project_draws.py projects all columns at once."""
BYTES = 8
GESDD_NANOSECONDS = 0.6
"""Per N^3, for singular values alone, measured at N = 4096 on one core with a second one busy."""
STRUCTURED_MICROSECONDS = 200
COUNTING_MICROSECONDS = 400
"""Per token, of both normalizations of a causal matrix, d = 64: ends of a spectrum, and levels."""
SHARES = {
    "build_cell": (0.02, 0.08),
    "compute_singular_values": (0.4, 0.1),
    "compute_extremes": (0.08, 0.42),
    "measure_rank": (0.2, 0.08),
    "measure_spectrum": (0.02, 0.02),
    "measure_baselines": (0.28, 0.3),
}
"""Of the time of a cell but for its bound, by step: of dense spectra, measured to N = 512, and of
the structured engine, at N = 16384 and 65536."""
LAYER_SECONDS = 0.2
CUBED_NANOSECONDS = 200
"""Of all approximations of a drawn layer, the default ones: whatever its size, and per N^3."""
TASK_MICROSECONDS = 40
"""Per token and column of a task's sequences, for a drawn layer."""
HORIZON_MICROSECONDS = 100
"""Per token that is searched, at d = 64."""
APPROXIMATION_SECONDS, APPROXIMATED_NANOSECONDS = 0.005, 150.0
"""Of an approximation of a member's four matrices, and per N^2: measured from N = 8 to 512 with the
default strengths, where d = 8 and 64 and the maps differ by a third."""
ROWS = 1024
"""How many rows of a matrix `build_cell` forms at once where it must see the entries."""


def machine_memory_mb() -> int:
    """The machine's physical memory, or what its control group leaves us of it."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    try:
        return min(physical, int(Path("/sys/fs/cgroup/memory.max").read_text()) // 2**20)
    except (OSError, ValueError):
        return physical


def matrices_alive(step: str, N: int, limits: Mapping[str, int]) -> float:
    """How many N x N float64 matrices a step holds at once, in the worst of its cases.

    A, its rounded copy and LAPACK's copy for singular values; A, A_hat, their difference, its
    modulus and a scaled copy, and what an approximation holds on its way for the bound; a Python
    integer of 32 bytes and its place in two lists for each residue of a dense rank; S, A and
    LAPACK's copy for the determinant of a matrix whose singular values are known.
    """
    if step in ("compute_singular_values", "measure_baselines"):
        return 6 if N <= limits["singular_values_N"] else 0
    if step == "check_bound":
        return 16 if N <= limits["bound_N"] else 0
    if step == "measure_rank":
        if N <= limits["dense_rank_N"]:
            return 16
        return 4 if N <= limits["singular_values_N"] else 0
    return 0


def memory_mb(step: str, N: int, d: int, members: int, limits: Mapping[str, int]) -> int:
    """Megabytes that a job of `step` may take: its matrices, its cell's arrays, the interpreter."""
    arrays = 8 * members * N * d + 13 * members * N
    if step == "measure_rank":
        arrays += 40 * N * (d + 1)  # of one member: residues, and the network of a structural rank
    if step in ("compute_extremes", "measure_baselines"):
        arrays += 400 * N  # of one matrix: a Krylov basis, or blocks of probes with exponents
    if step == "build_cell":
        arrays += 4 * min(N, ROWS) * N
    return INTERPRETER_MB + round(
        BYTES * (matrices_alive(step, N, limits) * N * N + arrays) / 2**20
    )


def features_megabytes(N: int, d: int, features: int) -> int:
    """Megabytes that an approximation of an N x N matrix by more than N features or projected
    tokens holds beyond what `matrices_alive` says: a few arrays of N x features, and directions."""
    wide = features if features > N else 0
    return round(BYTES * (6 * N + 3 * d) * wide / 2**20)


def seconds(N: int, members: int, limits: Mapping[str, int], approximations: int = 0) -> float:
    """Seconds that all steps of a cell may take: spectra, and a bound for so many approximations.

    A dozen dense spectra of each member, or the structured engine's work on both normalizations.
    """
    return sum(step_seconds(step, N, members, limits, approximations) for step in STEPS)


def step_seconds(
    step: str, N: int, members: int, limits: Mapping[str, int], approximations: int
) -> float:
    """What a step may take of it."""
    if step == "check_bound":
        return bound_seconds(N, members, limits, approximations)
    if N <= limits["singular_values_N"]:
        return SHARES[step][0] * members * 12 * GESDD_NANOSECONDS * 1e-9 * N**3
    counting = COUNTING_MICROSECONDS if N <= limits["counts_N"] else 0
    return SHARES[step][1] * members * (STRUCTURED_MICROSECONDS + counting) * 1e-6 * N


def bound_seconds(N: int, members: int, limits: Mapping[str, int], approximations: int) -> float:
    """Of the output-error bound alone: each approximation of a member's four matrices."""
    checked = min(members, limits["bound_members"]) if N <= limits["bound_N"] else 0
    each = APPROXIMATION_SECONDS + APPROXIMATED_NANOSECONDS * 1e-9 * N**2
    return checked * approximations * each


def combination_seconds(d: int, tokens: int, members: int) -> float:
    """Seconds that a growth and the horizons of its members may take, measured at d = 64."""
    return 0.05 * d + HORIZON_MICROSECONDS * 1e-6 * tokens * members


def layer_seconds(N: int, layers: int) -> float:
    """Seconds that a job may take which approximates drawn layers, or finds their ranks."""
    return layers * (LAYER_SECONDS + CUBED_NANOSECONDS * 1e-9 * N**3)


def task_seconds(N: int, d_model: int, layers: int, tasks: int) -> float:
    """Seconds that a job may take which evaluates tasks of each kind on drawn layers."""
    return layers * tasks * TASK_MICROSECONDS * 1e-6 * N * d_model


def minutes(seconds: float, attempt: int, longest: float = math.inf) -> int:
    """Minutes that a submission may take: head room for slower nodes, twice as much on each retry,
    and never more than the `longest` that there may be."""
    return int(min((STARTING_MINUTES + math.ceil(2 * seconds / 60)) * 2 ** (attempt - 1), longest))


def minutes_each(seconds: Sequence[float], attempt: int, longest: float = math.inf) -> list[int]:
    """The same of steps that follow each other in one submission: what each adds to the sum.

    The first one has the start of them all.
    """
    whole = minutes(sum(seconds), attempt, longest)
    ends = list(itertools.accumulate(seconds, initial=30 * STARTING_MINUTES))
    marks = [round(whole * end / ends[-1]) for end in ends[1:]]
    return [end - start for start, end in itertools.pairwise([0, *marks])]


def growth_megabytes(rows: int, d: int) -> int:
    """Megabytes of a job that follows a growth: some dozen arrays of `rows` x d, a few of d x d."""
    return INTERPRETER_MB + round(BYTES * (16 * rows * d + 8 * d * d) / 2**20)


def layer_megabytes(N: int, d_model: int) -> int:
    """Megabytes of a job that evaluates layers: a few arrays of N^2 x d_model, and what an exact
    rank holds of N x (N d_model) integers at most, as `matrices_alive` says of one matrix."""
    return INTERPRETER_MB + round(BYTES * (4 + 16) * N * N * d_model / 2**20)


TASK_DRAWS = 768
"""As many sequences as scripts/evaluate_tasks.py draws for a task."""


def task_megabytes(N: int, d_model: int) -> int:
    """Megabytes of a job that evaluates tasks: sequences, their attention, and copies of both."""
    return INTERPRETER_MB + round(BYTES * 3 * TASK_DRAWS * N * d_model * 2 / 2**20)


def horizon_megabytes(tokens: int, d: int) -> int:
    """Megabytes of a job that searches a horizon: q, k, factors, copies, and a Krylov basis."""
    return INTERPRETER_MB + round(BYTES * (10 * tokens * d + 400 * tokens) / 2**20)


def concentration_megabytes(N: int) -> int:
    """Megabytes of a job that finds all singular values of N x N matrices: A, its parts, A^T A."""
    return INTERPRETER_MB + round(BYTES * 6 * N * N / 2**20)


def projection_megabytes(N: int) -> int:
    """Megabytes of a job that projects: draws of three columns, and P where all are projected."""
    draws = 14 * N * PROJECTIONS + 4 * min(N, 512) * N
    return INTERPRETER_MB + round(BYTES * (draws + 8 * min(N, UNIFORM_N) ** 2) / 2**20)
