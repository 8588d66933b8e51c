# What jobs need of memory, by wildcards, and which studies are refused for it.
import resources
import study as studies


def available_megabytes(study):
    """What one job may take: of this machine, or of a cluster's largest node, `--resources mem_mb=`."""
    if "memory_mb" in study["limits"]:
        return study["limits"]["memory_mb"]
    stated = workflow.global_resources.get("mem_mb")
    return stated and stated.value or resources.machine_memory_mb()


def check_memory(study, grid):
    """Refuse a cell that does not fit, and tell the scheduler how much there is to share.

    A job on a cluster's node has been let through where it was submitted.
    """
    if not workflow.is_main_process:
        return
    available = available_megabytes(study)
    workflow.register_resource("mem_mb", available)
    check_memory_of_layers(study["evaluation"], available)
    check_memory_of_sources(study["sources"], {cell.source for cell in grid}, available)
    check_memory_of_rows(study, grid, available)
    for cell in grid:
        for step in resources.STEPS:
            needed = cell_need(study, step, cell)
            if needed > available:
                raise studies.StudyError(
                    f"cells: source {cell.source}, N = {cell.N}, d = {cell.d} needs {needed} MB"
                    f" in {step}, and there are {available} MB; take a smaller N or fewer"
                    " members, lower limits (rounded_N, bound_N, ...) or strengths of approximations"
                    " so that the step skips it, or raise limits.memory_mb"
                )


def cell_need(study, step, cell):
    """What a step takes for a cell; the first one reads all of the source's q, k, v."""
    source = study["sources"][cell.source]
    needed = resources.memory_mb(step, cell.N, cell.d, members(source), study["limits"])
    if step == "check_bound":
        needed += features_megabytes(study, cell.N, cell.d)
    return needed + (read_megabytes(source, cell.d) if step == "build_cell" else 0)


def check_memory_of_layers(evaluation, available):
    N, d_model = evaluation["N"], evaluation["d_model"]
    needed = max(f(N, d_model) for f in (resources.layer_megabytes, resources.task_megabytes))
    if needed > available:
        raise studies.StudyError(
            f"evaluation: N = {N}, d_model = {d_model} needs {needed} MB, and there are"
            f" {available} MB; take smaller ones, or raise limits.memory_mb"
        )


def check_memory_of_sources(sources, of_cells, available):
    """Refuse a file that no job could read, or a model whose heads no job could hold.

    What is only averaged over the windows of a model needs no more than one of them.
    """
    for name, source in sources.items():
        if source["kind"] == "file":
            where, step, needed = source["path"], "read_user_file", user_file_need(source)
        elif source["kind"] == "model" and name in of_cells:
            where, step, needed = "all of it", "encode_text", encoding_need(source)
        else:
            continue
        if needed > available:
            raise studies.StudyError(
                f"sources.{name}: {where} needs {needed} MB in {step}, and there are {available}"
                " MB; keep fewer members, windows or rows, or raise limits.memory_mb"
            )


def check_memory_of_rows(study, grid, available):
    """Refuse what grows with tokens, or with draws of them, and not with a cell's N."""
    linear = (cell for cell in grid if cell.feature_map != "softmax")
    for source, d in sorted({(cell.source, cell.d) for cell in linear}):
        settings = study["sources"][source]
        for step, needed in (
            ("estimate_growth", growth_need(settings, d)),
            ("find_horizons", horizon_need(settings, d, study["limits"]["horizon_N"])),
        ):
            if needed > available:
                raise studies.StudyError(
                    f"sources.{source}: d = {d} needs {needed} MB in {step}, and there are"
                    f" {available} MB; lower limits.horizon_N, or raise limits.memory_mb"
                )


def features_megabytes(study, N, d):
    """What approximations hold beside matrices if they have more features than there are tokens."""
    wide = ("linformer", "projection", "performer", "performer_orthogonal")
    strengths = (m for name in wide for m in study["approximations"][name])
    checked = N <= study["limits"]["bound_N"]
    return resources.features_megabytes(N, d, max(strengths, default=0)) if checked else 0


def arrays_megabytes(source, N, d):
    """What a step holds of q, k, v; of a model, what encoding a window takes."""
    if source["kind"] == "model":
        return resources.ENCODER_MB
    return source.get("megabytes", 3 * 8 * members(source) * N * d // 2**20)


def check_length_memory(study):
    """Refuse a length of `concentration` or `projection` that does not fit."""
    if not workflow.is_main_process:
        return
    available = available_megabytes(study)
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


def allocated(megabytes):
    """A rule's `resources: mem_mb=`, from what its step takes, a number or a function of wildcards."""

    def of_attempt(wildcards, attempt):
        step = megabytes(wildcards) if callable(megabytes) else megabytes
        beside = 0 if workflow.local_exec else resources.SNAKEMAKE_MB
        return min((step + beside) * 2 ** (attempt - 1), available_megabytes(STUDY))

    return of_attempt


def longest_minutes():
    """What one submission may ask for: of a cluster's partition, `--resources runtime=`."""
    stated = workflow.global_resources.get("runtime")
    return stated.value if stated and stated.value else float("inf")


def allotted(minutes):
    """A rule's `resources: runtime=`, where nothing in the study makes a step take longer."""
    return lambda wildcards, attempt: min(minutes * 2 ** (attempt - 1), longest_minutes())


def lasting(seconds):
    """The same of a step whose time is estimated."""
    return lambda wildcards, attempt: resources.minutes(seconds, attempt, longest_minutes())


def encoding_minutes(wildcards, attempt):
    """The same of a model's windows."""
    windows = STUDY["sources"][wildcards.source]["windows"]
    return resources.minutes(resources.ENCODER_SECONDS * windows, attempt, longest_minutes())


def memory_of(step):
    """A rule's `resources: mem_mb=`, that of the largest of its batch's cells."""
    return allocated(
        lambda wildcards: max(cell_need(STUDY, step, cell) for cell in BATCHES[wildcards.batch])
    )


def ensemble_memory(wildcards):
    N, d, source = int(wildcards.N), int(wildcards.d), STUDY["sources"][wildcards.source]
    return resources.memory_mb("draw_ensemble", N, d, members(source), STUDY["limits"])


def read_megabytes(source, d):
    """What a step holds that reads the q, k, v of a source that isn't drawn."""
    if source["kind"] == "model":
        return 3 * 8 * members(source) * source["window"] * d // 2**20
    return source.get("megabytes", 0)


def tokens_of(source, drawn):
    """How many tokens a member has; of a drawn source, as many as are `drawn`."""
    return {"model": source.get("window"), "file": source.get("tokens")}.get(source["kind"], drawn)


def encoding_need(source):
    return resources.ENCODER_MB + 2 * read_megabytes(source, source["head_dimension"])


def user_file_need(source):
    return resources.INTERPRETER_MB + 2 * source["megabytes"]


def encoding_memory(wildcards):
    return encoding_need(STUDY["sources"][wildcards.source])


def user_file_memory(wildcards):
    return user_file_need(STUDY["sources"][wildcards.source])


def growth_need(source, d):
    rows = tokens_of(source, resources.GROWTH_CHAINS)
    return resources.growth_megabytes(rows, d) + read_megabytes(source, d)


def growth_memory(wildcards):
    keys = GROWTH_BATCHES[wildcards.batch]
    return max(growth_need(STUDY["sources"][key.source], key.d) for key in keys)


def horizon_need(source, d, longest):
    rows = min(tokens_of(source, longest), longest)
    return resources.horizon_megabytes(rows, d) + read_megabytes(source, d)


def horizon_memory(wildcards):
    longest, keys = STUDY["limits"]["horizon_N"], GROWTH_BATCHES[wildcards.batch]
    return max(horizon_need(STUDY["sources"][key.source], key.d, longest) for key in keys)
