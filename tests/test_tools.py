"""The tools that keep the code in shape are part of the tests."""

import shutil
import subprocess
import sys
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
