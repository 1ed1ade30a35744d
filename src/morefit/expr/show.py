"""Show an expression: as a line of text, as LaTeX, as a graph for Graphviz."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

from morefit.expr.ops import Op
from morefit.expr.quadrature import rule_axes

Kind = Literal["nothing", "parameters", "event", "both"]


class Node(Protocol):
    """What this file needs of an expression; node.py imports it, so it cannot import Expr itself."""

    @property
    def op(self) -> Op: ...
    @property
    def args(self) -> Sequence[Node]: ...
    @property
    def value(self) -> object: ...
    @property
    def name(self) -> str: ...
    @property
    def number(self) -> float: ...


# ------------------------------------------------------------------ text that folds where it grows too long

# how tightly an operation binds; an argument that binds less tightly than its place asks for gets parentheses
COMPARES, ADDS, MULTIPLIES, RAISES, STANDS_ALONE = range(1, 6)
MANY = 1 << 30  # arguments: all of them


class Slot:
    """A place in the text where a node will stand; it is dots until ``pieces`` is filled."""

    __slots__ = ("floor", "minus", "node", "pieces")

    def __init__(self, node: Node, floor: int = COMPARES, minus: bool = False) -> None:
        self.node = node
        self.floor = floor  # the least binding that needs no parentheses
        self.minus = minus  # write the negative of the node, whose sign stands in front already
        self.pieces: list[Piece] | None = None


Piece = str | Slot
Spelling = tuple[int, list[Piece]]  # how tightly the text binds, and its pieces
Spell = Callable[
    [Slot, Sequence[Node], Sequence[str]], Spelling
]  # slot, arguments to show, what follows them


def write(node: Node, spell: Spell, brackets: tuple[str, str], dots: str, limit: float) -> str:
    """Spell a node breadth first until the text is full: what does not fit any more is left as dots."""

    def pieces_of(slot: Slot, most: int) -> list[Piece]:
        """Spell a slot and the leaves right below it, showing so many arguments of a sum or product."""
        args = slot.node.args
        binding, pieces = spell(slot, args[:most], () if most >= len(args) else (dots,))
        for i, piece in enumerate(pieces):
            if isinstance(piece, Slot) and not piece.node.args:
                pieces[i] = "".join(map(str, pieces_of(piece, 0)))
        return [brackets[0], *pieces, brackets[1]] if binding < slot.floor else pieces

    root = Slot(node)
    queue, length = deque([root]), len(dots)
    while queue:
        slot = queue.popleft()
        room = limit - length + len(dots)
        count = len(slot.node.args) if slot.node.op in (Op.ADD, Op.MUL) else 0
        for most in sizes(count, room):
            pieces = pieces_of(slot, most)
            cost = sum(len(p) if isinstance(p, str) else len(dots) for p in pieces)
            if cost <= room:
                break
        if cost <= room or slot is root:
            slot.pieces = pieces
            length += cost - len(dots)
            queue.extend(p for p in pieces if isinstance(p, Slot))
    return join(root, dots)


def sizes(count: int, room: float) -> Iterator[int]:
    """Say how many of so many arguments to try to show: all where they may fit, else ever fewer."""
    if 4 * count <= room or count < 2:  # a name and a sign take four characters
        yield count or MANY
    most = int(min(count, room // 12))  # a small product, a sign
    while most > 0:
        yield most
        most //= 2
    if count > 1:
        yield 1


def join(root: Slot, dots: str) -> str:
    texts: list[str] = []
    stack: list[Piece] = [root]
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            texts.append(piece)
        elif piece.pieces is None:
            texts.append(dots)
        else:
            stack += reversed(piece.pieces)
    return "".join(texts)


def is_negative(node: Node) -> bool:
    """Say whether the text of a node starts with a minus sign that can be taken off."""
    first = node.args[0] if node.op is Op.MUL and node.args else node
    return first.op is Op.CONST and math.copysign(1.0, first.number) < 0


def as_term(node: Node, floor: int) -> int:
    """Say how tightly a part of a sum or product must bind: one that starts with a minus sign, more."""
    signed = node.args if node.op is Op.ADD else (node,)
    return floor + 1 if all(map(is_negative, signed)) else floor


def sum_pieces(args: Iterable[Node], more: Sequence[str]) -> Spelling:
    """Write ``a + b - c``, what is added before what is taken away."""
    pieces: list[Piece] = []
    for node in sorted(args, key=is_negative):
        minus = is_negative(node)
        pieces.append((" - " if minus else " + ") if pieces else ("-" if minus else ""))
        pieces.append(
            Slot(node, MULTIPLIES if minus else as_term(node, ADDS) if len(pieces) > 1 else ADDS, minus)
        )
    return ADDS, pieces + [f" + {dots}" for dots in more]


class Fraction:
    """A product taken apart: sign, number, factors above and (base, power) below the line."""

    def __init__(self, slot: Slot, args: Sequence[Node]) -> None:
        factors = list(args)
        self.number = factors.pop(0).number if factors and factors[0].op is Op.CONST else 1.0
        self.number = -self.number if slot.minus else self.number
        self.sign = "-" if math.copysign(1.0, self.number) < 0 else ""
        self.number = abs(self.number)
        self.above = sorted(
            (f for f in factors if not is_inverse(f)), key=lambda f: not starts_with_number(f)
        )
        self.below = [(f.args[0], -f.args[1].number) for f in factors if is_inverse(f)]

    @property
    def is_factor(self) -> bool:
        """Say whether only one factor is left, as of -1 * x without its sign."""
        return not (self.below or self.sign or self.number != 1.0) and len(self.above) == 1

    def shows_number(self, more: Sequence[str]) -> bool:
        return self.number != 1.0 or not (self.above or more)


def starts_with_number(node: Node) -> bool:
    return (node.args[0] if node.op in (Op.POW, Op.MUL) and node.args else node).op is Op.CONST


def is_inverse(node: Node) -> bool:
    return node.op is Op.POW and node.args[1].op is Op.CONST and node.args[1].number < 0


def product_or_power(slot: Slot, args: Sequence[Node]) -> Fraction | None:
    """Take a product or a negative power apart; None for any other operation."""
    if slot.node.op is Op.MUL:
        return Fraction(slot, args)
    return Fraction(Slot(slot.node), (slot.node,)) if is_inverse(slot.node) else None


# ------------------------------------------------------------------ plain text

SIGNS = {Op.LESS: " < ", Op.LESS_EQUAL: " <= ", Op.EQUAL: " == "}


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
    if not node.args:
        return STANDS_ALONE, [node.name]
    if node.op is Op.ADD:
        return sum_pieces(args, more)
    fraction = product_or_power(slot, args)
    if fraction:
        return text_fraction(slot, fraction, more, digits)
    if node.op is Op.POW:
        return RAISES, [Slot(node.args[0], STANDS_ALONE), "**", Slot(node.args[1], RAISES)]
    if node.op in SIGNS:
        return COMPARES, [Slot(node.args[0], ADDS), SIGNS[node.op], Slot(node.args[1], ADDS)]
    inside = commas(node.args)
    if node.op is Op.INTEGRAL:
        axes = rule_axes(str(node.value))
        inside += [f", {name}, {number_text(e[0], digits)}, {number_text(e[-1], digits)}" for name, e in axes]
    return STANDS_ALONE, [f"{node.op.name.lower()}(", *inside, ")"]


def commas(args: Iterable[Node]) -> list[Piece]:
    pieces: list[Piece] = []
    for arg in args:
        pieces += [", ", Slot(arg)] if pieces else [Slot(arg)]
    return pieces


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


# ------------------------------------------------------------------ LaTeX

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


# ------------------------------------------------------------------ Graphviz

COLOURS: dict[Kind, str] = {
    "nothing": "#e0e0e0",
    "parameters": "#ffc8c8",
    "event": "#c8dcff",
    "both": "#ffffff",
}
LABELS = {Op.ADD: "+", Op.MUL: "*", Op.POW: "**", Op.LESS: "<", Op.LESS_EQUAL: "<=", Op.EQUAL: "=="}
KINDS: tuple[Kind, ...] = ("nothing", "parameters", "event", "both")
OF_LEAF = {Op.SCALAR: 1, Op.COLUMN: 2}  # bits of the place in KINDS


def to_dot(
    *exprs: Node, depends: Mapping[Node, Kind] | None = None, title: str = "", limit: int = 1000
) -> str:
    """Draw graphs as Graphviz text, each shared node once.

    What depends on parameters only is light red, on the event only light blue, on neither grey;
    ``depends`` overrides that, node by node. At most ``limit`` nodes are drawn, those nearest to
    the expressions; the rest is dots.
    """
    kinds = {node: KINDS[bits] for node, bits in dependence(exprs).items()} | dict(depends or {})
    number = {node: i for i, node in enumerate(nearest(exprs, limit))}
    lines = ["digraph expression {", "  ordering=out; rankdir=TB;"]
    lines += [f"  label={quote(title)}; labelloc=t;"] * bool(title)
    lines.append('  node [shape=box, style="rounded,filled", fontname="Helvetica"];')
    for node, i in number.items():
        lines.append(f"  n{i} [label={quote(label(node))}, fillcolor={quote(COLOURS[kinds[node]])}];")
        for place, arg in enumerate(node.args):
            if arg in number:
                lines.append(f"  n{i} -> n{number[arg]};")
            else:
                lines.append(f'  n{i} -> cut{i}; cut{i} [label="...", shape=plaintext, style=""];')
                lines += [f"  // and {len(node.args) - place - 1} more arguments"] * (
                    place + 1 < len(node.args)
                )
                break
    return "\n".join([*lines, "}"]) + "\n"


def label(node: Node) -> str:
    if node.op is Op.CONST:
        return number_text(node.number, 6)
    if node.op is Op.INTEGRAL:
        return "integral over " + ", ".join(name for name, _ in rule_axes(str(node.value)))
    return LABELS.get(node.op, node.op.name.lower()) if node.args else node.name


def quote(text: str) -> str:
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'


def nearest(roots: Iterable[Node], limit: int) -> list[Node]:
    """Return the nodes nearest to the roots, breadth first."""
    found = dict.fromkeys(roots)
    queue = deque(found)
    while queue:
        for arg in queue.popleft().args:
            if len(found) >= limit:
                return list(found)
            if arg not in found:
                found[arg] = None
                queue.append(arg)
    return list(found)


def dependence(roots: Iterable[Node]) -> dict[Node, int]:
    """Say for every node whether parameters (1) and events (2) enter; an integral binds its columns."""
    bits: dict[Node, int] = {}
    stack = list(roots)
    while stack:
        node = stack[-1]
        missing = [] if node in bits else [arg for arg in node.args if arg not in bits]
        if missing:
            stack += missing
            continue
        stack.pop()
        found = OF_LEAF.get(node.op, 0)
        for arg in node.args:
            found |= bits[arg]
        bits[node] = found & 1 if node.op is Op.INTEGRAL else found
    return bits
