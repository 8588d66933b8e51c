"""Draw the factors of a matrix of the benchmark; for a small one, enclose its extremes as well."""

import argparse

import numpy as np

from causalrank.enclosure import enclosed_extremes
from causalrank.ensembles import gaussian
from causalrank.feature_maps import FEATURE_MAPS
from whole_files import save_arrays

ENCLOSED_UP_TO = 512


def factors(N: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """phi(q) and phi(k), each (N, d), for elu+1 and standard normal q and k."""
    q, k, _ = gaussian("benchmark", N, d, 0, 1.0)
    phi = FEATURE_MAPS["elu_plus_one"]
    return phi(q), phi(k)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--N", type=int, required=True, help="tokens")
    parser.add_argument("--d", type=int, default=64, help="head dimension")
    parser.add_argument(
        "--output",
        required=True,
        help="an .npz: F, G, their shape; bounds of both extremes, or NaN",
    )
    args = parser.parse_args()
    F, G = factors(args.N, args.d)
    enclosed = args.N <= ENCLOSED_UP_TO
    bounds = enclosed_extremes(F, G) if enclosed else np.full((2, 2), np.nan)
    save_arrays(args.output, F=F, G=G, shape=np.array(F.shape), bounds=bounds)


if __name__ == "__main__":
    main()
