"""What depends on a row of given data alone is computed once for each row."""

import numpy as np

import morefit as mf
from morefit.expr import Op, toposort
from morefit.sampling import conditional_rows as module
from morefit.sampling.conditional_rows import conditional_rows
from morefit.sampling.envelope import MARGIN, Numbers
from morefit.sampling.generate import Sampler
from morefit.sampling.recipe import recipe
from morefit.targets.cpu.run import Cpu

T, Y = mf.Observable("t", 0.0, 5.0), mf.Observable("y", 0.1, 1.0)
MODEL = mf.Efficiency(mf.Gaussian(T, 2.0, Y, given=[Y]), 1.0 + np.arctan(T))
GIVEN = {"y": np.linspace(0.2, 0.9, 50)}


def sums_in_candidates():
    rows = conditional_rows("draw", MODEL, GIVEN)
    candidate = recipe(MODEL, {}, Numbers(), rows, Cpu(threads=1))
    return sum(node.op is Op.NODE_SUM for node in toposort(candidate.accept))


def test_integrals_of_given_columns_alone_are_tables():
    # every candidate used to compute them anew: 200 x 10 000 events took minutes
    assert sums_in_candidates() == 0


def test_tables_change_no_event(monkeypatch):
    drawn = mf.generate(MODEL, 200, given=GIVEN, seed=3)
    monkeypatch.setattr(module, "MAX_TABULATED", 0)
    assert sums_in_candidates() > 0
    again = mf.generate(mf.Efficiency(MODEL.base, 1.0 + np.arctan(T)), 200, given=GIVEN, seed=3)
    np.testing.assert_array_equal(drawn["t"], again["t"])


def test_no_row_of_a_truncated_density_is_above_its_envelope():
    # toys were drawn and fitted again and again with ever higher ones, each toy by itself: ten times their time
    late = mf.Density(np.exp(-3 * (T - Y)) * (T > Y), T, given=[Y], integral=(1 - np.exp(-3 * (5 - Y))) / 3)
    rows = conditional_rows("draw", late, {"y": np.linspace(0.1, 1.0, 400)})
    sampler = Sampler(late, {}, Cpu(threads=1), given=rows)
    sampler.draw(np.array([20_000]), 1)
    assert sampler.margin == MARGIN
