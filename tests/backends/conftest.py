"""Every backend test runs on every backend: a new one is one row here."""

from __future__ import annotations

import pytest

from morefit.backend import Backend, Cpu, Reference, cpu

COMPILED: dict[str, Backend] = {
    "cpu": Cpu(threads=1),
    "two-threads": Cpu(threads=2),
    "width-4": Cpu(threads=1, width=4),
    "width-2": Cpu(threads=1, width=2),
    "width-1": Cpu(threads=1, width=1),
}
JUDGE: dict[str, Backend] = {"reference": Reference()}
CHEAP = {"mass", "kstarmumu", "gaussian"}  # models that compile fast enough to be tried at every width


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Call slow what takes seconds to compile."""
    for item in items:
        chosen = (
            item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        )
        name, place = chosen.get("name"), chosen.get("fast", chosen.get("backend", ""))
        if name == "many" or (name and name not in CHEAP and place.startswith("width")):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=COMPILED | JUDGE)
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each backend, the reference among them: for judges that are not the reference."""
    return (COMPILED | JUDGE)[request.param]


@pytest.fixture(params=COMPILED)
def fast(request: pytest.FixtureRequest) -> Backend:
    """Each backend that the reference judges, or that promises more than it."""
    return COMPILED[request.param]


@pytest.fixture(autouse=True)
def _threads_for_every_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wake the threads also for the little work that tests have."""
    monkeypatch.setattr(cpu, "WORTH_THREADS", 0.0)
