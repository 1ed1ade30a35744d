"""Interpolation in tables: against numpy and scipy, on every backend, in both stages of a kernel."""

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator, RegularGridInterpolator

import morefit as mf
from morefit.expr import Op, const, evaluate, leaves
from morefit.model.integrate import find_breaks
from morefit.pipeline import Columns, Settings, compile_values
from morefit.rewrite.derive import gradient
from morefit.rewrite.simplify import normalise
from morefit.targets.base import Events
from morefit.targets.choose import choose_backend
from tolerances import FEW_ROUNDINGS

x, y, z = mf.Observable("x", -1.0, 2.0), mf.Observable("y", -5.0, 5.0), mf.Observable("z", 0.0, 9.0)
p = mf.Parameter("p", 0.5, -1.0, 2.0)
BACKENDS = ["cpu", "opencl", "reference"]
rng = np.random.default_rng(5)
AXES = {
    "regular": np.linspace(0.0, 1.0, 11),
    "two": np.array([0.0, 1.0]),
    "close": np.sort(rng.uniform(0, 1, 40)),
    "very unequal": np.concatenate([[0.0, 1e-9, 2e-9], np.linspace(0.1, 1.0, 30)]),
    "decimal": np.arange(0, 31) / 10 - 1,
}


def values_on(backend, expr, columns, parameters=()):
    """Compute an expression for every event by a compiled kernel."""
    data = Columns({name: np.ascontiguousarray(v, float) for name, v in columns.items()})
    compiled = compile_values(
        (expr,), tuple(p.expr for p in parameters), Settings(choose_backend(backend), precompute="none")
    )
    point = np.array([[p.start for p in parameters]])
    return compiled.bind(data, Events.all_sets(data.count))(point)[0, 0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", AXES)
def test_every_target_finds_the_cell_of_a_value_to_the_last_bit(name, backend):
    edges = AXES[name]
    heights = rng.uniform(1, 2, len(edges) - 1)
    near = [np.nextafter(edges, -9), edges, np.nextafter(edges, 9)]
    at = np.concatenate([*near, np.linspace(-1.0, 2.0, 1003), [np.nan, np.inf, -np.inf]])
    at = at[~((at != 0) & (abs(at) < np.finfo(float).tiny))]  # loops may take denormals as zero
    expected = heights[np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(heights) - 1)]
    expected[np.isnan(at)] = np.nan
    function = mf.table(x, edges, heights, "steps")
    np.testing.assert_array_equal(evaluate(function, {"x": at}), expected)
    np.testing.assert_array_equal(values_on(backend, function, {"x": at}), expected)


# that a device finds the cells of every axis, the test above tells: it interpolates in the most unequal ones
@pytest.mark.parametrize(("name", "backend"), [
    pytest.param(name, backend, marks=[pytest.mark.exhaustive] * (backend == "opencl" and name != "very unequal"))
    for name in AXES for backend in BACKENDS
])  # fmt: skip
@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_interpolation_agrees_with_scipy(name, kind, backend):
    axis = AXES[name]
    heights = np.cumsum(rng.uniform(-1, 2, len(axis)))
    at = np.concatenate([axis, np.linspace(-0.5, 1.5, 500)])
    inside = np.clip(at, axis[0], axis[-1])
    interpolator = (
        PchipInterpolator(axis, heights) if kind == "cubic" else lambda v: np.interp(v, axis, heights)
    )
    function = mf.table(x, axis, heights, kind)
    np.testing.assert_allclose(evaluate(function, {"x": at}), interpolator(inside), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        values_on(backend, function, {"x": at}), interpolator(inside), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_tables_have_any_number_of_axes(backend):
    axes = [np.linspace(0, 1, 5), np.array([-5.0, -4.0, 0.0, 4.5]), np.linspace(0, 9, 4)]
    nodes, cells = rng.uniform(1, 2, (5, 4, 4)), rng.uniform(1, 2, (4, 3, 3))
    at = np.column_stack([rng.uniform(0, 1, 400), rng.uniform(-5, 4.5, 400), rng.uniform(0, 9, 400)])
    columns = dict(zip("xyz", at.T, strict=True))
    linear = RegularGridInterpolator(axes, nodes)(at)
    found = values_on(backend, mf.table([x, y, z], axes, nodes), columns)
    np.testing.assert_allclose(found, linear, rtol=1e-13)
    where = tuple(np.searchsorted(a, v, side="right") - 1 for a, v in zip(axes, at.T, strict=True))
    steps = values_on(backend, mf.table([x, y, z], axes, cells, "steps"), columns)
    np.testing.assert_array_equal(steps, cells[where])
    for name in "xyz":
        lost = values_on(
            backend, mf.table([x, y, z], axes, cells, "steps"), columns | {name: at[:, 0] * np.nan}
        )
        assert np.isnan(lost).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_large_table_may_be_looked_up_once_per_call(backend):
    """This used to become a choice between all numbers of the table."""
    numbers = rng.uniform(1, 2, 100_001)
    edges = np.linspace(0, 1, 100_002)
    function = mf.table(p, edges, numbers, "steps") * (1 + x * 0)
    found = values_on(backend, function * (1 + x), {"x": [0.0, 1.0]}, [p])
    place = np.searchsorted(edges, p.start, side="right") - 1
    np.testing.assert_allclose(found, numbers[place] * np.array([1, 2]), rtol=FEW_ROUNDINGS)


def test_the_derivative_is_that_of_the_polynomial_of_the_cell():
    axis, heights = AXES["close"], rng.uniform(0, 1, 40)
    at = rng.uniform(axis[0], axis[-1], 100)
    slope = gradient(mf.table(x, axis, heights, "cubic"), [x.expr])[0]
    np.testing.assert_allclose(
        evaluate(slope, {"x": at}), PchipInterpolator(axis, heights).derivative()(at), rtol=1e-9, atol=1e-9
    )


def test_the_slope_at_both_ends_is_that_of_the_cell_there():
    """This used to be zero at the upper end, so that a fit could not leave it."""
    slope = gradient(mf.interp(p, [-1.0, 0.0, 2.0], [0.0, 3.0, 1.0]), [p.expr])[0]
    assert [evaluate(slope, {"p": v}) for v in (-1.5, -1.0, 0.0, 2.0, 2.5)] == [0.0, 3.0, -1.0, -1.0, 0.0]


def test_a_lookup_at_a_number_is_a_number():
    (folded,) = normalise(mf.table(const(0.35), AXES["regular"], np.arange(10.0) + 1, "steps"))
    assert folded is const(4.0)


def test_integrals_know_the_edges_of_tables_also_where_parameters_move_them():
    edges = np.array([0.0, 0.2, 0.7, 1.0])
    table = mf.table(x - p, edges, [1.0, 2.0, 3.0], "steps")
    points = {"x": np.linspace(-1, 2, 1000), "p": np.full(1000, 0.5)}
    breaks = find_breaks(table, x.expr, (-1.0, 2.0), set(), points)
    assert not breaks.unsolved
    assert sorted(evaluate(kink, {"p": 0.5}) for kink in breaks.kinks) == pytest.approx([0.7, 1.2])
    model = mf.Density(table, x)
    area = 1.5 * 1 + 0.2 + 0.5 * 2 + 0.8 * 3
    assert evaluate(model.integral(), {"p": 0.5}) == pytest.approx(area, rel=1e-12)
    slope = gradient(model.integral(), [p.expr])[0]
    assert evaluate(slope, {"p": 0.5}) == pytest.approx(1 - 3, rel=1e-10)


def test_the_text_of_a_kernel_does_not_grow_with_its_table():
    texts = []
    for cells in (10, 100_000):
        compiled = compile_values(
            (mf.table(x, np.linspace(0, 1, cells + 1), np.ones(cells), "steps"),),
            (),
            Settings(choose_backend("cpu")),
        )
        texts.append(str(compiled.program.kernel).replace(str(cells), "N"))
    assert len(texts[0]) < 2000
    assert abs(len(texts[0]) - len(texts[1])) < 50


def test_tables_with_the_same_cells_share_their_text():
    kernels = [
        str(
            compile_values(
                (mf.table(x, AXES["regular"], v, "cubic"),), (), Settings(choose_backend("cpu"))
            ).program.kernel
        )
        for v in rng.uniform(0, 1, (2, 11))
    ]
    assert kernels[0] == kernels[1]


def test_tables_are_equal_where_their_numbers_are():
    assert mf.table(x, [0, 1, 2], [1, 2], "steps") is mf.table(x, [0.0, 1.0, 2.0], [1.0, 2.0], "steps")
    assert len(leaves(Op.TABLE, mf.table(x, [0, 1, 2], [1, 2], "steps"))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([x, y], [[0, 1], [0, 1], [0, 1]], np.ones((2, 2, 2))), "table: needs one axis for each of one or more points, got 3 for 2"),
        ((x, [0, 1, 1], [1, 2, 3]), r"table: axis 0 must be two or more numbers that rise, got \[0, 1, 1\]; sort"),
        ((x, [0, 1, 2], [1, 2]), r"table: values must have the shape \(3,\), got \(2,\)"),
        ((x, [0, 1, 2], [1, np.nan, 2]), "table: values must be finite, got 1 that are not"),
        ((x, [0, "a", 2], [1, 2]), r"table: axis 0 must be numbers, got \[0, 'a', 2\]"),
        ((x, [0, 1, 2], [1, 2], "spline"), "table: interpolation must be 'steps', 'linear' or 'cubic', got 'spline'"),
        (([x, y], [[0, 1], [0, 1]], np.ones((2, 2)), "cubic"), "table: 'cubic' takes one axis, got 2; use 'linear'"),
    ],
)  # fmt: skip
def test_arguments_of_a_table_are_checked(arguments, message):
    with pytest.raises(mf.ModelError, match=message):
        mf.table(*arguments)


def test_a_table_has_a_limit_of_size():
    with pytest.raises(
        mf.ModelError, match="table: values must be 16777216 numbers at most, got 17015625; use"
    ):
        mf.table([x, y], [np.arange(4126.0)] * 2, np.broadcast_to(0.0, (4125, 4125)), "steps")
