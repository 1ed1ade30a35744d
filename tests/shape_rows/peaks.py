"""Points at which peaks with tails are tested."""

import math
from functools import cache
from itertools import pairwise

import mpmath as mp
from mpmath.calculus.quadrature import GaussLegendre
from scipy import special, stats

import morefit as mf
from morefit.model.shapes.landau import PEAK as LANDAU_PEAK
from shape_rows import Point, Row, around, quadrature_row, truncated
from tolerances import LANDAU, NUMERICAL


def point(label, at, units, values, low=5.0, high=7.0, **options):
    return Point(label, low, high, values, at, units, **options)


# ------------------------------------------------------------------------- Crystal Ball functions


def generalised_crystal_ball(x, mu, sigma_left, sigma_right, a_left, n_left, a_right, n_right):
    sigma, a, n = (sigma_left, a_left, n_left) if x < mu else (sigma_right, a_right, n_right)
    t = abs(x - mu) / sigma
    return -t * t / 2 if t < a else -a * a / 2 - n * mp.log(1 + a / n * (t - a))


def generalised_breaks(mu, left, right, a_left, n_left, a_right, n_right):
    return (mu, mu - a_left * left, mu + a_right * right, mu - 4 * a_left * left, mu + 4 * a_right * right)


def double(function):
    return lambda *a: function(*a[:-5], a[-5], *a[-5:])


def double_point(label, at, mu, sigma, *tails, **options):
    names = ("mu", "sigma", "alpha_left", "n_left", "alpha_right", "n_right")
    return point(
        label, at, (sigma, sigma, *tails), dict(zip(names, (mu, sigma, *tails), strict=True)), **options
    )


def generalised_point(label, at, mu, left, right, *tails, **options):
    names = ("mu", "sigma_left", "sigma_right", "alpha_left", "n_left", "alpha_right", "n_right")
    values = dict(zip(names, (mu, left, right, *tails), strict=True))
    return point(label, at, (min(left, right), left, right, *tails), values, **options)


# ------------------------------------------------------------------------- other peaks


def cruijff(x, mu, left, right, alpha_left, alpha_right):
    sigma, alpha = (left, alpha_left) if x < mu else (right, alpha_right)
    return -((x - mu) ** 2) / (2 * sigma**2 + alpha * (x - mu) ** 2)


def cruijff_point(label, at, mu, left, right, alpha_left, alpha_right, **options):
    names = ("mu", "sigma_left", "sigma_right", "alpha_left", "alpha_right")
    values = dict(zip(names, (mu, left, right, alpha_left, alpha_right), strict=True))
    return point(label, at, (min(left, right), left, right, 0.1, 0.1), values, **options)


def novosibirsk(x, mu, sigma, tail):
    if tail == 0:
        return -(((x - mu) / sigma) ** 2) / 2
    root = mp.sqrt(mp.log(4))
    inside = 1 + mp.sinh(tail * root) / (sigma * root) * (x - mu)
    return -((mp.log(inside) / tail) ** 2) / 2 if inside > 0 else -(mp.mpf(10) ** 6)


def novosibirsk_point(label, at, mu, sigma, tail, **options):
    return point(label, at, (sigma, sigma, 1.0), {"mu": mu, "sigma": sigma, "tail": tail}, **options)


def novosibirsk_breaks(mu, sigma, tail):
    root = mp.sqrt(mp.log(4))
    end = (mu - sigma * root / mp.sinh(tail * root),) if tail else ()
    return around(mu, sigma) + end


def bukin(x, mu, sigma, xi, rho_left, rho_right):
    """As RooBukinPdf writes it."""
    hp, ln2, r = sigma * 2 * mp.sqrt(2 * mp.log(2)), mp.log(2), mp.sqrt(xi * xi + 1)
    bend = xi / mp.log(r + xi) if xi else mp.mpf(1)
    x1, x2 = mu + hp / 2 * (xi / r - 1), mu + hp / 2 * (xi / r + 1)
    if x < x1:
        return (
            rho_left * ((x - x1) / (mu - x1)) ** 2 - ln2 + 4 * ln2 * (x - x1) / hp * bend * r / (r - xi) ** 2
        )
    if x > x2:
        return (
            rho_right * ((x - x2) / (mu - x2)) ** 2 - ln2 - 4 * ln2 * (x - x2) / hp * bend * r / (r + xi) ** 2
        )
    if not xi:
        return -4 * ln2 * ((x - mu) / hp) ** 2
    return -ln2 * (mp.log(1 + 4 * xi * r * (x - mu) / hp) / mp.log(1 + 2 * xi * (xi - r))) ** 2


def bukin_breaks(mu, sigma, xi, *rho):
    hp, r = sigma * 2 * mp.sqrt(2 * mp.log(2)), mp.sqrt(xi * xi + 1)
    return (mu + hp / 2 * (xi / r - 1), mu, mu + hp / 2 * (xi / r + 1), mu - 3 * hp, mu + 3 * hp)


def bukin_point(label, at, mu, sigma, xi, left, right, **options):
    values = {"mu": mu, "sigma": sigma, "xi": xi, "rho_left": left, "rho_right": right}
    return point(label, at, (sigma, sigma, 0.1, 0.1, 0.1), values, **options)


def moyal(x, mu, sigma):
    z = (x - mu) / sigma
    return -(z + mp.exp(-z)) / 2


@cache
def landau_path():
    """Return v and weights at nodes of the angle along the path of steepest descent."""
    with mp.workdps(50):
        panels = [0, 0.15, 0.5, 1.2, 2, 2.5, 2.75, 2.88, 2.96, 3.02, 3.06, mp.pi]
        rule = GaussLegendre(mp.mp)
        nodes = [
            node for ends in pairwise(panels) for node in rule.get_nodes(*map(mp.mpf, ends), 5, mp.mp.prec)
        ]
        return [(mp.log(a / mp.sin(a)) - a * mp.cot(a), w) for a, w in nodes]


def landau(x, low, high, mu, sigma):
    """Return log P from integrals along that path, where all is positive."""
    z, first, last = ((one - mu) / sigma + LANDAU_PEAK for one in (x, low, high))
    density = mp.fsum(w * mp.exp(v - z - mp.exp(v - z)) for v, w in landau_path())
    area = mp.fsum(w * (mp.exp(-mp.exp(v - last)) - mp.exp(-mp.exp(v - first))) for v, w in landau_path())
    return mp.log(density) - mp.log(area) - mp.log(sigma)


def width_point(label, at, mu, width, names=("mu", "sigma"), **options):
    return point(label, at, (width, width), dict(zip(names, (mu, width), strict=True)), **options)


def relativistic_breit_wigner(x, mass, width):
    return -mp.log((x * x - mass * mass) ** 2 + (mass * width) ** 2)


def voigt(x, mu, sigma, gamma):
    z = mp.mpc(x - mu, gamma / 2) / (mp.sqrt(2) * sigma)
    return mp.log((mp.exp(-z * z) * mp.erfc(-1j * z)).real)


def voigt_point(label, at, mu, sigma, gamma, **options):
    return point(label, at, (sigma, sigma, gamma), {"mu": mu, "sigma": sigma, "gamma": gamma}, **options)


def scipy_voigt(x, low, high, mu, sigma, gamma):
    from scipy import integrate

    def profile(t):
        return special.voigt_profile(t - mu, sigma, gamma / 2)

    near = [mu + k * (sigma + gamma) for k in (-10, -1, 0, 1, 10) if low < mu + k * (sigma + gamma) < high]
    return profile(x) / integrate.quad(profile, low, high, points=near, epsabs=0, epsrel=1e-13, limit=500)[0]


def modified_gaussian(x, mu, sigma, tau):
    if tau < 0:
        return modified_gaussian(2 * mu - x, mu, sigma, -tau)
    u = (sigma / tau - (x - mu) / sigma) / mp.sqrt(2)
    return sigma**2 / (2 * tau**2) - (x - mu) / tau + mp.log(mp.erfc(u))


def modified_point(label, at, mu, sigma, tau, **options):
    values = {"mu": mu, "sigma": sigma, "tau": tau}
    return point(label, at, (sigma, sigma, abs(tau)), values, **options)


def mp_hypatia(x, low, high, mu, sigma, order, zeta, beta, a_left, n_left, a_right, n_right):
    nu = order - mp.mpf(1) / 2
    scale = sigma * mp.sqrt(zeta * mp.besselk(order, zeta) / mp.besselk(order + 1, zeta))

    def log_core(d):
        root = mp.sqrt(1 + (d / scale) ** 2)
        return nu * mp.log(root) + beta * d + mp.log(mp.besselk(nu, zeta * root))

    def log_slope(d):
        root = mp.sqrt(1 + (d / scale) ** 2)
        q = zeta * root
        slope = -(mp.besselk(nu - 1, q) + mp.besselk(nu + 1, q)) / 2 / mp.besselk(nu, q)
        return beta + (nu / root + zeta * slope) * d / (scale**2 * root)

    cuts = (-a_left * sigma, a_right * sigma)
    assert low - mu < cuts[0] < x - mu < cuts[1] < high - mu
    area = mp.quad(lambda d: mp.exp(log_core(d)), [cuts[0], 0, cuts[1]], method="gauss-legendre")
    for cut, end, n, s in ((cuts[0], low - mu, n_left, -1), (cuts[1], high - mu, n_right, 1)):
        fall = -s * log_slope(cut)
        ratio = 1 + fall / n * s * (end - cut)
        area += mp.exp(log_core(cut)) * n / fall * (1 - ratio ** (1 - n)) / (n - 1)
    return log_core(x - mu) - mp.log(area)


def hypatia_point(label, at, mu, sigma, *rest, **options):
    names = ("mu", "sigma", "order", "zeta", "beta", "a_left", "n_left", "a_right", "n_right")
    units = (sigma, sigma, 1.0, 1.0, 1.0, *rest[3:])
    return point(label, at, units, dict(zip(names, (mu, sigma, *rest), strict=True)), **options)


ROWS = {
    "DoubleCrystalBall": quadrature_row(
        mf.shapes.DoubleCrystalBall,
        double(generalised_crystal_ball),
        [
            double_point("in the core", 5.75, 5.8, 0.1, 1.3, 2.5, 1.8, 4.0),
            double_point("on the left", 5.4, 5.8, 0.1, 1.3, 2.5, 1.8, 4.0),
            double_point("on the right", 6.4, 5.8, 0.1, 1.3, 2.5, 1.8, 1.0, scale=20),
            double_point("all on the right", 6.4, 4.5, 0.1, 1.3, 2.5, 1.8, 4.0, scale=100),
        ],
        double(generalised_breaks),
        lengths=("mu", "sigma"),
    ),
    "GeneralisedCrystalBall": quadrature_row(
        mf.shapes.GeneralisedCrystalBall,
        generalised_crystal_ball,
        [
            generalised_point("in the core", 5.75, 5.8, 0.1, 0.2, 1.3, 2.5, 1.8, 4.0),
            generalised_point("on the right", 6.4, 5.8, 0.2, 0.1, 1.3, 2.5, 1.8, 1.0, scale=20),
        ],
        generalised_breaks,
        lengths=("mu", "sigma_left", "sigma_right"),
    ),
    "Cruijff": quadrature_row(
        mf.shapes.Cruijff,
        cruijff,
        [
            cruijff_point("on the left", 5.7, 5.8, 0.1, 0.15, 0.15, 0.1),
            cruijff_point("on the right", 6.2, 5.8, 0.1, 0.15, 0.15, 0.1),
            cruijff_point("two Gaussians", 6.2, 5.8, 0.1, 0.15, 0.0, 0.0, scale=100),
        ],
        lambda mu, left, right, *_: around(mu, left, right),
        lengths=("mu", "sigma_left", "sigma_right"),
        tolerance=NUMERICAL,
    ),
    "Novosibirsk": quadrature_row(
        mf.shapes.Novosibirsk,
        novosibirsk,
        [
            novosibirsk_point("tail on the right", 6.1, 5.8, 0.2, 0.3, scale=10),
            novosibirsk_point("tail on the left", 5.6, 5.8, 0.2, -0.3, scale=10),
            novosibirsk_point("almost a Gaussian", 5.6, 5.8, 0.2, 1e-9, scale=10),
            novosibirsk_point("a long tail", 6.6, 5.5, 0.05, 1.2, scale=100),
        ],
        novosibirsk_breaks,
        digits=60,
        lengths=("mu", "sigma"),
    ),
    "Bukin": quadrature_row(
        mf.shapes.Bukin,
        bukin,
        [
            bukin_point("in the middle", 5.82, 5.8, 0.1, 0.2, -0.1, -0.2),
            bukin_point("on the left", 5.5, 5.8, 0.1, 0.2, -0.1, -0.2),
            bukin_point("on the right", 6.1, 5.8, 0.1, -0.2, -0.1, -0.2),
            bukin_point("almost symmetric", 5.85, 5.8, 0.1, 1e-6, -0.1, -0.2),
            bukin_point("a tail that is bent upwards", 6.3, 5.8, 0.1, 0.1, -0.1, 0.01, scale=100),
            bukin_point("straight tails", 5.5, 5.8, 0.1, 0.2, 0.0, 0.0, scale=100),
            bukin_point("almost straight tails", 5.5, 5.8, 0.1, 0.2, 1e-7, -1e-4, scale=100),
        ],
        bukin_breaks,
        digits=60,
        lengths=("mu", "sigma"),
    ),
    "Moyal": quadrature_row(
        mf.shapes.Moyal,
        moyal,
        [
            width_point("ordinary", 5.6, 5.5, 0.1),
            width_point("wide", 5.6, 5.5, 100.0, scale=100),
            width_point("all in the tail", 5.6, 4.0, 0.1, scale=100),
            width_point("all on the left", 5.6, 7.2, 0.5, scale=1e4),
        ],
        lambda mu, sigma: around(mu, sigma),
        lengths=("mu", "sigma"),
        scipy=truncated(lambda mu, sigma: stats.moyal(mu, sigma)),
    ),
    "Landau": Row(
        mf.shapes.Landau,
        landau,
        [
            width_point("ordinary", 5.6, 5.5, 0.1),
            width_point("wide", 5.6, 5.5, 10.0, scale=100),
            width_point("all in the tail", 5.6, 4.6, 0.2, scale=100),
            width_point("all on the left", 5.6, 7.2, 0.5, scale=100),
        ],
        digits=24,
        integrated=True,
        lengths=("mu", "sigma"),
        scipy=truncated(
            lambda mu, sigma: stats.landau(mu + sigma * (math.log(math.pi / 2) - LANDAU_PEAK), math.pi / 2 * sigma)
        ),
        tolerance=LANDAU,
    ),
    "BreitWigner": quadrature_row(
        mf.shapes.BreitWigner,
        lambda x, mu, gamma: -mp.log(1 + ((x - mu) / (gamma / 2)) ** 2),
        [
            width_point("ordinary", 5.6, 5.8, 0.1, ("mu", "gamma")),
            width_point("narrow", 5.8001, 5.8, 1e-4, ("mu", "gamma"), scale=10),
            width_point("wide", 5.6, 5.8, 1e4, ("mu", "gamma"), scale=1e4),
            width_point("far away", 5.6, 50.0, 0.1, ("mu", "gamma"), scale=1e3),
        ],
        lambda mu, gamma: (*around(mu, gamma), *around(mu, 100 * gamma)),
        lengths=("mu", "gamma"),
        scipy=truncated(lambda mu, gamma: stats.cauchy(mu, gamma / 2)),
    ),
    "RelativisticBreitWigner": quadrature_row(
        mf.shapes.RelativisticBreitWigner,
        relativistic_breit_wigner,
        [
            width_point("ordinary", 5.6, 5.8, 0.2, ("mass", "width"), scale=10),
            width_point("narrow", 5.8001, 5.8, 1e-4, ("mass", "width"), scale=1e3),
            width_point("wide", 2.6, 1.8, 2.0, ("mass", "width"), low=0.0, high=9.0, scale=10),
            width_point("far away", 5.6, 50.0, 0.1, ("mass", "width"), scale=1e5),
        ],
        lambda mu, gamma: (*around(mu, gamma), *around(mu, 100 * gamma)),
        lengths=("mass", "width"),
    ),
    "Voigt": quadrature_row(
        mf.shapes.Voigt,
        voigt,
        [
            voigt_point("ordinary", 5.6, 5.8, 0.1, 0.1),
            voigt_point("almost a Gaussian", 5.6, 5.8, 0.1, 1e-3),
            voigt_point("almost a Breit-Wigner", 5.81, 5.8, 0.01, 0.1, scale=1e3),
        ],
        lambda mu, sigma, gamma: around(mu, sigma + gamma),
        lengths=("mu", "sigma", "gamma"),
        tolerance=NUMERICAL,
        scipy=scipy_voigt,
    ),
    "ExponentiallyModifiedGaussian": quadrature_row(
        mf.shapes.ExponentiallyModifiedGaussian,
        modified_gaussian,
        [
            modified_point("ordinary", 5.7, 5.6, 0.1, 0.2, scale=10),
            modified_point("tail on the left", 5.7, 6.0, 0.1, -0.2, scale=10),
            modified_point("far in the tail", 6.9, 5.6, 0.02, 0.3, scale=10),
            modified_point("almost a Gaussian", 5.7, 5.6, 0.1, 0.01, scale=1e4),
            modified_point("almost a step", 5.7, 5.6, 1e-3, 1.0, scale=100),
            modified_point("a tail much shorter than the width", 5.7, 5.6, 0.1, 1e-3, scale=10),
            modified_point("a short tail on the left", 5.7, 5.6, 0.1, -3e-3, scale=10),
        ],
        lambda mu, sigma, tau: around(mu, sigma, tau),
        lengths=("mu", "sigma", "tau"),
        scipy=truncated(lambda mu, sigma, tau: stats.exponnorm(tau / sigma, mu, sigma) if tau > sigma else None),
    ),
    "Hypatia": Row(
        mf.shapes.Hypatia,
        mp_hypatia,
        [hypatia_point("in the core", 5.75, 5.8, 0.1, -2.0, 0.8, 0.1, 2.0, 3.0, 2.5, 4.0, scale=10)],
        digits=24,
        integrated=True,
        tolerance=NUMERICAL,
        part=False,
        fit=False,
    ),
}  # fmt: skip
