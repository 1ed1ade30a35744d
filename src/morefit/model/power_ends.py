"""Integrals from an end on where a density is a power of the distance from it, also a power that makes it infinite."""

from __future__ import annotations

from collections.abc import Callable

from morefit.expr import Expr, Op, where
from morefit.model.formulas import exprel, limits_of, log1prel
from morefit.model.observable import Observable

Factor = Callable[[Expr], Expr]


def along_power(power: Expr, near: Expr, far: Expr, factor: Factor, share: Expr) -> Expr:
    r"""Return what to integrate over a share from 0 to 1 for $\int u^p f(u)\,du$ from ``near``, which may be zero, to ``far``.

    Shares of a negative power are those of $u^{p+1}$, in which the integrand is the smooth $f$ alone: in $u$ much of the
    integral would lie closer to zero than numbers reach, if $p$ is almost -1. Negative where the integral is infinite.
    """
    u = near + (far - near) * share
    straight = (far - near) * Op.EXP(power * Op.LOG(u)) * factor(u)
    if limits_of(power)[0] >= 0:
        return straight
    bent = of_negative_power(power + 1, near, far, factor, share)
    return where(power < 0, bent, straight)


def of_negative_power(k: Expr, near: Expr, far: Expr, factor: Factor, share: Expr) -> Expr:
    """Return the integrand in shares of u**k, exact for any k if ``near`` is positive, else for a positive one."""
    apart = near > 0
    length = Op.LOG(far / where(apart, near, far))
    least = where(apart, Op.EXP(-k * length), 0)  # u**k at the near end, in units of that at the far one
    span = where(
        apart, length * exprel(-k * length), 1 / where(apart, 1, k)
    )  # (1 - least) / k, also for k = 0
    level, missing = least + share * (1 - least), (1 - share) * span  # of u**k, which is 1 - k * missing
    close = level > 0.5
    inverse = where(
        close,
        -missing * log1prel(where(close, -k * missing, 0)),
        Op.LOG(where(close, 1, level)) / where(close, 1, k),
    )
    return Op.EXP(k * Op.LOG(far)) * span * factor(far * Op.EXP(inverse))


def share_of(x: Observable) -> Observable:
    """Return the variable of an integral that is not over an observable itself."""
    return Observable.interned(f"share of {x.name}", 0.0, 1.0, "")
