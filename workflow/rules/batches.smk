# Which cells, and which sources with a feature map, share a job, and what its rules derive of them.
import functools

import batches

BATCH = f"{R}/batches/{{batch}}"
GROWTH_BATCH = f"{R}/batches/growth/{{batch}}"
COMBINATION_KEYS = {
    studies.CombinationKey(cell.source, cell.d, cell.feature_map)
    for cell in GRID
    if cell.feature_map != "softmax"
}


DRAWN = {name for name, source in STUDY["sources"].items() if source["kind"] == "gaussian"}
APPROXIMATED = sum(map(len, STUDY["approximations"].values()))


def seconds(cell):
    return resources.seconds(
        cell.N, members(STUDY["sources"][cell.source]), STUDY["limits"], APPROXIMATED
    )


def combination_seconds(key, number):
    source, longest = STUDY["sources"][key.source], STUDY["limits"]["horizon_N"]
    return resources.combination_seconds(key.d, min(tokens_of(source, longest), longest), number)


# A drawn source counts as five members: no growth rate depends on their number, so no batch may.
def growth_seconds(key):
    source = STUDY["sources"][key.source]
    return combination_seconds(key, 5 if key.source in DRAWN else members(source))


SECONDS = {cell: seconds(cell) for cell in GRID}
BATCHES = batches.plan(SECONDS, DRAWN)
GROWTH_SECONDS = {key: growth_seconds(key) for key in COMBINATION_KEYS}
GROWTH_BATCHES = batches.plan(GROWTH_SECONDS, DRAWN, alone=4, shared=4)


def folders(batch):
    return [f"{R}/cells/{cell.path}" for cell in BATCHES[batch]]


def growth_folders(batch):
    return [f"{R}/growth/{key.path}" for key in GROWTH_BATCHES[batch]]


def cells_of(wildcards):
    """What the first step of a batch is to make."""
    return options(below=f"{R}/cells", cells=[x.path for x in BATCHES[wildcards.batch]])


def growth_cells_of(wildcards):
    return options(below=f"{R}/growth", cells=[x.path for x in GROWTH_BATCHES[wildcards.batch]])


def manifests(step):
    return [f"{R}/batches/{name}/{step}.txt" for name in BATCHES]


def growth_manifests(step):
    return [f"{R}/batches/growth/{name}/{step}.txt" for name in GROWTH_BATCHES]


def cells_digest(wildcards):
    """What a step finds its batch's manifests to be of."""
    return options(cells_digest=batches.digest(folders(wildcards.batch)))


def batch_seconds(wildcards):
    return sum(map(SECONDS.get, BATCHES[wildcards.batch]))


@functools.cache
def step_seconds(batch, step):
    """What a step may take for a batch; what any cell takes at least, the steps share alike."""
    least = batches.LEAST_SECONDS / len(resources.STEPS)
    return sum(
        least
        + resources.step_seconds(
            step,
            cell.N,
            members(STUDY["sources"][cell.source]),
            STUDY["limits"],
            APPROXIMATED,
        )
        for cell in BATCHES[batch]
    )


@functools.cache
def submissions():
    """The batch and step of all jobs that are submitted together with one, by its own."""
    found = {}
    for job in workflow.dag.needrun_jobs():
        group = workflow.dag.get_job_group(job)
        if job.group == "batch" and (job.wildcards.batch, job.rule.name) not in found:
            together = sorted((x.wildcards.batch, x.rule.name) for x in group.jobs)
            found |= dict.fromkeys(together, together)
    return found


def minutes_of(step):
    """A rule's `resources: runtime=`: Snakemake adds up those of the steps of a submission.

    Which those are the graph knows: of a batch that was begun, what is left.
    """

    def of_attempt(wildcards, attempt):
        here = wildcards.batch, step
        together = submissions().get(here, [here])
        costs = [step_seconds(*other) for other in together]
        return resources.minutes_each(costs, attempt, longest_minutes())[together.index(here)]

    return of_attempt


def longest_first(wildcards, input, attempt):
    """A rule's `priority:`, so that the longest job is not the last to start."""
    return round(batch_seconds(wildcards))


def growth_batch_seconds(wildcards):
    return sum(map(GROWTH_SECONDS.get, GROWTH_BATCHES[wildcards.batch]))


def growth_minutes(wildcards, attempt):
    return resources.minutes(growth_batch_seconds(wildcards), attempt, longest_minutes())


def horizon_minutes(wildcards, attempt):
    keys = GROWTH_BATCHES[wildcards.batch]
    seconds = sum(combination_seconds(x, members(STUDY["sources"][x.source])) for x in keys)
    return resources.minutes(seconds, attempt, longest_minutes())


def longest_growth_first(wildcards, input, attempt):
    return round(growth_batch_seconds(wildcards))


def read_source(keys):
    """The q, k, v that a batch is made of, of one source; drawn ones are drawn for each cell."""
    kind = STUDY["sources"][keys[0].source]["kind"]
    return [] if kind == "gaussian" else f"{R}/sources/{kind}/source~{keys[0].source}.npz"


def of_sources(keys, setting):
    """A setting of each source of a batch, as the steps read it."""
    names = sorted({key.source for key in keys})
    return [f"{name}={setting(STUDY['sources'][name])}" for name in names]


# Of the wildcards alone: Snakemake does not watch what a parameter derives from a job's input.
def rows(keys, **drawn):
    """Options that say where q, k, v come from, with others for those that are drawn."""
    path = read_source(keys)
    if path:
        return options(input=path)
    return options(scales=of_sources(keys, lambda x: float(x.get("scale", 1.0))), **drawn)


def cell_rows(wildcards):
    keys, longest = BATCHES[wildcards.batch], STUDY["limits"]["bound_N"]
    return rows(keys, members_of=of_sources(keys, members), max_N_values=longest)


def horizon_rows(wildcards):
    keys = GROWTH_BATCHES[wildcards.batch]
    return rows(keys, members_of=of_sources(keys, members))


def forget_other_batches():
    """Remove the manifests of an earlier plan: they would vouch for cells that others now own."""
    planned = {*BATCHES, *(f"growth/{name}" for name in GROWTH_BATCHES)}
    for path in Path(R, "batches").rglob("*.txt"):
        if path.parent.relative_to(R, "batches").as_posix() not in planned:
            path.unlink()
