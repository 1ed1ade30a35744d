"""Print the oldest versions that pyproject.toml allows, as pins for pip: those of the package and of its extras."""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
EXTRAS = ("plot", "io", "dask", "opencl")


def oldest(requirement: str) -> str:
    """Return "numpy==1.26" for "numpy>=1.26", with the condition behind it, if there is one."""
    match = re.fullmatch(r"([\w.-]+)>=([\w.]+)(\s*;.*)?", requirement)
    if match is None:
        sys.exit(
            f"pyproject.toml: a requirement must have a lower bound and nothing else, got '{requirement}'"
        )
    return f"{match[1]}=={match[2]}{match[3] or ''}"


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    print(
        "\n".join(map(oldest, [*project["dependencies"], *(one for name in EXTRAS for one in extras[name])]))
    )
