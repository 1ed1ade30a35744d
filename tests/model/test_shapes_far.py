"""Densities far from where they are made for: at the ends of their parameters' ranges, next to and outside of those of x."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

import morefit as mf
from derivatives import value_and_derivatives
from morefit.expr import column, evaluate, scalar
from morefit.model.integrate.solve import solve
from tolerances import NUMERICAL, PART, SHAPE

X = mf.Observable("x", 5.0, 7.0)
S = mf.shapes


def parameters(*values):
    return [mf.Parameter(f"p{k}", value) for k, value in enumerate(values)]


# ------------------------------------------------------------------------- ends at which a density is infinite


@pytest.mark.parametrize(
    ("power", "end"), [(-0.5, 7.0), (-0.9, 6.8), (-0.99, 6.8), (-0.99, 7.0), (-0.99, 7.5)]
)
def test_argus_is_normalised_for_all_powers_above_minus_one(power, end):
    # this used to be 1e-4 off at -0.9 and 0.68 at -0.99, as much of the density is closer to its end than numbers reach
    k, c = mp.mpf(power) + 1, mp.mpf(-10)

    def below(x):
        u = 1 - (mp.mpf(x) / end) ** 2
        return u**k / k * mp.hyp1f1(k, k + 1, c * u) if u > 0 else mp.mpf(0)

    u = 1 - (mp.mpf(6) / end) ** 2
    expected = 6 * u**power * mp.exp(c * u) / (mp.mpf(end) ** 2 / 2 * (below(5) - below(7)))
    assert S.Argus(X, *parameters(end, -10.0, power)).pdf(6.0) == pytest.approx(
        float(expected), rel=NUMERICAL
    )


def test_argus_beyond_its_end_may_have_any_power():
    end, power = mp.mpf(7.2), -3
    area = mp.quad(lambda x: x * (1 - (x / end) ** 2) ** power, [5, 6, 7])
    expected = 6 * (1 - (6 / end) ** 2) ** power / area
    assert S.Argus(X, *parameters(7.2, 0.0, power)).pdf(6.0) == pytest.approx(float(expected), rel=NUMERICAL)


def test_a_distribution_of_which_numbers_miss_a_part_is_refused():
    argus = S.Argus(X, 6.8, -10.0, -0.98)
    with pytest.raises(mf.ModelError, match="could not be integrated over bins of 'x'"):
        argus.cdf([6.0])


def test_argus_has_no_density_of_negative_masses():
    with pytest.raises(mf.ModelError, match=r"'x' must lie in \[0, inf\], got the range \[-1, 1\]"):
        S.Argus(mf.Observable("x", -1.0, 1.0), 2.0, -1.0)


@pytest.mark.parametrize(
    ("shape", "values", "exact"),
    [
        (S.Gamma, (0.012, 8.6), stats.gamma(0.012, scale=8.6)),
        (S.ChiSquare, (0.03,), stats.chi2(0.03)),
        (S.Weibull, (0.012, 8.6), stats.weibull_min(0.012, scale=8.6)),
        (S.LogNormal, (1.0, 400.0), stats.lognorm(400.0, scale=np.e)),
    ],
)
def test_a_range_from_zero_on_has_all_of_a_density_next_to_zero(shape, values, exact):
    # these used to begin at 1e-300, below which much of them lies
    x = mf.Observable("x", 0.0, 100.0)
    density = shape(x, *parameters(*values))
    assert density.pdf(3.0) == pytest.approx(exact.pdf(3.0) / exact.cdf(100.0), rel=PART)
    assert density.integrate({"x": (0.0, 2.0)}) == pytest.approx(exact.cdf(2.0) / exact.cdf(100.0), rel=PART)


def test_a_weibull_density_with_a_pole_is_drawn_by_inversion():
    # this used to be refused, as if it were drawn under an envelope
    weibull = S.Weibull(mf.Observable("x", 0.0, 10.0), *parameters(0.6, 2.0))
    drawn = mf.generate(weibull, 2000, seed=1)["x"]
    assert stats.kstest(drawn, weibull.cdf).pvalue > 1e-4


# ------------------------------------------------------------------------- tails, and ranges without a peak


@pytest.mark.parametrize("exponent", [-120.0, 120.0])
def test_a_steep_power_law_does_not_overflow(exponent):
    # this used to be not a number: it was counted from an end where it underflows
    x = mf.Observable("x", 0.01, 1e6)
    (n,) = parameters(exponent)
    nll, at = mf.Likelihood(S.PowerLaw(x, n), {"x": np.array([2.0])}), 1e6 if exponent > 0 else 0.01
    expected = np.log(abs(exponent + 1)) + exponent * np.log(2 / at) - np.log(at)
    value, (slope,), ((curvature,),) = value_and_derivatives(nll, [exponent])
    assert -value == pytest.approx(expected, rel=SHAPE)
    assert -slope == pytest.approx(1 / (exponent + 1) + np.log(2 / at), rel=SHAPE)
    assert curvature == pytest.approx(1 / (exponent + 1) ** 2, rel=NUMERICAL)
    drawn = mf.generate(S.PowerLaw(x, n), 500, seed=1)["x"] / at
    assert np.all((drawn ** np.sign(exponent) > 0.9) & (drawn ** np.sign(exponent) <= 1))


def test_the_tail_of_a_fermi_function_is_an_exponential_with_its_derivatives():
    # slopes used to be those of the density alone from 355 widths on, as the square of an exponential overflows
    width, low = 5e-5, -1.0
    x, (mu, w) = mf.Observable("x", low, 1.0), parameters(low - 440 * width, width)
    nll = mf.Likelihood(S.Fermi(x, mu, w), {"x": np.array([low + 1.5 * width])})
    value, slopes = value_and_derivatives(nll, [mu.start, width], 1)
    assert -value == pytest.approx(-1.5 - np.log(width), rel=NUMERICAL)
    np.testing.assert_allclose(-slopes * width, [0, 0.5], atol=NUMERICAL)


def test_a_generalised_normal_is_uniform_below_its_flat_top():
    # it used to have no integral where the power of a small distance underflows
    x = mf.Observable("x", -1.0, 1.0)
    flat = S.GeneralisedNormal(x, *parameters(-3.8, 6e3, 200.0))
    assert flat.pdf([-0.5, 0.7]) == pytest.approx([0.5, 0.5], rel=SHAPE)
    assert flat.cdf(0.5) == pytest.approx(0.75, rel=SHAPE)


def test_a_moyal_density_far_above_the_range_has_its_tail_with_all_derivatives():
    # it used to have no integral from seven widths on
    at = mp.mpf(6.99999)

    def log_density(mu, sigma):
        # the integral in closed form: numerically it takes two seconds
        z, end = (at - mu) / sigma, mp.exp((mu - 7) / (2 * sigma))
        area = sigma * mp.sqrt(2 * mp.pi) * mp.erfc(end / mp.sqrt(2))
        return -(z + mp.exp(-z)) / 2 - mp.log(area)

    nll = mf.Likelihood(S.Moyal(X, *parameters(8.0, 0.1)), {"x": np.array([float(at)])})
    value, slopes, curvatures = value_and_derivatives(nll, [8.0, 0.1])
    with mp.workdps(30):
        here = mp.mpf(8), mp.mpf(0.1)
        first = [float(mp.diff(log_density, here, order)) for order in ((1, 0), (0, 1))]
        second = [float(mp.diff(log_density, here, order)) for order in ((2, 0), (1, 1), (0, 2))]
        assert -value == pytest.approx(float(log_density(*here)), rel=NUMERICAL)
    np.testing.assert_allclose(-slopes, first, NUMERICAL)
    np.testing.assert_allclose(-curvatures[[0, 0, 1], [0, 1, 1]], second, NUMERICAL)


@pytest.mark.parametrize(("mu", "sigma"), [(7.5, 0.01), (10.0, 0.1)])
def test_a_part_of_a_sum_with_nothing_at_an_event_has_no_slopes_there(mu, sigma):
    # these used to be not a number
    total = mf.Sum(
        [S.Moyal(X, *parameters(mu, sigma)), mf.Uniform(X)], fractions=[mf.Parameter("f", 0.5, 0.0, 1.0)]
    )
    nll = mf.Likelihood(total, {"x": np.array([5.5])})
    value, slopes, curvatures = value_and_derivatives(nll, [p.start for p in nll.parameters])
    assert value == pytest.approx(np.log(4))
    assert np.count_nonzero(slopes) == np.count_nonzero(curvatures) == 1


@pytest.mark.parametrize(
    "density",
    [
        S.GaussianExponentialTail(X, *parameters(1e3, 0.1, 1.2)),
        S.DoubleCrystalBall(X, *parameters(-1e3, 0.01, 1.2, 200.0, 30.0, 300.0)),
        S.Bukin(X, *parameters(-1e3, 0.1, 0.1, -0.1, -0.1)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_density_whose_integral_underflows_is_not_a_number(density):
    # this used to be infinite, or zero with a distribution of one
    assert np.isnan(density.pdf(6.0))
    assert np.isnan(density.cdf(6.0))


def test_empty_pieces_of_a_bukin_function_add_no_rounding():
    # the tail used to be 5 % off in compiled code: the empty pieces next to it held 1e-17
    mu, sigma = -3.56718, 0.0869966
    x = mf.Observable("x", -1.0, 1.0)
    density = S.Bukin(x, *parameters(mu, sigma, -1e-8, 0.0, 0.0))
    rate = 4 * np.log(2) / (2 * np.sqrt(2 * np.log(2)) * sigma)  # of an exponential tail
    expected = rate * np.exp(-rate * 0.1) / -np.expm1(-2 * rate)
    assert density.pdf(-0.9) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("mass", "width"), [(1.5e-3, 7e-7), (1e-5, 1.0), (1.2, 0.01)])
def test_a_range_far_above_a_resonance_keeps_its_digits(mass, width):
    # angles and logarithms cancel there: this used to be 1e-6 off
    with mp.workdps(30):
        M, G = mp.mpf(mass), mp.mpf(width)
        area = mp.quad(lambda t: 1 / ((t**2 - M**2) ** 2 + (M * G) ** 2), [5, 7])
        expected = float(1 / ((mp.mpf(6) ** 2 - M**2) ** 2 + (M * G) ** 2) / area)
    resonance = S.RelativisticBreitWigner(X, *parameters(mass, width))
    assert resonance.pdf(6.0) == pytest.approx(expected, rel=SHAPE)


# ------------------------------------------------------------------------- narrow peaks, integrated numerically


def normal_share(x, mu, sigma):
    """Return the density of a Gaussian on the range, by scipy."""
    inside = stats.norm.sf(5.0, mu, sigma) - stats.norm.sf(7.0, mu, sigma)
    return np.exp(stats.norm.logpdf(x, mu, sigma)) / inside


@pytest.mark.parametrize(("sigma", "distance"), [(1e-6, 0.0), (1e-6, 5.0), (1e-8, 1.0)])
def test_the_tail_of_a_narrow_peak_outside_the_range_is_integrated(sigma, distance):
    # no node used to be near the end of the range: the integral was zero and the density infinite
    mu = 5.0 - distance * sigma
    peak = S.QGaussian(X, *parameters(mu, sigma, 1.0))
    x = 5.0 + 0.5 * sigma
    assert peak.pdf(x) == pytest.approx(normal_share(x, mu, sigma), rel=1e-6)


@pytest.mark.parametrize("mu", [6.00001, 7.00001])
def test_a_peak_that_becomes_narrow_is_followed_into_and_out_of_the_range(mu):
    # a likelihood used to be infinite where no node of the wide peak was near the narrow one
    x = min(mu, 7.0) - 3e-6
    nll = mf.Likelihood(S.QGaussian(X, *parameters(6.0, 0.1, 1.0)), {"x": np.array([x])})
    assert np.isfinite(nll.value([6.0, 0.1, 1.0]))
    assert -nll.value([mu, 1e-5, 1.0]) == pytest.approx(np.log(normal_share(x, mu, 1e-5)), rel=1e-8)


def test_the_distribution_of_a_narrow_peak_has_the_tail_that_an_edge_cuts_off():
    # it used to lack what lies below the lowest point, [0, 0.136] for [0.023, 0.159]
    peak = S.StudentT(X, *parameters(6.0, 3.6e-5, 1e9))
    points = 6.0 - 3.6e-5 * np.array([2.0, 1.0])
    assert peak.cdf(points) == pytest.approx(special.ndtr([-2.0, -1.0]), abs=1e-7)
    many = np.linspace(-2.0, 2.0, 600)  # more than are looked at one by one
    assert peak.cdf(6.0 + 3.6e-5 * many) == pytest.approx(special.ndtr(many), abs=1e-7)


def test_a_steep_threshold_at_the_end_of_the_range_is_integrated():
    # it used to be 2e-5 off: boxes were cut where there is more than elsewhere, not less
    beta, alpha = 1e4, 5.0
    area = 4 - 1 / (beta * np.sqrt(np.pi))
    threshold = S.CMSShape(X, *parameters(alpha, beta, 0.0))
    assert threshold.pdf(6.0) == pytest.approx(2 / area, rel=NUMERICAL)


@pytest.mark.parametrize("sides", [(1.3e-5, 1.1e-6), (1e-3, 2e-7)])
def test_both_sides_of_a_narrow_peak_are_integrated(sides):
    # of sides of different widths the narrower one used to be lost, as a rounded place lies on one side of an edge
    mu = 6.39702
    peak = S.Cruijff(X, mu, *sides, 0.0, 0.0)
    assert peak.pdf(mu) == pytest.approx(1 / (np.sqrt(np.pi / 2) * sum(sides)), rel=1e-8)


@pytest.mark.parametrize(("sigma", "q"), [(1e-6, -3.0), (1e-8, 0.2), (1e-7, 0.9)])
def test_a_narrow_peak_with_ends_is_normalised(sigma, q):
    # ends used to be solved for as those of a polynomial in x, whose terms cancel: 6e-3 off, or not a number
    b = 1 / (1 - q)
    area = sigma * np.sqrt(2 * b) * special.beta(0.5, b + 1)
    peak = S.QGaussian(X, *parameters(6.0, sigma, q))
    assert peak.pdf(6.0) == pytest.approx(1 / area, rel=1e-8)


def test_the_ends_of_a_square_are_not_differences_of_large_numbers():
    x, mu, sigma = column("x"), scalar("mu"), scalar("sigma")
    low, high = solve(1 - 0.5 * ((x - mu) / sigma) ** 2, x)
    values = {"mu": 1e5, "sigma": 1e-6}
    reach = float(evaluate(high, values) - evaluate(low, values))
    assert reach == pytest.approx(2 * np.sqrt(2) * 1e-6, rel=1e-4)


def test_a_numerical_integral_that_met_nothing_makes_a_density_not_a_number():
    # it used to be infinite, and so were sums with it
    x = mf.Observable("x", -1e300, 1e300)
    peak = S.StudentT(x, *parameters(5.0, 1.0, 3.0))
    assert np.isnan(peak.pdf(5.0))
    assert np.isnan(mf.Sum([peak, mf.Uniform(x)], fractions=[0.5]).pdf(5.0))
