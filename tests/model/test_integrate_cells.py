"""Integrals of products with tables of several observables, against closed forms and against boxes."""

import numpy as np
import pytest

import morefit as mf
from morefit.model.integrate import terms
from morefit.model.integrate.terms import integrate_cells
from tolerances import TERM_INTEGRAL

C, T, PHI = mf.Observable("c", -1.0, 1.0), mf.Observable("t", 0.0, 2.0), mf.Observable("phi", -np.pi, np.pi)
BOX = (C, T, PHI)
COUNTS = (7, 5, 6)


def edges_of(counts, box=BOX):
    return [np.linspace(o.low, o.high, n) for o, n in zip(box, counts, strict=True)]


def numbers(shape):
    return np.random.default_rng(1).uniform(0.2, 1.0, shape)


def test_steps_of_three_observables_times_functions_of_each_are_sums_over_cells():
    edges, values = edges_of([n + 1 for n in COUNTS]), numbers(COUNTS)
    table = mf.table(list(BOX), edges, values, "steps")
    total, size = integrate_cells(
        (table, np.sqrt(1 - C**2), np.exp(-T), np.sin(PHI).expr), BOX, terms.integrate_box
    )
    c, t, phi = edges
    areas = [
        np.diff((c * np.sqrt(1 - c**2) + np.arcsin(c)) / 2),
        np.diff(-np.exp(-t)),
        np.diff(-np.cos(phi)),
    ]
    assert total == pytest.approx(np.einsum("ijk,i,j,k", values, *areas), abs=TERM_INTEGRAL * size)


def test_lines_between_corners_are_integrated_exactly():
    edges, values = edges_of(COUNTS), numbers(COUNTS)
    table = mf.table(list(BOX), edges, values)
    total, size = integrate_cells((table, T.expr), BOX, terms.integrate_box)
    weights = []
    for k, x in enumerate(edges):
        hats = np.eye(len(x))
        fine, w = np.polynomial.legendre.leggauss(3)
        nodes = x[:-1, None] + np.diff(x)[:, None] / 2 * (1 + fine)
        own = nodes if k == 1 else np.ones_like(nodes)
        weights.append([np.sum(np.diff(x)[:, None] / 2 * w * own * np.interp(nodes, x, hat)) for hat in hats])
    assert total == pytest.approx(np.einsum("ijk,i,j,k", values, *weights), abs=TERM_INTEGRAL * size)


@pytest.mark.parametrize(
    "factor",
    [abs(C - 0.37), np.exp(-(((T - 0.7) / 1e-3) ** 2)), mf.where(PHI < 0.1, 1.0, 2.0)],
    ids=["kink", "peak", "step"],
)
def test_what_is_not_smooth_in_cells_is_left_to_boxes(factor):
    table = mf.table(list(BOX), edges_of(COUNTS), numbers(COUNTS))
    assert integrate_cells((table, factor), BOX, terms.integrate_box) is None


def test_places_that_are_not_observables_and_products_without_tables_are_left_to_boxes():
    table = mf.table([C**2, T], [[0.0, 0.5, 1.0], [0.0, 1.0, 2.0]], numbers((2, 2)), "steps")
    assert integrate_cells((table,), (C, T), terms.integrate_box) is None
    assert integrate_cells((np.sin(C * T),), (C, T), terms.integrate_box) is None


def test_both_ways_agree(monkeypatch):
    table = mf.table([C, T], edges_of((3, 3), (C, T)), numbers((3, 3)))
    factors = (table, np.exp(C).expr, np.cos(T).expr)
    ours = terms.integrate_factors(factors, (C, T))
    monkeypatch.setattr(terms, "integrate_cells", lambda *_: None)
    assert ours[0] == pytest.approx(terms.integrate_factors(factors, (C, T))[0], rel=TERM_INTEGRAL)


def test_a_large_table_needs_no_boxes_and_a_fit_with_it_is_unbiased(monkeypatch):
    plain = terms.integrate_box

    def along_one_axis(product, box):
        assert len(box) == 1, "a table of 8000 cells must not be integrated by boxes"
        return plain(product, box)

    monkeypatch.setattr(terms, "integrate_box", along_one_axis)
    a, b = mf.Parameter("a", 0.3, -0.9, 0.9), mf.Parameter("b", 0.2, -0.9, 0.9)
    model = mf.Density(1 + a * C + b * np.cos(PHI) * T / 2, list(BOX))
    acceptance = mf.table(list(BOX), edges_of((21, 21, 21)), numbers((20, 20, 20)), "steps")
    accepted = mf.Efficiency(model, acceptance)
    result = mf.fit(accepted, mf.generate(accepted, 5000, seed=1))
    assert result.valid
    for name, true in (("a", 0.3), ("b", 0.2)):
        assert abs(result.values[name] - true) < 4 * result.errors[name]


def test_sums_of_products_are_integrated_axis_by_axis(monkeypatch):
    axes: list[int] = []
    plain = terms.integrate_box
    monkeypatch.setattr(terms, "integrate_box", lambda f, box: axes.append(len(box)) or plain(f, box))
    acceptance = 1 + 0.1 * C * T + 0.2 * C**2 * (T + np.sin(PHI)) * PHI**2
    exact = (T.high**2 - T.low**2) / 2 * (C.high - C.low) * (PHI.high - PHI.low)
    assert terms.integrate_factors((acceptance, T.expr), BOX)[0] > exact
    assert set(axes) == {1}
    total, _ = terms.integrate_factors((acceptance, T.expr), BOX)
    assert total == pytest.approx(plain(acceptance * T, BOX)[0], rel=TERM_INTEGRAL)


def test_odd_functions_vanish():
    x = mf.Observable("x", -1.0, 1.0)
    odd = (
        x * np.sqrt(1 - x**2) * mf.legendre(4, 0.1 + x - 0.1)
    )  # not quite: rounding differs between both sides
    number, size = terms.integrate_box(odd, (x,))
    assert abs(number) < 1e-14 * size
    assert size == pytest.approx(0.185, rel=0.1)
