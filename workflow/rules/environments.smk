# Whence the steps' environments come, and whether they are what is pinned.
import functools
import os
import platform
import re
from importlib import metadata

ENVIRONMENTS = Path(workflow.basedir).parent / "envs"

sys.path.insert(0, str(ENVIRONMENTS / "deployment"))
import dependencies
import explicit
import situation


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


@functools.cache
def installed_version(package):
    """That of the driver's package, None if it has none of that name."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def packages_of(environment):
    """Whence the packages of an environment are, and what no pin of it says.

    Wheels run with the driver's Python; jobs that have no environment, with its packages, too.
    """
    said = [PACKAGES_FROM]
    if PACKAGES_FROM in ("wheels", "driver"):
        said.append(platform.python_version())
    if PACKAGES_FROM == "driver":
        wanted = dependencies.specs(ENVIRONMENTS / f"{environment}.yaml")
        names = {re.match(r"[\w.-]+", spec)[0] for spec in wanted}
        said += sorted(f"{name}={installed_version(name)}" for name in names)
    return " ".join(said)


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
