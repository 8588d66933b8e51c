# What jobs are given of the study and the code: what their run began with.
import os
import secrets

import code_digest
import snapshot
from snakemake.settings.types import SharedFSUsage

ROOT = Path(workflow.basedir).parent
# Before the rest is read, so that what is edited from now on differs from it.
WORKFLOW = snapshot.workflow_digest(ROOT)


def told():
    """What a cluster's job was told of its run; empty where Snakemake reads the files themselves.

    Without a file system that nodes share, jobs have an archive of the files, made by Snakemake.
    """
    files = workflow.overwrite_configfiles
    if workflow.is_main_process or [path.parts[-3:] for path in files] != [snapshot.RUN.parts]:
        return {}
    try:
        return snapshot.kept(files[0], WORKFLOW)
    except snapshot.Changed as error:
        sys.exit(f"error: {error}")


# Variables of the shell and not of the workflow: nothing that a rule is made of changes with them.
TOLD = told()
RUN_ID = TOLD.get("id") or secrets.token_hex(8)
OF_JOBS = {
    "SCRIPTS": snapshot.SCRIPTS.as_posix(),
    "CLAIMS": snapshot.CLAIMS.as_posix(),
    "CAUSALRANK_RUN": RUN_ID,
}
STEPS = snapshot.SCRIPTS if TOLD else ROOT / "scripts"
CODE = TOLD.get("code", {})


def digest(script, environment):
    """What a rule's `params: code=` holds: it changes when the step or its environment does."""
    name = f"{environment}: {script}"
    if name not in CODE:
        pins = ENVIRONMENTS / f"{environment}.yaml"
        CODE[name] = code_digest.code_digest(STEPS / script, pins, packages_of(environment))
    return CODE[name]


def keep_for_jobs():
    """Let jobs have the study and the code that this run has read, whatever is edited from now on."""
    sources = {
        path.relative_to(STEPS).as_posix(): content for path, content in code_digest.sources.items()
    }
    run = {
        "id": RUN_ID,
        "workflow": WORKFLOW,
        "study": STUDY,
        "claims": CLAIMS_DIGEST,
        "code": CODE,
    }
    try:
        snapshot.keep(sources, CLAIMS, run)
    except OSError as error:
        reason = f"{snapshot.FOLDER} takes no files: {error.strerror}"
        sys.exit(f"error: {reason}; mend that and run again")
    os.environ |= OF_JOBS
    if SharedFSUsage.SOURCES in workflow.storage_settings.shared_fs_usage:
        workflow.config_settings.configfiles = [snapshot.RUN.absolute()]
