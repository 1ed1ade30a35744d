"""Every backend test runs on every backend, each a row of backend_rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend_rows import COMPILED, JUDGE, there
from morefit.targets.base import Backend
from morefit.targets.cpu import workspace

FOLDER = Path(__file__).parent
SIDES = {"two-threads", "width-4", "width-2", "width-1"}  # they share all but the loop with the main width
AS_ANOTHER = {"width-4", "width-2"}  # numbers in the text, as the main width is; width 1 alone has no vectors
BY_WIDTH = {
    "test_determinism.py",
    "test_streams.py",
    "test_sums.py",
}  # where lanes are added up, and have streams
ON_SIDES = {"mass", "zero", "zero under no logarithm", "power beyond an edge"}  # what is tried on them
CHEAP = {"mass", "gaussian"}  # models that compile fast also on a device, weighted or not
# A weight multiplies each term of an event, whatever the model: one with a sum, many terms, a term per set, and an integral
# that is summed.
WEIGHTED = {"mass", "kstarmumu", "extended", "numerical"}
# On a device other models are compared with the reference by one kernel: that of the Hessian, whose first sums are those of
# lower order, with tiles that of the Fisher matrix, and with branches, which it has many of, that of the gradient. That orders agree with each other and with finite differences, the
# cheap models tell there, and all models on the CPU.
ONE_KIND = {"many": "fisher", "crystal ball": "gradient"}
# Files whose every row is a kernel that a device takes long to build, and the rows that are tried there: one of each kind.
ON_DEVICES = {
    "test_single_precision.py": {"mass", "crystal ball", "zero"},
    "test_determinism.py": {"mass", "kstarmumu", "zero"},
    "test_bad_densities.py": {"mass", "zero", "not a number", "one of two", "zero under no logarithm"},
}
OF_ALL_ORDERS = {
    "test_derivatives_agree_with_finite_differences",
    "test_fused_sums_contain_those_of_lower_order",
    "test_value_is_the_sum_of_the_evaluated_logarithms",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Call slow what takes seconds to compile, and exhaustive what tells no more than its neighbours do."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is None or item.path.parent != FOLDER:
            continue
        chosen = callspec.params
        place = chosen.get("fast", chosen.get("backend", "cpu"))
        name, case = chosen.get("name", "mass"), chosen.get("case", "zero")
        aside = place in SIDES and not {name, case} <= ON_SIDES
        alike = AS_ANOTHER - {"width-4"} if item.path.name in BY_WIDTH else AS_ANOTHER
        if item.path.name == "test_operations.py":  # outside the loop threads run the code of one thread
            alike = AS_ANOTHER | {"two-threads"}
        on_device = name not in CHEAP and place == "opencl"
        dear = name == "many" or on_device
        kind = ONE_KIND.get(name, "hessian")
        repeated = chosen.get("kind", kind) != kind or getattr(item, "originalname", "") in OF_ALL_ORDERS
        weighted = bool(chosen.get("weighted")) and (dear or name not in WEIGHTED)
        # the Hessian of many parameters contains what is of lower order, and a test of its own has their Fisher matrix
        repeated_many = name == "many" and place == "cpu" and chosen.get("kind", "hessian") != "hessian"
        rows = ON_DEVICES.get(item.path.name, {name, case})
        unlike = place == "opencl" and not {name, case} <= rows
        if aside or place in alike or weighted or unlike or repeated_many or (on_device and repeated):
            item.add_marker(pytest.mark.exhaustive)
        elif dear:
            item.add_marker(pytest.mark.slow)


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
    monkeypatch.setattr(workspace, "WORTH_THREADS", 0.0)
