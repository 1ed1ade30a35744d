"""Write arithmetic of jets: a number alone, with one slope, with a slope and a bend, or with two slopes and the mixed derivative."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.targets.cpu.writer import Operand, Writer

Jet = Sequence[str]  # (value,), (value, slope), (value, slope, bend) or (value, slope, other slope, mixed)


def slopes_of(jet: Jet) -> range:
    """Return the numbers of the slopes."""
    return range(1, (1, 2, 2, 3)[len(jet) - 1])


def linear(w: Writer, value: str, slopes: Sequence[str], size: int) -> Jet:
    """Return a number that has these slopes, and no bend if it has one."""
    return (value, *slopes, *[w.number(0.0)] * (size - 1 - len(slopes)))


def shifted(w: Writer, jet: Jet, number: Operand) -> Jet:
    """Add a number."""
    return (w.add(jet[0], number), *jet[1:])


def scaled(w: Writer, jet: Jet, factor: Operand) -> Jet:
    """Multiply by a number."""
    return tuple(w.mul(part, factor) for part in jet)


def added(w: Writer, a: Jet, b: Jet) -> Jet:
    return tuple(w.add(*parts) for parts in zip(a, b, strict=True))


def product(w: Writer, a: Jet, b: Jet) -> Jet:
    slopes = [w.fma(a[0], b[i], w.mul(a[i], b[0])) for i in slopes_of(a)]
    parts = [w.mul(a[0], b[0]), *slopes]
    if len(a) > 2:
        i, j = slopes_of(a)[0], slopes_of(a)[-1]
        cross = w.fma(a[i], b[j], w.mul(a[j], b[i]))
        parts.append(w.fma(a[0], b[-1], w.fma(a[-1], b[0], cross)))
    return tuple(parts)


def inverse(w: Writer, a: Jet) -> tuple[Jet, Jet]:
    """Return one over a jet, and the derivatives of its logarithm."""
    one_over = w.div(1.0, a[0])
    ratios = [w.mul(a[i], one_over) for i in slopes_of(a)]
    parts = [one_over, *(w.neg(w.mul(ratio, one_over)) for ratio in ratios)]
    if len(a) > 2:
        square, bend = w.mul(ratios[0], ratios[-1]), w.mul(a[-1], one_over)
        parts.append(w.mul(one_over, w.sub(w.add(square, square), bend)))
        ratios.append(w.sub(bend, square))
    return tuple(parts), tuple(ratios)
