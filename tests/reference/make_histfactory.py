"""Make histfactory.json: the numbers of pyhf for the workspaces of benchmarks/histfactory.py, minimised to the last digits.

python tests/reference/make_histfactory.py        # with pyhf, jax and numpy, not morefit
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import numpy as np
import pyhf

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from histfactory import workspace

HERE = Path(__file__).parent
STEP = 1e-5  # of differences of gradients
TESTED = {
    "tiny": (0.5, 1.0, 2.0, 3.0),
    "small": (1.0, 2.0, 3.0),
    "medium": (1.0, 2.0),
    "large": (1.0,),
    "huge": (),
    "shared": (1.0, 2.0),
}


class Polished(pyhf.optimize.scipy_optimizer):
    """SLSQP, and Newton steps after it: its own end is off by 1e-3 errors."""

    def _minimize(self, minimizer, func, x0, do_grad=False, bounds=None, fixed_vals=None, options=None):
        result = super()._minimize(minimizer, func, x0, do_grad, bounds, fixed_vals, options or {})
        fixed = [k for k, _ in fixed_vals or []]
        low, high = np.array(bounds, float).T
        x = np.clip(np.array(result.x, float), low, high)
        for _ in range(6):
            slope = gradient(func, x)
            free = np.array([k not in fixed for k in range(len(x))])
            free &= ~((x <= low) & (slope > 0)) & ~((x >= high) & (slope < 0))
            rows = np.flatnonzero(free)
            steps = STEP * np.eye(len(x))[rows]
            hessian = np.array(
                [(gradient(func, x + s) - gradient(func, x - s))[rows] / (2 * STEP) for s in steps]
            )
            x[rows] -= np.linalg.solve(hessian + hessian.T, 2 * slope[rows])
            x = np.clip(x, low, high)
        result.x, result.fun = x, float(np.asarray(func(x)[0]))
        return result


def gradient(func, x):
    return np.array(func(x)[1], float)


def shared() -> dict:
    """Return a workspace with what those of the benchmark have not: parameters of bins that channels share, configured ones."""
    free, stat = {"name": "free", "type": "shapefactor", "data": None}, {"name": "stat", "type": "staterror"}
    mu = {"name": "mu", "type": "normfactor", "data": None}
    alpha = {"name": "alpha", "type": "normsys", "data": {"hi": 1.2, "lo": 0.9}}
    channels = {
        "signal region": [
            {"name": "signal", "data": [5.0, 8.0], "modifiers": [mu]},
            {"name": "multijet", "data": [20.0, 15.0], "modifiers": [free]},
            {"name": "other", "data": [4.0, 0.0], "modifiers": [alpha, stat | {"data": [1.0, 0.0]}]},
        ],
        "control region": [
            {"name": "multijet", "data": [60.0, 45.0], "modifiers": [free]},
            {"name": "other", "data": [7.0, 6.0], "modifiers": [alpha, stat | {"data": [1.5, 2.0]}]},
        ],
    }
    config = [{"name": "alpha", "auxdata": [0.3], "inits": [0.3]}, {"name": "mu", "bounds": [[-3.0, 5.0]]}]
    return {
        "channels": [{"name": name, "samples": samples} for name, samples in channels.items()],
        "observations": [
            {"name": "signal region", "data": [32.0, 24.0]},
            {"name": "control region", "data": [64.0, 55.0]},
        ],
        "measurements": [{"name": "measurement", "config": {"poi": "mu", "parameters": config}}],
        "version": "1.0.0",
    }


def numbers(size: str, **settings) -> dict:
    """Return the best fit, the value elsewhere, profiles and CLs of one workspace."""
    space = pyhf.Workspace(shared() if size == "shared" else workspace(size))
    model = space.model(**settings)
    data, start = space.data(model), model.config.suggested_init()
    best, lowest = pyhf.infer.mle.fit(data, model, return_fitted_val=True)
    fixed = model.config.suggested_fixed()
    away = [p if fixed[k] else p + 0.1 * np.sin(1 + k) for k, p in enumerate(start)]
    found = {
        "best": dict(zip(model.config.par_names, map(float, best), strict=True)),
        "away": dict(zip(model.config.par_names, map(float, away), strict=True)),
        "rise": float(pyhf.infer.mle.twice_nll(away, data, model)[0]) - float(lowest),
        "expected": model.expected_actualdata(np.array(away)).tolist(),
        "profile": [],
        "cls": [],
    }
    for mu in TESTED[size]:
        _, value = pyhf.infer.mle.fixed_poi_fit(mu, data, model, return_fitted_val=True)
        found["profile"].append([mu, float(value) - float(lowest)])
        observed, expected = pyhf.infer.hypotest(
            mu, data, model, test_stat="qtilde", return_expected_set=True
        )
        found["cls"].append([mu, float(observed), [float(e) for e in expected]])
    if TESTED[size]:
        p_value = pyhf.infer.hypotest(0.0, data, model, test_stat="q0")
        found["discovery"] = float(p_value)
    print(size, settings, len(best), flush=True)
    return found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    pyhf.set_backend("jax", Polished(tolerance=1e-12))
    kinks = {"modifier_settings": {"normsys": {"interpcode": "code1"}, "histosys": {"interpcode": "code0"}}}
    path = HERE / "histfactory.json"
    table = json.loads(path.read_text()) if path.exists() else {}
    table |= {size: numbers(size) for size in (sys.argv[1:] or TESTED)}
    table["small with kinks"] = numbers("small", **kinks)
    table["shared"]["workspace"] = shared()
    path.write_text(json.dumps(table, indent=1) + "\n")
