"""The closed set of operations an expression can be made of: one record for each, one file for each family."""

from collections.abc import KeysView

from morefit.expr.operations.areas import Areas, Ratios
from morefit.expr.operations.arithmetic import Arithmetic, Choices
from morefit.expr.operations.bessel import Bessel
from morefit.expr.operations.beta import Beta
from morefit.expr.operations.elementary import Exponential, Trigonometric
from morefit.expr.operations.faddeeva import Faddeeva
from morefit.expr.operations.incomplete import Incomplete
from morefit.expr.operations.normal import Normal
from morefit.expr.operations.record import Llvm, LlvmKind, Operation, Trait
from morefit.expr.operations.special import Special
from morefit.expr.operations.tables import Leaves, Tables

__all__ = [
    "COMPARISONS",
    "LEAVES",
    "NARY",
    "OPERATIONS",
    "SYMMETRIC",
    "Llvm",
    "LlvmKind",
    "Op",
    "Operation",
    "Trait",
    "with_trait",
]


class Op(
    Leaves,
    Arithmetic,
    Exponential,
    Trigonometric,
    Special,
    Normal,
    Faddeeva,
    Areas,
    Ratios,
    Bessel,
    Incomplete,
    Beta,
    Choices,
    Tables,
):
    """All operations by name. Add a record to a family; ``tests/test_tables.py`` names what it lacks."""


EVERY_OPERATION = tuple(
    sorted(
        (
            record
            for family in Op.__bases__
            for record in vars(family).values()
            if isinstance(record, Operation)
        ),
        key=lambda record: record.rank,
    )
)


def with_trait(trait: Trait) -> KeysView[Operation]:
    """Return the operations that have a trait, in the order of their ranks, the same in every process."""
    return {op: None for op in EVERY_OPERATION if trait in op.traits}.keys()


LEAVES = with_trait(Trait.LEAF)
NARY = with_trait(Trait.NARY)
SYMMETRIC = with_trait(Trait.SYMMETRIC)
COMPARISONS = with_trait(Trait.COMPARISON)
OPERATIONS = tuple(op for op in EVERY_OPERATION if op not in LEAVES)  # in the order of their ranks
