"""What every test starts from: one profile for hypothesis, and a cache folder that is thrown away."""

import gc
import os
import sys
from pathlib import Path

# before numpy is imported: threads of its matrix products wait in loops for each other, and workers have one core each
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# before morefit is imported: what modules of tests compile on import is compiled as for most of their tests
os.environ["MOREFIT_LLVM_LEVEL"] = "0"

import pytest
from hypothesis import HealthCheck, settings

from morefit.pipeline import compile_renamed, compile_sampler, compile_sums, compile_values
from morefit.targets.ahead import wait_for_all
from morefit.targets.cpu import compile as machine_code
from morefit.targets.cpu.fit_driver import driver_code, expect_driver

sys.path.insert(0, str(Path(__file__).parent))  # so that tests in any folder find strategies, tolerances, ...
os.environ["MPLBACKEND"] = "Agg"  # figures are looked at by tests only
# Half of what PoCL takes to build a kernel is to optimise it, more than the few events of a test take to run. Kernels of
# tests/statistics are optimised, as those of users are.
os.environ.setdefault("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable")

from pocl_processor import name_processor

name_processor()

# Folders and files of tests whose texts LLVM simplifies, by what it knows to be undefined, and whose machine code it selects,
# orders and puts into registers as well as it can, as it does for users: they test what it computes. For all others it
# inlines functions alone, and takes a third of the time, studies of many toys as well.
OPTIMISED = {
    "functions", "kernel", "test_accuracy", "test_branches", "test_operations", "test_phases", "test_sums", "test_vecmath",
    "test_whole_fits",
}  # fmt: skip
PROGRAMS = (compile_sums, compile_renamed, compile_values, compile_sampler, driver_code, expect_driver)

PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
settings.register_profile(
    "morefit", deadline=None, derandomize=True, database=None, max_examples=50, suppress_health_check=PATIENT
)
# to look for bugs rather than to guard against old ones: pytest --hypothesis-profile=search
settings.register_profile(
    "search", deadline=None, database=None, max_examples=4000, suppress_health_check=PATIENT
)
settings.load_profile("morefit")


def pytest_collection_finish() -> None:
    """Look for garbage less often, and never among tests and modules: that was a tenth of the whole run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Switch the optimisation of machine code to that of the file; programs with another one are forgotten."""
    level = 2 if {item.path.parent.name, item.path.stem} & OPTIMISED else 0
    if level == machine_code.LEVEL:
        return
    wait_for_all()
    for cached in PROGRAMS:
        cached.cache_clear()
    machine_code.LEVEL = level
    # processes that a test starts compile as it does, and find its code on disk
    os.environ["MOREFIT_LLVM_LEVEL"] = str(level)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Collect what a test with others' processes leaves behind while its own filters hold, not in a test after it."""
    filters = [text for mark in item.iter_markers("filterwarnings") for text in mark.args]
    if any("ResourceWarning" in text for text in filters):
        gc.collect()


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory):
    """Keep compiled kernels of the tests away from the user's own; workers of one run share them."""
    before = os.environ.get("MOREFIT_CACHE_DIR")
    own = tmp_path_factory.getbasetemp()
    os.environ["MOREFIT_CACHE_DIR"] = str(
        (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache"
    )
    yield
    if before is None:
        del os.environ["MOREFIT_CACHE_DIR"]
    else:
        os.environ["MOREFIT_CACHE_DIR"] = before
