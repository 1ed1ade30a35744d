"""Models in print: a short line, a tree of components with their start values, and formulas for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from math import isfinite
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from morefit.expr import Expr, Op, Quantity, as_double, evaluate, symbols, to_expr, to_latex, to_text
from morefit.model.in_use import CACHED
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter, blinded_in

if TYPE_CHECKING:
    from morefit.model.pdf import Pdf

LINE = 300  # characters of the short text
UNBROKEN = "\N{NO-BREAK SPACE}"  # where a line must not end
WIDTH = 110  # characters of a line of a tree
FORMULA = 60  # characters of a formula in a line
LATEX_FORMULA = 400  # characters of the LaTeX of one density
MAX_TERMS = 8  # densities of a sum or product, and formulas, in a notebook


def numbered(names: list[str]) -> list[str]:
    """Number names that come more than once."""
    many = {name for name in names if names.count(name) > 1}
    return [f"{n} {names[: k + 1].count(n)}" if n in many else n for k, n in enumerate(names)]


# ------------------------------------------------------------------------------------ a line


def short_text(pdf: Pdf) -> str:
    """Return a density as it could be written, its observables and parameters by name."""
    whole = bool(pdf.branches())  # of a composition, all arguments but the densities have names
    texts = [
        f"{name}={short_value(value)}" if (k and whole) or name == "given" else short_value(value)
        for k, (name, value) in enumerate(contents(pdf))
    ]
    text = f"{type(pdf).__name__}({', '.join(texts)})"
    return text if len(text) <= LINE else f"{text[: LINE - 3]}..."


def short_value(value: Any) -> str:
    """Return an argument of a density in a few characters."""
    if isinstance(value, Quantity):
        return to_text(to_expr(value), FORMULA)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(short_value, value))}]"
    number = as_double(value)
    return repr(value) if number is None else f"{number:.6g}"


def contents(pdf: Any) -> list[tuple[str, Any]]:
    """Return what a density was made with, by name: the fields of a dataclass, or its public attributes."""
    if is_dataclass(pdf):
        named = [(field.name, getattr(pdf, field.name)) for field in fields(pdf)]
    else:
        hidden = CACHED | {"given"}
        named = [
            (name, v) for name, v in vars(pdf).items() if name not in hidden and not name.startswith("_")
        ]
    named.append(("given", pdf.given))
    empty = {name for name, v in named if v is None or (isinstance(v, tuple) and not v)}
    return [(name, v) for name, v in named if name not in empty | {"integral_checked"}]


# ------------------------------------------------------------------------------------ a tree


def tree_text(pdf: Pdf) -> str:
    """Return a density and those it is made of, one line each, with the start values of their parameters."""
    first = kind_text(pdf, lambda o: f"{o.name} from {o.low:g} to {o.high:g}")
    return "\n".join([*wrapped(first, arguments(pdf), ""), *branch_lines(pdf, "")])


def kind_text(pdf: Pdf, shown: Callable[[Observable], str]) -> str:
    """Return the class of a density, its observables, and those that it is given."""
    drawn, given = (", ".join(map(shown, some)) for some in (pdf.drawn, pdf.given))
    return f"{type(pdf).__name__} in {drawn}{' given ' * bool(given)}{given}"


def branch_lines(pdf: Pdf, indent: str) -> Iterator[str]:
    """Return the lines of the densities that a density is made of."""
    branches = pdf.branches()
    for k, (title, weight, part) in enumerate(branches):
        corner, below = ("└─ ", "   ") if k == len(branches) - 1 else ("├─ ", "│  ")
        before = [text for text in (title, "" if weight is None else with_value(weight)) if text]
        kind = kind_text(part, lambda o: o.name)
        head = f"{indent}{corner}{', '.join(before)}{': ' * bool(before)}{kind}"
        yield from wrapped(head, arguments(part), indent + below)
        yield from branch_lines(part, indent + below)


def wrapped(head: str, arguments: list[str], indent: str) -> list[str]:
    """Return a line, and further ones where it is too long."""
    whole = [text.replace(" ", UNBROKEN) for text in (head, *arguments)]
    text = "; ".join([whole[0], ", ".join(whole[1:])] if arguments else whole)
    lines = wrap(
        text, WIDTH, subsequent_indent=f"{indent}    ", break_long_words=False, break_on_hyphens=False
    )
    return [line.replace(UNBROKEN, " ") for line in lines]


def arguments(pdf: Pdf) -> list[str]:
    """Return what a density was made with besides observables and other densities, with start values."""
    if pdf.branches():
        return []
    named = [(name, value) for name, value in contents(pdf) if not of_observables(value)]
    texts = [text for name, value in named for text in argument_texts(name, value)]
    formulas = [value for _, value in named for value in quantities(value) if symbols(Op.COLUMN, value)]
    inside = {s.name for s in symbols(Op.SCALAR, *formulas)}
    return [*texts, *(with_value(p.expr) for p in pdf.parameters if p.name in inside)]


def quantities(value: Any) -> list[Expr]:
    """Return the expressions in an argument, and in lists of it."""
    if isinstance(value, (list, tuple)):
        return [expr for one in value for expr in quantities(one)]
    return [value.expr] if isinstance(value, Quantity) else []


def of_observables(value: Any) -> bool:
    """Return whether a value is an observable or a list of them."""
    if isinstance(value, (list, tuple)):
        return all(isinstance(one, Observable) for one in value)
    return isinstance(value, Observable)


def argument_texts(name: str, value: Any) -> list[str]:
    """Return arguments as ``name = value``, each of a list by itself."""
    if isinstance(value, (list, tuple)):
        return [text for k, one in enumerate(value) for text in argument_texts(f"{name}[{k}]", one)]
    number = as_double(value)
    if number is not None:
        return [f"{name} = {number:.6g}"]
    if not isinstance(value, Quantity):
        return [f"{name} = {value!r}"[:FORMULA]]
    text = with_value(value.expr)
    return [text if text.startswith(f"{name} = ") else f"{name} = {text}"]


def with_value(expr: Expr) -> str:
    """Return an expression with its value at the start of its parameters, where it has one."""
    text = to_text(expr, FORMULA)
    parameters = [s for s in symbols(Op.SCALAR, expr) if isinstance(s, Parameter)]
    if not parameters or symbols(Op.COLUMN, expr):
        return text
    blinded = blinded_in(expr)
    if blinded and expr is not blinded[0].expr:
        return f"{text} (blinded)"
    value = blinded[0].start if blinded else float(evaluate(expr, {p.name: p.start for p in parameters}))
    fixed = " fixed" if all(p.fixed for p in parameters) else ""
    return f"{text} = {value:.6g}{fixed}{' (blinded)' * bool(blinded)}"


# ------------------------------------------------------------------------------------ a notebook


def latex_text(pdf: Pdf) -> str:
    r"""Return a model as LaTeX: how its densities are put together, and the formulas of those that are no more than one.

    Every density stands for its normalised form, whose integral is not spelt out.
    """
    whole = rf"p\left({latex_observables(pdf)}\right)"
    if not pdf.branches():
        formula = to_latex(pdf.density(), LATEX_FORMULA)
        fits = is_formula(pdf) or r"\ldots" not in formula
        return rf"${whole} \propto {formula}$" if fits else rf"${whole} = {call_latex(pdf)}$"
    formulas = [leaf for leaf in pdf.components() if is_formula(leaf)]
    names = {leaf: rf"p_{{{k}}}\left({latex_observables(leaf)}\right)" for k, leaf in enumerate(formulas, 1)}
    equals = "=" if pdf.expected_events() is None and not pdf.region() else r"\propto"
    rows = [rf"{whole} &{equals} {composed_latex(pdf, names, lines=True)}{region_latex(pdf)}"]
    rows += [
        rf"{name} &\propto {to_latex(leaf.density(), LATEX_FORMULA)}"
        for leaf, name in list(names.items())[:MAX_TERMS]
    ]
    return r"$\begin{aligned} " + r" \\ ".join(rows) + r" \end{aligned}$"


def is_formula(pdf: Pdf) -> bool:
    """Return whether a density has a formula among its arguments, rather than a descriptive name."""
    return any(
        isinstance(v, Quantity) and not of_observables(v) and symbols(Op.COLUMN, v.expr)
        for _, v in contents(pdf)
    )


def composed_latex(pdf: Pdf, names: dict[Pdf, str], *, lines: bool = False) -> str:
    """Return how a density is put together, formulas by their names and the others with their arguments.

    A sum of more than two has ``lines``, one for each.
    """
    branches = pdf.branches()
    if pdf.components()[0] is pdf:  # one density, or a choice that is not decided
        return names[pdf] if pdf in names else call_latex(pdf)
    terms = []
    for _, weight, part in branches[:MAX_TERMS]:
        inner = composed_latex(part, names)
        if part.components()[0] is not part:
            inner = rf"\left[{inner}\right]"
        if weight is not None:
            factor = to_latex(weight, LATEX_FORMULA)
            inner = rf"\left({factor}\right) {inner}" if weight.op is Op.ADD else rf"{factor} \, {inner}"
        terms.append(inner)
    terms += [r"\ldots"] * (len(branches) > MAX_TERMS)
    plus = r" \\ &\quad + " if lines and len(terms) > 2 else " + "
    return (r" \, " if branches[0][1] is None else plus).join(terms)


def region_latex(pdf: Pdf) -> str:
    """Return the ranges that a density is restricted to, as LaTeX."""
    named = {o.name: to_latex(o.expr, FORMULA) for o in pdf.observables}
    unions = {
        name: r" \cup ".join(f"[{low:g}, {high:g}]" for low, high in ranges)
        for name, ranges in pdf.region().items()
    }
    return "".join(rf",\; {named[name]} \in {union}" for name, union in unions.items())


def call_latex(pdf: Pdf) -> str:
    """Return a density by name, with its observables and the other arguments."""
    others = [value for _, value in contents(pdf) if not of_observables(value)]
    kind = type(pdf).__name__.replace("_", r"\_")
    inside = "; ".join([latex_observables(pdf)] + [latex_list(others)] * bool(others))
    return rf"\mathrm{{{kind}}}\left({inside}\right)"


def latex_observables(pdf: Pdf) -> str:
    """Return the observables of a density as LaTeX, those that it is given behind a bar."""
    return r" \mid ".join(latex_list(some) for some in (pdf.drawn, pdf.given) if some)


def is_density(value: Any) -> bool:
    from morefit.model.pdf import Pdf  # which prints itself by this module

    return isinstance(value, Pdf)


def latex_list(values: Iterable[Any]) -> str:
    """Return arguments of a density as LaTeX, those of lists one by one."""
    texts: list[str] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            texts += filter(None, [latex_list(value)])
        elif isinstance(value, Quantity):
            texts.append(to_latex(to_expr(value), FORMULA))
        elif (number := as_double(value)) is not None:
            finite = isfinite(number)
            texts.append(to_latex(to_expr(value), FORMULA) if finite else "-" * (number < 0) + r"\infty")
        elif is_density(value):
            texts.append(call_latex(value))
    return ", ".join(texts)
