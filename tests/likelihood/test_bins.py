"""Integrals of models over bins: scipy's quadrature is the judge, whichever way they were found."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special

import morefit as mf
from morefit.expr import const, evaluate
from morefit.likelihood import bin_integrals
from morefit.likelihood.bins import Bins, bin_probabilities
from morefit.targets.choose import choose_backend
from morefit.targets.opencl.discover import devices
from tolerances import BIN_INTEGRAL, FEW_ROUNDINGS, INTEGRAL_PROMISE, SAME_LINES
from zoo import ZOO

CPU = choose_backend("cpu")


def probabilities(model, x, edges, values, box=None, backend=CPU):
    bins = Bins({o.name: o for o in model.observables}[x], np.asarray(edges, float), box or {})
    return bin_probabilities([model], model.parameters, values, bins, backend)[0]


def named(model, values):
    return {p.name: float(v) for p, v in zip(model.parameters, values, strict=True)}


def judge(function, low, high, points=()):
    """Integrate by scipy, in pieces where the function bends."""
    cuts = [low, *(p for p in points if low < p < high), high]
    return sum(
        integrate.quad(function, a, b, epsabs=0, epsrel=1e-12, limit=200)[0] for a, b in pairwise(cuts)
    )


# ------------------------------------------------------------------------------------ the zoo


def kstar_ctl(v, x):
    return 0.75 * v["FL"] * (1 - x**2) + 0.375 * (1 - v["FL"]) * (1 + x**2) + v["AFB"] * x


def kstar_ctk(v, x):
    return 1.5 * v["FL"] * x**2 + 0.75 * (1 - v["FL"]) * (1 - x**2)


def kstar_phi(v, x):
    return (1 + v["S3"] * math.cos(2 * x) + v["S9"] * math.sin(2 * x)) / (2 * math.pi)


KSTAR = {
    "ctl": kstar_ctl,
    "ctk": kstar_ctk,
    "phi": kstar_phi,
}  # projections as the collaborations publish them


def projected(name, model, values, x):
    """Return the density of one observable as a plain function of numbers."""
    if name == "kstarmumu":
        return lambda u: KSTAR[x](values, u)
    pdf = next(p for p in model.pdfs if p.observables[0].name == x) if name == "product" else model
    density, integral = pdf.density(), float(evaluate(pdf.integral(), values))
    return lambda u: float(evaluate(density, {**values, x: u})) / integral


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n == "many")) for n in ZOO]
)
def test_bins_of_every_model_agree_with_scipy(name):
    model, _, point = ZOO[name](n=10)
    values = named(model, point)
    for x in model.observables:
        edges = np.linspace(x.low, x.high, 41)
        found = probabilities(model, x.name, edges, values)
        function = projected(name, model, values, x.name)
        bends = [values["mu"] - values["tail"] * values["sigma"]] if name == "crystal ball" else []
        for k in (0, 7, 12, 20, 39):
            expected = judge(function, edges[k], edges[k + 1], bends)
            assert found[k] == pytest.approx(expected, rel=BIN_INTEGRAL, abs=1e-15)
        assert found.sum() == pytest.approx(1, abs=INTEGRAL_PROMISE)


@pytest.mark.parametrize("box", [{"ctk": (0.1, 0.6), "phi": (-2.0, 0.5)}, {"phi": (0.3, 2.9)}])
def test_angles_inside_a_box_agree_with_scipy(box):
    model, _, point = ZOO["kstarmumu"](n=10)
    v = named(model, point)

    def density(phi, ctk, ctl):
        s2k, s2l, c2l = 1 - ctk * ctk, 1 - ctl * ctl, 2 * ctl * ctl - 1
        s_2k, sl = 2 * ctk * math.sqrt(s2k), math.sqrt(s2l)
        s_2l = 2 * ctl * sl
        cos, sin = math.cos(phi), math.sin(phi)
        return 9 / (32 * math.pi) * (
            0.75 * (1 - v["FL"]) * s2k + v["FL"] * ctk**2 + (0.25 * (1 - v["FL"]) * s2k - v["FL"] * ctk**2) * c2l
            + v["S3"] * s2k * s2l * math.cos(2 * phi) + v["S4"] * s_2k * s_2l * cos + v["S5"] * s_2k * sl * cos
            + 4 / 3 * v["AFB"] * s2k * ctl + v["S7"] * s_2k * sl * sin + v["S8"] * s_2k * s_2l * sin
            + v["S9"] * s2k * s2l * math.sin(2 * phi)
        )  # fmt: skip

    edges = np.linspace(-0.6, 0.9, 31)
    found = probabilities(model, "ctl", edges, v, box)
    (a, b), (c, d) = (box.get(n, (-1.0, 1.0)) for n in ("ctk", "phi"))
    for k in (0, 18):
        expected, _ = integrate.tplquad(
            density, edges[k], edges[k + 1], a, b, c, d, epsabs=1e-11, epsrel=1e-10
        )
        assert found[k] == pytest.approx(expected, rel=10 * BIN_INTEGRAL)


# ------------------------------------------------------------------------------------ shapes

X = mf.Observable("x", 2.0, 3.0)
SHAPES = {
    "narrow": (mf.Gaussian(X, 2.37, 1e-3), [2.37]),
    "far away": (mf.Gaussian(X, 0.0, 0.2), []),
    "wide": (mf.Gaussian(X, 2.5, 30.0), []),
    "falling": (mf.Exponential(X, -40.0), []),
    "flat": (mf.Exponential(X, 0.0), []),
    "rising": (mf.Exponential(X, 30.0), []),
    "rising from the left": (mf.Exponential(X, mf.Parameter("slope", 3.0, -5.0, 5.0)), []),
    "falling from the right": (mf.Exponential(X, mf.Parameter("slope", -3.0, -5.0, 1e3)), []),
    "tail on the left": (mf.CrystalBall(X, 2.7, 0.05, 1.2, 2.5), [2.64]),
    "tail on the right": (mf.CrystalBall(X, 2.3, 0.02, -0.8, 1.0), [2.316]),
    "polynomial": (mf.Polynomial(X, [-0.3, 0.2, 0.05, -0.02]), []),
    "uniform": (mf.Uniform(X), []),
}


@pytest.mark.parametrize("name", SHAPES)
def test_formula_between_two_values_agrees_with_scipy(name):
    pdf, bends = SHAPES[name]
    values = {p.name: p.start for p in pdf.parameters}
    density = pdf.density()
    for low, high in ((2.0, 3.0), (2.3, 2.4), (2.37, 2.3701), (2.9, 3.0)):
        found = float(evaluate(pdf.integral_between(const(low), const(high)), values))
        expected = judge(lambda u: float(evaluate(density, {**values, "x": u})), low, high, bends)
        assert found == pytest.approx(expected, rel=BIN_INTEGRAL, abs=1e-300)


@pytest.mark.parametrize("name", SHAPES)
def test_formula_over_the_whole_range_is_the_integral(name):
    pdf, _ = SHAPES[name]
    values = {p.name: p.start for p in pdf.parameters}
    found = evaluate(pdf.integral_between(const(X.low), const(X.high)), values)
    assert float(found) == pytest.approx(float(evaluate(pdf.integral(), values)), rel=16 * FEW_ROUNDINGS)


@pytest.mark.parametrize("name", [n for n in SHAPES if n != "uniform"])
def test_quadrature_agrees_with_the_formula(name):
    pdf, _ = SHAPES[name]
    values = {p.name: p.start for p in pdf.parameters}
    edges = np.linspace(2.1, 2.95, 86)
    bare = mf.Density(pdf.density(), [X], integral=pdf.integral())
    exact = probabilities(pdf, "x", edges, values)
    np.testing.assert_allclose(
        probabilities(bare, "x", edges, values), exact, rtol=1e-9, atol=INTEGRAL_PROMISE * exact.sum()
    )


def test_bins_of_a_part_add_up_to_the_integral_of_that_part():
    model, _, point = ZOO["crystal ball"](n=10)
    values = named(model, point)
    one = probabilities(model, "m", [5.31, 5.77], values)
    many = probabilities(model, "m", np.linspace(5.31, 5.77, 201), values)
    assert many.sum() == pytest.approx(float(one[0]), rel=SAME_LINES)


# ------------------------------------------------------------------------------------ two observables

U, V = mf.Observable("u", 0.0, 1.0), mf.Observable("v", -1.0, 2.0)
A = mf.Parameter("a", 1.5)
MIXED = {
    "smooth": np.exp(-A * U * V) + 0.2 * np.cos(U + A * V),
    "ridge": np.exp(-A * ((U - V) / 0.1) ** 2) + 0.1,
}


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("box", [{}, {"v": (0.0, 0.8)}])
def test_density_that_mixes_its_observables_agrees_with_scipy(name, box):
    model, values = mf.Density(MIXED[name], [U, V]), {"a": 1.7}
    edges = np.linspace(0.1, 0.9, 21)
    found = probabilities(model, "u", edges, values, box)
    density, total = model.density(), float(evaluate(model.integral(), values))

    def inner(u):
        return judge(
            lambda v: float(evaluate(density, values | {"u": u, "v": v})), *box.get("v", (-1, 2)), [u]
        )

    for k in (0, 13):
        expected = integrate.quad(inner, edges[k], edges[k + 1], epsabs=1e-12, epsrel=1e-11)[0] / total
        assert found[k] == pytest.approx(expected, rel=INTEGRAL_PROMISE)


def test_part_of_another_factor_scales_a_product():
    c = mf.Observable("c", -1.0, 1.0)
    angle = mf.Polynomial(c, [0.5])
    lifetime = mf.Density(np.exp(-(U**1.5)), [U])  # no formula
    late = judge(lambda u: float(evaluate(lifetime.normalised(), {"u": u})), 0.2, 0.4)
    for other, share in (
        (angle, 0.625 * late),
        (mf.Sum([angle, mf.Uniform(c)], fractions=[0.3]), 0.5375 * late),
    ):
        model = mf.Product([mf.Gaussian(X, 2.5, 0.1), other, lifetime])
        whole = probabilities(model, "x", [2.0, 2.4, 3.0], {})
        part = probabilities(model, "x", [2.0, 2.4, 3.0], {}, {"c": (0.0, 1.0), "u": (0.2, 0.4)})
        np.testing.assert_allclose(part, share * whole, rtol=INTEGRAL_PROMISE)


def test_own_density_without_a_formula_is_integrated_component_by_component():
    own = mf.Density(mf.where(X < 2.6, X - 2, 0.1), [X])
    model = mf.Sum([own, mf.Gaussian(X, 2.5, 0.01)], yields=[300.0, 100.0])
    edges = [2.0, 2.55, 2.65, 3.0]
    found = probabilities(
        mf.Product([mf.Sum([own, mf.Uniform(X)], fractions=[0.25]), mf.Uniform(U)]), "x", edges, {}
    )
    areas = np.array([0.55**2 / 2, (0.6**2 - 0.55**2) / 2 + 0.005, 0.035])
    np.testing.assert_allclose(
        found, 0.25 * areas / areas.sum() + 0.75 * np.diff(edges), rtol=INTEGRAL_PROMISE
    )
    peak = probabilities(mf.Gaussian(X, 2.5, 0.01), "x", edges, {})
    found = probabilities(model, "x", edges, {})
    np.testing.assert_allclose(found, 0.75 * areas / areas.sum() + 0.25 * peak, rtol=INTEGRAL_PROMISE)


@pytest.mark.parametrize("power", [0.5, 0.2])
def test_density_that_ends_as_a_power_inside_a_bin_is_integrated_over_bins(power):
    # this used to be refused: points in a bin do not integrate the root with which phase space ends
    end, edges = 2.893, np.linspace(2.0, 3.0, 11)
    line = mf.Observable("x", 2.0, 3.0)
    found = probabilities(mf.shapes.Argus(line, A + end, -3.0, power), "x", edges, {"a": 0.0})
    near, far = (np.maximum(1 - (e / end) ** 2, 0) for e in (edges[1:], edges[:-1]))
    areas = special.gammainc(1 + power, 3 * far) - special.gammainc(1 + power, 3 * near)
    np.testing.assert_allclose(found, areas / areas.sum(), rtol=INTEGRAL_PROMISE)


def test_density_with_a_pole_cannot_be_integrated_over_bins():
    model = mf.Density(1 / X, [X], integral=math.log(1.5))
    bad = mf.Density(1 / (X - 2), [X], integral=1.0)
    assert probabilities(model, "x", [2.0, 3.0], {})[0] == pytest.approx(1, rel=INTEGRAL_PROMISE)
    with pytest.raises(mf.ModelError, match=r"could not be integrated over bins of 'x' .* integral_between"):
        probabilities(bad, "x", [2.0, 3.0], {})


def test_more_than_three_mixed_observables_are_refused_with_a_way_out():
    box = [mf.Observable(n, 0.0, 1.0) for n in "pqrs"]
    model = mf.Density(np.exp(-A * box[0] * box[1] * box[2] * box[3]), box, integral=1.0)
    with pytest.raises(mf.ModelError, match="or write it as a product of densities"):
        probabilities(model, "p", [0.0, 1.0], {"a": 1.0})


# ------------------------------------------------------------------------------------ backends


@pytest.mark.parametrize("backend", ["reference", "opencl"])
@pytest.mark.parametrize("name", ["formula", "by terms", "in a box"])
def test_every_backend_integrates_the_same(name, backend):
    if backend == "opencl":
        try:
            found = any(device.double for device in devices())
        except mf.BackendError as error:
            pytest.skip(str(error))
        if not found:
            pytest.skip("backend 'opencl': no device with double precision on this machine")
    models = {
        "formula": mf.CrystalBall(U, 0.6, 0.05, 1.0, 3.0),
        "by terms": mf.Density(1 + A * U**2 * V, [U, V]),
        "in a box": mf.Density(MIXED["smooth"], [U, V]),
    }
    values = {p.name: 0.2 for p in models[name].parameters}
    edges = np.linspace(0, 1, 11)
    found = probabilities(models[name], "u", edges, values, backend=choose_backend(backend))
    np.testing.assert_allclose(found, probabilities(models[name], "u", edges, values), rtol=1e-12)


def test_issue_tails_with_moving_kinks_times_a_spline_are_integrated_over_bins():
    # the rule was larger than the largest that was tried
    x, p = mf.Observable("x", 0.0, 10.0), mf.Parameter
    tails = (p("al", 1.5, 0.5, 4.0), p("nl", 3.0, 1.1, 20.0), p("ar", 1.5, 0.5, 4.0), p("nr", 3.0, 1.1, 20.0))
    peak = mf.shapes.DoubleCrystalBall(x, p("mu", 5.0, 4.0, 6.0), p("sigma", 0.5, 0.1, 2.0), *tails)
    model = mf.Efficiency(
        peak, mf.spline(x, [0.0, 3.0, 7.0, 10.0], [1.0, p("knot", 1.0, 0.1, 5.0), 0.9, 1.2])
    )
    nll = mf.BinnedLikelihood(model, (np.full(40, 5.0), np.linspace(0.0, 10.0, 41)))
    assert nll.model.rules


WIDE = np.linspace(0.0, 10.0, 9)


def resonances(*peaks):
    """Return counts in wide bins that Breit-Wigners of some places and widths expect."""
    return sum(h * 2 / w * np.diff(np.arctan(2 * (WIDE - m) / w)) for m, w, h in peaks)


def test_issue_integrals_over_bins_follow_a_peak_that_becomes_narrow():
    # this used to be a rule for the start values: other fits had 900 too little nll, and were valid in fit_many
    x = mf.Observable("x", 0.0, 10.0)
    place, width = mf.Parameter("place", 5.0, 0.0, 10.0), mf.Parameter("width", 2.0, 0.05, 8.0)
    model = mf.Density(1 / ((x - place) ** 2 + width**2 / 4), [x])
    wanted = resonances((5.3, 0.3, 1.0))
    counts = np.round(2000 * wanted / wanted.sum())
    nll = mf.BinnedLikelihood(model, (counts, WIDE))
    for values in ((5.3, 0.3), (9.3, 0.1), (9.3, 0.05)):
        expected = resonances((*values, 1.0))
        found = nll.expected(values) / counts.sum()
        np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-5)
    result = mf.fit(nll)
    assert result.valid and result.nll < 0.1  # counts are rounded
    assert result.values["width"] == pytest.approx(0.3, abs=0.1 * result.errors["width"])


@pytest.mark.parametrize("followed", [0, 3])
def test_issue_fits_with_wrong_integrals_over_bins_are_not_valid_in_fit_many(followed, monkeypatch):
    # this used to be valid: a peak that no rule follows becomes narrow
    monkeypatch.setattr(bin_integrals, "MAX_PEAKS", followed)
    if not followed:
        monkeypatch.setitem(bin_integrals.POINTS, 1, (4, 6, 8, 10, 12, 16))
    x = mf.Observable("x", 0.0, 10.0)
    width, other = mf.Parameter("width", 2.0, 0.02, 8.0), mf.Parameter("other", 2.0, 0.02, 8.0)
    model = mf.Density(1 / ((x - 3) ** 2 + width**2 / 4) + 0.3 / ((x - 7) ** 2 + other**2 / 4), [x])
    wanted = resonances((3.0, 1.0, 1.0), (7.0, 0.1, 0.3))
    nll = mf.BinnedLikelihood(model, (np.round(5000 * wanted / wanted.sum()), WIDE))
    one, many = mf.fit(nll), mf.fit_many(nll, [(nll.counts, WIDE)])
    assert one.valid == many.valid.all() == bool(followed)
    if followed:
        assert one.values["other"] == pytest.approx(0.1, abs=0.1 * one.errors["other"])
        assert many.nll[0] == pytest.approx(one.nll, abs=0.01)
