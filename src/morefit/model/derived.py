"""A quantity with a name that is computed from parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import Expr, NamedQuantity, Op, Operand, symbols, to_expr, to_text, toposort, with_name
from morefit.model.arguments import LINE, listing
from morefit.model.in_use import once_per_model
from morefit.model.observable import check_name
from morefit.text.arguments import in_sentences

if TYPE_CHECKING:
    from morefit.model.pdf import Pdf


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Derived(NamedQuantity):
    """A formula of parameters that has a name: it stands wherever a parameter can, and in the results of fits.

    Tables list its value with the error that the whole covariance of the parameters gives it.

    Example: ``mf.Derived("width", 2.355 * sigma)``
    """

    formula: Expr
    label: str = ""  # for tables and plots; the name if empty

    @in_sentences
    def __new__(cls, name: str, formula: Operand, label: str = "") -> Derived:
        check_name("derived", name)
        body = to_expr(formula)
        if columns := symbols(Op.COLUMN, body):
            raise ModelError(f"derived '{name}': must not depend on observables, got {listing(columns)}")
        if not symbols(Op.SCALAR, body):
            raise ModelError(f"derived '{name}': must depend on a parameter, got {to_text(body, LINE)}")
        return cls.interned(name, body, label)

    @property
    def expr(self) -> Expr:
        return with_name(self, self.formula)

    def __repr__(self) -> str:
        label = f", label={self.label!r}" * bool(self.label)
        return f"Derived({self.name!r}, {to_text(self.formula, LINE)}{label})"


def derived_in(models: Sequence[Pdf]) -> dict[str, Derived]:
    """Return the derived quantities of models by name, in the order of the formulas."""
    quantities: dict[str, Derived] = {}
    each = [one for model in models for one in own_derived(model)]
    taken = (
        {one.name for model in models for one in (*model.parameters, *model.observables)} if each else set()
    )
    for one in each:
        if one.name in taken or quantities.setdefault(one.name, one) is not one:
            raise ModelError(
                f"derived '{one.name}': something else has this name in the model; rename one of them"
            )
    return quantities


@once_per_model("its derived quantities")
def own_derived(model: Pdf) -> tuple[Derived, ...]:
    """Return the derived quantities in the formulas of a model."""
    expected = model.expected_events()
    roots = (model.density(), *([] if expected is None else [expected]))
    return tuple(node.value for node in toposort(*roots) if isinstance(node.value, Derived))
