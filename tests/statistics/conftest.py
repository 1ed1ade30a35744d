"""Every statistics test runs on every fast backend, with numbers of toys that this backend can afford."""

from __future__ import annotations

import pytest
from sizes import SIZES, Sizes

from backend_rows import STATISTICS, there
from morefit.targets.base import Backend

# Models that other backends than the first draw samples of, by rejection in one observable, in parts of a sum and in
# several observables: tests/targets/test_opencl.py and tests/sampling compare their events one by one.
FAMILIES = ("cubic", "mixture", "kstarmumu")
LONGEST = ("crystal_ball_tail", "kstar_model")  # to build on a device


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Call exhaustive what tells no more than its neighbours do: samples of every model on every backend.

    So are the whole fits that a device takes longest to build: branches and angles are tried there in tests/targets.
    """
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is None:
            continue
        chosen = callspec.params
        name, elsewhere = chosen.get("name"), chosen.get("backend", "cpu") != "cpu"
        sampled = name == "many" or (elsewhere and name not in FAMILIES)
        longest = elsewhere and getattr(chosen.get("make"), "__name__", "") in LONGEST
        if (item.path.name == "test_sampling.py" and sampled) or longest:
            item.add_marker(pytest.mark.exhaustive)


@pytest.fixture(scope="module", autouse=True)
def _optimised_kernels():
    """Build kernels on a device as users do: toys are many, and the other tests build without optimisation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("POCL_EXTRA_BUILD_FLAGS", raising=False)
        yield


@pytest.fixture(scope="module", params=STATISTICS)
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each backend that draws and fits many toys in reasonable time."""
    return there(STATISTICS[request.param])


@pytest.fixture(scope="module")
def sizes(backend: Backend) -> Sizes:
    """The numbers of events and toys for this backend."""
    return SIZES[backend.name]
