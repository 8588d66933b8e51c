"""What the YAML file of an environment asks for."""

from pathlib import Path

import yaml


def specs(environment: str | Path) -> list[str]:
    """The dependencies that a YAML file asks for.

    Raises ValueError, in one line that names the file, for what is no such file and for what the
    frontend does not know: other channels, or pip's packages.
    """
    try:
        content = yaml.safe_load(Path(environment).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{environment}: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{environment}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{environment}: it must have channels and dependencies")
    if content.get("channels") != ["conda-forge"]:
        raise ValueError(f"{environment}: channels: it must be conda-forge alone")
    wanted = content.get("dependencies")
    listed = isinstance(wanted, list) and len(wanted) > 0
    if not listed or not all(isinstance(spec, str) for spec in wanted):
        raise ValueError(f"{environment}: dependencies: each must be a conda package in one line")
    return wanted
