"""The Landau density, from tables of polynomials that are made when it is first used, and Moyal's approximation of it."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.expr import ONE, ZERO, Expr, Op, Table, const, lookup, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.formulas import limits_of
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.segments import Core

PEAK = -0.22278298008166536  # of the standard density
LOWEST, HIGHEST = -7.7, 1e6  # where the logarithm of the density is tabulated; below, it underflows
PIECES = 138  # of y = arsinh(z)
DEGREE = 9
POINTS = 16  # Gauss-Legendre, in each panel of the integrals
STEPS = np.array([-80, -60, -45, -34, -25, -18, -13, -9, -6, -4, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 5.0])
# ends of panels of v - z; what is left of the integrals beyond them is nothing
NEWTON = 5  # steps
SEAM = 3.0  # of v: integrals run over the angle below, and over v above


@dataclass(frozen=True, eq=False)
class Landau(Pdf):
    r"""$\frac1\pi\int_0^\infty e^{-t\ln t-zt}\sin\pi t\,dt$ with $z=(x-\mu)/\sigma-0.2228$; its peak is at $\mu$.

    Energy losses in thin layers; to 1e-13 for $-5<z<10^5$. (L. Landau, J. Phys. 8 (1944) 201; RooLandau of RooFit has the
    mean $\mu+0.2228\sigma$, scipy.stats.landau the scale $\pi\sigma/2$)

    Example: ``Landau(m, mu=5.5, sigma=0.1)``
    """

    x: Observable
    mu: Number
    sigma: Positive

    def density(self) -> Expr:
        z = self.standard(self.x.expr)
        beyond = HIGHEST / Op.MAX(z, const(HIGHEST))
        return where(z < LOWEST, 0, beyond**2 * Op.EXP(tabulated("density", z) - fall(z)))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        first, last = self.standard(low), self.standard(high)
        below = [where(z < LOWEST, 0, Op.EXP(tabulated("lower", z) - fall(z))) for z in (first, last)]
        above = [HIGHEST / Op.MAX(z, const(HIGHEST)) * Op.EXP(tabulated("upper", z)) for z in (first, last)]
        return to_expr(self.sigma) * where(first < 0, below[1] - below[0], above[0] - above[1])

    def standard(self, x: Expr) -> Expr:
        """Return the argument of the standard density."""
        return (x - to_expr(self.mu)) / to_expr(self.sigma) + PEAK


def fall(z: Expr) -> Expr:
    """Return how steeply the logarithm falls to the left."""
    return Op.EXP(-1 - Op.MAX(z, const(LOWEST)))


def tabulated(name: str, z: Expr) -> Expr:
    """Return a logarithm from the polynomial of the piece that z is in."""
    inside = Op.MIN(Op.MAX(z, const(LOWEST)), const(HIGHEST))
    first, last = math.asinh(LOWEST), math.asinh(HIGHEST)
    place = (Op.ASINH(inside) - first) * (PIECES / (last - first))
    # whose whole part a lookup takes; none of nan
    cell = where(z > LOWEST, Op.MIN(place, const(PIECES - 0.5)), 0)
    centres, *tables = (
        Table(f"Landau {name} {k}", row.tobytes(), f"{name}{k}")
        for k, row in enumerate(landau_tables()[name])
    )
    local = place - lookup(centres, cell)
    total = lookup(tables[-1], cell)
    for table in reversed(tables[:-1]):
        total = total * local + lookup(table, cell)
    return total


@lru_cache(maxsize=1)
def landau_tables() -> dict[str, Array]:
    r"""Return centres of the pieces and coefficients of polynomials, a row each.

    On the path of steepest descent, of points with the angle $\phi$, the distribution is the integral of
    $e^{-e^{v-z}}/\pi$ over $\phi$, with $v=\ln(\phi/\sin\phi)-\phi\cot\phi$: all that is added is positive. Taken from
    the logarithm, $e^{-1-z}$ leaves a smooth function of arsinh z.
    """
    edges = np.linspace(math.asinh(LOWEST), math.asinh(HIGHEST), PIECES + 1)
    nodes = np.cos(np.pi * (np.arange(DEGREE + 3) + 0.5) / (DEGREE + 3))
    rows: dict[str, list[Array]] = {"density": [], "lower": [], "upper": []}
    for low, high in pairwise(edges):
        z = np.sinh((low + high) / 2 + (high - low) / 2 * nodes)
        for name, logarithms in zip(rows, standard_logarithms(z), strict=True):
            fitted = np.polynomial.Chebyshev.fit(nodes, logarithms, DEGREE, domain=[-1, 1])
            powers = np.polynomial.chebyshev.cheb2poly(fitted.coef)
            rows[name].append(np.pad(powers, (0, DEGREE + 1 - len(powers))) * 2.0 ** np.arange(DEGREE + 1))
    centres = np.arange(PIECES) + 0.5
    return {name: np.vstack([centres, np.array(parts).T]).copy() for name, parts in rows.items()}


def standard_logarithms(z: Array) -> tuple[Array, Array, Array]:
    """Return the logarithms of the density, the distribution (both without their fall) and what it lacks to one."""
    z = z[:, None]
    steepness = np.exp(-1 - z)
    phi, weights = gauss_nodes(np.r_[np.linspace(0, 1, 33), np.linspace(1, math.pi - rest_at(SEAM), 9)[1:]])
    near = np.log(phi / np.sin(phi)) - phi / np.tan(phi)
    s, widths = gauss_nodes(np.maximum(STEPS, SEAM - z))
    parts = [
        (weights, near - z, -steepness * np.expm1(near + 1)),
        (widths / slope_of_v(rest_at(z + s)), s, steepness - np.exp(s)),
    ]
    density, lower, upper = (np.zeros(len(z)) for _ in range(3))
    for weight, exponent, fallen in parts:
        density += np.sum(weight * np.exp(exponent + fallen), axis=1)
        lower += np.sum(weight * np.exp(fallen), axis=1)
        upper -= np.sum(weight * np.expm1(-np.exp(exponent)), axis=1)
    upper += rest_at(np.maximum(z[:, 0] + STEPS[-1], SEAM))
    with np.errstate(divide="ignore"):
        # most of the distribution may lie before the nodes
        far = np.log1p(-upper / math.pi) + steepness[:, 0]
        return (
            np.log(density / math.pi),
            np.where(z[:, 0] < 0, np.log(lower / math.pi), far),
            np.log(upper / math.pi),
        )


def gauss_nodes(ends: Array) -> tuple[Array, Array]:
    """Return nodes and weights in panels between ends, along the last axis."""
    x, w = np.polynomial.legendre.leggauss(POINTS)
    half, middle = np.diff(ends)[..., None] / 2, (ends[..., :-1] + ends[..., 1:])[..., None] / 2
    shape = (*ends.shape[:-1], -1)
    return (middle + half * x).reshape(shape), (half * w).reshape(shape)


def rest_at(v: Array | float) -> Array:
    """Return how much an angle lacks to half a turn where v has some values of at least SEAM, by Newton's method."""
    rest = math.pi / (np.asarray(v) + 1 + np.log(v))
    for _ in range(NEWTON):
        phi = math.pi - rest
        step = (np.log(phi / np.sin(rest)) + phi / np.tan(rest) - v) / slope_of_v(rest)
        rest = rest + np.clip(step, -rest / 2, rest / 2)
    return np.asarray(rest)


def slope_of_v(rest: Array) -> Array:
    """Return the derivative of v by the angle."""
    phi = math.pi - rest
    return np.asarray(1 / phi + 2 / np.tan(rest) + phi / np.sin(rest) ** 2)


FARTHEST = 5.0  # in -z/2: the Gaussian in its exponential is zero from 4 on
TAIL = -6.0  # the highest z of a range that is measured by what the density has there: soon that is no number
# in exp(z): the next term is 3e-18
SERIES = tuple((-1.0) ** k * math.prod(range(1, 2 * k, 2)) for k in range(11))


@dataclass(frozen=True, eq=False)
class Moyal(Pdf):
    r"""$e^{-(z+e^{-z})/2}$ with $z=(x-\mu)/\sigma$; its peak is at $\mu$.

    (J. E. Moyal, Phil. Mag. 46 (1955) 263; scipy.stats.moyal)

    Example: ``Moyal(m, mu=5.5, sigma=0.1)``
    """

    x: Observable
    mu: Number
    sigma: Positive

    def density(self) -> Expr:
        """Return it in units of what it is at the peak, or at the end of a range far below that."""
        u = self.below(self.x.expr)
        if not self.may_be_far():
            return Op.EXP(0.5 * (u - Op.EXP(u)))
        return Op.EXP(0.5 * (u - self.steepness() * Op.EXPM1(u)))

    def below(self, x: Expr) -> Expr:
        """Return the distance from there, in widths."""
        return (where(self.is_far(), self.x.high, self.mu) - x) / to_expr(self.sigma)

    def may_be_far(self) -> bool:
        """Return whether limits allow a range far below the peak."""
        return self.x.high - limits_of(self.mu)[1] < TAIL * limits_of(self.sigma)[0]

    def is_far(self) -> Expr:
        if not self.may_be_far():
            return ZERO
        return (self.x.high - to_expr(self.mu)) / to_expr(self.sigma) < TAIL

    def steepness(self) -> Expr:
        """Return exp(-z) there."""
        return where(self.is_far(), Op.EXP((to_expr(self.mu) - self.x.high) / to_expr(self.sigma)), 1)

    def core(self, low: Expr, high: Expr) -> Core:
        """Return the Gaussian in exp(-z / 2), which falls with x."""
        ends = (Op.EXP(Op.MIN(-0.5 * (x - self.mu) / self.sigma, const(FARTHEST))) for x in (high, low))
        return Core(ONE, *ends)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        near = 2 * to_expr(self.sigma) * self.core(low, high).area
        if not self.may_be_far():
            return near
        return where(self.is_far(), self.up_to(high) - self.up_to(low), math.exp(0.5) * near)

    def up_to(self, x: Expr) -> Expr:
        """Return the integral up to x, far below the peak: the series of the Gaussian's tail from exp(-z / 2) on."""
        u, steepness = where(self.is_far(), self.below(x), 0), self.steepness()
        less, series = Op.EXP(-u) / steepness, to_expr(SERIES[-1])
        for coefficient in reversed(SERIES[:-1]):
            series = series * less + coefficient
        height = Op.EXP(-0.5 * (u + steepness * Op.EXPM1(u)))
        return 2 * to_expr(self.sigma) / steepness * height * series

    def quantile(self, probability: Expr) -> Expr:
        core = self.core(const(self.x.low), const(self.x.high))
        return to_expr(self.mu) - 2 * to_expr(self.sigma) * Op.LOG(core.point((1 - probability) * core.area))
