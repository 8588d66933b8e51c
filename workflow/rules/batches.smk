# Which cells, and which sources with a feature map, share a job, and what its rules derive of them.
import batches

BATCH = f"{R}/batches/{{batch}}"
GROWTH_BATCH = f"{R}/batches/growth/{{batch}}"
COMBINATION_KEYS = {
    studies.CombinationKey(cell.source, cell.d, cell.feature_map)
    for cell in GRID
    if cell.feature_map != "softmax"
}


APPROXIMATED = sum(map(len, STUDY["approximations"].values()))


def seconds(cell):
    return resources.seconds(
        cell.N, members(STUDY["sources"][cell.source]), STUDY["limits"], APPROXIMATED
    )


# A drawn source counts as five members: no growth rate depends on their number, so no batch may.
def growth_seconds(key):
    source, longest = STUDY["sources"][key.source], STUDY["limits"]["horizon_N"]
    tokens = min(tokens_of(source, longest), longest)
    return resources.combination_seconds(key.d, tokens, 5 if is_drawn(key) else members(source))


SECONDS = {cell: seconds(cell) for cell in GRID}
BATCHES = batches.plan(SECONDS)
GROWTH_BATCHES = batches.plan({key: growth_seconds(key) for key in COMBINATION_KEYS}, 4, 4)


def folders(batch):
    return [f"{R}/cells/{cell.path}" for cell in BATCHES[batch]]


def growth_folders(batch):
    return [f"{R}/growth/{key.path}" for key in GROWTH_BATCHES[batch]]


def manifests(step):
    return [f"{R}/batches/{name}/{step}.txt" for name in BATCHES]


def growth_manifests(step):
    return [f"{R}/batches/growth/{name}/{step}.txt" for name in GROWTH_BATCHES]


def cells_digest(wildcards):
    """What a step finds its batch's manifests to be of."""
    return options(cells_digest=batches.digest(folders(wildcards.batch)))


def batch_seconds(wildcards):
    return sum(map(SECONDS.get, BATCHES[wildcards.batch]))


def minutes(wildcards, attempt):
    """A rule's `resources: runtime=`."""
    return resources.minutes(batch_seconds(wildcards), attempt)


def longest_first(wildcards, input, attempt):
    """A rule's `priority:`, so that the longest job is not the last to start."""
    return round(batch_seconds(wildcards))


def growth_batch_seconds(wildcards):
    return sum(map(growth_seconds, GROWTH_BATCHES[wildcards.batch]))


def growth_minutes(wildcards, attempt):
    return resources.minutes(growth_batch_seconds(wildcards), attempt)


def longest_growth_first(wildcards, input, attempt):
    return round(growth_batch_seconds(wildcards))


def read_source(keys):
    """The q, k, v that a batch is made of; drawn ones are drawn for each of its cells."""
    kind = STUDY["sources"][keys[0].source]["kind"]
    return [] if kind == "gaussian" else f"{R}/sources/{kind}/source~{keys[0].source}.npz"


# Of the wildcards alone: Snakemake does not watch what a parameter derives from a job's input.
def rows(keys, **drawn):
    """Options that say where q, k, v come from, with others for those that are drawn."""
    path, source = read_source(keys), STUDY["sources"][keys[0].source]
    scale = float(source.get("scale", 1.0))
    return options(input=path) if path else options(scale=scale, **drawn)


def cell_rows(wildcards):
    keys = BATCHES[wildcards.batch]
    drawn = {"members": members(STUDY["sources"][keys[0].source])}
    return rows(keys, **drawn, max_N_values=STUDY["limits"]["bound_N"])


def horizon_rows(wildcards):
    keys = GROWTH_BATCHES[wildcards.batch]
    return rows(keys, members=members(STUDY["sources"][keys[0].source]))


def forget_other_batches():
    """Remove the manifests of an earlier plan: they would vouch for cells that others now own."""
    planned = {*BATCHES, *(f"growth/{name}" for name in GROWTH_BATCHES)}
    for path in Path(R, "batches").rglob("*.txt"):
        if path.parent.relative_to(R, "batches").as_posix() not in planned:
            path.unlink()
