"""A density written as a bare expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from morefit.errors import ModelError
from morefit.expr import Expr, Op, Operand, symbols, to_expr
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, init=False, eq=False)
class Density(Pdf):
    """Any expression in observables and parameters; its integral is found where it is not given."""

    formula: Expr
    given_observables: tuple[Observable, ...]
    given_integral: Expr | None

    def __init__(
        self, formula: Operand, observables: Sequence[Observable], *, integral: Operand | None = None
    ) -> None:
        object.__setattr__(self, "given_observables", tuple(observables))
        object.__setattr__(self, "formula", to_expr(formula))
        object.__setattr__(self, "given_integral", None if integral is None else to_expr(integral))
        names = {o.name for o in self.given_observables}
        strangers = [s.name for s in symbols(Op.COLUMN, self.formula) if s.name not in names]
        if strangers:
            raise ModelError(
                f"density: its formula uses {', '.join(map(repr, strangers))}, missing from observables"
                f" {sorted(names)}; add them"
            )
        if self.given_integral is not None and symbols(Op.COLUMN, self.given_integral):
            raise ModelError(
                "density: the integral must not depend on observables; integrate over their ranges"
            )

    def density(self) -> Expr:
        return self.formula

    def integral(self) -> Expr:
        return super().integral() if self.given_integral is None else self.given_integral
