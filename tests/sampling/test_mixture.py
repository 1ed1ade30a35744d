"""One formula for components of the same form: the same events, with fewer functions."""

from __future__ import annotations

import numpy as np
import pytest

import morefit as mf
from morefit.expr import Op, column, const, evaluate, lookup, toposort, where
from morefit.expr.build import with_name
from morefit.expr.symbol import Symbol
from morefit.sampling.envelope import Numbers, table
from morefit.sampling.mixture import Choice, first_below, pick
from morefit.sampling.recipe import recipe

U, V = (column(Symbol(name)) for name in ("u", "v"))
EDGES = [0.1, 0.35, 0.6, 0.8, 1.0]


def count(op, expr):
    return sum(node.op is op for node in toposort(expr))


def gaussian(mean, width, low=0.2, share=0.5):
    return const(mean) + const(width) * Op.NDTRI(const(low) + const(share) * V)


FORMULAS = {
    "one form": [gaussian(3 + k, 0.5 + k, 0.1 + 0.1 * k) for k in range(5)],
    "numbers that leave the formula": [gaussian(1.0, 1.0), gaussian(0.0, 2.0), gaussian(5.0, 0.3, 0.0, 1.0)],
    "another form between": [gaussian(1.5, 2.5), np.log(V) * 2, gaussian(4.0, 3.0), 3 * np.log(V + 1)],
    "mirrored": [gaussian(1.5, 2.5), 2 - gaussian(4.0, 3.0), gaussian(1.0, -1.0)],
    "powers": [(V + 2) ** 3 * Op.NDTRI(V), (V + 3) ** 3.5 * Op.NDTRI(V / 2), (V + 4) ** 3 * Op.NDTRI(V / 3)],
    "tables": [lookup(table(f"t{k}", np.arange(4.0) * k), np.floor(4 * V)) * Op.NDTRI(V / (k + 2)) for k in range(3)],
    "choices within": [where(V < 0.3 + 0.1 * k, gaussian(k + 0.3, 2.2), np.exp(V * (k + 3))) for k in range(4)],
    "a name": [with_name(Symbol("peak"), gaussian(1.5, 2.5)), gaussian(4.0, 3.0), gaussian(5.0, 0.3)],
    "the same twice": [gaussian(1.5, 2.5), gaussian(1.5, 2.5), gaussian(3.0, 2.5)],
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_the_formula_that_is_chosen_has_its_value(name):
    exprs = FORMULAS[name]
    edges = [*EDGES[: len(exprs) - 1], 1.0]
    chosen = Choice(exprs, edges, U).made
    places = {"u": np.tile(np.linspace(0, 0.999, 300), 7), "v": np.repeat(np.linspace(0.01, 0.99, 7), 300)}
    plain = evaluate(first_below(list(zip(edges, exprs, strict=True)), U), places)
    np.testing.assert_allclose(evaluate(chosen, places), plain, rtol=1e-14)
    assert count(Op.NDTRI, chosen) == 1


@pytest.mark.parametrize("exprs", [[V * 2.5, V + 3.5], [gaussian(1.5, 2.5), np.log(V)], [V, V]])
def test_formulas_that_share_little_are_chosen_as_they_are(exprs):
    assert pick(exprs, [0.5, 1.0], U) is first_below(list(zip([0.5, 1.0], exprs, strict=True)), U)


def test_deep_formulas_are_chosen_as_they_are():
    def deep(number):
        expr = V
        for k in range(3000):
            expr = np.exp(-(expr + number + k))
        return expr

    exprs = [deep(1.5), deep(2.5)]
    assert evaluate(pick(exprs, [0.5, 1.0], U), {"u": 0.7, "v": 0.3}) == evaluate(exprs[1], {"v": 0.3})


def test_many_peaks_are_drawn_with_one_quantile():
    x = mf.Observable("x", 0, 10)
    peaks = [mf.Gaussian(x, mf.Parameter(f"m{k}", k + 0.5), mf.Parameter(f"s{k}", 0.3)) for k in range(9)]
    model = mf.Sum(peaks, fractions=[mf.Parameter(f"f{k}", 1 / 9) for k in range(8)])
    drawn = recipe(model, {p.name: p.start for p in model.parameters}, Numbers())
    assert count(Op.NDTRI, drawn.drawn["x"]) == 1
    data = np.array(mf.generate(model, 20_000, seed=1)["x"])
    share = np.histogram(data, bins=np.arange(10))[0] / len(data)
    np.testing.assert_allclose(share, 1 / 9, atol=0.012)
