"""Every backend test runs on every backend, each a row of backend_rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend_rows import COMPILED, JUDGE, there
from morefit.targets import Backend
from morefit.targets.cpu import run as cpu

FOLDER = Path(__file__).parent
CHEAP = {"mass", "kstarmumu", "gaussian"}  # models that compile fast enough to be tried on every backend
EVERYWHERE = {
    "test_sums",
    "test_operations",
    "test_determinism",
}  # files that try every width in the quick run
FIRST = {"cpu", "width-1", "reference"}  # the others try these: vectors, no vectors, numpy


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Call slow what takes seconds to compile and tells little more."""
    for item in items:
        if item.path.parent != FOLDER:
            continue
        name, place = chosen_of(item)
        dear = name not in CHEAP and place not in {"cpu", "reference"}
        rare = item.path.stem not in EVERYWHERE and place not in FIRST
        if name == "many" or dear or rare:
            item.add_marker(pytest.mark.slow)


def chosen_of(item: pytest.Item) -> tuple[str, str]:
    """Return the model and the backend that a test was given."""
    chosen = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return chosen.get("name", "mass"), chosen.get("fast", chosen.get("backend", "cpu"))


@pytest.fixture(params=COMPILED | JUDGE)
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each backend, the reference among them: for judges that are not the reference."""
    return there((COMPILED | JUDGE)[request.param])


@pytest.fixture(params=COMPILED)
def fast(request: pytest.FixtureRequest) -> Backend:
    """Each backend that the reference judges, or that promises more than it."""
    return there(COMPILED[request.param])


@pytest.fixture(autouse=True)
def _threads_for_every_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wake the threads also for the little work that tests have."""
    monkeypatch.setattr(cpu, "WORTH_THREADS", 0.0)
