"""The Faddeeva function w(x + i y) and the Voigt profile, with derivatives that keep their digits far from the origin.

Derivatives of w follow from two others: w'' = -2 z w' - 2 w, and so on. Far out these differences cancel, and are series. A Voigt
profile obeys the equation of heat: its derivative by the square of its resolution is half of the second one by its place.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.expr.operations.arithmetic import Choices
from morefit.expr.operations.record import Operation, Prefix, Trait, scipy_special

if TYPE_CHECKING:
    from morefit.expr.node import Expr

    Complex = tuple[Expr, Expr]

SERIES_FROM = 16.0  # |z| from which on derivatives are series
SLOPE_FROM, SLOPE_STEP, SLOPE_NODES = (
    1.5,
    0.4,
    24,
)  # |z| from which on w' of the reference is a sum over nodes
TERMS = 16  # of the series of the reference


def faddeeva(x: Any, y: Any) -> Any:
    """Return scipy's w(x + i y)."""
    return scipy_special("wofz")(complex_of(x, y))


def complex_of(x: Any, y: Any) -> Any:
    z = np.empty(np.broadcast(x, y).shape, np.complex128)
    z.real, z.imag = x, y
    return z


@np.errstate(all="ignore")
def derivative(x: Any, y: Any, order: int) -> Any:
    """Return a derivative of w: from lower ones, which begin with a sum over nodes, or by a series."""
    z = complex_of(x, y)
    w = faddeeva(x, y)
    slope = np.where(np.abs(z) < SLOPE_FROM, 2j / math.sqrt(math.pi) - 2 * z * w, slope_by_nodes(z))
    known = [w, slope]
    for k in range(1, order):
        known.append(-2 * z * known[k] - 2 * k * known[k - 1])
    inverse = 1 / z
    total: Any = 0.0
    for k in range(TERMS, -1, -1):
        total = total * inverse**2 + math.factorial(2 * k + order) / (4**k * math.factorial(k))
    share = np.select([z.imag < -0.01, z.imag <= 0.01], [2.0, 1.0], 0.0)
    hermite = np.polynomial.hermite.hermval(z, [0] * order + [1])
    gaussian = np.where((share == 0) | (z.real**2 - z.imag**2 > 750), 0, share * hermite * np.exp(-(z**2)))
    far = (-1) ** order * (1j / math.sqrt(math.pi) * total * inverse ** (order + 1) + gaussian)
    return np.where(np.abs(z) < SERIES_FROM, known[order], far)[()]


def slope_by_nodes(z: Any) -> Any:
    """Return w' as a sum over equally spaced nodes, of the two sets that which is farther from z, and what its pole adds."""
    total: Any = 0.0
    near = np.abs(z.real / SLOPE_STEP - np.rint(z.real / SLOPE_STEP)) <= 0.25  # to a node of the first set
    for offset, mask in ((0.0, ~near), (0.5, near)):
        t = SLOPE_STEP * (np.arange(SLOPE_NODES) + offset)
        weights = 2 * SLOPE_STEP / math.pi * np.exp(-(t**2)) * t**2
        upper = np.where(z.imag < 0, -z, z)
        turn = np.exp(np.where(upper.imag < 8, 2j * math.pi / SLOPE_STEP * upper, 0))
        pole = np.where(upper.imag < 8, turn / (turn + (1 if offset else -1)), 0)
        sums = -2j * (1 / (upper[..., None] ** 2 - t**2) @ weights)
        part = sums - 4 * upper * pole * np.exp(-(upper**2))
        total = np.where(mask, part, total)
    return np.where(z.imag < 0, total - 4 * z * np.exp(-(z**2)), total)


def part_of(order: int, name: str) -> Any:
    """Return a function for the real or imaginary part of a derivative."""
    return lambda x, y: getattr(derivative(x, y, order), name)


def far_part_of(order: int, name: str) -> Any:
    """Return the same far from the origin, and zero elsewhere."""
    part = part_of(order, name)
    return lambda x, y: np.where(np.hypot(x, y) < SERIES_FROM, 0.0, part(x, y))[()]


def value_of(x: Expr, y: Expr) -> Complex:
    return Faddeeva.WOFZ_REAL(x, y), Faddeeva.WOFZ_IMAG(x, y)


def slope_of(x: Expr, y: Expr) -> Complex:
    return Faddeeva.WOFZ_SLOPE_REAL(x, y), Faddeeva.WOFZ_SLOPE_IMAG(x, y)


def next_of(x: Expr, y: Expr, last: Complex, before: Complex, order: int) -> Complex:
    """Return the derivative of an order plus one, -2 z w^(n) - 2 n w^(n - 1)."""
    return (
        2 * (y * last[1] - x * last[0]) - 2 * order * before[0],
        -2 * (x * last[1] + y * last[0]) - 2 * order * before[1],
    )


def written(x: Expr, y: Expr, order: int, part: int) -> Expr:
    """Return a part of a derivative as functions have it, or their series far out."""
    if order < 2:
        return (value_of, slope_of)[order](x, y)[part]
    known = [value_of(x, y), slope_of(x, y)]
    for k in range(1, order):
        known.append(next_of(x, y, known[k], known[k - 1], k))
    return Choices.WHERE(x**2 + y**2 < SERIES_FROM**2, known[order][part], FAR[order, part](x, y))


def routine(rank: int, order: int, part: int, name: str, **options: Any) -> Operation:
    """Return the operation for a part of a derivative that targets have a function for."""
    side = ("real", "imag")[part]
    return Operation(
        rank=rank, arity=2, price=250, routine=f"wofz{name}_{side}", numpy=(part_of if order == 1 else far_part_of)(order, side),
        latex=Prefix((r"\operatorname{Re}w", r"\operatorname{Im}w")[part] + f"^{{({order})}}"), **options,
    )  # fmt: skip


def by_parts(slope: Complex, part: int) -> tuple[Expr, Expr]:
    """Return derivatives by x and y of a part of an analytic function from that by z."""
    return slope[part], -slope[1] if part == 0 else slope[0]


def bend(rank: int, part: int) -> Operation:
    """Return the operation for a part of the second derivative."""
    side = ("real", "imag")[part]
    return Operation(
        rank=rank, arity=2, price=260, numpy=part_of(2, side),
        partials=lambda x, y: by_parts((Faddeeva.WOFZ_THIRD_REAL(x, y), Faddeeva.WOFZ_THIRD_IMAG(x, y)), part),
        latex=Prefix((r"\operatorname{Re}w''", r"\operatorname{Im}w''")[part]),
        spelled=lambda x, y: written(x, y, 2, part),
    )  # fmt: skip


def third(rank: int, part: int) -> Operation:
    """Return the operation for a part of the third derivative."""
    side = ("real", "imag")[part]

    def partials(x: Expr, y: Expr) -> tuple[Expr, Expr]:
        last = Faddeeva.WOFZ_THIRD_REAL(x, y), Faddeeva.WOFZ_THIRD_IMAG(x, y)
        before = Faddeeva.WOFZ_BEND_REAL(x, y), Faddeeva.WOFZ_BEND_IMAG(x, y)
        return by_parts(next_of(x, y, last, before, 3), part)

    return Operation(
        rank=rank, arity=2, price=270, numpy=part_of(3, side), partials=partials,
        latex=Prefix((r"\operatorname{Re}w'''", r"\operatorname{Im}w'''")[part]),
        spelled=lambda x, y: written(x, y, 3, part),
    )  # fmt: skip


def tail(rank: int, part: int) -> Operation:
    """Return the operation for a part of -i sqrt(pi) z w(z), which is one far out; its derivative is i sqrt(pi) w'' / 2."""
    side, root = ("real", "imag")[part], math.sqrt(math.pi)

    def partials(x: Expr, y: Expr) -> tuple[Expr, Expr]:
        slope = -0.5 * root * Faddeeva.WOFZ_BEND_IMAG(x, y), 0.5 * root * Faddeeva.WOFZ_BEND_REAL(x, y)
        return by_parts(slope, part)

    def spelled(x: Expr, y: Expr) -> Expr:
        real, imaginary = value_of(x, y)
        return root * (x * imaginary + y * real if part == 0 else y * imaginary - x * real)

    return Operation(
        rank=rank, arity=2, price=260, partials=partials, spelled=spelled,
        numpy=lambda x, y: getattr(-1j * root * complex_of(x, y) * faddeeva(x, y), side),
        latex=Prefix((r"\operatorname{Re}", r"\operatorname{Im}")[part] + r"\operatorname{tail}"),
    )  # fmt: skip


def voigt(rank: int, order: int, part: int) -> Operation:
    """Return the operation for a part of w^(n)(z) / s^(n + 1), z = (x + i y) / s: of a profile, and of its derivatives by x."""
    side = ("real", "imag")[part]

    def partials(x: Expr, y: Expr, s: Expr) -> tuple[Expr | None, ...]:
        """Return derivatives by x, by y of an analytic function, and by s from the equation of heat."""
        turned = 1.0 if part else -1.0
        factors = ((order + 1, part, 1.0), (order + 1, 1 - part, turned), (order + 2, part, 0.5 * s))
        return tuple(
            factor * PROFILES[n, side](x, y, s) if (n, side) in PROFILES else None
            for n, side, factor in factors
        )

    def numbers(x: Any, y: Any, s: Any) -> Any:
        return getattr(derivative(x / s, y / s, order) if order else faddeeva(x / s, y / s), side) / s ** (
            order + 1
        )

    return Operation(
        rank=rank, arity=3, price=300, numpy=numbers, partials=partials,
        latex=Prefix((r"\operatorname{Re}v", r"\operatorname{Im}v")[part] + f"^{{({order})}}"),
        spelled=lambda x, y, s: written(x / s, y / s, order, part) / s ** (order + 1),
    )  # fmt: skip


class Faddeeva:
    """w of scipy.special and its derivatives; Voigt profiles."""

    WOFZ_REAL: Operation = Operation(
        rank=57,
        arity=2,
        price=250,
        numpy=lambda x, y: faddeeva(x, y).real,
        partials=lambda x, y: (Faddeeva.WOFZ_SLOPE_REAL(x, y), -Faddeeva.WOFZ_SLOPE_IMAG(x, y)),
        latex=Prefix(r"\operatorname{Re}w"),
        routine="wofz_real",
    )
    WOFZ_IMAG: Operation = Operation(
        rank=58,
        arity=2,
        price=250,
        numpy=lambda x, y: faddeeva(x, y).imag,
        partials=lambda x, y: (Faddeeva.WOFZ_SLOPE_IMAG(x, y), Faddeeva.WOFZ_SLOPE_REAL(x, y)),
        latex=Prefix(r"\operatorname{Im}w"),
        routine="wofz_imag",
    )
    WOFZ_SLOPE_REAL: Operation = routine(
        97, 1, 0, "_slope",
        partials=lambda x, y: (Faddeeva.WOFZ_BEND_REAL(x, y), -Faddeeva.WOFZ_BEND_IMAG(x, y)),
    )  # fmt: skip
    WOFZ_SLOPE_IMAG: Operation = routine(
        98, 1, 1, "_slope",
        partials=lambda x, y: (Faddeeva.WOFZ_BEND_IMAG(x, y), Faddeeva.WOFZ_BEND_REAL(x, y)),
    )  # fmt: skip
    WOFZ_BEND_REAL: Operation = bend(99, 0)
    WOFZ_BEND_IMAG: Operation = bend(100, 1)
    WOFZ_THIRD_REAL: Operation = third(121, 0)
    WOFZ_THIRD_IMAG: Operation = third(122, 1)
    WOFZ_TAIL_REAL: Operation = tail(123, 0)
    WOFZ_TAIL_IMAG: Operation = tail(124, 1)
    # for |z| >= SERIES_FROM; zero elsewhere
    WOFZ_BEND_FAR_REAL: Operation = routine(101, 2, 0, "_bend_far", traits=Trait.NO_SLOPE)
    WOFZ_BEND_FAR_IMAG: Operation = routine(102, 2, 1, "_bend_far", traits=Trait.NO_SLOPE)
    WOFZ_THIRD_FAR_REAL: Operation = routine(103, 3, 0, "_third_far", traits=Trait.NO_SLOPE)
    WOFZ_THIRD_FAR_IMAG: Operation = routine(104, 3, 1, "_third_far", traits=Trait.NO_SLOPE)
    WOFZ_FOURTH_FAR_REAL: Operation = routine(105, 4, 0, "_fourth_far", traits=Trait.NO_SLOPE)
    # of a place, half of a width and sqrt(2) times a resolution
    VOIGT: Operation = voigt(106, 0, 0)
    VOIGT_SLOPE_REAL: Operation = voigt(107, 1, 0)
    VOIGT_SLOPE_IMAG: Operation = voigt(108, 1, 1)
    VOIGT_BEND_REAL: Operation = voigt(109, 2, 0)
    VOIGT_BEND_IMAG: Operation = voigt(110, 2, 1)
    VOIGT_THIRD_REAL: Operation = voigt(111, 3, 0)
    VOIGT_THIRD_IMAG: Operation = voigt(112, 3, 1)
    VOIGT_FOURTH_REAL: Operation = voigt(113, 4, 0)


FAR = {
    (2, 0): Faddeeva.WOFZ_BEND_FAR_REAL,
    (2, 1): Faddeeva.WOFZ_BEND_FAR_IMAG,
    (3, 0): Faddeeva.WOFZ_THIRD_FAR_REAL,
    (3, 1): Faddeeva.WOFZ_THIRD_FAR_IMAG,
    (4, 0): Faddeeva.WOFZ_FOURTH_FAR_REAL,
}
PROFILES = {
    (0, 0): Faddeeva.VOIGT,
    (1, 0): Faddeeva.VOIGT_SLOPE_REAL,
    (1, 1): Faddeeva.VOIGT_SLOPE_IMAG,
    (2, 0): Faddeeva.VOIGT_BEND_REAL,
    (2, 1): Faddeeva.VOIGT_BEND_IMAG,
    (3, 0): Faddeeva.VOIGT_THIRD_REAL,
    (3, 1): Faddeeva.VOIGT_THIRD_IMAG,
    (4, 0): Faddeeva.VOIGT_FOURTH_REAL,
}
