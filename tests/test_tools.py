"""The tools that keep the code in shape are part of the tests."""

import re
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


def test_the_test_extra_has_the_others_and_repeats_none_of_their_bounds():
    extras = project()["optional-dependencies"]
    tests = extras.pop("test")
    named = [one.partition("]")[0].removeprefix("morefit[") for one in tests if one.startswith("morefit[")]
    assert sorted(",".join(named).split(",")) == sorted(extras)
    assert not bounds(tests).keys() & bounds(one for some in extras.values() for one in some).keys()


@pytest.mark.parametrize("place", [".ci/run", ".github/workflows/ci.yml"])
def test_ci_runs_the_tests_as_the_readme_says(place):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = next(line for line in readme.splitlines() if "-m pytest" in line)
    # .ci/run adds nothing but silence
    assert command in (ROOT / place).read_text(encoding="utf-8").replace(" --quiet", "")


def test_the_budget_counts_every_room_and_all_lines():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "budget.py"], capture_output=True, text=True, check=True
    )
    rows = {row.split()[0]: row.split()[1:3] for row in done.stdout.partition("\n\n")[0].splitlines()[1:]}
    modules = list((ROOT / "src" / "morefit").rglob("*.py"))
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules)
    assert rows.pop("all") == [str(len(modules)), str(lines)]
    folders = {
        path.relative_to(ROOT / "src" / "morefit").parts[0]
        for path in modules
        if path.parent.name != "morefit"
    }
    assert rows.keys() == folders | {"."}
    assert sum(int(count) for _, count in rows.values()) == lines


@pytest.mark.parametrize(
    ("walk", "hops", "returns"), [("fit", 20, 4), ("toy_study", 22, 5), ("intervals.upper_limit", 9, 2)]
)
def test_a_walk_through_the_code_is_short_and_names_files_that_exist(walk, hops, returns):
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    text = page.partition(f"`mf.{walk}(")[2].partition(" hops, ")[0]
    files = re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", text)
    assert 9 < len(files) <= hops + 1
    assert text.count("> [") <= returns
    assert not [name for name in files if not (ROOT / "src" / "morefit" / name).exists()]


@pytest.mark.exhaustive  # .ci/run does so before and after the tests
def test_what_ci_tries_with_old_and_new_versions_works_here():
    run(sys.executable, ROOT / ".ci" / "smoke.py")
