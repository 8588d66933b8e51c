"""Evaluate layers at a task that needs a contrast and at one that does not."""

import argparse
from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from causalrank.ensembles import seed_of
from causalrank.intervals import crossed_mean
from causalrank.mark_task import KINDS, drawn_task, draws, last_outputs, readout_accuracy
from drawn_layers import draw_layer
from whole_files import write_csv

TRAIN, TEST = 256, 512
"""Draws that the readout is fitted to, and draws that it is judged on."""
KEYS = ("d_model", "N", "heads", "width", "parameters", "score_scale", "kind")
RUNS_HEADER = (*KEYS, "seed", "task", "accuracy")
HEADER = (*KEYS, "seeds", "tasks", "accuracy", "accuracy_low", "accuracy_high")
DIFFERENCES_HEADER = (
    *("d_model", "N", "parameters", "kind", "seeds", "tasks", "varied", "from", "to", "steps"),
    *("heads", "score_scale", "difference", "difference_low", "difference_high"),
)


def sequences(N: int, d_model: int, number: int, kind: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """The fitting and the judging draws of a task: all layers read the same ones."""

    def generator(part: str) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(seed_of("mark_task", part, N, d_model, number)))

    task = drawn_task(N, d_model, generator("task"))
    parts = (("fit", TRAIN), ("judge", TEST))
    return [draws(task, kind, count, generator(f"{kind} {part}")) for part, count in parts]


def runs(d_model: int, N: int, layers: list[tuple], kinds_and_tasks: list[tuple]) -> list[tuple]:
    """One row per layer (heads, scale, seed), kind and task."""
    rows = []
    for kind, number in kinds_and_tasks:
        (X, labels), (new_X, new_labels) = sequences(N, d_model, number, kind)
        for heads, scale, seed in layers:
            layer, W = draw_layer(d_model, N, heads, scale, seed)
            both = (last_outputs(X, W, scale), labels, last_outputs(new_X, W, scale), new_labels)
            rows.append((*layer.columns[:-1], kind, seed, number, readout_accuracy(*both)))
    return sorted(rows)


def means(rows: list[tuple], seeds: int, tasks: int) -> list[tuple]:
    """One row per layer's shape, scale and kind: `runs` come sorted, tasks within seeds."""
    accuracy = np.array([row[-1] for row in rows]).reshape(-1, seeds, tasks)
    table = []
    for row, values in zip(rows[:: seeds * tasks], accuracy, strict=True):
        mean = crossed_mean(values)
        interval = mean.value - mean.error, mean.value + mean.error
        table.append((*row[: len(KEYS)], seeds, tasks, mean.value, *interval))
    return table


def differences(rows: list[tuple], shape: tuple[int, ...]) -> Iterator[tuple]:
    """What every pair of numbers of heads, and every pair of scales, differ by, run by run.

    `shape` is (heads, scales, kinds, seeds, tasks), the order of the sorted `runs`. All layers of
    a seed have the same parameters and tokens and read the same draws: differences are paired.
    """
    accuracy = np.array([row[-1] for row in rows]).reshape(shape)
    keys = np.array([row[: len(KEYS)] for row in rows], dtype=object).reshape(*shape, len(KEYS))
    for axis, varied in enumerate(("heads", "score_scale")):
        values, names = (np.moveaxis(x, axis, 0) for x in (accuracy, keys))
        for ends in combinations(range(len(values)), 2):
            first, last = ends
            for held, kind in np.ndindex(values.shape[1:3]):
                place = held, kind
                key, end = (dict(zip(KEYS, names[i][place][0, 0], strict=True)) for i in ends)
                mean = crossed_mean(values[last][place] - values[first][place])
                yield (
                    *(key[name] for name in ("d_model", "N", "parameters", "kind")),
                    *(*shape[-2:], varied, key[varied], end[varied], last - first),
                    *(None if name == varied else key[name] for name in ("heads", "score_scale")),
                    *(mean.value, mean.value - mean.error, mean.value + mean.error),
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d-model", type=int, required=True, help="width of the tokens")
    parser.add_argument("--N", type=int, required=True, help="tokens")
    parser.add_argument("--heads", type=int, nargs="+", required=True, help="divisors of d_model")
    parser.add_argument("--score-scales", type=float, nargs="+", required=True)
    parser.add_argument("--seeds", type=int, required=True, help="drawn layers")
    parser.add_argument("--tasks", type=int, required=True, help="drawn tasks of each kind")
    parser.add_argument("--runs", required=True, help="every accuracy, a CSV")
    parser.add_argument("--output", required=True, help="means with intervals, a CSV")
    parser.add_argument("--differences", required=True, help="of pairs of layers, a CSV")
    args = parser.parse_args()
    layers = list(product(args.heads, args.score_scales, range(args.seeds)))
    rows = runs(args.d_model, args.N, layers, list(product(KINDS, range(args.tasks))))
    write_csv(args.runs, RUNS_HEADER, rows)
    write_csv(args.output, HEADER, means(rows, args.seeds, args.tasks))
    shape = (len(args.heads), len(args.score_scales), len(KINDS), args.seeds, args.tasks)
    write_csv(args.differences, DIFFERENCES_HEADER, differences(rows, shape))


if __name__ == "__main__":
    main()
