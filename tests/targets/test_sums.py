"""Sums over events are right: for any number of events and of sets, in every layout, weighted or not."""

from __future__ import annotations

import numpy as np
import pytest
from launching import KINDS, Layout, assert_sums_agree, bind, judged, model_of, sums_of, values_of

from morefit.expr import evaluate
from morefit.targets.cpu.run import Cpu
from morefit.targets.reference.run import Reference
from tolerances import FEW_ROUNDINGS, FINITE_DIFFERENCE, FUSED, SAME_LINES, SUM_OF_LOGS
from zoo import ZOO, around

SIZES = (1, 2, 7, 8, 9, 4095, 4096, 4097, 10_000)
# whatever the loop computes, its ends are the same: of vectors, and of a block
FEWER_SIZES = (1, 7, 9, 4097)
ALL_SIZES = ("mass", "kstarmumu")
BATCHES = (1, 2, 3, 8, 17)
RAGGED = (9, 0, 1, 4096, 0, 4097, 7, 5000, 0)
SEVERAL = ("mass", "kstarmumu", "extended", "numerical")
models = pytest.mark.parametrize("name", ZOO)
several_models = pytest.mark.parametrize("name", SEVERAL)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def check(name, kind, backend, layout, sets=1):
    """Compare one launch with the reference."""
    x = around(model_of(name)[2], sets)
    found = bind(sums_of(name, kind, layout.weighted, backend), name, layout)(x)
    assert_sums_agree(found, name, kind, layout, SAME_LINES)


@weighted_or_not
@pytest.mark.parametrize("kind", KINDS)
@models
def test_sums_agree_with_the_reference_for_any_number_of_events(name, kind, weighted, fast):
    for n in SIZES if name in ALL_SIZES else FEWER_SIZES:
        check(name, kind, fast, Layout(n, weighted))


def test_pairs_of_many_parameters_are_summed_in_tiles():
    """The quick look at the model with many parameters; the rest of it is slow to compile."""
    for n in (1, 9, 4097):
        check("many", "fisher", Cpu(), Layout(n), 2)


@weighted_or_not
@models
def test_value_is_the_sum_of_the_evaluated_logarithms(name, weighted, backend):
    model, data, x = model_of(name)
    named = dict(zip([p.name for p in model.parameters], x, strict=True))
    logs = np.asarray(evaluate(model.log_intensity(), data | named), np.longdouble)
    expected = model.expected_events()
    per_set = 0.0 if expected is None else -evaluate(expected, named)
    for n in SIZES:
        layout = Layout(n, weighted)
        found = bind(sums_of(name, "value", weighted, backend), name, layout)(x[None])
        terms = logs[:n] * (1.0 if layout.weights is None else layout.weights)
        total, size = terms.sum() + per_set, np.abs(terms).sum() + abs(per_set)
        assert abs(found[0, 0] - total) <= SUM_OF_LOGS * size


@models
def test_densities_of_events_agree_with_evaluate(name, backend):
    model, data, x = model_of(name)
    sets = around(x, 3)
    names = [p.name for p in model.parameters]
    for n in (1, 9, 4097):
        some = {key: column[:n] for key, column in data.items()}
        expected = [evaluate(model.normalised(), some | dict(zip(names, s, strict=True))) for s in sets]
        found = bind(values_of(name, backend), name, Layout(n))(sets)
        np.testing.assert_allclose(found[:, 0, :], expected, rtol=SAME_LINES, atol=0)


@several_models
def test_every_set_of_a_batch_gets_its_own_sums(name, fast):
    for sets in BATCHES:
        check(name, "hessian", fast, Layout(77), sets)


@several_models
def test_a_large_batch_over_several_blocks_gets_its_own_sums(name, fast):
    check(name, "hessian", fast, Layout(4099), 17)


@pytest.mark.parametrize("kind", ["value", "hessian", "fisher"])
@several_models
def test_every_set_may_have_weights_of_its_own(name, kind, fast):
    for sets, n in ((1, 9), (3, 4097), (8, 7)):
        check(name, kind, fast, Layout(n, weighted=True, rows=sets), sets)


@weighted_or_not
@pytest.mark.parametrize("kind", ["value", "hessian"])
@several_models
def test_every_set_may_have_events_of_its_own(name, kind, weighted, fast):
    check(name, kind, fast, Layout(RAGGED, weighted), len(RAGGED))


@several_models
def test_densities_are_kept_where_the_events_of_each_set_lie(name, fast):
    layout, sets = Layout(RAGGED), around(model_of(name)[2], len(RAGGED))
    found = bind(values_of(name, fast), name, layout)(sets)
    expected = bind(values_of(name, Reference()), name, layout)(sets)
    for k, (low, high) in enumerate(zip(layout.events.starts, layout.events.stops, strict=True)):
        np.testing.assert_allclose(found[k, 0, low:high], expected[k, 0, low:high], rtol=SAME_LINES, atol=0)


@pytest.mark.parametrize("kind", KINDS)
@several_models
def test_no_events_leave_what_is_added_once_for_each_set(name, kind, backend):
    x = around(model_of(name)[2], 3)
    found = bind(sums_of(name, kind, False, backend), name, Layout(0))(x)
    assert found.shape == (3, sums_of(name, kind, False, backend).program.kernel.outputs + 1)
    if name == "extended" and kind != "fisher":
        np.testing.assert_allclose(found[:, 0], -x[:, 3] - x[:, 4], rtol=FEW_ROUNDINGS)
    else:
        assert not found.any()


@pytest.mark.parametrize("kind", ["value", "hessian"])
def test_no_sets_give_no_rows(kind, backend):
    compiled = sums_of("mass", kind, False, backend)
    found = bind(compiled, "mass", Layout(100))(np.empty((0, 4)))
    assert found.shape == (0, compiled.program.kernel.outputs + 1)


def test_no_sets_give_no_densities(backend):
    found = bind(values_of("mass", backend), "mass", Layout(100))(np.empty((0, 4)))
    assert found.shape == (0, 1, 100)


def differences(function, x, scale):
    """Return central differences of a function of many sets, with Richardson's extrapolation."""
    step = 1e-5 * scale
    shifts = np.concatenate([k * np.diag(step) for k in (1, -1, 2, -2)])
    found = function(x + shifts).reshape(4, len(x), -1)
    near, far = (found[0] - found[1]) / 2, (found[2] - found[3]) / 4
    return (4 * near - far) / 3 / step[:, None]


@weighted_or_not
@models
def test_derivatives_agree_with_finite_differences(name, weighted, fast):
    x, count = model_of(name)[2], len(model_of(name)[2])
    layout = Layout(1000, weighted)
    scale = np.minimum(np.abs(x), 1.0)
    value, gradient, hessian = (bind(sums_of(name, k, weighted, fast), name, layout) for k in list(KINDS)[:3])
    fused = hessian(x[None])[0]
    slopes = differences(lambda sets: value(sets)[:, :1], x, scale)[:, 0]
    close = FINITE_DIFFERENCE * np.abs(fused[0])
    np.testing.assert_array_less(np.abs(slopes - fused[1 : 1 + count]) * scale, close)
    curves = differences(lambda sets: gradient(sets)[:, 1 : 1 + count], x, scale)
    lower = fused[1 + count : -1]
    i, j = np.tril_indices(count)
    np.testing.assert_array_less(np.abs(curves[i, j] - lower) * scale[i] * scale[j], close)


@weighted_or_not
@models
def test_fused_sums_contain_those_of_lower_order(name, weighted, fast):
    x, layout = around(model_of(name)[2], 3), Layout(4097, weighted)
    found = [bind(sums_of(name, kind, weighted, fast), name, layout)(x) for kind in list(KINDS)[:3]]
    for low, high in ((0, 1), (0, 2), (1, 2)):
        _, size = judged(name, ("value", "gradient", "hessian")[low], layout, 3)
        alone = found[low][:, :-1]
        together = found[high][:, : alone.shape[1]]
        assert (np.abs(alone - together) <= FUSED * size[:, :-1]).all()
