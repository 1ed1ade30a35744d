"""Random densities in pieces, whose edges move with parameters, have exact integrals and derivatives."""

import itertools

import numpy as np
import pytest
from mpmath import mp, mpf

import morefit as mf
from derivatives import value_and_derivatives
from morefit.expr import to_text
from recorded import recorded
from tolerances import WRITTEN_GRADIENT, WRITTEN_HESSIAN, WRITTEN_VALUE
from written.precise import DIGITS, break_points, compile_precise, derivatives, panel

LOW, HIGH = -2.0, 3.0
NAMES = ("a", "b", "c")
NODES = 24  # exact for the polynomials, and more than enough for the exponential


class Pieces:
    """A sum of products of functions with a kink or a step, and where those are."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.start, self.moved = (
            dict(zip(NAMES, self.rng.uniform(-1.5, 2.5, 3), strict=True)) for _ in range(2)
        )
        self.x = mf.Observable("x", LOW, HIGH)
        self.parameters = {n: mf.Parameter(n, v, -6, 6) for n, v in self.start.items()}
        self.edges = []
        terms = [self.factor() * self.factor() for _ in range(2)] + [self.factor()]
        envelope = np.exp(-0.3 * self.parameters["a"] * self.x) if seed % 2 else 1.0
        self.formula = (0.3 + sum(terms)) * envelope

    def edge(self, *levels):
        """Return slope * x - e(parameters), and note where it is zero or at one of the levels."""
        slope = float(self.rng.choice([-2.0, -1.0, 0.5, 1.0, 3.0]))
        weights = self.rng.choice([-0.5, 0.0, 1.0, 2.0], len(NAMES), p=[0.2, 0.4, 0.3, 0.1])
        shift = float(self.rng.uniform(-1, 1))

        def place(values):
            return sum((float(w) * values[n] for w, n in zip(weights, NAMES, strict=True)), shift)

        for level in (0.0, *levels):
            self.edges.append(lambda values, level=level: (place(values) + level) / slope)
        return slope * self.x - place(self.parameters)

    def factor(self):
        """Return a function of x that is nowhere negative."""
        high, low = (float(h) for h in self.rng.uniform(0.1, 2.0, 2))
        kinds = [
            lambda: abs(self.edge()),
            lambda: np.maximum(self.edge(), 0),
            lambda: -np.minimum(self.edge(), 0),
            lambda: mf.where(self.edge() > 0, high, low),
            lambda: mf.where(self.edge() <= 0, high * self.x**2, low),
            lambda: mf.where(self.edge() < 0, abs(self.edge()), high),
            lambda: low + high * ((self.edge() > 0) & (self.edge() < 0)),
            lambda: low + high * ((self.edge() > 0) | (self.edge() < 0)),
            lambda: np.maximum(low, np.minimum(high, abs(self.edge(low, -low, high, -high)))),
        ]
        return kinds[self.rng.integers(len(kinds))]()

    def log_integral(self, density):
        """Return the logarithm of the integral as a function of the parameters."""

        def function(values):
            ends = break_points([e(values) for e in self.edges], LOW, HIGH)
            total = mpf(0)
            for a, b in itertools.pairwise(ends):
                total += panel(lambda x: density({**values, "x": x}), a, b, NODES)
            return mp.log(total)

        return function


def exact_derivatives(pieces, model, values):
    """Return value, gradient and Hessian of the logarithm of the integral; those of the first seeds are recorded."""
    formula = to_text(model.density(), limit=None)

    def compute():
        with mp.workdps(DIGITS):
            exact = pieces.log_integral(compile_precise(model.density()))
            point = {n: mpf(v) for n, v in values.items()}
            found = derivatives(exact, point, [p.name for p in model.parameters])
            return [np.array(part, float).tolist() for part in found]

    modules = ("written.precise", __name__)
    return recorded("pieces", modules, f"integral at {values} of {formula}", compute)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(k, marks=pytest.mark.exhaustive) for k in range(3, 24))]
)
def test_random_pieces_are_integrated_with_exact_derivatives(seed):
    pieces = Pieces(seed)
    model = mf.Density(pieces.formula, [pieces.x])
    names = [p.name for p in model.parameters]
    likelihoods = [mf.Likelihood(density, {"x": [0.123456]}) for density in (model, bare(model))]
    for values in (pieces.start, pieces.moved):
        value, gradient, hessian = (np.array(part) for part in exact_derivatives(pieces, model, values))
        x = [values[n] for n in names]
        whole, events = (value_and_derivatives(likelihood, x) for likelihood in likelihoods)
        scale = max(1.0, np.abs(hessian).max(initial=0.0))
        assert abs(whole[0] - events[0] - value[0]) < WRITTEN_VALUE
        np.testing.assert_allclose(whole[1] - events[1], gradient, rtol=0, atol=WRITTEN_GRADIENT * scale)
        np.testing.assert_allclose(whole[2] - events[2], hessian, rtol=0, atol=WRITTEN_HESSIAN * scale)


def bare(model):
    """Return a density with an integral of one."""
    return mf.Density(model.density(), model.observables, integral=1.0, check=False)


def test_many_edges_may_change_their_order():
    x = mf.Observable("x", 0.0, 10.0)
    a, b = mf.Parameter("a", 2.0, 0, 10), mf.Parameter("b", 9.0, 0, 10)
    formula = 0.5 + sum(abs(x - a - 0.5 * k) for k in range(6)) + mf.where(x < b, 1.0, 0.0)
    model, event = mf.Density(formula, [x]), {"x": [5.0]}
    whole, events = mf.Likelihood(model, event), mf.Likelihood(bare(model), event)
    for point in (
        (2.0, 9.0),
        (2.0, 3.2),
        (6.0, 1.0),
    ):  # (a, b): the step is above, between and below the kinks
        kinks = [point[0] + 0.5 * k for k in range(6)]
        integral = 5 + sum((c**2 + (10 - c) ** 2) / 2 for c in kinks) + point[1]
        slopes = np.array([sum(2 * c - 10 for c in kinks), 1.0]) / integral
        assert whole.value(point) - events.value(point) == pytest.approx(np.log(integral), rel=WRITTEN_VALUE)
        np.testing.assert_allclose(
            whole.gradient(point) - events.gradient(point),
            slopes,
            rtol=WRITTEN_GRADIENT,
            atol=WRITTEN_GRADIENT,
        )
