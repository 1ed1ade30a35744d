"""Shapes that cost more than a Gaussian, at a million events: nanoseconds per event of one fused pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import morefit as mf
from models import kstar_model

EVENTS = 1_000_000
CELLS = 10  # on each axis of an acceptance
P = mf.Parameter


def double_crystal_ball() -> mf.Pdf:
    """Return a double-sided Crystal Ball on a Chebyshev polynomial: nine parameters."""
    m = mf.Observable("m", 5.0, 5.6)
    signal = mf.shapes.DoubleCrystalBall(
        m, P("mu", 5.28, 5.2, 5.36), P("sigma", 0.02, 0.005, 0.1), P("alpha_left", 1.5, 0.5, 4.0),
        P("n_left", 3.0, 1.1, 20.0), P("alpha_right", 1.8, 0.5, 4.0), P("n_right", 4.0, 1.1, 20.0),
    )  # fmt: skip
    background = mf.shapes.Chebyshev(m, [P("c1", -0.3, -1.0, 1.0), P("c2", 0.05, -1.0, 1.0)])
    return mf.Sum([signal, background], fractions=[P("f", 0.5, 0.0, 1.0)])


def decay() -> mf.Pdf:
    """Return decay times with an error in every event, whose scale floats."""
    t, sigma_t = mf.Observable("t", -1.0, 12.0), mf.Observable("sigma_t", 0.005, 0.2)
    return mf.shapes.Decay(
        t, P("tau", 1.5, 0.5, 4.0), sigma=[P("scale", 1.2, 0.5, 2.0) * sigma_t], given=[sigma_t]
    )


def voigt() -> mf.Pdf:
    m = mf.Observable("m", 5.0, 6.0)
    return mf.shapes.Voigt(m, P("mu", 5.5, 5.3, 5.7), P("sigma", 0.03, 0.01, 0.1), P("gamma", 0.1, 0.01, 0.3))


def landau() -> mf.Pdf:
    """Return a Landau density with a Gaussian resolution, which has no formula."""
    m, d = mf.Observable("m", 0.0, 30.0), mf.Observable("d", -6.0, 6.0)
    energy = mf.shapes.Landau(m, P("mpv", 8.0, 4.0, 12.0), P("width", 1.0, 0.3, 3.0))
    return mf.Convolution(energy, mf.Gaussian(d, 0.0, P("sigma", 1.0, 0.2, 3.0)))


def accepted_angles() -> mf.Pdf:
    """Return B0 -> K*0 mu mu in three angles with an acceptance that is a histogram of these."""
    angles = kstar_model()
    edges = [np.linspace(o.low, o.high, CELLS + 1) for o in angles.observables]
    contents = np.random.default_rng(1).uniform(0.2, 1.0, [CELLS] * 3)
    return mf.Efficiency(angles, mf.table(list(angles.observables), edges, contents, "steps"))


LARGE: Mapping[str, Callable[[], mf.Pdf]] = {
    "double Crystal Ball + Chebyshev": double_crystal_ball,
    "decay, per-event resolution": decay,
    "Voigt": voigt,
    "Landau x Gaussian, numerical": landau,
    "three angles": kstar_model,
    "three angles, histogram acceptance": accepted_angles,
}


def likelihood_at(name: str, backend: Any, events: int = EVENTS) -> mf.Likelihood:
    """Return the likelihood of a model and its own events."""
    model = LARGE[name]()
    errors = {"sigma_t": np.clip(np.random.default_rng(1).gamma(4.0, 0.01, events), 0.005, 0.2)}
    data = mf.generate(model, given=errors, seed=1) if model.given else mf.generate(model, events, seed=1)
    return mf.Likelihood(model, data, backend=backend)


def best_time(call: Callable[[], object], repeats: int) -> float:
    """Return the CPU time of a call, best of several."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def time_pass(
    name: str, backend: Any, repeats: int, events: int = EVENTS
) -> tuple[mf.Likelihood, dict[str, Any]]:
    """Time the value, gradient and Hessian of one model, and the value alone; and the seconds to the first."""
    begin = time.perf_counter()
    nll = likelihood_at(name, backend, events)
    at = np.array([p.start for p in nll.parameters])
    nll.hessian(at)
    first = time.perf_counter() - begin
    nll.value(at)
    each = 1e9 / events
    return nll, {
        "model": name, "parameters": len(nll.parameters), "events": events, "first_pass_s": first,
        "pass_ns_per_event": each * best_time(lambda: nll.hessian(at), repeats),
        "value_ns_per_event": each * best_time(lambda: nll.value(at), repeats),
    }  # fmt: skip
