"""Decays times piecewise polynomials, against dense sums; and where their closed form would lose digits."""

import numpy as np
import pytest

import morefit as mf
from morefit.expr import evaluate
from morefit.model.piecewise_decays import cells_of
from tolerances import QUADRATURE

T, ERROR, TAG = mf.Observable("t", -0.5, 10.0), mf.Observable("st", 0.01, 0.15), mf.Observable("q", -1.0, 1.0)
TAU, DM = mf.Parameter("tau", 1.5, 1.0, 2.0), mf.Parameter("dm", 5.0, 4.0, 6.0)
HEIGHT = mf.Parameter("h", 0.5, 0.02, 3.0)
KNOTS = [-0.5, 0.2, 0.6, 1.2, 3.0, 10.0]
EDGES = [-0.5, 0.5, 1.0, 3.0, 10.0]
ACCEPTANCES = {
    "spline": mf.spline(T, KNOTS, [0.1, HEIGHT, 0.8, 0.95, 1.0, 1.0], boundary="natural"),
    "steps": mf.histogram_function(T, ([0.1, 0.5, 1.0, 0.8], EDGES)),
    "lines": mf.table(T, [0.0, 0.3, 4.0, 9.0], [0.2, 0.5, 0.8, 0.9]),
    "polynomial": 1 + 0.1 * T + 0.02 * HEIGHT * T**2,
}
DECAYS = {
    "one Gaussian": mf.shapes.Decay(T, TAU, sigma=[1.15 * ERROR], given=[ERROR]),
    "two Gaussians": mf.shapes.Decay(
        T, TAU, sigma=[ERROR, 3 * ERROR], mean=[0.02], fractions=[0.8], given=[ERROR]
    ),
    "oscillation": mf.shapes.BDecay(
        T,
        TAU,
        delta_m=DM,
        delta_gamma=0.2,
        sinh=0.3,
        cos=0.4 * TAG,
        sin=-0.5,
        sigma=[1.1 * ERROR],
        given=[ERROR, TAG],
    ),
    "exact times": mf.shapes.BDecay(T, TAU, delta_m=DM, cos=0.4 * TAG, sin=-0.5, given=[TAG]),
}


@pytest.mark.parametrize("acceptance", ACCEPTANCES)
@pytest.mark.parametrize("decay", DECAYS)
def test_integrals_for_each_event_are_those_of_dense_sums(decay, acceptance):
    pdf, function = DECAYS[decay], ACCEPTANCES[acceptance]
    values = {"tau": 1.4, "dm": 5.1, "h": 0.45, "st": np.array([0.012, 0.15]), "q": np.array([-1.0, 0.7])}
    closed = pdf.integral_times(function)
    ends = np.unique([*np.linspace(-0.5, 10.0, 2101), *KNOTS, *EDGES, 0.3, 4.0, 9.0])
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(ends)[:, None] / 2
    times, steps = (ends[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()
    density = mf.Efficiency(pdf, function).density()
    dense = [
        evaluate(density, {**values, "st": st, "q": q, "t": times}) @ steps
        for st, q in zip(values["st"], values["q"], strict=True)
    ]
    assert evaluate(closed, values) == pytest.approx(dense, rel=QUADRATURE)


@pytest.mark.parametrize(
    "function",
    [
        mf.spline(T, [-0.5, 0.0, 0.01, 10.0], [0.1, 0.5, 0.8, 1.0]),  # a lifetime has too many such cells
        1 - np.exp(-T),
        mf.where(T < TAU, T, 1.0),
        1 + ERROR * T,
        (1 + T) ** 4,
        mf.table(2 * T, [0.0, 1.0], [0.0, 1.0]),
    ],
    ids=["narrow", "exponential", "moving", "of the error", "order", "of twice the time"],
)
def test_other_acceptances_are_left_to_rules(function):
    assert DECAYS["one Gaussian"].integral_times(function) is None


def test_limits_that_let_much_cancel_are_left_to_rules():
    wide, free = mf.Parameter("tau", 1.5, 1.0, 1000.0), mf.Parameter("tau", 1.5)
    by_rule, closed = (
        mf.shapes.Decay(T, tau, sigma=[ERROR], given=[ERROR]).integral_times(ACCEPTANCES["spline"])
        for tau in (wide, free)
    )
    assert by_rule is None
    assert closed is not None


def test_cells_lie_between_the_kinks_inside_of_a_range():
    cells = cells_of(mf.table(T, [-2.0, 0.0, 4.0, 12.0], [0.0, 1.0, 1.0, 3.0]), T)
    assert cells.edges == pytest.approx([-0.5, 0.0, 4.0, 10.0])
    assert cells.rows[:2] == pytest.approx(np.array([[0.75, 1.0, 1.0], [0.5, 0.0, 0.25]]))


def test_conditional_efficiencies_are_normalised_by_the_closed_form():
    pdf, acceptance = DECAYS["one Gaussian"], ACCEPTANCES["spline"]
    assert mf.Efficiency(pdf, acceptance).integral() is pdf.integral_times(acceptance)
