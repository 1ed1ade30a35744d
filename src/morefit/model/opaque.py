"""``mf.opaque``: a function of Python in a formula."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from morefit.errors import ModelError
from morefit.expr import Expr, Op, Operand, evaluate, make, symbols
from morefit.expr.opaque import opaque_in, opaque_operation
from morefit.model.arguments import ANY, check_observables, check_operand, described, listed
from morefit.model.in_use import once_per_model
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf
from morefit.text.arguments import in_sentences

SLOW = (
    "opaque '{}': is called by NumPy for every evaluation and differentiated by differences; fits of it are 10 to 1000"
    " times slower than those of formulas, and run on the CPU only"
)


@in_sentences
def opaque(
    function: Callable[..., Any],
    observables: Sequence[Observable] | Observable = (),
    parameters: Sequence[Operand] | Operand = (),
) -> Expr:
    """Return an expression that calls a function of Python with observables, as arrays, and parameters, as numbers.

    It must return an array with a number for each event, and smooth ones, as it is differentiated by differences.
    Fits, toys, plots and integrals work as for formulas, but slowly, by NumPy on the CPU.
    """
    if not callable(function):
        raise ModelError(f"opaque: takes a function, got {described(function)}")
    name = getattr(function, "__name__", type(function).__name__)
    columns = check_observables("opaque: observables", observables)
    operands = [
        check_operand(f"opaque '{name}': parameters[{k}]", one, ANY)
        for k, one in enumerate(listed(f"opaque '{name}': parameters", parameters))
    ]
    if not (columns or operands):
        raise ModelError(f"opaque '{name}': needs observables or parameters, got none")
    warnings.warn(SLOW.format(name), UserWarning, stacklevel=2)
    steps = [o.high - o.low for o in columns] + [natural_size(one) for one in operands]
    return make(opaque_operation(function, tuple(steps), ()), (*(o.expr for o in columns), *operands))


def natural_size(operand: Expr) -> float:
    """Return how much an argument may vary: the distance of the limits of a parameter, else the size of its start."""
    parameters = [s for s in symbols(Op.SCALAR, operand) if isinstance(s, Parameter)]
    if len(parameters) == 1 and isfinite(width := parameters[0].high - parameters[0].low):
        return width
    return abs(float(evaluate(operand, {p.name: p.start for p in parameters}))) or 1.0


@once_per_model("its functions of python")
def opaque_names(model: Pdf) -> tuple[str, ...]:
    """Return the names of the functions of Python in a model."""
    expected = model.expected_events()
    functions = opaque_in([model.density(), *([] if expected is None else [expected])])
    return tuple(one.name for one in functions)
