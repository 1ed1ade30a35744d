"""iminuit with JAX: value and gradient traced and compiled together, errors from its Hessian, double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf

from peers.by_hand import angular_terms, minuit_fit
from peers.draw import DRAW, Columns
from peers.system import Found, System, Task, one_by_one, tolerance

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


def mass_nll(x: Any, data: Any) -> Any:
    mu, sigma, alpha, fsig = x
    m, width = data["m"], jnp.sqrt(2.0) * sigma
    signal = jnp.sqrt(jnp.pi / 2) * sigma * (erf((7 - mu) / width) - erf((5 - mu) / width))
    background = (jnp.exp(7 * alpha) - jnp.exp(5 * alpha)) / alpha
    d = (m - mu) / sigma
    return -jnp.sum(
        jnp.log(fsig / signal * jnp.exp(-0.5 * d * d) + (1 - fsig) / background * jnp.exp(alpha * m))
    )


def kstar_nll(x: Any, data: Any) -> Any:
    return -jnp.sum(jnp.log(data[0] + x @ data[1]))


def kstar_terms(columns: Columns) -> Any:
    return angular_terms(columns, jnp)


NLLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "mass": (mass_nll, lambda columns: columns),
    "kstarmumu": (kstar_nll, kstar_terms),
}


class Last:
    """Value and gradient of the last point: Minuit asks for them one after the other."""

    def __init__(self, function: Callable[..., Any], data: Any) -> None:
        self.function, self.data = function, data
        self.x: bytes = b""

    def at(self, x: np.ndarray) -> tuple[Any, Any]:
        point = np.asarray(x)
        if point.tobytes() != self.x:
            self.x, self.pair = point.tobytes(), self.function(point, self.data)
        return self.pair

    def value(self, x: np.ndarray) -> float:
        return float(self.at(x)[0])

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.at(x)[1])


def make(task: Task) -> System:
    problem, (nll, prepare) = task.problem, NLLS[task.model]
    both, curvature, prepare = (jax.jit(f) for f in (jax.value_and_grad(nll), jax.hessian(nll), prepare))

    def fit(columns: Columns, edm: float) -> Found:
        data = prepare(columns)
        last = Last(both, data)
        found = minuit_fit(
            last.value, problem.truth, problem.limits, gradient=last.gradient, steps=problem.steps,
            strategy=task.strategy, tolerance=tolerance(edm), hesse=False,
        )  # fmt: skip
        values = np.array(found.values)
        covariance = np.linalg.inv(np.asarray(curvature(values, data)))
        return Found(values, np.sqrt(np.diag(covariance)), found.valid)

    return one_by_one(DRAW[task.model], fit, lambda c: c, task.edm)
