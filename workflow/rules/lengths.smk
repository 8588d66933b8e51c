# What concentration and projection, which go by source and length, derive from wildcards.
LENGTH = "source~{source}/N~{N}/d~{d}"


def concentration_file(key):
    return f"{R}/concentration/{'model' if is_model(key) else 'arrays'}/{key.path}.npz"


def kinds_of(wildcards):
    key = studies.LengthKey(wildcards.source, int(wildcards.N), int(wildcards.d))
    return options(kinds=CONCENTRATION[key])


# A window of N tokens is encoded as such: the first N of a longer one have attended to the rest.
def fresh_windows(wildcards):
    return options_of_model(STUDY["sources"][wildcards.source] | {"window": int(wildcards.N)})


def length_memory(megabytes):
    """A rule's `resources: mem_mb=`, from the source and length in its wildcards."""

    def needed(wildcards):
        source, N, d = STUDY["sources"][wildcards.source], int(wildcards.N), int(wildcards.d)
        return megabytes(N) + arrays_megabytes(source, N, d)

    return allocated(needed)


def length_seconds(wildcards):
    """Of all spectra of a length: twice a cell's single one."""
    source, N = STUDY["sources"][wildcards.source], int(wildcards.N)
    return round(members(source) * 2 * resources.GESDD_NANOSECONDS * 1e-9 * N**3)


def concentration_first(wildcards, input, attempt):
    """A rule's `priority:`."""
    return length_seconds(wildcards)


def length_minutes(wildcards, attempt):
    """A rule's `resources: runtime=`."""
    return resources.minutes(length_seconds(wildcards), attempt, longest_minutes())


def first_window(wildcards):
    length = {"window": int(wildcards.N), "windows": 1}
    return options_of_model(STUDY["sources"][wildcards.source] | length)


def projected(table):
    """The parts of a table: of all keys, of the model's or of the others."""
    models = {"projection_heads": (True,), "projection_uniform": (True, False)}.get(table, (False,))
    return [
        f"{R}/{table}/{'model' if is_model(key) else 'arrays'}/{key.path}.csv"
        for key in PROJECTION
        if is_model(key) in models
    ]
