"""Every operation means the same on every backend as in numpy."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge import judge
from morefit.expr import NARY, OPERATIONS, Op, Operation, apply, column, evaluate
from morefit.pipeline import Columns, Settings, compile_values
from morefit.targets.base import Events
from strategies import COLUMNS, SCALARS, expressions, points
from tolerances import FEW_ULP, FLUSHED, SCIPY_FUNCTION

INF, NAN = float("inf"), float("nan")
HUGE, TINY = 1.7e308, 2.3e-308
EDGES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.5,
    -2.5,
    INF,
    -INF,
    NAN,
    HUGE,
    -HUGE,
    TINY,
    -TINY,
    1e-200,
    1e200,
    1e5,
    -1e5,
)
DENORMAL = (5e-324, -1e-310)
OF_TABLES = {Op.INTEGRAL, Op.NODE_SUM, Op.LOOKUP, Op.NAMED, Op.CELL}  # take more than numbers
NUMERIC = [op for op in OPERATIONS if op not in OF_TABLES and not op.spelled]
GAMMAS = {Op.LGAMMA, Op.DIGAMMA, Op.TRIGAMMA, Op.TETRAGAMMA}  # mpmath judges them in tests/render
# where scipy's functions are right to SCIPY_FUNCTION; mpmath judges them in test_vecmath and test_functions
SCIPY_DOMAIN = {
    Op.WOFZ_REAL: lambda x, y: y >= 0,
    Op.WOFZ_IMAG: lambda x, y: y >= 0,
    **dict.fromkeys(
        (op for op in NUMERIC if op.name.startswith("WOFZ_") and op.arity == 2 and "_" in op.name[5:]),
        lambda x, y: (y >= 0) & (abs(x) < 1e100) & (y < 1e100) & (abs(x) != y),  # where a part is zero
    ),
    **dict.fromkeys(
        (op for op in NUMERIC if op.name.startswith("KVE")),
        lambda x, y: (abs(x) < 10) & (1e-100 < y) & (y < 1e9),
    ),
    **dict.fromkeys(
        (op for op in NUMERIC if op.name.startswith("IVE")),
        lambda x, y: (x >= 0) & (x < 10) & (y > 1e-100) & (y < 1e9),
    ),
    **dict.fromkeys(
        (Op.GAMMAINC, Op.GAMMAINCC, Op.GAMMAINC_BY_SHAPE, Op.GAMMAINC_BY_SHAPE_TWICE),
        lambda x, y: (x > 1e-100) & (x < 10) & (y >= 0) & ((y == 0) | (y > 1e-100)),
    ),
    Op.GAMMA_DENSITY: lambda x, y: (x > 0) & (x < 10) & (y > 1e-100),
    **dict.fromkeys(
        (Op.BETALN, Op.DIGAMMA_RISE, Op.TRIGAMMA_RISE),
        lambda x, y: (x > 1e-100) & (y > 1e-100) & (x < 1e300) & (y < 1e300),
    ),
    **dict.fromkeys(
        (op for op in NUMERIC if op.name.startswith("BETA") and op.arity == 3),
        lambda x, y, z: (x > 1e-100) & (x < 10) & (y > 1e-100) & (y < 10) & (z >= 0) & (z <= 1),
    ),
    # some of these are zero where the shapes are alike, and close to zero next to zero
    **dict.fromkeys(
        (op for op in NUMERIC if op.name.startswith("BETAINC_BY_")),
        lambda x, y, z: (
            (x > 1e-3) & (x < 10) & (y > 1e-3) & (y < 10) & (x != y) & ((z == 0) | (z > 1e-3)) & (z <= 1)
        ),
    ),
}
NAMES = ("x", "y", "z")
FEW, MANY = 6, 30  # kernels of random expressions on each backend


def arity(op: Operation) -> int:
    return op.arity or 2  # of any number two: another order of three may overflow


@cache
def edge_columns(count: int) -> dict[str, np.ndarray]:
    """Return every combination of edge values."""
    rows = np.array(list(product(EDGES, repeat=count)))
    return dict(zip(NAMES, np.ascontiguousarray(rows.T), strict=False))


@cache
def kernel_of(backend, count: int):
    """Compile all operations of so many arguments into one kernel."""
    ops = [op for op in NUMERIC if arity(op) == count]
    roots = tuple(apply(op, *(column(name) for name in NAMES[:count])) for op in ops)
    return ops, compile_values(roots, (), Settings(backend, precompute="none"))


def compute(backend, columns: dict[str, np.ndarray]) -> dict[Operation, np.ndarray]:
    """Compute all operations of these arguments."""
    ops, compiled = kernel_of(backend, len(columns))
    bound = compiled.bind(Columns(columns), Events.all_sets(len(columns["x"])))
    return dict(zip(ops, bound(np.empty((1, 0)))[0], strict=True))


@cache
def computed(backend, count: int) -> dict[Operation, np.ndarray]:
    return compute(backend, edge_columns(count))


@cache
def computed_alone(backend, count: int, value: float) -> dict[Operation, np.ndarray]:
    """Compute all operations at one value, in the first lane of a vector."""
    return compute(backend, dict.fromkeys(NAMES[1:count], np.array([0.75])) | {"x": np.array([value])})


@cache
def evaluated(op: Operation) -> np.ndarray:
    """Return what numpy computes, once for all backends."""
    root = apply(op, *(column(name) for name in NAMES[: arity(op)]))
    return evaluate(root, edge_columns(arity(op)))


@cache
def evaluated_alone(op: Operation, value: float) -> float:
    """Return what numpy computes at one value."""
    root = apply(op, *(column(name) for name in NAMES[: arity(op)]))
    others = {name: np.array([0.75]) for name in NAMES[1 : arity(op)]}
    return float(np.ravel(evaluate(root, others | {"x": np.array([value])}))[0])


@cache
def evaluated_signed_zero(op: Operation, negative: bool) -> float:
    """Return what numpy computes at zero; as keys of a cache both zeros would be one."""
    return evaluated_alone.__wrapped__(op, -0.0 if negative else 0.0)


@pytest.mark.parametrize("op", NUMERIC, ids=lambda op: op.name.lower())
def test_operation_agrees_with_numpy_on_edge_values(op, backend):
    columns = edge_columns(arity(op))
    found = computed(backend, arity(op))[op]
    expected = np.broadcast_to(evaluated(op), found.shape)
    if op in GAMMAS:  # scipy disagrees with the limits left of zero, and loses digits there
        columns = {"x": columns["x"][columns["x"] > 0]}
        found, expected = (numbers[edge_columns(1)["x"] > 0] for numbers in (found, expected))
    if op in SCIPY_DOMAIN:
        here = SCIPY_DOMAIN[op](*columns.values())
        columns = {name: numbers[here] for name, numbers in columns.items()}
        found, expected = found[here], expected[here]
    tolerance = SCIPY_FUNCTION if op in SCIPY_DOMAIN else FEW_ULP
    wrong = ~np.isclose(found, expected, rtol=tolerance, atol=FLUSHED, equal_nan=True)
    shown = [
        f"{op.name.lower()}{tuple(float(c[k]) for c in columns.values())}: {found[k]}, not {expected[k]}"
        for k in np.flatnonzero(wrong)[:10]
    ]
    assert not shown, "\n".join(shown)


@pytest.mark.parametrize("op", [op for op in NUMERIC if op not in NARY], ids=lambda op: op.name.lower())
def test_denormals_are_kept_or_taken_as_zero(op, backend):
    """A compiled loop may take them as zero; nothing else."""
    for value in DENORMAL:
        found = computed_alone(backend, arity(op), value)[op][0]
        kept = evaluated_alone(op, value)
        flushed = evaluated_signed_zero(op, value < 0)
        true = math.lgamma(value) if op is Op.LGAMMA else kept  # scipy calls it infinite
        assert any(
            np.isclose(found, e, rtol=FEW_ULP, atol=FLUSHED, equal_nan=True) for e in (kept, flushed, true)
        ), f"{op.name.lower()}({value}) = {found}, not {kept} or {flushed}"


def check_random(backend, roots, sets, events):
    """Compute expressions in one kernel and compare each with what its conditioning allows."""
    leaves = tuple(SCALARS)
    compiled = compile_values(tuple(roots), leaves, Settings(backend))
    columns = {leaf.name: np.array([e[leaf.name] for e in events]) for leaf in COLUMNS}
    parameters = np.array([[s[leaf.name] for leaf in leaves] for s in sets])
    found = compiled.bind(Columns(columns), Events.all_sets(len(events)))(parameters)
    for i, values in enumerate(sets):
        for j, event in enumerate(events):
            for k, root in enumerate(roots):
                judged = judge(root, values | event)
                if judged is not None:
                    value, tolerance = judged
                    assert abs(found[i, k, j] - value) <= tolerance, f"{root!r} at {values | event}"


random_kernels = given(
    roots=st.lists(expressions(), min_size=1, max_size=6),
    sets=st.lists(points(("a", "b", "c")), min_size=1, max_size=3),
    events=st.lists(points(("m", "n")), min_size=1, max_size=5),
)


@settings(max_examples=FEW, suppress_health_check=list(HealthCheck))
@random_kernels
def test_random_expressions_agree_with_evaluate(backend, roots, sets, events):
    check_random(backend, roots, sets, events)


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", ["cpu", pytest.param("opencl", marks=pytest.mark.exhaustive), "reference"], indirect=True
)
@settings(max_examples=MANY, suppress_health_check=list(HealthCheck))
@random_kernels
def test_many_random_expressions_agree_with_evaluate(backend, roots, sets, events):
    check_random(backend, roots, sets, events)
