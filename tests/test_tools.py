"""The tools that keep the code in shape are part of the tests."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*command):
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("verb", [("check",), ("format", "--check")], ids=lambda v: v[0])
def test_ruff_has_nothing_to_say(verb):
    run(sys.executable, "-m", "ruff", *verb, ".")


def test_mypy_has_nothing_to_say():
    run(sys.executable, "-m", "mypy", "--strict", "src")


def test_imports_go_one_way():
    run(shutil.which("lint-imports", path=str(Path(sys.executable).parent)) or "lint-imports")


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def bounds(requirements):
    """Return the lower bound of each package."""
    parts = (one.partition(";")[0].strip().partition(">=") for one in requirements)
    return {name: bound for name, _, bound in parts}


def test_the_oldest_versions_are_those_that_the_project_allows():
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "oldest.py"], capture_output=True, text=True, check=True
    )
    pins = dict(line.split("==") for line in done.stdout.splitlines())
    extras = {name: some for name, some in project()["optional-dependencies"].items() if name != "test"}
    assert pins == bounds([*project()["dependencies"], *(one for some in extras.values() for one in some)])


def test_the_test_extra_allows_the_same_versions_as_the_others():
    extras = project()["optional-dependencies"]
    tests = bounds(extras.pop("test"))
    for name, bound in bounds(one for some in extras.values() for one in some).items():
        assert tests[name] == bound


def test_what_ci_tries_with_old_and_new_versions_works_here():
    run(sys.executable, ROOT / ".ci" / "smoke.py")
