"""Densities with tails that are power laws: q-Gaussian, Tsallis and Student."""

from __future__ import annotations

from math import inf

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, const, to_expr, where
from morefit.model.arguments import NotNegative, Number, Positive
from morefit.model.formulas import TINY, exprel, log1prel
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class QGaussian(Pdf):
    r"""$(1+(q-1)t^2/2)^{-1/(q-1)}$ with $t=(x-\mu)/\sigma$; a Gaussian for $q=1$, a Breit-Wigner for $q=2$.

    For $q<1$ it ends where the bracket is zero. (C. Tsallis, J. Stat. Phys. 52 (1988) 479; numba_stats.qgaussian)

    Example: ``QGaussian(m, mu=5.8, sigma=0.1, q=1.5)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    q: Number

    def density(self) -> Expr:
        half = 0.5 * ((self.x - self.mu) / self.sigma) ** 2
        bent = (to_expr(self.q) - 1) * half
        inside = bent > -1
        return where(inside, Op.EXP(-half * log1prel(where(inside, bent, 0))), 0)


@dataclass(frozen=True, eq=False)
class Tsallis(Pdf):
    r"""$x\,(1+(m_T-m)/nT)^{-n}$ with $m_T=\sqrt{x^2+m^2}$: spectra of transverse momenta $x$ of particles of mass $m$.

    $T$ is the temperature and $n$ the power of the tail. (C. Tsallis, J. Stat. Phys. 52 (1988) 479, as CMS has it in
    arXiv:1102.4282; numba_stats.tsallis)

    Example: ``Tsallis(x, mass=0.5, temperature=0.6, n=7.0)``
    """

    defined_on = (0, inf)
    x: Observable
    mass: NotNegative
    temperature: Positive
    n: Positive

    def transverse(self, x: Expr) -> Expr:
        """Return how much the transverse mass exceeds the mass, in units of n T."""
        mass = to_expr(self.mass)
        excess = x**2 / (Op.SQRT(Op.MAX(x**2 + mass**2, const(TINY))) + mass)
        return excess / (to_expr(self.n) * to_expr(self.temperature))

    def density(self) -> Expr:
        return self.x * Op.EXP(-to_expr(self.n) * Op.LOG1P(self.transverse(self.x.expr)))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        # over the transverse mass M = m + n T v, as x dx = M dM: n T times the integral of (m + n T v) (1 + v)**-n
        n, mass = to_expr(self.n), to_expr(self.mass)
        unit = n * to_expr(self.temperature)
        first, last = self.transverse(low), self.transverse(high)
        length = Op.LOG1P((last - first) / (1 + first))  # of log(1 + v)

        def power(k: Expr) -> Expr:
            return Op.EXP(k * Op.LOG1P(first)) * length * exprel(k * length)

        return unit * (unit * power(2 - n) + (mass - unit) * power(1 - n))


@dataclass(frozen=True, eq=False)
class StudentT(Pdf):
    r"""$(1+t^2/\nu)^{-(\nu+1)/2}$ with $t=(x-\mu)/\sigma$ and $\nu$ degrees of freedom.

    A Breit-Wigner for $\nu=1$, a Gaussian for large $\nu$. (Student, Biometrika 6 (1908) 1; scipy.stats.t)

    Example: ``StudentT(m, mu=5.8, sigma=0.1, nu=3.0)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    nu: Positive

    def density(self) -> Expr:
        nu = to_expr(self.nu)
        return Op.EXP(-0.5 * (nu + 1) * Op.LOG1P(((self.x - self.mu) / self.sigma) ** 2 / nu))
