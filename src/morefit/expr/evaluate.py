"""The reference meaning of every operation, in numpy. Slow, plain, and the judge of all backends."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr.node import Expr, Table
from morefit.expr.ops import Op
from morefit.expr.quadrature import (
    TOLERANCE,
    WORST_ERROR,
    Adapted,
    Boxes,
    Domain,
    adapt,
    combine_places,
)
from morefit.expr.walk import domain_of, leaves, toposort


def special(name: str, *before: float) -> Callable[..., Any]:
    """Name a function of scipy.special; importing it costs 0.15 s, so it waits for the first use."""
    return lambda *x: getattr(importlib.import_module("scipy.special"), name)(*before, *x)


def plain_or(scalar: Callable[[float], float], name: str) -> Callable[[Any], Any]:
    """Use the math module for a lone number and scipy for arrays."""
    array = special(name)
    return lambda x: scalar(x) if isinstance(x, float) else array(x)


MEANING: dict[Op, Callable[..., Any]] = {
    Op.ADD: lambda *x: reduce(np.add, x),
    Op.MUL: lambda *x: reduce(np.multiply, x),
    Op.POW: np.power,
    Op.EXP: np.exp,
    Op.EXP2: np.exp2,
    Op.EXPM1: np.expm1,
    Op.LOG: np.log,
    Op.LOG1P: np.log1p,
    Op.LOG2: np.log2,
    Op.LOG10: np.log10,
    Op.SQRT: np.sqrt,
    Op.SIN: np.sin,
    Op.COS: np.cos,
    Op.TAN: np.tan,
    Op.ASIN: np.arcsin,
    Op.ACOS: np.arccos,
    Op.ATAN: np.arctan,
    Op.ATAN2: np.arctan2,
    Op.SINH: np.sinh,
    Op.COSH: np.cosh,
    Op.TANH: np.tanh,
    Op.ERF: plain_or(math.erf, "erf"),
    Op.ERFC: plain_or(math.erfc, "erfc"),
    Op.NDTRI: special("ndtri"),
    Op.LGAMMA: special("gammaln"),
    Op.DIGAMMA: special("digamma"),
    Op.TRIGAMMA: special("polygamma", 1),
    Op.TETRAGAMMA: special("polygamma", 2),
    Op.ABS: np.abs,
    Op.FLOOR: np.floor,
    Op.MIN: np.minimum,
    Op.MAX: np.maximum,
    Op.LESS: lambda x, y: np.less(x, y) * 1.0,
    Op.LESS_EQUAL: lambda x, y: np.less_equal(x, y) * 1.0,
    Op.EQUAL: lambda x, y: np.equal(x, y) * 1.0,
    Op.NOT_EQUAL: lambda x, y: np.not_equal(x, y) * 1.0,
    Op.LOOKUP: lambda table, place: table[np.asarray(place).astype(np.int64)],
    Op.WHERE: lambda c, x, y: np.where(np.not_equal(c, 0.0), x, y),
    Op.INTEGRAL: lambda weights, body: np.sum(weights * body),
}


def evaluate(root: Expr, values: Mapping[str, Any]) -> Any:
    """Compute an expression from the values of its scalars, columns and wildcards, by name."""
    with np.errstate(all="ignore"):
        return evaluate_all((root,), values)[0]


def evaluate_all(roots: tuple[Expr, ...], values: Mapping[str, Any]) -> list[Any]:
    done: dict[Expr, Any] = {}
    order = toposort(*roots)
    bound = {name for n in order if n.op is Op.INTEGRAL for name in domain_of(n).names}
    for node in order:
        if node.op is Op.CONST:
            done[node] = node.number
        elif isinstance(node.value, Table):
            done[node] = node.value.array
        elif node.op is Op.INTEGRAL:
            done[node] = integrate(node, values)
        elif node.args:
            done[node] = MEANING[node.op](*(done[a] for a in node.args))
        elif node.op is Op.COLUMN and node.name in bound:
            done[node] = values.get(node.name, math.nan)  # only the integral knows its value
        else:
            done[node] = np.multiply(values[node.name], 1.0)  # numpy has no negative powers of integers
    return [done[r] for r in roots]


# ------------------------------------------------------------------------------------- integrals


def integrate(node: Expr, values: Mapping[str, Any]) -> Any:
    """Compute an integral with boxes made for these very values; parameters may be arrays of one shape."""
    names = [leaf.name for leaf in leaves(Op.SCALAR, node)]
    known = np.broadcast_arrays(*(np.asarray(values[name], np.float64) for name in names))
    if not names or not known[0].ndim:
        return integrate_at(node, tuple((n, float(v)) for n, v in zip(names, known, strict=True)))
    rows = zip(*(k.ravel() for k in known), strict=True)
    found = [integrate_at(node, tuple(zip(names, map(float, row), strict=True))) for row in rows]
    return np.array(found).reshape(known[0].shape)


def integrate_at(node: Expr, values: tuple[tuple[str, float], ...]) -> float:
    adapted = adapted_to(node.args[1:], domain_of(node), values)
    if not adapted.error <= WORST_ERROR:
        raise cannot_integrate(dict(values), adapted.error)
    nodes = adapted.boxes.nodes()
    return float(MEANING[Op.INTEGRAL](nodes.weights, evaluate(node.args[0], dict(values) | nodes.columns)))


def cannot_integrate(values: Mapping[str, float], error: float) -> ModelError:
    """Return the error for an integral that quadrature does not reach."""
    at = ", ".join(f"{name} = {value:.6g}" for name, value in values.items()) or "all values"
    how = "infinite or not a number" if not error < np.inf else f"uncertain by {error:.1g}"
    return ModelError(
        f"density: its numerical integral is {how} at {at}; give an integral, narrower ranges or better values"
    )


Values = tuple[tuple[str, float], ...]


@lru_cache(maxsize=256)
def adapted_to(
    integrand: tuple[Expr, ...], domain: Domain, values: Values, tolerance: float = TOLERANCE
) -> Adapted:
    """Find boxes for an integrand (and the places where its peaks may hide) at given values, or take known ones."""
    return adapt_around(integrand, domain, values, places_at(integrand[1:], domain, dict(values)), tolerance)


def adapt_around(
    integrand: tuple[Expr, ...], domain: Domain, values: Values, places: Array, tolerance: float = TOLERANCE
) -> Adapted:
    """Find boxes for an integrand at given values, cut closely around some places."""

    def measure(boxes: Boxes) -> Array:
        nodes = boxes.nodes()
        body = evaluate(integrand[0], dict(values) | nodes.columns)
        return np.asarray((nodes.weights * body).reshape(len(boxes), -1).sum(axis=1)[:, None])

    with np.errstate(all="ignore"):
        return adapt(domain, measure, places, tolerance)


def places_at(places: Sequence[Expr], domain: Domain, values: Mapping[str, float]) -> Array:
    """Return the points where a peak may hide at given values, (points, axes)."""

    def on_axis(k: int) -> Callable[[dict[str, float]], Iterable[float]]:
        own = [place for place, axis in zip(places, domain.places, strict=False) if axis == k]
        return lambda point: [float(evaluate(place, {**values, **point})) for place in own]

    return (
        combine_places(domain, [on_axis(k) for k in range(len(domain.axes))])
        if domain.places
        else np.empty((0, 0))
    )
