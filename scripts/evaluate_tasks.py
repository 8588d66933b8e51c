"""Evaluate layers at a task that needs a contrast and at one that does not."""

import argparse
from itertools import product

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
    args = parser.parse_args()
    layers = list(product(args.heads, args.score_scales, range(args.seeds)))
    rows = runs(args.d_model, args.N, layers, list(product(KINDS, range(args.tasks))))
    write_csv(args.runs, RUNS_HEADER, rows)
    write_csv(args.output, HEADER, means(rows, args.seeds, args.tasks))


if __name__ == "__main__":
    main()
