"""Functions of Python that the graph cannot see: operations that NumPy evaluates, with derivatives by differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr.node import Expr
from morefit.expr.operations.record import Operation, Prefix
from morefit.expr.walk import toposort

PRICE = 10_000  # additions; what a call costs is not known
EPSILON = 2.0**-52


@dataclass(frozen=True, eq=False, kw_only=True)
class Opaque(Operation):
    """A function of Python, or a derivative of it by differences; no target but the reference can compute it."""

    function: Callable[..., Any]
    steps: tuple[float, ...]  # the natural size of each argument
    directions: tuple[int, ...]  # the arguments it is differentiated by, in order

    def derivative(self, argument: int) -> Opaque:
        """Return the derivative by one argument."""
        return opaque_operation(self.function, self.steps, tuple(sorted((*self.directions, argument))))

    def __reduce__(self) -> tuple[Any, ...]:
        return opaque_operation, (self.function, self.steps, self.directions)


@cache
def opaque_operation(
    function: Callable[..., Any], steps: tuple[float, ...], directions: tuple[int, ...]
) -> Opaque:
    """Return the one operation of a function and the arguments it is differentiated by."""
    name = getattr(function, "__name__", type(function).__name__)
    size = EPSILON ** (1 / (2 + max(len(directions), 1)))  # rounding and curvature are then of one size

    def computed(*arguments: Any) -> Any:
        return difference(
            lambda *x: called(function, name, x), arguments, directions, [size * s for s in steps]
        )

    slopes = "".join(f"_by_{k + 1}" for k in directions)
    made = Opaque(
        arity=len(steps),
        price=PRICE,
        numpy=computed,
        latex=Prefix(rf"\mathrm{{{name.replace('_', '')}}}"),
        function=function,
        steps=steps,
        directions=directions,
    )
    object.__setattr__(made, "name", f"opaque_{name}{slopes}")
    return made


def called(function: Callable[..., Any], name: str, arguments: Sequence[Any]) -> Any:
    """Return the numbers of a function, one for each event."""
    shape = np.broadcast_shapes(*(np.shape(a) for a in arguments))
    try:
        returned = np.asarray(function(*arguments))
        if returned.dtype.kind not in "biufO" or any(one is None for one in returned.ravel()[:1]):
            raise TypeError(f"it returned values of type {returned.dtype}")
        numbers = returned.astype(np.float64)
        return np.broadcast_to(numbers, shape)[()]
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"opaque '{name}': must return a number for each event, of shape {shape}, for arrays and numbers ({error})"
        ) from error


def difference(
    function: Callable[..., Any], arguments: Sequence[Any], directions: Sequence[int], steps: Sequence[float]
) -> Any:
    """Differentiate by central differences, by one argument after the other."""
    if not directions:
        return function(*arguments)
    k, *others = directions
    above, below = ([*arguments[:k], arguments[k] + s, *arguments[k + 1 :]] for s in (steps[k], -steps[k]))
    rise = difference(function, above, others, steps) - difference(function, below, others, steps)
    return rise / (above[k] - below[k])


def opaque_in(roots: Iterable[Expr]) -> list[Opaque]:
    """Return the functions of Python in expressions, each once, without their derivatives."""
    every = {node.op.function: node.op for node in toposort(*roots) if isinstance(node.op, Opaque)}
    return list(every.values())
