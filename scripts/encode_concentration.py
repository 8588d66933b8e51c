"""Measure how concentrated the spectra of a model's heads are, window by window.

Every window is encoded afresh with as many tokens as are asked for, and its q, k are dropped
once measured, so that memory does not grow with the number of windows.
"""

import argparse
import sys

import concentration_files
from encode_text import add_model_options, encodings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    concentration_files.add_options(parser)
    add_model_options(parser)
    args = parser.parse_args()
    values = []
    for number, encoding in enumerate(encodings(args), 1):
        layers = zip(encoding.q, encoding.k, strict=True)
        values.append(
            [
                [concentration_files.measure(q, k, args.kinds) for q, k in zip(*heads, strict=True)]
                for heads in layers
            ]
        )
        print(f"window {number} of {args.windows}", file=sys.stderr, flush=True)
    key = args.source, args.window, args.head_dimension
    concentration_files.save(args.output, key, args.kinds, values)


if __name__ == "__main__":
    main()
