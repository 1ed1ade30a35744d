"""Integrals are found term by term and cost nothing per event, or are done numerically to what is promised."""

import math

import numpy as np
import pytest
from scipy import integrate as scipy_integrate
from scipy.special import erf, ndtr

import morefit as mf
from morefit.expr import Op, domain_of, evaluate, leaves, toposort
from morefit.model.integrate.edges import scan
from morefit.model.integrate.joint import integrate_jointly
from morefit.model.integrate.separate import open_nested, separate
from morefit.model.integrate.terms import TOLERANCE, WORST, integrate_box
from tolerances import DIFFERENCES, INTEGRAL_PROMISE, TERM_INTEGRAL

X = mf.Observable("x", 0.0, 1.0)
Y = mf.Observable("y", -1.0, 2.0)
Z = mf.Observable("z", 0.5, 1.5)


def is_numeric(expr):
    return any(node.op is Op.INTEGRAL for node in toposort(expr))


def peak(mu, sigma, low=0.0, high=1.0):
    root = np.sqrt(2) * sigma
    return sigma * np.sqrt(np.pi / 2) * (erf((high - mu) / root) - erf((low - mu) / root))


# ------------------------------------------------------------------------- term by term


def angles():
    ctl, ctk = mf.Observable("ctl", -1, 1), mf.Observable("ctk", -1, 1)
    FL = mf.Parameter("FL", 0.6, 0, 1)
    formula = 9 / 16 * ((1 - FL) / 2 * (1 - ctk**2) * (1 + ctl**2) + 2 * FL * ctk**2 * (1 - ctl**2))
    return mf.Density(formula, observables=[ctl, ctk])


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.6, 1.0])
def test_example_of_the_design_is_integrated_term_by_term(fraction):
    integral = angles().integral()
    assert not is_numeric(integral)
    # 9/16 ((1 - FL)/2 * 4/3 * 8/3 + 2 FL * 2/3 * 4/3) = 1
    assert evaluate(integral, {"FL": fraction}) == pytest.approx(1, rel=TERM_INTEGRAL)


def test_integral_depends_on_no_observable():
    assert not leaves(Op.COLUMN, angles().integral())


def test_normalisation_costs_nothing_per_event():
    FL = angles().parameters[0]
    pdf = angles()
    by_hand = mf.Density(pdf.formula, pdf.observables, integral=1 + 0 * FL)
    data = {"ctl": np.linspace(-1, 1, 9), "ctk": np.linspace(-1, 1, 9)}
    lines = []
    for model in (pdf, by_hand):
        likelihood = mf.Likelihood(model, data)
        likelihood.program(1)
        lines.append(len(likelihood.compiled[(1, False)].program.kernel.per_event.lines))
    # log P - log N needs one subtraction at most; for a numeric integral the loop would be no longer either
    assert lines[0] <= lines[1] + 2


@pytest.mark.parametrize(
    ("density", "box", "expected"),
    [
        (lambda a: a * np.sqrt(1 - X**2) + 1, [X], lambda a: a * np.pi / 4 + 1),
        (lambda a: a * X * Y**2 + X, [X, Y], lambda a: a * 0.5 * 3 + 0.5 * 3),
        (lambda a: np.exp(-X) * (1 + a * np.cos(3 * X)), [X], lambda a: scipy_integrate.quad(lambda x: np.exp(-x) * (1 + a * np.cos(3 * x)), 0, 1, epsabs=1e-14)[0]),
        (lambda a: 1 + a * np.sin(X * Y), [X, Y], lambda a: 3 + a * scipy_integrate.dblquad(lambda y, x: np.sin(x * y), 0, 1, -1, 2, epsabs=1e-13)[0]),
        (lambda a: X * Y**2 * Z * (a + 2), [X, Y, Z], lambda a: (a + 2) * 0.5 * 3 * 1),
        (lambda a: (1 + a * X) * mf.where(X < 0.3, 1, 2), [X], lambda a: 0.3 + 2 * 0.7 + a * (0.045 + 2 * (0.5 - 0.045))),
        (lambda a: a * abs(X - 0.4) + 1, [X], lambda a: 1 + a * (0.08 + 0.18)),
    ],
)  # fmt: skip
def test_sums_of_parameters_times_event_terms_are_exact(density, box, expected):
    a = mf.Parameter("a", 0.5, 0, 1)
    integral = mf.Density(density(a), box).integral()
    assert not is_numeric(integral)
    for value in (0.0, 0.5, 0.9):
        assert evaluate(integral, {"a": value}) == pytest.approx(
            expected(value), rel=TERM_INTEGRAL, abs=TERM_INTEGRAL
        )


def test_terms_that_cancel_are_dropped():
    a = mf.Parameter("a", 0.5)
    odd = mf.Observable("odd", -1.0, 1.0)
    integral = mf.Density(1 + a * odd + a**2 * odd**3, [odd]).integral()
    assert not leaves(Op.SCALAR, integral)
    assert evaluate(integral, {}) == pytest.approx(2, rel=TERM_INTEGRAL)


def test_issue_products_inside_products_are_opened():
    # this used to look for a rule in two dimensions, which cannot be had for roots at the ends of the ranges
    ctl, ctk = mf.Observable("ctl", 0.0, 1.0), mf.Observable("ctk", 0.2, 1.0)
    s = mf.Parameter("s", 0.1)
    nested = 2 * (ctk * np.sqrt(1 - ctk**2)) * np.sqrt(1 - ctl**2)
    integral = mf.Density(1 + s * nested, [ctl, ctk]).integral()
    assert not is_numeric(integral)
    expected = 0.8 + 0.1 * 2 / 3 * (1 - 0.2**2) ** 1.5 * np.pi / 4
    assert evaluate(integral, {"s": 0.1}) == pytest.approx(expected, rel=TERM_INTEGRAL)
    assert all(factor.op is not Op.MUL for factor in open_nested(Op.MUL, (nested,)))


def amplitude(couplings):
    """The square of a sum of resonances with complex couplings, as it is usually written."""
    real = imaginary = 0.0
    for k, (c, d) in enumerate(couplings):
        x, mass, width = (X, Y)[k % 2], 0.3 + 0.2 * k, 0.1 + 0.05 * k
        size = (mass - x) ** 2 + width**2
        real = real + c * (mass - x) / size - d * width / size
        imaginary = imaginary + c * width / size + d * (mass - x) / size
    return real**2 + imaginary**2


def test_issue_squares_of_amplitudes_are_integrated_term_by_term():
    # this used to be a quadrature at every evaluation: a fit took 0.2 s where it takes a millisecond now
    couplings = [(1.0, 0.0), *((mf.Parameter(f"c{k}", 0.5), mf.Parameter(f"d{k}", -0.3)) for k in range(1))]
    integral = mf.Density(amplitude(couplings), [X, Y]).integral()
    assert not is_numeric(integral)
    u, w = np.polynomial.legendre.leggauss(300)
    x, y = (u[:, None] + 1) / 2, -1 + 3 * (u + 1) / 2
    values = {"c0": 0.7, "d0": 0.4}
    heights = evaluate(amplitude(couplings), {**values, "x": x, "y": y})
    expected = np.sum(heights * w[:, None] * w) * 0.5 * 1.5
    assert evaluate(integral, values) == pytest.approx(expected, rel=100 * TERM_INTEGRAL)


@pytest.mark.parametrize(("power", "terms"), [(2, 3), (3, 8), (4, 16)])
def test_whole_powers_are_opened(power, terms):
    a = mf.Parameter("a", 0.5)
    assert len(separate((1 + a * X) ** power, powers=True)) <= terms
    integral = mf.Density((1 + a * X) ** power, X).integral()
    assert not is_numeric(integral)
    expected = (1.5 ** (power + 1) - 1) / (0.5 * (power + 1))
    assert evaluate(integral, {"a": 0.5}) == pytest.approx(expected, rel=TERM_INTEGRAL)


def test_squares_whose_terms_cancel_are_not_opened():
    m, a = mf.Observable("m", 5279.0, 5281.0), mf.Parameter("a", 5280.2, 5275.0, 5285.0)
    integral = mf.Density(1 + (m - a) ** 2, m).integral()
    assert is_numeric(integral)
    expected = 2 + ((5281 - 5280.25) ** 3 - (5279 - 5280.25) ** 3) / 3
    assert evaluate(integral, {"a": 5280.25}) == pytest.approx(expected, rel=INTEGRAL_PROMISE)


def test_many_functions_are_integrated_on_the_same_boxes():
    inside = X + Y < 1.2
    functions = [mf.where(inside, X**k + Y, 0.0) for k in range(2)]
    together = integrate_jointly(functions, (X, Y), TOLERANCE, WORST)
    for function, (number, size) in zip(functions, together, strict=True):
        alone, whole = integrate_box(function, (X, Y))
        assert number == pytest.approx(alone, abs=10 * TERM_INTEGRAL * whole)
        assert size == pytest.approx(whole, rel=1e-3)  # it has kinks


def test_issue_a_map_of_an_efficiency_is_integrated_over_one_axis_at_run_time():
    # this used to look for kinks in both directions for minutes
    rng = np.random.default_rng(1)
    tau, a = mf.Parameter("tau", 0.4, 0.1, 2.0), mf.Parameter("a", 0.3)
    grid, rows = np.linspace(0, 1, 9), 0.5 + rng.random((8, 6))
    efficiency = mf.histogram_function([X, Y], (rows, grid, np.linspace(-1, 2, 7)), "linear")
    density = (np.exp(-X / tau) / tau) * (1 + a * Y + X * Y**2) * efficiency
    integral = mf.Density(density, [X, Y]).integral()
    (node,) = [n for n in toposort(integral) if n.op is Op.INTEGRAL]
    assert len(domain_of(node).axes) == 1
    u, w = np.polynomial.legendre.leggauss(12)
    cells = [np.unique([low, *((e[1:] + e[:-1]) / 2), high])
             for low, e, high in ((0, grid, 1), (-1, np.linspace(-1, 2, 7), 2))]  # fmt: skip
    x, y = ((c[:-1, None] + np.diff(c)[:, None] * (u + 1) / 2).ravel() for c in cells)
    wx, wy = ((np.diff(c)[:, None] / 2 * w).ravel() for c in cells)
    heights = evaluate(density, {"tau": 0.7, "a": -0.2, "x": x[:, None], "y": y})
    expected = np.sum(heights * wx[:, None] * wy)
    assert evaluate(integral, {"tau": 0.7, "a": -0.2}) == pytest.approx(expected, rel=INTEGRAL_PROMISE)


def test_density_that_mixes_cannot_be_separated():
    a = mf.Parameter("a", 0.5)
    assert separate(np.exp(a * X)) is None
    assert len(separate((1 + a) * (X + a * X**2))) == 2


@pytest.mark.parametrize("ranges", [((-0.8, 0.9), (-1, 1)), ((-1, 0), (0.2, 0.7))])
def test_restricted_angles_keep_their_integral_free_of_events(ranges):
    ctl, ctk = (mf.Observable(n, *r) for n, r in zip(("ctl", "ctk"), ranges, strict=True))
    phi = mf.Observable("phi", -1.0, 2.0)
    names = ("FL", "S3", "S4", "S5", "AFB", "S7", "S8", "S9")
    pdf = mf.physics.KstarMuMu(ctl, ctk, phi, *(mf.Parameter(n, 0.1, -1, 1) for n in names))
    integral = pdf.integral()
    assert not is_numeric(integral)
    assert not leaves(Op.COLUMN, integral)


# ------------------------------------------------------------------------- numerically


@pytest.mark.parametrize("width", [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5])
def test_peak_of_any_width_is_integrated_at_its_start_values(width):
    mu, sigma = mf.Parameter("mu", 0.37, 0.0, 1.0), mf.Parameter("sigma", width, width / 5, width * 5)
    integral = mf.Density(np.exp(-0.5 * ((X - mu) / sigma) ** 2), [X]).integral()
    assert is_numeric(integral)
    found = evaluate(integral, {"mu": 0.37, "sigma": width})
    assert found == pytest.approx(peak(0.37, width), rel=INTEGRAL_PROMISE)


@pytest.mark.parametrize("width", [0.01, 1e-4, 1e-5])
def test_issue_narrow_peak_on_a_background_is_not_missed(width):
    # this used to step over a peak between two nodes where something else is there too
    mu, sigma = mf.Parameter("mu", 0.37), mf.Parameter("sigma", width)
    integral = mf.Density(1 + 100 * np.exp(-0.5 * ((X - mu) / sigma) ** 2), [X]).integral()
    found = evaluate(integral, {"mu": 0.37, "sigma": width})
    assert found == pytest.approx(1 + 100 * peak(0.37, width), rel=INTEGRAL_PROMISE)


@pytest.mark.parametrize("tau", [0.05, 0.3, 3.0])
def test_one_dimension_keeps_the_promise(tau):
    parameter = mf.Parameter("tau", tau, tau / 2, tau * 2)
    integral = mf.Density(np.sqrt(X + 0.01) * np.exp(-X / parameter), [X]).integral()
    for value in (tau, 0.8 * tau, 1.3 * tau):
        expected, _ = scipy_integrate.quad(
            lambda x, t=value: np.sqrt(x + 0.01) * np.exp(-x / t), 0, 1, epsabs=1e-14, epsrel=1e-13
        )
        assert evaluate(integral, {"tau": value}) == pytest.approx(expected, rel=INTEGRAL_PROMISE)


def test_root_at_an_end_with_a_parameter_under_it_keeps_the_promise():
    end = mf.Parameter("end", 1.0, fixed=True)
    slope = mf.Parameter("slope", 1.0, 0.5, 2.0)
    integral = mf.Density(np.sqrt(end - X) * np.exp(slope * X), [X]).integral()
    expected, _ = scipy_integrate.quad(lambda x: np.exp(x), 0, 1, weight="alg", wvar=(0, 0.5), epsabs=1e-14)
    assert evaluate(integral, {"end": 1.0, "slope": 1.0}) == pytest.approx(expected, rel=INTEGRAL_PROMISE)


def test_two_dimensions_keep_the_promise():
    a, b = mf.Parameter("a", 1.5, 1.0, 2.0), mf.Parameter("b", 0.5, 0.2, 1.0)
    integral = mf.Density(np.exp(-a * X * Y) + b * np.cos(X + b * Y), [X, Y]).integral()
    for va, vb in ((1.5, 0.5), (1.2, 0.9)):
        expected, _ = scipy_integrate.nquad(
            lambda y, x, a=va, b=vb: np.exp(-a * x * y) + b * np.cos(x + b * y),
            [[-1, 2], [0, 1]],
            opts={"epsabs": 1e-13, "epsrel": 1e-13},
        )
        assert evaluate(integral, {"a": va, "b": vb}) == pytest.approx(expected, rel=INTEGRAL_PROMISE)


def test_three_dimensions_keep_the_promise():
    a = mf.Parameter("a", 0.7, 0.5, 1.0)
    integral = mf.Density(np.exp(-a * (X + Y + Z)) + np.sqrt(a + X), [X, Y, Z]).integral()
    for value in (0.7, 0.55):
        expected = np.prod([(np.exp(-value * o.low) - np.exp(-value * o.high)) / value for o in (X, Y, Z)])
        expected += 3 * 2 / 3 * ((value + 1) ** 1.5 - value**1.5)
        assert evaluate(integral, {"a": value}) == pytest.approx(expected, rel=INTEGRAL_PROMISE)


def test_derivatives_of_a_numerical_integral_are_exact():
    mu, sigma = mf.Parameter("mu", 0.37, 0.2, 0.5), mf.Parameter("sigma", 0.2, 0.1, 0.4)
    given = mf.Gaussian(X, mu, sigma)
    found = mf.Density(given.density(), [X])
    data = {"x": np.linspace(0.05, 0.95, 29)}
    exact, numeric = mf.Likelihood(given, data), mf.Likelihood(found, data)
    order = [[p.name for p in numeric.parameters].index(p.name) for p in exact.parameters]
    x = np.array([0.41, 0.23])
    y = x[np.argsort(order)]  # a formula has no order of its own
    assert numeric.value(y) == pytest.approx(exact.value(x), rel=INTEGRAL_PROMISE)
    np.testing.assert_allclose(numeric.gradient(y)[order], exact.gradient(x), rtol=INTEGRAL_PROMISE)
    np.testing.assert_allclose(
        numeric.hessian(y)[np.ix_(order, order)], exact.hessian(x), rtol=INTEGRAL_PROMISE
    )


def test_derivatives_of_a_numerical_integral_in_two_dimensions_agree_with_differences():
    a = mf.Parameter("a", 1.5, 1.0, 2.0)
    pdf = mf.Density(np.exp(-a * X * Y), [X, Y])
    rng = np.random.default_rng(1)
    likelihood = mf.Likelihood(pdf, {"x": rng.uniform(0, 1, 50), "y": rng.uniform(-1, 2, 50)})
    step = 1e-4
    slope = (likelihood.value([1.5 + step]) - likelihood.value([1.5 - step])) / (2 * step)
    assert likelihood.gradient([1.5])[0] == pytest.approx(slope, rel=DIFFERENCES)
    bend = (likelihood.gradient([1.5 + step]) - likelihood.gradient([1.5 - step]))[0] / (2 * step)
    assert likelihood.hessian([1.5])[0, 0] == pytest.approx(bend, rel=DIFFERENCES)


def test_numerical_integrals_work_for_many_sets_at_once():
    a = mf.Parameter("a", 1.5, 1.0, 2.0)
    likelihood = mf.Likelihood(mf.Density(np.exp(-a * X**1.5), [X]), {"x": np.linspace(0, 1, 11)})
    sets = np.array([[1.2], [1.5], [1.9]])
    together = likelihood.value(sets)
    assert together.shape == (3,)
    np.testing.assert_array_equal(together, [likelihood.value(row) for row in sets])


# ------------------------------------------------------------------------- what cannot be done


@pytest.mark.parametrize(
    "density", [1 / X, X**-1.5, 1 / (1 - X), 1 / abs(X - 0.3), np.exp(1 / X)], ids=["pole", "steep pole", "pole at the upper end", "pole inside", "essential"]
)  # fmt: skip
def test_density_with_a_pole_is_refused(density):
    # the simple poles used to be given an integral that stopped where the panels became too narrow
    with pytest.raises(
        mf.ModelError, match=r"its numerical integral is (infinite|uncertain).*give an integral"
    ):
        evaluate(mf.Density(density, [X]).integral(), {})


def test_density_that_is_no_number_in_its_range_is_refused():
    a = mf.Parameter("a", 1.0)
    with pytest.raises(
        mf.ModelError, match=r"not a number at a = 1; give an integral, narrower ranges or better values"
    ):
        evaluate(mf.Density(np.sqrt(X - a * 0.5), [X]).integral(), {"a": 1.0})


def test_four_dimensions_are_refused_with_a_way_out():
    boxes = [mf.Observable(n, 0.0, 1.0) for n in "uvwt"]
    pdf = mf.Density(1 + boxes[0] * boxes[1] * boxes[2] * boxes[3], boxes)
    with pytest.raises(
        mf.ModelError, match="in 1 to 3 dimensions, got 4; give an integral, or write it as a product"
    ):
        pdf.integral()


@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("place", [3.21, 6.54321])
def test_issue_narrow_peaks_at_written_numbers_are_seen(place, width):
    # this used to miss a peak whose place is a number in the formula: the integral was off by up to two per cent
    x, a = mf.Observable("x", 0.0, 10.0), mf.Parameter("a", 1.0, 0.1, 10.0)
    expected = width * np.sqrt(2 * np.pi) + 0.01
    for formula in (np.exp(-0.5 * ((x - place) / (width * a)) ** 2) + 0.001,
                    np.exp(-0.5 * ((x - place) / width) ** 2) + 0.001 * a):  # fmt: skip
        found = float(evaluate(mf.Density(formula, observables=[x]).integral(), {"a": 1.0}))
        assert found == pytest.approx(expected, rel=INTEGRAL_PROMISE)


def test_issue_a_condition_that_is_zero_over_a_piece_has_the_ends_of_it():
    """Thousands of points where a Gaussian tail underflows used to be kinks of their own, compared with each other for minutes."""
    x = mf.Observable("x", -100.0, 100.0)
    condition = np.exp(-0.5 * (x.expr - 3.0) ** 2) * (x.expr - 3.0)
    zeros = sorted(z.number for z in scan(condition, x.expr, x.low, x.high))
    np.testing.assert_allclose(zeros, [-100.0, 3 - 38.6, 3.0, 3 + 38.6, 100.0], atol=0.1)


def bell(t):
    return np.exp(-0.5 * t**2)


def test_ridges_across_the_axes_are_seen_along_their_whole_length():
    # this used to be 0.7 % off, in silence, as boxes met the ridge between their nodes
    x, y, w = mf.Observable("x", -1, 1), mf.Observable("y", -1, 1), 1e-3
    model = mf.Density(bell((y - x**2) / w) * bell(x / 0.5), [x, y])
    nodes, weights = np.polynomial.legendre.leggauss(2000)
    ends = [ndtr((end - nodes**2) / w) for end in (-1, 1)]
    area = np.sum(weights * bell(nodes / 0.5) * w * math.sqrt(2 * math.pi) * (ends[1] - ends[0]))
    assert model.pdf({"x": [0.3], "y": [0.09]}) == pytest.approx(bell(0.6) / area, rel=1e-7)


def test_ridges_that_no_formula_gives_are_seen():
    # this used to be 6 % off, in silence
    x, y, w = mf.Observable("x", -1, 1), mf.Observable("y", -1, 1), 1e-4
    model = mf.Density(bell((y + 0.3 * y**5 + 0.3 * x**5 - 0.37 * x) / w) * bell((x - 0.41) / 0.05), [x, y])
    nodes = np.linspace(-0.1, 0.9, 4001)
    top = np.zeros_like(nodes)
    for _ in range(20):
        top -= (top + 0.3 * (top**5 + nodes**5) - 0.37 * nodes) / (1 + 1.5 * top**4)
    area = np.trapezoid(bell((nodes - 0.41) / 0.05) * w * math.sqrt(2 * math.pi) / (1 + 1.5 * top**4), nodes)
    assert evaluate(model.integral(), {}) == pytest.approx(area, rel=1e-7)  # a curved ridge: to w squared
