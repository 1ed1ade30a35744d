"""What makes a model this one, to the last bit: its formulas, ranges, limits, and how it is drawn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from morefit.expr import Expr, Operation, Symbol, Table, to_text, toposort
from morefit.expr.opaque import Opaque
from morefit.model import Pdf
from morefit.sampling.inversion import PROBABILITY

SHOWN = 120  # characters of a formula in a message


def fingerprint(model: Pdf) -> dict[str, Any]:
    """Return everything in a model that results depend on but start values, in a form that a message can show."""
    density, expected = model.density(), model.expected_events()
    roots = [density, model.log_intensity(), *([] if expected is None else [expected]), *drawn_by(model)]
    return {
        "ranges": {o.name: f"[{float(o.low)!r}, {float(o.high)!r}]" for o in model.observables},
        "limits": {p.name: f"[{float(p.low)!r}, {float(p.high)!r}]" for p in model.parameters},
        "fixed": {p.name: p.fixed for p in model.parameters},
        "formula": to_text(density, SHOWN),
        **({"given": ", ".join(o.name for o in model.given)} if model.given else {}),
        "digest": sha256("\n".join(graph_lines(roots)).encode()).hexdigest(),
    }


def drawn_by(model: Pdf) -> Iterator[Expr]:
    """Go through the formulas that decide how events are drawn: each part's density, or how it is inverted."""
    for part in model.components():
        quantile = part.quantile(PROBABILITY)
        yield part.density() if quantile is None else quantile


def graph_lines(roots: Sequence[Expr]) -> Iterator[str]:
    """Write graphs with one node per line, to the last bit: nested text would repeat shared nodes."""
    number: dict[Expr, int] = {}
    for node in toposort(*roots):
        number[node] = len(number)
        yield f"{operation_text(node.op)} {leaf_text(node.value)} {[number[a] for a in node.args]}"
    yield str([number[root] for root in roots])


def operation_text(op: Operation) -> str:
    """Write an operation by its name, a function of Python by all that its results depend on."""
    if not isinstance(op, Opaque):
        return op.name
    from morefit.jobs.digest import function_digest  # which takes fingerprints of models

    return f"{op.name} {function_digest(op.name, op.function)} {op.steps}"


def leaf_text(value: object) -> str:
    if isinstance(value, Table):
        return f"{value.name} {value.digest}"
    if isinstance(value, Symbol):
        return value.name
    return value.hex() if isinstance(value, float) else str(value)
