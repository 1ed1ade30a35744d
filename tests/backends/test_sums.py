"""Sums over events are right: for any number of events, of sets, in every layout, weighted or not."""

from __future__ import annotations

import numpy as np
import pytest
from launching import KINDS, Layout, assert_sums_agree, bind, model_of, shared, sums_of, values_of
from tolerances import FINITE_DIFFERENCE, FUSED, SAME_LINES, SUM_OF_LOGS
from zoo import ZOO, around

from morefit.backend import Backend, Cpu, Events, Reference
from morefit.expr import evaluate

SIZES = (1, 2, 7, 8, 9, 4095, 4096, 4097, 10_000)
BATCHES = (1, 2, 3, 8, 17)
RAGGED = (9, 0, 1, 4096, 0, 4097, 7, 5000, 0)
QUICK_EVERYWHERE = ("mass", "kstarmumu", "gaussian")  # the others cost seconds to compile at every width
SEVERAL = ("mass", "kstarmumu", "extended", "numerical")  # few parameters each


def skip_dear(name: str, backend: Backend, slow: bool) -> None:
    """Leave what takes long to compile to the slow run."""
    narrow = isinstance(backend, Cpu) and backend.width is not None
    dear = name == "many" or (narrow and name not in QUICK_EVERYWHERE)
    if dear != slow:
        pytest.skip("runs with the slow ones" if dear else "runs with the quick ones")


def check_all_sizes(name: str, kind: str, weighted: bool, fast: Backend) -> None:
    x = around(model_of(name)[2], 1)
    sizes = (1, 9, 4097) if name == "many" else SIZES
    for n in sizes:
        layout = shared(name, n, weighted)
        found = bind(sums_of(name, kind, weighted, fast), name, layout)(x)
        judge = bind(sums_of(name, kind, weighted, Reference()), name, layout)
        assert_sums_agree(found, judge, x, SAME_LINES)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [n for n in ZOO if n != "many"])
class TestSumsAgreeWithTheReference:
    @pytest.mark.parametrize("name", QUICK_EVERYWHERE)
    def test_on_every_backend(self, name, kind, weighted, fast):
        check_all_sizes(name, kind, weighted, fast)
