"""Draw q, k, v with independent normal entries: one source file per (source, N, d)."""

import argparse

from causalrank.ensembles import ensemble
from whole_files import save_arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="the source's name: part of the seed")
    parser.add_argument("--N", type=int, required=True)
    parser.add_argument("--d", type=int, required=True)
    parser.add_argument("--members", type=int, required=True)
    parser.add_argument("--scale", type=float, required=True, help="standard deviation")
    parser.add_argument("--without-values", action="store_true", help="do not store v")
    parser.add_argument("--output", required=True, help=".npz with q, k, v of (members, N, d)")
    args = parser.parse_args()
    q, k, v = ensemble(args.source, args.N, args.d, args.members, args.scale)
    save_arrays(args.output, q=q, k=k, **({} if args.without_values else {"v": v}))


if __name__ == "__main__":
    main()
