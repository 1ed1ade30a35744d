"""Write a density as a sum of products of a factor that depends on parameters and one that depends on the event."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations

from morefit.expr import ZERO, Expr, Op, Operation, const, leaves, multiply_all, where

MAX_TERMS = 10_000
WHOLE_POWERS = (2.0, 3.0, 4.0)  # of sums that are multiplied out
Term = tuple[tuple[Expr, ...], tuple[Expr, ...]]  # factors that depend on parameters, on the event


def separate(density: Expr, along: str = "", *, powers: bool = False) -> list[Term] | None:
    """Write a density as a sum of products of a parameter factor and an event factor, if it is one.

    Event factors may depend on parameters if they are functions of the observable ``along`` and of no other. With ``powers``,
    whole powers of sums are opened: their terms may cancel, as ``cancel`` looks for.
    """
    done: list[Term] = []
    stack: list[tuple[Expr, ...]] = [(density,)]
    while stack:
        factors = stack.pop()
        mixed = [f for f in factors if of_events(f) and of_parameters(f) and names_of(f) != {along}]
        if not mixed:
            event = tuple(f for f in factors if of_events(f))
            done.append((tuple(f for f in factors if not of_events(f)), event))
        elif mixed[0].op is Op.MUL:
            stack.append((*mixed[0].args, *without(factors, mixed[0])))
        elif mixed[0].op is Op.ADD:
            stack += [(term, *without(factors, mixed[0])) for term in mixed[0].args]
        elif mixed[0].op is Op.WHERE and not of_parameters(mixed[0].args[0]):
            branches = choices(*mixed[0].args)
            if branches is None:
                return None
            stack += [(*branch, *without(factors, mixed[0])) for branch in branches]
        elif powers and mixed[0].op is Op.POW and (opened := open_power(*mixed[0].args)) is not None:
            stack += [(*product, *without(factors, mixed[0])) for product in opened]
        else:
            return None
        if len(done) + len(stack) > MAX_TERMS:
            return None
    return done


@lru_cache(maxsize=1 << 14)
def of_events(expr: Expr) -> bool:
    return bool(leaves(Op.COLUMN, expr))


@lru_cache(maxsize=1 << 14)
def names_of(expr: Expr) -> frozenset[str]:
    """Return the names of the observables that a factor depends on."""
    return frozenset(leaf.name for leaf in leaves(Op.COLUMN, expr))


@lru_cache(maxsize=1 << 14)
def of_parameters(expr: Expr) -> bool:
    return bool(leaves(Op.SCALAR, expr))


def choices(condition: Expr, yes: Expr, no: Expr) -> list[tuple[Expr, ...]] | None:
    """Write a choice by an event-only condition as a sum of products, if both branches are such sums.

    An event factor stays inside its branch, as it need not be a number outside of it.
    """
    chosen, others = ([] if branch is ZERO else separate(branch) for branch in (yes, no))
    if chosen is None or others is None:
        return None
    return [
        *((*weight, where(condition, multiply_all(*event), ZERO)) for weight, event in chosen),
        *((*weight, where(condition, ZERO, multiply_all(*event))) for weight, event in others),
    ]


def open_power(base: Expr, exponent: Expr) -> list[tuple[Expr, ...]] | None:
    """Write a whole power of a sum or of a product as a sum of products; amplitudes are squared, and their terms come in pairs."""
    power = exponent.number if exponent.op is Op.CONST else 0.0
    if power not in WHOLE_POWERS:
        return None
    if base.op is Op.MUL:
        return [tuple(factor**power for factor in base.args)]
    if base.op is not Op.ADD:
        return None
    if power > 2:
        return [(term, base ** (power - 1)) for term in base.args]
    pairs = combinations(base.args, 2)
    return [*((term**2,) for term in base.args), *((const(2.0), *pair) for pair in pairs)]


def without(factors: tuple[Expr, ...], one: Expr) -> tuple[Expr, ...]:
    """Drop one occurrence of a factor."""
    k = next(k for k, factor in enumerate(factors) if factor is one)
    return factors[:k] + factors[k + 1 :]


def open_nested(op: Operation, parts: Iterable[Expr]) -> list[Expr]:
    """Replace products, and products inside them, by their factors; or sums by their terms."""
    opened: list[Expr] = []
    stack = list(parts)[::-1]
    while stack:
        part = stack.pop()
        if part.op is op:
            stack += reversed(part.args)
        else:
            opened.append(part)
    return opened
