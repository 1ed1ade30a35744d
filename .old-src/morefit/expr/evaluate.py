"""The reference meaning of every operation, in numpy. Slow, plain, and the judge of all backends."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from morefit.expr.node import Expr, Table
from morefit.expr.ops import Op
from morefit.expr.quadrature import rule_axes, rule_nodes
from morefit.expr.walk import toposort


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
    Op.LOOKUP: lambda table, place: table[np.asarray(place).astype(np.int64)],
    Op.WHERE: lambda c, x, y: np.where(np.not_equal(c, 0.0), x, y),
    Op.INTEGRAL: lambda weights, body: np.sum(weights * body, axis=-1),
}


def evaluate(root: Expr, values: Mapping[str, Any]) -> Any:
    """Compute an expression from the values of its scalars, columns and wildcards, by name."""
    with np.errstate(all="ignore"):
        return evaluate_all((root,), values)[0]


def evaluate_all(roots: tuple[Expr, ...], values: Mapping[str, Any]) -> list[Any]:
    done: dict[Expr, Any] = {}
    order = toposort(*roots)
    bound = {name for n in order if n.op is Op.INTEGRAL for name, _ in rule_axes(str(n.value))}
    for node in order:
        if node.op is Op.CONST:
            done[node] = node.number
        elif isinstance(node.value, Table):
            done[node] = node.value.array
        elif node.op is Op.INTEGRAL:
            nodes, weights = rule_nodes(str(node.value))
            body = np.asarray(evaluate(node.args[0], dict(values) | nodes))
            done[node] = MEANING[node.op](weights, body)
        elif node.args:
            done[node] = MEANING[node.op](*(done[a] for a in node.args))
        elif node.op is Op.COLUMN and node.name in bound:
            done[node] = values.get(node.name, math.nan)  # only the integral knows its value
        else:
            done[node] = np.multiply(values[node.name], 1.0)  # numpy has no negative powers of integers
    return [done[r] for r in roots]
