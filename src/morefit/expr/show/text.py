"""An expression as a line of text, as Python would write it, and as LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from morefit.expr.operations import COMPARISONS, Op
from morefit.expr.operations.record import (
    ADDS,
    COMPARES,
    MULTIPLIES,
    RAISES,
    STANDS_ALONE,
    Around,
    Infix,
    Prefix,
)
from morefit.expr.quadrature import axes_of
from morefit.expr.show.spell import (
    Fraction,
    Node,
    Piece,
    Slot,
    Spelling,
    as_term,
    commas,
    product_or_power,
    sides,
    starts_with_number,
    sum_pieces,
    write,
)
from morefit.expr.symbol import Symbol


def to_text(expr: Node, limit: int | None = 2000, digits: int = 6) -> str:
    """Write an expression as Python would, with few parentheses.

    The text has about ``limit`` characters at most (None: as many as it takes, which for shared
    subexpressions can be exponentially many); inner parts that do not fit are written ``...``.
    Numbers have ``digits`` digits; 17 keep every bit.
    """

    def spell(slot: Slot, args: Sequence[Node], more: Sequence[str]) -> Spelling:
        return text_pieces(slot, args, more, digits)

    return write(expr, spell, ("(", ")"), "...", math.inf if limit is None else limit)


def number_text(number: float, digits: int) -> str:
    exact = repr(number).removesuffix(".0")
    return min(exact, f"{number:.{digits}g}", key=len)


def text_pieces(slot: Slot, args: Sequence[Node], more: Sequence[str], digits: int) -> Spelling:
    node = slot.node
    if node.op is Op.CONST:
        number = -node.number if slot.minus else node.number
        return MULTIPLIES if math.copysign(1.0, number) < 0 else STANDS_ALONE, [number_text(number, digits)]
    if not node.args or isinstance(node.value, Symbol):
        return STANDS_ALONE, [node.name]
    if node.op is Op.ADD:
        return sum_pieces(args, more)
    fraction = product_or_power(slot, args)
    if fraction:
        return text_fraction(slot, fraction, more, digits)
    if node.op is Op.POW:
        return RAISES, [Slot(node.args[0], STANDS_ALONE), "**", Slot(node.args[1], RAISES)]
    if node.op in COMPARISONS:
        left, right = sides(node)
        return COMPARES, [Slot(left, ADDS), f" {node.op.sign} ", Slot(right, ADDS)]
    inside = commas(node.args)
    if node.op in (Op.INTEGRAL, Op.NODE_SUM):
        inside = [Slot(node.args[0])]
        for axis in axes_of(node.value):
            inside.append(f", {axis.name}, {number_text(axis.low, digits)}, {number_text(axis.high, digits)}")
    return STANDS_ALONE, [f"{node.op.name.lower()}(", *inside, ")"]


def text_fraction(slot: Slot, fraction: Fraction, more: Sequence[str], digits: int) -> Spelling:
    """Write ``-2*a*b/(c*d**2)``."""
    if fraction.is_factor and not more:
        return STANDS_ALONE, [Slot(fraction.above[0], slot.floor)]
    pieces: list[Piece] = [fraction.sign]
    if fraction.shows_number(more):
        pieces.append(number_text(fraction.number, digits))
    for factor in fraction.above:
        pieces += ["*"] * (len(pieces) > 1)
        pieces.append(Slot(factor, as_term(factor, MULTIPLIES)))
    pieces += [f"*{dots}" if len(pieces) > 1 else dots for dots in more]
    if fraction.below:
        below: list[Piece] = []
        for base, power in fraction.below:
            below += ["*"] * bool(below)
            if power == 1.0:
                below.append(Slot(base, RAISES))
            else:
                below += [Slot(base, STANDS_ALONE), f"**{number_text(power, digits)}"]
        pieces += ["/(", *below, ")"] if len(fraction.below) > 1 else ["/", *below]
    return MULTIPLIES, pieces


DIGITS = 6  # of numbers
GREEK = frozenset({
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu",
    "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma", "Delta",
    "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega",
})  # fmt: skip


def to_latex(expr: Node, limit: int | None = 4000) -> str:
    r"""Write an expression as LaTeX mathematics; what does not fit into ``limit`` characters is \ldots."""
    return write(expr, latex_pieces, (r"\left(", r"\right)"), r"\ldots", math.inf if limit is None else limit)


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


def latex_number(number: float) -> str:
    mantissa, _, exponent = number_text(number, DIGITS).partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def latex_pieces(slot: Slot, args: Sequence[Node], more: Sequence[str]) -> Spelling:
    node = slot.node
    if node.op is Op.CONST:
        text = latex_number(-node.number if slot.minus else node.number)
        return MULTIPLIES if text.startswith("-") or "cdot" in text else STANDS_ALONE, [text]
    if not node.args or isinstance(node.value, Symbol):
        return STANDS_ALONE, [latex_name(node.name)]
    if node.op is Op.ADD:
        return sum_pieces(args, more)
    fraction = product_or_power(slot, args)
    if fraction:
        return latex_fraction(slot, fraction, more)
    if node.op is Op.POW:
        return latex_power(node.args[0], node.args[1])
    latex = node.op.latex
    if isinstance(latex, Around):
        return latex.binding, [latex.before, Slot(node.args[0], latex.inner), latex.after]
    if isinstance(latex, Infix):
        left, right = sides(node)
        return COMPARES, [Slot(left, ADDS), latex.sign, Slot(right, ADDS)]
    if node.op is Op.WHERE:
        yes, no = Slot(node.args[1]), Slot(node.args[2])
        condition: list[Piece] = [r" & \text{if } ", Slot(node.args[0]), r" \\ "]
        return STANDS_ALONE, [r"\begin{cases} ", yes, *condition, no, r" & \text{otherwise} \end{cases}"]
    if node.op in (Op.INTEGRAL, Op.NODE_SUM):
        axes = axes_of(node.value)
        signs = [rf"\int_{{{latex_number(a.low)}}}^{{{latex_number(a.high)}}} " for a in axes]
        ends = [rf" \, \mathrm{{d}}{latex_name(axis.name)}" for axis in reversed(axes)]
        return MULTIPLIES, [*signs, Slot(node.args[0], MULTIPLIES), *ends]
    assert isinstance(latex, Prefix)
    return STANDS_ALONE, [latex.name, r"\left(", *commas(node.args), r"\right)"]


def latex_power(base: Node, exponent: Node | str) -> Spelling:
    """Write a power; the square of a sine has it behind the name."""
    whole = isinstance(exponent, str) or (exponent.op is Op.CONST and exponent.number > 1)
    raised: list[Piece] = ["^{", exponent if isinstance(exponent, str) else Slot(exponent), "}"]
    latex = base.op.latex
    if isinstance(latex, Prefix) and latex.raised and whole:
        return STANDS_ALONE, [latex.name, *raised, r"\left(", Slot(base.args[0]), r"\right)"]
    return RAISES, [Slot(base, STANDS_ALONE), *raised]


def latex_fraction(slot: Slot, fraction: Fraction, more: Sequence[str]) -> Spelling:
    if fraction.is_factor and not more:
        return STANDS_ALONE, [Slot(fraction.above[0], slot.floor)]
    above: list[Piece] = [latex_number(fraction.number)] if fraction.shows_number(more) else []
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
            below += latex_power(base, latex_number(power))[1]
    return MULTIPLIES, [fraction.sign, r"\frac{", *above, "}{", *below, "}"]
