"""An expression as LaTeX mathematics."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from morefit.expr.ops import Op
from morefit.expr.quadrature import rule_axes
from morefit.expr.show.spell import (
    ADDS,
    COMPARES,
    MULTIPLIES,
    RAISES,
    STANDS_ALONE,
    Fraction,
    Node,
    Piece,
    Slot,
    Spelling,
    as_term,
    commas,
    product_or_power,
    starts_with_number,
    sum_pieces,
    write,
)
from morefit.expr.show.text import number_text

GREEK = frozenset({
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu",
    "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma", "Delta",
    "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega",
})  # fmt: skip
LATEX_SIGNS = {Op.LESS: " < ", Op.LESS_EQUAL: r" \leq ", Op.EQUAL: " = "}
# what stands around the arguments; a function in LATEX_NAMES takes a whole power before its argument
LATEX_NAMES = {
    Op.LOG: r"\ln", Op.SIN: r"\sin", Op.COS: r"\cos", Op.TAN: r"\tan", Op.ASIN: r"\arcsin", Op.ACOS: r"\arccos",
    Op.ATAN: r"\arctan", Op.ATAN2: r"\operatorname{atan2}", Op.SINH: r"\sinh", Op.COSH: r"\cosh", Op.TANH: r"\tanh",
    Op.ERF: r"\operatorname{erf}", Op.ERFC: r"\operatorname{erfc}", Op.LGAMMA: r"\ln\Gamma", Op.DIGAMMA: r"\psi",
    Op.TRIGAMMA: r"\psi_{1}", Op.TETRAGAMMA: r"\psi_{2}", Op.NDTRI: r"\Phi^{-1}",
    Op.LOOKUP: r"\operatorname{lookup}", Op.MIN: r"\min", Op.MAX: r"\max",
}  # fmt: skip
RAISED_BEFORE = frozenset({Op.SIN, Op.COS, Op.TAN, Op.SINH, Op.COSH, Op.TANH, Op.LOG})
LATEX_AROUND = {
    Op.EXP: (RAISES, "e^{", "}"),
    Op.EXP2: (RAISES, "2^{", "}"),
    Op.EXPM1: (ADDS, "e^{", "} - 1"),
    Op.LOG1P: (STANDS_ALONE, r"\ln\left(1 + ", r"\right)"),
    Op.SQRT: (STANDS_ALONE, r"\sqrt{", "}"),
    Op.ABS: (STANDS_ALONE, r"\left|", r"\right|"),
    Op.FLOOR: (STANDS_ALONE, r"\lfloor ", r" \rfloor"),
}


def to_latex(expr: Node, limit: int | None = 4000, digits: int = 6) -> str:
    r"""Write an expression as LaTeX mathematics; what does not fit into ``limit`` characters is \ldots."""

    def spell(slot: Slot, args: Sequence[Node], more: Sequence[str]) -> Spelling:
        return latex_pieces(slot, args, more, digits)

    return write(expr, spell, (r"\left(", r"\right)"), r"\ldots", math.inf if limit is None else limit)


def latex_name(name: str) -> str:
    r"""Write a name: Greek letters as such, ``f_sig`` as f_{\mathrm{sig}}, ``S3`` as S_{3}."""
    parts = re.fullmatch(r"([A-Za-z]+)(\d*)((?:_[A-Za-z0-9]+)*)", name)
    if not parts:
        return r"\text{" + re.sub(r"([#$%&_{}~^\\])", r"\\\1", name) + "}"
    stem, digits, rest = parts.groups()
    below = [digits] * bool(digits) + [latex_word(word) for word in rest.split("_")[1:]]
    return latex_word(stem) + ("_{" + ", ".join(below) + "}" if below else "")


def latex_word(word: str) -> str:
    if word in GREEK:
        return "\\" + word
    return word if len(word) == 1 or word.isdigit() else r"\mathrm{" + word + "}"


def latex_number(number: float, digits: int) -> str:
    mantissa, _, exponent = number_text(number, digits).partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def latex_pieces(slot: Slot, args: Sequence[Node], more: Sequence[str], digits: int) -> Spelling:
    node = slot.node
    if node.op is Op.CONST:
        text = latex_number(-node.number if slot.minus else node.number, digits)
        return MULTIPLIES if text.startswith("-") or "cdot" in text else STANDS_ALONE, [text]
    if not node.args:
        return STANDS_ALONE, [latex_name(node.name)]
    if node.op is Op.ADD:
        return sum_pieces(args, more)
    fraction = product_or_power(slot, args)
    if fraction:
        return latex_fraction(slot, fraction, more, digits)
    if node.op is Op.POW:
        return latex_power(node.args[0], node.args[1])
    if node.op in LATEX_AROUND:
        binding, before, after = LATEX_AROUND[node.op]
        return binding, [before, Slot(node.args[0], ADDS if node.op is Op.LOG1P else COMPARES), after]
    if node.op in LATEX_SIGNS:
        return COMPARES, [Slot(node.args[0], ADDS), LATEX_SIGNS[node.op], Slot(node.args[1], ADDS)]
    if node.op is Op.WHERE:
        yes, no = Slot(node.args[1]), Slot(node.args[2])
        condition: list[Piece] = [r" & \text{if } ", Slot(node.args[0]), r" \\ "]
        return STANDS_ALONE, [r"\begin{cases} ", yes, *condition, no, r" & \text{otherwise} \end{cases}"]
    if node.op is Op.INTEGRAL:
        axes = rule_axes(str(node.value))
        signs = [
            rf"\int_{{{latex_number(e[0], digits)}}}^{{{latex_number(e[-1], digits)}}} " for _, e in axes
        ]
        ends = [rf" \, \mathrm{{d}}{latex_name(name)}" for name, _ in reversed(axes)]
        return MULTIPLIES, [*signs, Slot(node.args[0], MULTIPLIES), *ends]
    return STANDS_ALONE, [LATEX_NAMES[node.op], r"\left(", *commas(node.args), r"\right)"]


def latex_power(base: Node, exponent: Node | str) -> Spelling:
    """Write a power; the square of a sine has it behind the name."""
    whole = isinstance(exponent, str) or (exponent.op is Op.CONST and exponent.number > 1)
    raised: list[Piece] = ["^{", exponent if isinstance(exponent, str) else Slot(exponent), "}"]
    if base.op in RAISED_BEFORE and whole:
        return STANDS_ALONE, [LATEX_NAMES[base.op], *raised, r"\left(", Slot(base.args[0]), r"\right)"]
    return RAISES, [Slot(base, STANDS_ALONE), *raised]


def latex_fraction(slot: Slot, fraction: Fraction, more: Sequence[str], digits: int) -> Spelling:
    if fraction.is_factor and not more:
        return STANDS_ALONE, [Slot(fraction.above[0], slot.floor)]
    above: list[Piece] = [latex_number(fraction.number, digits)] if fraction.shows_number(more) else []
    lonely = len(fraction.above) + len(above) + len(more) == 1 and bool(fraction.below)
    for factor in fraction.above:
        above += [r" \cdot " if starts_with_number(factor) else r" \, "] if above else []
        above.append(Slot(factor, ADDS if lonely and not fraction.sign else as_term(factor, MULTIPLIES)))
    above += [rf" \, {dots}" if above else dots for dots in more]
    if not fraction.below:
        return MULTIPLIES, [fraction.sign, *above]
    below: list[Piece] = []
    for base, power in fraction.below:
        below += [r" \, "] if below else []
        if power == 1.0:
            below.append(Slot(base, ADDS if len(fraction.below) == 1 else as_term(base, MULTIPLIES)))
        elif power == 0.5:
            below += [r"\sqrt{", Slot(base), "}"]
        else:
            below += latex_power(base, latex_number(power, digits))[1]
    return MULTIPLIES, [fraction.sign, r"\frac{", *above, "}{", *below, "}"]
