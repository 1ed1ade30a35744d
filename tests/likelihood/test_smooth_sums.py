"""Polynomials of a column in the place of integrals for each event: against these, in values, derivatives and toys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import morefit as mf
from morefit.expr import evaluate
from morefit.likelihood import coarse, smooth_sums
from morefit.likelihood.accuracy import node_rules, node_sums
from morefit.likelihood.smooth_sums import smoothed
from morefit.model.integrate.smooth import Grid, smooth_column, smooth_sum, values_of
from morefit.sampling import conditional_rows
from morefit.toys.ensemble import Ensemble
from morefit.toys.polynomials import are_rough, column_ranges


def peak_with_errors() -> mf.Pdf:
    """A peak with a width for each event and no closed integral, and a background; each with its density of widths."""
    m, s = mf.Observable("m", 5.0, 5.6), mf.Observable("s", 0.005, 0.08)
    mu, k = mf.Parameter("mu", 5.28, 5.2, 5.36), mf.Parameter("k", 1.1, 0.5, 2.0)
    z = (m - mu) / (k * s)
    peak = mf.Density((1 + z**2 / 4) ** -2.5, [m], given=[s])
    slope, fraction = mf.Parameter("c", -2.0, -20.0, 5.0), mf.Parameter("f", 0.4, 0.0, 1.0)
    signal = mf.Product([peak, mf.shapes.LogNormal(s, 0.015, 0.35)])
    background = mf.Product([mf.Exponential(m, slope), mf.shapes.LogNormal(s, 0.022, 0.4)])
    return mf.Sum([signal, background], fractions=[fraction])


def decay_from_somewhere(power: float = 0.4) -> mf.Pdf:
    """A decay time that is seen from a time on that each event has."""
    t, a = mf.Observable("t", 0.0, 15.0), mf.Observable("a", 0.02, 2.0)
    tau, p = mf.Parameter("tau", 1.5, 0.4, 6.0), mf.Parameter("p", power, 0.0, 2.0)
    return mf.Density(mf.where(t > a, t**p * np.exp(-t / tau), 0.0), [t], given=[a])


def given_rows(model: mf.Pdf, low: float, high: float, events: int = 300) -> mf.Likelihood:
    (given,) = model.given
    rows = {given.name: np.random.default_rng(1).uniform(low, high, events)}
    return mf.Likelihood(model, mf.generate(model, given=rows, seed=1))


def peak_likelihood() -> mf.Likelihood:
    return mf.Likelihood(peak_with_errors(), {"m": np.empty(0), "s": np.empty(0)})


def ensemble_of(likelihood: mf.Likelihood, **truth: float) -> Ensemble:
    start = {p.name: p.start for p in likelihood.all_parameters}
    return Ensemble(
        drawn=likelihood, fitted=likelihood, truth={**start, **truth}, start=start, seed=3, backend=mf.Cpu(threads=1)
    )  # fmt: skip


def tagged_decay() -> mf.Likelihood:
    """An asymmetry with a tag and a resolution for each event, times an acceptance that has no closed integral."""
    t, s, q = mf.Observable("t", 0.0, 10.0), mf.Observable("s", 0.02, 0.2), mf.Observable("q", -1.0, 1.0)
    tau, asymmetry = mf.Parameter("tau", 1.5, 1.0, 2.2), mf.Parameter("S", 0.7, -1.0, 1.0)
    rate = np.exp(-t / tau) * (1 + 0.5 * q * asymmetry * np.sin(0.5 * t) * np.exp(-s))
    model = mf.Density(rate / (1 + np.exp((0.6 - t) / (0.2 + s))), [t], given=[q, s])
    rng = np.random.default_rng(7)
    rows = {"q": rng.choice([-1.0, 1.0], 300), "s": rng.uniform(0.021, 0.199, 300)}
    return mf.Likelihood(model, mf.generate(model, given=rows, seed=1))


MODELS = {
    "peak": (peak_likelihood, {"mu": 5.29, "k": 0.9}),
    "decay": (lambda: given_rows(decay_from_somewhere(), 0.1, 1.9), {"tau": 2.0, "p": 0.7}),
    "tagged": (tagged_decay, {"tau": 1.6, "S": 0.5}),
}


@pytest.mark.parametrize("name", MODELS)
def test_sums_with_polynomials_are_those_with_integrals(name: str) -> None:
    make, moved = MODELS[name]
    ensemble = ensemble_of(make())
    (smooth,), (likelihood,) = ensemble.smooth, ensemble.fitted.parts
    assert smooth
    toys = ensemble.draw(0, np.array([400]))
    (data,), sets = toys.data, np.arange(1)
    start = {p.name: p.start for p in likelihood.all_parameters}
    for values in (start, start | moved):
        full = np.array([[values[p.name] for p in likelihood.all_parameters]])
        for request in (
            likelihood.request(2, weighted=False),
            likelihood.request(0, weighted=False, fisher=True),
        ):
            exact, other = (
                data.bind(likelihood.compile_request(own), sets)(full)
                for own in (request, smoothed(request, smooth))
            )
            np.testing.assert_allclose(other, exact, rtol=1e-7, atol=1e-7 * np.abs(exact).max())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("of_log", [False, True])
def test_polynomials_are_compared_with_what_they_stand_for(name: str, of_log: bool) -> None:
    make, moved = MODELS[name]
    ensemble = ensemble_of(make())
    ((one, *_),) = ensemble.smooth
    one = replace(
        one,
        grid=Grid(tuple(replace(a, terms=a.terms + 10, in_log=a.low > 0) for a in one.grid.axes)),
        of_log=of_log,
    )
    values = ensemble.start | moved
    x = np.random.default_rng(1)
    points = {a.column.name: x.uniform(a.low, a.high, 101) for a in one.grid.axes}
    exact = evaluate(one.node, {**values, **points})
    np.testing.assert_allclose(evaluate(one.polynomial, {**values, **points}), exact, rtol=1e-8)
    np.testing.assert_allclose(evaluate(one.fixed(values), points), exact, rtol=1e-8)
    few = replace(one, grid=Grid(tuple(replace(a, terms=4) for a in one.grid.axes)))
    checks = [40] * len(few.grid.axes)
    sums = values_of(few.node, [values], few.grid.points(checks))
    off = np.abs(evaluate(few.polynomial, {**values, **points}) / exact - 1)
    assert few.errors(sums, checks)[0] >= 0.9 * off.max() > 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_toys_with_polynomials_are_those_without(name: str) -> None:
    make, truth = MODELS[name]
    ensemble = ensemble_of(make(), **truth)
    assert any(ensemble.smooth) and not any(ensemble.exact.smooth)
    sizes = np.full(30, 300)
    fits, exact = (one.draw(0, sizes).fit() for one in (ensemble, ensemble.exact))
    assert fits.valid.all() and exact.valid.all()
    assert np.abs((fits.values - exact.values) / exact.errors).max() < 1e-4
    np.testing.assert_allclose(fits.errors, exact.errors, rtol=1e-5)
    np.testing.assert_allclose(fits.nll, exact.nll, atol=1e-5)


def test_a_tag_needs_a_line() -> None:
    ((one,),) = ensemble_of(tagged_decay()).smooth
    terms = {axis.column.name: axis.terms for axis in one.grid.axes}
    assert (
        terms["q"] == 3 and terms["s"] > 3 and not one.of_log
    )  # the third term of a line is zero, which shows that it is one


def test_toys_that_end_where_polynomials_are_wrong_are_fitted_with_integrals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ensemble = ensemble_of(peak_likelihood())
    sizes = np.full(5, 300)
    exact = ensemble.exact.draw(0, sizes).fit()
    monkeypatch.setattr(smooth_sums, "WORST", 0.0)
    fits = ensemble.draw(0, sizes).fit()
    assert are_rough(fits, ensemble).all()
    np.testing.assert_array_equal(fits.values, exact.values)
    np.testing.assert_array_equal(fits.errors, exact.errors)


def test_some_of_chosen_toys_are_those_toys() -> None:
    # toys that are fitted again with finer boxes may have to be fitted once more without polynomials
    ensemble = ensemble_of(peak_likelihood())
    all_toys = ensemble.draw(3, np.full(8, 50))
    some = all_toys.some(np.array([1, 4, 6])).some(np.array([1, 2]))
    assert some.numbers.tolist() == [7, 9] and some.one(1).numbers.tolist() == [9]
    fits, again = all_toys.fit_whole(ensemble), some.fit_whole(ensemble)
    np.testing.assert_array_equal(again.values, fits.values[[4, 6]])


def test_no_polynomial_where_there_is_no_smooth_one() -> None:
    model = decay_from_somewhere()
    (node,) = node_sums(model)
    start = [{p.name: p.start for p in model.parameters}]
    assert smooth_sum(node, {"a": (0.02, 2.0)}, start) is not None
    # a power of zero, one value alone, too few terms
    assert smooth_sum(node, {"a": (0.0, 2.0)}, start) is None
    assert smooth_sum(node, {"a": (1.0, 1.0)}, start) is None
    assert smooth_sum(node, {"a": (0.02, 2.0)}, start, most=8) is None
    assert smooth_sums.smooth_sums([node], (), {"a": (0.02, 2.0)}, start) == ()


def test_given_datasets_may_have_other_rows_than_the_likelihood() -> None:
    model = decay_from_somewhere()
    likelihood = given_rows(model, 0.9, 1.1)
    rows = np.random.default_rng(2).uniform(0.05, 1.9, 400)
    data = mf.generate(model, given={"a": rows}, seed=4)
    fits = mf.fit_many(likelihood, [data, data], backend=mf.Cpu(threads=1))
    single = mf.fit(model, data)
    for name in ("tau", "p"):
        off = np.abs(fits.values[name] - single.values[name]) / single.errors[name]
        assert off.max() < 1e-3


def test_weighted_toys_with_polynomials_have_the_same_errors() -> None:
    model = peak_with_errors()
    m = next(o for o in model.observables if o.name == "m")
    columns = {o.name: np.empty(0) for o in model.observables}
    likelihood = mf.Likelihood(model, columns, weights=1 / (0.9 - 0.6 * np.exp(-(m - 4.9) / 0.4)))
    ensemble = ensemble_of(likelihood)
    fits, exact = (one.draw(0, np.full(10, 300)).fit() for one in (ensemble, ensemble.exact))
    np.testing.assert_allclose(fits.errors, exact.errors, rtol=1e-5)


def test_events_drawn_with_a_polynomial_are_those_with_an_integral(monkeypatch: pytest.MonkeyPatch) -> None:
    data = mf.generate(peak_with_errors(), 3_000, seed=6)
    monkeypatch.setattr(conditional_rows, "smooth_sum", lambda *_: None)
    exact = mf.generate(peak_with_errors(), 3_000, seed=6)
    for name in data.names:
        np.testing.assert_allclose(data[name], exact[name], rtol=1e-12)


def accepted_decay() -> mf.Likelihood:
    """A decay with an acceptance that is a spline, and a resolution for each event."""
    t, s = mf.Observable("t", 0.3, 12.0), mf.Observable("s", 0.01, 0.12)
    heights = [mf.Parameter(f"a{k}", v, 0.05, 3.0) for k, v in enumerate([0.5, 0.9, 1.1])]
    decay = mf.shapes.Decay(t, 1.5, sigma=[s], given=[s])
    return given_rows(
        mf.Efficiency(decay, mf.spline(t, [0.3, 1.0, 2.5, 6.0, 12.0], [0.2, *heights, 1.0])), 0.011, 0.119
    )


def test_columns_that_take_long_are_polynomials_but_for_rounding() -> None:
    ensemble = ensemble_of(accepted_decay())
    (sums,), (part,) = ensemble.compiled, ensemble.fitted.parts
    ranges = column_ranges(ensemble, part, part)
    others = {expr: smooth_column(expr, ranges) for expr in sums.per_dataset.values()}
    replaced = [(expr, other) for expr, other in others.items() if other is not expr]
    assert replaced
    x = np.linspace(*ranges["s"], 501)
    for expr, other in replaced:
        np.testing.assert_allclose(evaluate(other, {"s": x}), evaluate(expr, {"s": x}), rtol=2e-12)


def test_sums_of_terms_have_no_nodes_that_could_be_too_few() -> None:
    model = accepted_decay().model
    assert node_sums(model) and not node_rules(model)
    assert all(finer is not node for node, finer in node_rules(peak_with_errors()))


def test_columns_stay_as_they_are_where_no_polynomial_is_as_exact() -> None:
    s = mf.Observable("s", 0.0, 1.0).expr
    dear = sum(np.exp(-((s - k / 40) ** 2) * 1e5) for k in range(40))  # narrow peaks
    assert smooth_column(dear, {"s": (0.0, 1.0)}) is dear
    assert smooth_column(np.exp(s), {"s": (0.0, 1.0)}) is np.exp(s)  # cheap


def test_toys_with_polynomials_for_columns_are_those_without() -> None:
    ensemble = ensemble_of(accepted_decay())
    fits, exact = (one.draw(0, np.full(20, 300)).fit() for one in (ensemble, ensemble.exact))
    assert np.abs((fits.values - exact.values) / exact.errors).max() < 1e-6
    np.testing.assert_allclose(fits.nll, exact.nll, rtol=1e-10)


@pytest.mark.parametrize("own_events", [False, True])
def test_nodes_are_judged_alike_by_compiled_code(own_events: bool) -> None:
    model = peak_with_errors()
    rng, rows = np.random.default_rng(5), coarse.MANY
    values = {p.name: np.full(rows, p.start) for p in model.parameters}
    values["k"] = np.geomspace(1e-6, 1.5, rows)  # too narrow for the nodes at the start
    shape = (rows, coarse.EVENTS) if own_events else (coarse.EVENTS,)
    events = {"m": rng.uniform(5.0, 5.6, shape), "s": rng.uniform(0.01, 0.05, shape)}
    settings = peak_likelihood().settings
    many = coarse.coarse_rows(model, values, events, settings)
    single = []
    for k in range(rows):
        own = {name: column[k] if own_events else column for name, column in events.items()}
        single += coarse.coarse_rows(model, {n: v[k] for n, v in values.items()}, own, settings).tolist()
    assert many.tolist() == single
    assert 0 < many.sum() < rows
