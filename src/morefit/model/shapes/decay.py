"""Densities of decay times: exponential decays, with oscillations, with a Gaussian resolution."""

from __future__ import annotations

from dataclasses import replace

from morefit.dataclass import dataclass
from morefit.expr import ONE, ZERO, Expr, Op, add_all, to_expr
from morefit.model.arguments import Number, Numbers, Positive, Positives, Shares
from morefit.model.formulas import exprel, log1prel
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.piecewise_decays import Wave, accepted_waves
from morefit.model.resolution import Resolution, resolution_of


class _MeasuredTimes(Pdf):
    """Decay times that are measured with a resolution: a sum of Gaussians."""

    t: Observable
    tau: Positive
    sigma: Positives
    mean: Numbers
    fractions: Shares

    def __post_init__(self) -> None:
        super().__post_init__()
        self.resolution()

    def resolution(self) -> Resolution:
        """Return how times are measured."""
        return resolution_of(type(self).__name__, self.sigma, self.mean, self.fractions)

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf]:
        """Return the density with another Gaussian on top of its resolution."""
        widths = tuple(Op.SQRT(width**2 + sigma**2) for width in self.sigma) or (sigma,)
        means = tuple(m + mean for m in self.mean if self.sigma) or (mean,)
        factor = ONE if self.sigma else to_expr(self.tau)  # densities with a resolution are over the lifetime
        return factor, replace(self, sigma=widths, mean=means)  # type: ignore[type-var]

    def waves(self) -> list[Wave]:
        """Return the exponentials and oscillations that the density is the sum of."""
        return [Wave(ONE, ZERO, ZERO, ZERO)]

    def integral_times(self, function: Expr) -> Expr | None:
        seen, tau = self.resolution(), to_expr(self.tau)
        total = accepted_waves(function, self.t, tau, self.waves(), seen)
        return total / tau if total is not None and seen.gaussians else total


@dataclass(frozen=True, eq=False)
class Decay(_MeasuredTimes):
    r"""$e^{-t/\tau}$ for positive times, seen with a Gaussian resolution of width ``sigma``, if there is one.

    Two or more widths make a resolution of as many Gaussians, with a fraction for each but the last; ``mean`` is a bias
    of measured times, one for all or one for each. (RooDecay and RooGaussModel of RooFit)

    Example: ``Decay(t, tau=1.5, sigma=[0.05, 0.2], mean=[0.0], fractions=[0.7])``
    """

    t: Observable
    tau: Positive
    sigma: Positives = ()
    mean: Numbers = ()
    fractions: Shares = ()

    def density(self) -> Expr:
        return self.resolution().decay(self.t.expr, to_expr(self.tau))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        return self.resolution().decay_area(low, high, to_expr(self.tau))

    def quantile(self, probability: Expr) -> Expr | None:
        if self.sigma:
            return None
        rate, start = 1 / to_expr(self.tau), max(self.t.low, 0.0)
        width = self.t.high - start
        # the root u of (1 - exp(-rate u)) / rate = p (1 - exp(-rate width)) / rate
        part = probability * width * exprel(-rate * width)
        return start + part * log1prel(-rate * part)


@dataclass(frozen=True, eq=False)
class BDecay(_MeasuredTimes):
    r"""$e^{-t/\tau}(c_0\cosh\frac{\Delta\Gamma t}2+c_1\sinh\frac{\Delta\Gamma t}2+c_2\cos\Delta m\,t+c_3\sin\Delta m\,t)$ for positive times.

    Decay times of neutral mesons that mix: $c_2=\pm(1-2w)$ for unmixed and mixed decays with a mistag probability $w$;
    with a tag $q=\pm1$ for decays to CP eigenstates $c_2=-q(1-2w)C$ and $c_3=q(1-2w)S$. Tags are columns,
    ``given=[q, w]``, or parts of one likelihood. The resolution is that of ``Decay``. (RooBDecay of RooFit; Y. Nir,
    hep-ph/0109090)

    Example: ``BDecay(t, tau=1.5, delta_m=0.5, delta_gamma=0.1, cosh=1.0, sinh=0.2, cos=0.4, sin=-0.3, sigma=[0.1])``
    """

    t: Observable
    tau: Positive
    delta_m: Number = 0.0
    delta_gamma: Number = 0.0
    cosh: Number = 1.0
    sinh: Number = 0.0
    cos: Number = 0.0
    sin: Number = 0.0
    sigma: Positives = ()
    mean: Numbers = ()
    fractions: Shares = ()

    def density(self) -> Expr:
        seen, tau, t = self.resolution(), to_expr(self.tau), self.t.expr
        decays = [(factor, seen.decay(t, tau, shift)) for factor, shift in self.decays()]
        waves = zip((self.cos, self.sin), seen.wave(t, tau, to_expr(self.delta_m)), strict=True)
        return weighted([*decays, *((to_expr(factor), wave) for factor, wave in waves)])

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        seen, tau = self.resolution(), to_expr(self.tau)
        decays = [(factor, seen.decay_area(low, high, tau, shift)) for factor, shift in self.decays()]
        waves = zip((self.cos, self.sin), seen.wave_area(low, high, tau, to_expr(self.delta_m)), strict=True)
        return weighted([*decays, *((to_expr(factor), wave) for factor, wave in waves)])

    def waves(self) -> list[Wave]:
        decays = [Wave(factor, ZERO, shift, ZERO) for factor, shift in self.decays()]
        both = Wave(to_expr(self.cos), to_expr(self.sin), ZERO, to_expr(self.delta_m))
        return decays if both.cos is both.sin is ZERO else [*decays, both]

    def decays(self) -> list[tuple[Expr, Expr]]:
        """Return the exponentials that cosh and sinh are made of: factors, and what is added to the rate."""
        half, cosh, sinh = 0.5 * to_expr(self.delta_gamma), to_expr(self.cosh), to_expr(self.sinh)
        if to_expr(self.delta_gamma) is ZERO:
            return [(cosh, ZERO)]
        return [(0.5 * (cosh + sinh), -half), (0.5 * (cosh - sinh), half)]


def weighted(terms: list[tuple[Expr, Expr]]) -> Expr:
    """Add terms with their factors, without those whose factor is the number zero."""
    present = [value if factor is ONE else factor * value for factor, value in terms if factor is not ZERO]
    return add_all(*present)
