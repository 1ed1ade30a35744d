"""Models that are hard to fit, with their truth and numbers of events: what a minimiser must not give up on.

``MODELS[name]()`` returns a ``HardModel``. Fits start at the start values of the model, which are not always the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

import morefit as mf
from models import kstar_model

P = mf.Parameter


@dataclass(frozen=True, eq=False)
class HardModel:
    """A model, the values that toys are drawn at where these are not where fits start, and the events of a toy."""

    model: mf.Pdf
    events: float  # expected; Poisson if the model has yields
    truth: Mapping[str, float] = field(default_factory=dict)

    @property
    def all_values(self) -> dict[str, float]:
        """The truth of all parameters."""
        return {p.name: p.start for p in self.model.parameters} | dict(self.truth)


def constant(name: str, value: float) -> mf.Parameter:
    return P(name, value, fixed=True)


def two_crystal_balls() -> HardModel:
    """Two Crystal Balls with a common mean and fixed tails on an exponential, extended."""
    x, mu = mf.Observable("x", 5.0, 5.6), P("mu", 5.28, 5.2, 5.36)
    left = mf.CrystalBall(x, mu, P("s1", 0.016, 0.005, 0.05), constant("al", 1.5), constant("nl", 3.0))
    right = mf.CrystalBall(x, mu, P("s2", 0.022, 0.005, 0.05), constant("ar", -1.8), constant("nr", 4.0))
    signal = mf.Sum([left, right], fractions=[P("f", 0.6, 0.0, 1.0)])
    background = mf.Exponential(x, P("c", -3.0, -20.0, 5.0))
    yields = [P("Ns", 400.0, 0.0, 1e6), P("Nb", 600.0, 0.0, 1e6)]
    return HardModel(mf.Sum([signal, background], yields=yields), 1000)


def johnson_and_threshold() -> HardModel:
    """A Johnson S_U peak on a threshold, both integrated by quadrature."""
    x = mf.Observable("x", 0.0, 20.0)
    xi, scale = P("xi", 6.0, 4.0, 8.0), P("lam", 0.8, 0.2, 3.0)
    z = (x - xi) / scale
    gamma, delta = P("gamma", 0.2, -3.0, 3.0), P("delta", 1.4, 0.5, 6.0)
    root = np.sqrt(1 + z**2)
    peak = mf.Density(np.exp(-0.5 * (gamma + delta * np.log(z + root)) ** 2) / root, [x])
    power, slope = P("a", 0.7, 0.1, 3.0), P("b", 0.25, 0.01, 2.0)
    threshold = mf.Density((x + 1e-3) ** power * np.exp(-slope * x), [x])
    return HardModel(mf.Sum([peak, threshold], fractions=[P("f", 0.4, 0.0, 1.0)]), 1000)


def three_crystal_balls(floating_tails: bool, background: float) -> mf.Pdf:
    x = mf.Observable("x", 5.0, 6.0)
    peaks = []
    for i in range(3):
        mu = P(f"m{i}", 5.15 + 0.2 * i, 5.05 + 0.2 * i, 5.25 + 0.2 * i)
        sigma = P(f"s{i}", 0.02 + 0.005 * i, 0.005, 0.06)
        power = P(f"n{i}", 3.0, 1.1, 20.0, fixed=not floating_tails)
        peaks.append(mf.CrystalBall(x, mu, sigma, P(f"a{i}", 1.5, 0.5, 5.0), power))
    slope = mf.Exponential(x, P("c", -1.0, -5.0, 5.0))
    yields = [*(P(f"N{i}", 800.0, 0.0, 1e5) for i in range(3)), P("Nb", background, 0.0, 1e5)]
    return mf.Sum([*peaks, slope], yields=yields)


def fourteen_parameters() -> HardModel:
    """Three Crystal Balls with fixed powers on an exponential, extended."""
    return HardModel(three_crystal_balls(False, 3000.0), 5400)


def seventeen_parameters() -> HardModel:
    """The same with floating power-law tails."""
    return HardModel(three_crystal_balls(True, 3000.0), 5400)


def thirty_fractions() -> HardModel:
    """The fractions of 30 fixed Gaussians."""
    x = mf.Observable("x", 0.0, 31.0)
    peaks = [mf.Gaussian(x, constant(f"m{i}", 1.0 + i), constant(f"s{i}", 0.6)) for i in range(30)]
    fractions = [P(f"f{i}", 1 / 30, 0.0, 1.0) for i in range(29)]
    return HardModel(mf.Sum(peaks, fractions=fractions), 10_000)


def near_equal_widths() -> HardModel:
    """Two Gaussians of one mean and almost one width."""
    x, mu = mf.Observable("x", -5.0, 5.0), P("mu", 0.0, -1.0, 1.0)
    widths = [P("s1", 0.9, 0.2, 3.0), P("s2", 1.1, 0.2, 3.0)]
    peaks = [mf.Gaussian(x, mu, s) for s in widths]
    return HardModel(mf.Sum(peaks, fractions=[P("f", 0.5, 0.0, 1.0)]), 1000)


def floating_tail() -> HardModel:
    """One Crystal Ball with a floating power-law tail on a little background, few events."""
    x = mf.Observable("x", 5.0, 5.6)
    shape = [
        P("mu", 5.28, 5.2, 5.36),
        P("s", 0.02, 0.005, 0.05),
        P("a", 1.5, 0.3, 5.0),
        P("n", 3.0, 1.01, 30.0),
    ]
    parts = [mf.CrystalBall(x, *shape), mf.Exponential(x, P("c", -1.0, -20.0, 20.0))]
    return HardModel(mf.Sum(parts, fractions=[P("f", 0.6, 0.0, 1.0)]), 200)


def empty_component() -> HardModel:
    """A peak of floating place and width that is not there, on an exponential."""
    x = mf.Observable("x", 0.0, 10.0)
    peak = mf.Gaussian(x, P("mu", 5.0, 2.0, 8.0), P("s", 0.5, 0.1, 2.0))
    background = mf.Exponential(x, P("c", -0.3, -3.0, 3.0))
    yields = [P("Ns", 20.0, 0.0, 1e4), P("Nb", 500.0, 0.0, 1e4)]
    return HardModel(mf.Sum([peak, background], yields=yields), 500, {"Ns": 0.0})


def empty_fraction() -> HardModel:
    """A second, wider Gaussian that is not there, its fraction allowed to be negative by nothing."""
    x, mu = mf.Observable("x", -5.0, 5.0), P("mu", 0.0, -2.0, 2.0)
    core, wide = mf.Gaussian(x, mu, P("s1", 0.5, 0.1, 1.0)), mf.Gaussian(x, mu, P("s2", 1.5, 1.0, 4.0))
    background = mf.Uniform(x)
    fractions = [P("f1", 0.6, 0.0, 1.0), P("f2", 0.1, 0.0, 1.0)]
    return HardModel(mf.Sum([core, wide, background], fractions=fractions), 1000, {"f2": 0.0, "f1": 0.7})


def at_limits() -> HardModel:
    """A width and a slope whose truth is at their limits."""
    x = mf.Observable("x", 0.0, 10.0)
    peak = mf.Gaussian(x, P("mu", 5.0, 3.0, 7.0), P("s", 0.5, 0.4, 2.0))
    background = mf.Polynomial(x, [P("c1", 0.0, -0.1, 1.0), P("c2", 0.0, 0.0, 0.1)])
    model = mf.Sum([peak, background], fractions=[P("f", 0.3, 0.0, 1.0)])
    return HardModel(model, 500, {"s": 0.4, "c1": -0.1, "c2": 0.01})


def few_events() -> HardModel:
    """A Gaussian of floating width on an exponential, 200 events and a signal of 20."""
    x = mf.Observable("x", 5.0, 7.0)
    peak = mf.Gaussian(x, P("mu", 5.6, 5.3, 6.5), P("s", 0.06, 0.01, 0.4))
    background = mf.Exponential(x, P("c", -1.0, -10.0, 10.0))
    return HardModel(mf.Sum([peak, background], fractions=[P("f", 0.1, 0.0, 1.0)]), 200)


def far_apart_scales() -> HardModel:
    """A mean in units of 1e6, a width in units of 1e-6, without limits where there need be none."""
    x = mf.Observable("x", -5.0, 5.0)
    mean, width, slope = P("mean", 2e5, -5e6, 5e6), P("width", 8e-7, 1e-7, 5e-6), P("c", 1e-9)
    peak = mf.Gaussian(x, mean * 1e-6, width * 1e6)
    background = mf.Exponential(x, slope * 1e8)
    yields = [P("Ns", 300.0, 0.0, np.inf), P("Nb", 700.0, 0.0, np.inf)]
    return HardModel(mf.Sum([peak, background], yields=yields), 1000)


def saddle_start() -> HardModel:
    """Two Gaussians that start as one: a saddle point, or flat."""
    x = mf.Observable("x", -5.0, 5.0)
    peaks = [mf.Gaussian(x, P(f"m{i}", 0.0, -4.0, 4.0), P(f"s{i}", 1.0, 0.1, 3.0)) for i in range(2)]
    model = mf.Sum(peaks, fractions=[P("f", 0.5, 0.0, 1.0)])
    return HardModel(model, 1000, {"m0": -1.2, "m1": 1.0, "s0": 0.7, "s1": 0.9})


def starts_at_limits() -> HardModel:
    """A fit of which most parameters start at a limit."""
    x = mf.Observable("x", 0.0, 10.0)
    peak = mf.Gaussian(x, P("mu", 3.0, 3.0, 7.0), P("s", 3.0, 0.2, 3.0))
    background = mf.Exponential(x, P("c", 0.0, -3.0, 0.0))
    model = mf.Sum([peak, background], fractions=[P("f", 0.0, 0.0, 1.0)])
    return HardModel(model, 1000, {"mu": 5.0, "s": 0.5, "c": -0.3, "f": 0.3})


def argus_end_point() -> HardModel:
    """A Gaussian on an ARGUS background with a floating end point: beyond it there is no density."""
    x = mf.Observable("x", 5.2, 5.3)
    end, shape = P("end", 5.291, 5.28, 5.31), P("chi", -20.0, -100.0, -0.1)
    z = mf.where(x < end, 1 - (x / end) ** 2, 0.0)
    argus = mf.Density(x * np.sqrt(z) * np.exp(shape * z), [x])
    peak = mf.Gaussian(x, P("mu", 5.279, 5.27, 5.288), P("s", 0.003, 0.001, 0.01))
    return HardModel(mf.Sum([peak, argus], fractions=[P("f", 0.3, 0.0, 1.0)]), 1000)


def box_edge() -> HardModel:
    """A triangle that ends at a floating edge, alone: a step beyond an event has no density there."""
    x = mf.Observable("x", 0.0, 10.0)
    edge, power = P("edge", 9.0, 2.0, 10.0), P("power", 2.0, 0.5, 6.0)
    body = mf.where(x < edge, (1 - x / edge) ** power, 0.0)
    return HardModel(mf.Density(body, [x]), 500, {"edge": 8.0, "power": 3.0})


def only_a_product() -> HardModel:
    """An exponential whose slope is a * b: one direction is flat."""
    x = mf.Observable("x", 0.0, 10.0)
    model = mf.Exponential(x, -P("a", 1.0, 0.01, 10.0) * P("b", 0.7, 0.01, 10.0))
    return HardModel(model, 500, {"b": 0.5})


def few_angles() -> HardModel:
    """The angular density of B -> K* mu mu with 100 events: some fits end where the density is almost zero."""
    return HardModel(kstar_model(), 100)


MODELS: Mapping[str, Callable[[], HardModel]] = {
    make.__name__.replace("_", " "): make
    for make in (
        two_crystal_balls, johnson_and_threshold, fourteen_parameters, seventeen_parameters, thirty_fractions,
        near_equal_widths, floating_tail, empty_component, empty_fraction, at_limits, few_events, far_apart_scales,
        saddle_start, starts_at_limits, argus_end_point, box_edge, only_a_product, few_angles,
    )
}  # fmt: skip
