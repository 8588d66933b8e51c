"""Measure how concentrated the spectra of drawn matrices, or of a file's, are: by member."""

import argparse
import sys

import concentration_files
from whole_files import load_arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    concentration_files.add_options(parser)
    parser.add_argument("--N", type=int, required=True, help="tokens: the first N rows")
    parser.add_argument("--input", required=True, help=".npz with q, k of (members, N, d)")
    args = parser.parse_args()
    arrays = load_arrays(args.input)
    members = list(zip(arrays["q"][:, : args.N], arrays["k"][:, : args.N], strict=True))
    values = []
    for number, (q, k) in enumerate(members, 1):
        values.append(concentration_files.measure(q, k, args.kinds))
        print(f"member {number} of {len(members)}", file=sys.stderr, flush=True)
    key = args.source, args.N, arrays["q"].shape[2]
    concentration_files.save(args.output, key, args.kinds, values)


if __name__ == "__main__":
    main()
