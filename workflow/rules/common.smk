import os
import re

import code_digest
import resources
import study as studies

# Jobs of steps without a deployed environment run with the driver's Python.
shell.prefix(f"export PATH={Path(sys.executable).parent.as_posix()!r}:$PATH; ")

STEPS = Path(workflow.basedir).parent / "scripts"
ENVIRONMENTS = Path(workflow.basedir).parent / "envs"


def read_study():
    """The study of the command line, or the default one: never a mixture of both."""
    files = [Path(os.path.relpath(path)) for path in workflow.overwrite_configfiles]
    try:
        study = studies.load(files or [Path("config/config.yaml")], workflow.config_settings.config)
        grid = studies.cells(study)
        check_user_files(study, grid)
        check_memory(study, grid)
        return study, grid, studies.load_claims(Path(study["claims"]))
    except (studies.StudyError, ValueError) as error:
        sys.exit(f"error in the study: {error}")


def check_user_files(study, grid):
    """Check the users' files before any job, and note what the graph needs to know of them."""
    for name, source in study["sources"].items():
        if source["kind"] == "file":
            sys.path.insert(0, str(STEPS))
            import read_user_file

            path = Path(source["path"])
            shape = read_user_file.inspect(path)
            for cell in (cell for cell in grid if cell.source == name):
                read_user_file.check(path, cell.N, cell.d)
            read_user_file.require_finite(path)
            source["members"] = shape.members
            source["digest"] = read_user_file.digest(path)


def members(source):
    """How many members a source of the study has."""
    settings = STUDY["sources"][source]
    if settings["kind"] == "model":
        return settings["layers"] * settings["heads"] * settings["windows"]
    return settings["members"]


def check_memory(study, grid):
    pass


STUDY, GRID, CLAIMS = read_study()
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
        words.append("--" + name.replace("_", "-"))
        words.extend(map(str, value) if isinstance(value, list) else [str(value)])
    return " ".join(words)


def memory_of(step):
    """A rule's `resources: mem_mb=`, from the cell in its wildcards."""

    def megabytes(wildcards):
        N, d = int(wildcards.N), int(wildcards.d)
        return resources.memory_mb(step, N, d, members(wildcards.source), STUDY["limits"])

    return megabytes


def minutes(wildcards):
    return resources.runtime_minutes(int(wildcards.N), members(wildcards.source))


def failure_summary(log):
    """The cells whose jobs failed, with their logs, from Snakemake's own log of the run."""
    text = Path(str(log)).read_text(encoding="utf-8")
    failed = re.findall(r"log: (\S+?)(?: \(check log file)", text)
    return "\n".join(f"failed: {path}" for path in dict.fromkeys(failed))
