#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Tasks of developers: ``nox`` runs tests and lint, ``nox -l`` lists all, ``nox -s NAME -- ARGUMENTS`` runs one."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

PYTHONS = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests as the README says."""
    install_and_test(session)


@nox.session(python=PYTHONS, default=False)
def versions(session: nox.Session) -> None:
    """Run the tests with every version of Python that is supported."""
    install_and_test(session)


def install_and_test(session: nox.Session) -> None:
    session.install(".[test]")
    session.run("python", "-m", "pytest", "-n", "auto", "--dist", "worksteal", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format, types and the direction of imports."""
    session.install("-e.[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy", "src")
    session.run("lint-imports")


@nox.session(default=False)
def hooks(session: nox.Session) -> None:
    """Run the hooks of every commit on all files."""
    session.install("pre-commit")
    session.run("pre-commit", "run", "--all-files", "--show-diff-on-failure", *session.posargs)


@nox.session(default=False)
def review(session: nox.Session) -> None:
    """Compare the repository with the guide of Scientific Python."""
    session.install("sp-repo-review[cli]", "validate-pyproject")
    session.run("repo-review", ".")


@nox.session(name="map", default=False)
def write_map(session: nox.Session) -> None:
    """Write docs/map.md and docs/shapes.md, and print how large the rooms are."""
    session.run("python", "docs/make_map.py")
    for page in ("shapes", "api"):
        session.run("python", f"docs/make_{page}.py", env={"PYTHONPATH": "src"})
    session.run("python", "docs/budget.py")


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """Run the benchmarks of fits and toys in their smallest size: they work, their times mean nothing."""
    session.install(".[test]")
    for script in ("fits", "toys"):
        target = f"{session.create_tmp()}/{script}.json"
        session.run("python", f"benchmarks/{script}.py", "--most", "3", "--json", target)


if __name__ == "__main__":
    nox.main()
