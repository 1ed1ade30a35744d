"""Distributions of counts: Poisson and binomial."""

from __future__ import annotations

from typing import Annotated

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ONE, ZERO, Expr, Op, Operand, const, to_expr, where
from morefit.model.arguments import Allowed, Positive, Share, check_domain
from morefit.model.counts import Counts


@dataclass(frozen=True, eq=False)
class Poisson(Counts):
    r"""$\mu^x e^{-\mu}/x!$ for whole numbers $x$, the mean being $\mu$; normalised on those in the range of $x$.

    The range ends halfway between whole numbers. Around each the density is a step of width one, so that the integral
    from 1.5 to 4.5 is the probability of 2, 3 and 4. Data must be whole numbers. (scipy.stats.poisson)

    Example: ``Poisson(n, mean=3.5)``
    """

    mean: Positive

    def chance(self, number: Expr) -> Expr:
        mean = to_expr(self.mean)
        return Op.EXP(number * Op.LOG(mean) - mean - Op.LGAMMA(number + 1))

    def chance_below(self, number: Expr) -> Expr:
        return where(number > 0, Op.GAMMAINCC(Op.MAX(number, const(1)), self.mean), ZERO)

    def chance_from(self, number: Expr) -> Expr:
        return where(number > 0, Op.GAMMAINC(Op.MAX(number, const(1)), self.mean), ONE)

    def expected(self) -> Expr:
        return to_expr(self.mean)


Trials = Annotated[Operand, Allowed("a whole number from 1 on", lambda v: v >= 1 and v == int(v))]


@dataclass(frozen=True, eq=False)
class Binomial(Counts):
    r"""$\binom{n}{x}p^x(1-p)^{n-x}$ for whole numbers $x$ out of $n$ trials; normalised on those in the range of $x$.

    ``trials`` is a number. The range ends halfway between whole numbers. Around each the density is a step of width
    one, so that the integral from 1.5 to 4.5 is the probability of 2, 3 and 4. Data must be whole numbers.
    (scipy.stats.binom)

    Example: ``Binomial(n, trials=20, p=0.3)``
    """

    trials: Trials
    p: Share

    def __post_init__(self) -> None:
        super().__post_init__()
        trials = to_expr(self.trials)
        if trials.op is not Op.CONST:
            raise ModelError(f"density 'Binomial': trials must be a number, got {trials!r}")
        check_domain(self, -0.5, trials.number + 0.5)

    def chance(self, number: Expr) -> Expr:
        trials, p = to_expr(self.trials), to_expr(self.p)
        rest = trials - number
        ways = Op.LGAMMA(trials + 1) - Op.LGAMMA(number + 1) - Op.LGAMMA(rest + 1)
        yes = where(number > 0, number * Op.LOG(p), ZERO)
        no = where(rest > 0, rest * Op.LOG1P(-p), ZERO)
        return where(rest < 0, ZERO, Op.EXP(ways + yes + no))

    def chance_below(self, number: Expr) -> Expr:
        inside, rest = self.inside(number)
        within = where(number > self.trials, ONE, Op.BETAINC(rest, inside, 1 - to_expr(self.p)))
        return where(number > 0, within, ZERO)

    def chance_from(self, number: Expr) -> Expr:
        inside, rest = self.inside(number)
        within = where(number > self.trials, ZERO, Op.BETAINC(inside, rest, self.p))
        return where(number > 0, within, ONE)

    def inside(self, number: Expr) -> tuple[Expr, Expr]:
        """Return a number of successes from 1 on, and how many trials there are from it on."""
        inside = Op.MIN(Op.MAX(number, const(1)), to_expr(self.trials))
        return inside, to_expr(self.trials) - inside + 1

    def expected(self) -> Expr:
        return to_expr(self.trials) * to_expr(self.p)
