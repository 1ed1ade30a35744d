"""Arguments of densities: the type of a field declares what may stand there, and every density is checked by it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from inspect import CO_VARARGS, CO_VARKEYWORDS, signature
from math import inf, isfinite
from typing import Annotated, Any, get_args, get_type_hints

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import Expr, Op, Operand, Quantity, as_double, evaluate, symbols, to_expr, to_text, truth
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter, blinded_in
from morefit.text.arguments import hint_at_argument

ANY_ARGUMENTS = CO_VARARGS | CO_VARKEYWORDS

LINE = 100  # characters of an expression in a message


@dataclass(frozen=True)
class Allowed:
    """The numbers an argument may have: a rule in words and a test."""

    rule: str
    holds: Callable[[float], bool]
    many: int = 0  # 1 for a list of them, 2 for a list of rows; stored as tuples of expressions
    # whether they are those of a series, where one number alone may be meant as its order
    terms: bool = False


ANY = Allowed("finite", isfinite)
POSITIVE = Allowed("positive", lambda v: 0 < v < float("inf"))
NOT_NEGATIVE = Allowed("zero or positive", lambda v: 0 <= v < float("inf"))
SHARE = Allowed("between 0 and 1", lambda v: 0 <= v <= 1)

# what a field of a density is declared to be; all but Observable take numbers, parameters and their expressions
Number = Annotated[Operand, ANY]
Positive = Annotated[Operand, POSITIVE]
NotNegative = Annotated[Operand, NOT_NEGATIVE]
NonZero = Annotated[Operand, Allowed("different from zero", lambda v: v != 0 and isfinite(v))]
Share = Annotated[Operand, SHARE]
Positives = Annotated[tuple[Expr, ...], Allowed(POSITIVE.rule, POSITIVE.holds, many=1)]
Shares = Annotated[tuple[Expr, ...], Allowed(SHARE.rule, SHARE.holds, many=1)]
Numbers = Annotated[tuple[Expr, ...], Allowed(ANY.rule, ANY.holds, many=1)]
Coefficients = Annotated[tuple[Expr, ...], Allowed(ANY.rule, ANY.holds, many=1, terms=True)]

Matrix = Annotated[tuple[tuple[Expr, ...], ...], Allowed(ANY.rule, ANY.holds, many=2)]
Observables = tuple[Observable, ...]


@cache
def check_class(kind: Any) -> None:
    """Refuse a class of densities that has no formula, when it is first used; instances are compared by identity.

    A dataclass that compares fields would compare parameters, which makes conditions, and may have no hash.
    """
    if "density" in getattr(kind, "__abstractmethods__", ()):
        raise ModelError(
            f"density '{kind.__name__}': needs a method density(self) that returns its formula, such as np.exp(-self.x)"
        )
    _, *others = signature(kind.density).parameters.values()
    if required := [
        p.name
        for p in others
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]:
        raise ModelError(
            f"density '{kind.__name__}': density(self) has no other arguments, got {', '.join(required)}; keep observables and"
            f" parameters as attributes, and write self.{required[0]}"
        )
    if kind.__hash__ is not object.__hash__:
        kind.__eq__, kind.__hash__ = object.__eq__, object.__hash__


def check_call(kind: Any, args: tuple[Any, ...], named: Collection[str]) -> None:
    """Refuse too many arguments by position, names that a density does not have, and missing arguments."""
    own = getattr(kind.__init__, "__wrapped__", kind.__init__)
    code = getattr(own, "__code__", None)
    if code is None or code.co_flags & ANY_ARGUMENTS:
        return
    count, names = code.co_argcount - 1, code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    if len(args) > count:
        by_name = [f"{name}=" for name in names[count:]]
        rest = f"write {' or '.join(by_name)}" if by_name else "leave one out"
        if names[:1] == ("pdfs",) and not isinstance(args[0], list | tuple):
            rest = f"write a list, as in {kind.__name__}([a, b])"
        raise ModelError(
            f"density '{kind.__name__}': takes {', '.join(names[:count]) or 'nothing'} by position, got {len(args)} arguments;"
            f" {rest}"
        )
    if unknown := [name for name in named if name not in names]:
        raise ModelError(
            f"density '{kind.__name__}': has no argument '{unknown[0]}'; {hint_at_argument(unknown[0], names)}"
        )
    # pickles pass none
    required = names[len(args) : count - len(own.__defaults__ or ())] if args or named else ()
    if missing := [name for name in required if name not in named]:
        raise ModelError(
            f"density '{kind.__name__}': argument '{missing[0]}' is missing;"
            f" the order is {kind.__name__}({', '.join(names[:count])})"
        )


def check_arguments(density: Any) -> None:
    """Refuse arguments of a density that are not what its fields declare; the error names the argument."""
    kind: Any = type(density)
    given = frozenset(o.name for o in density.given)
    whose = f"density '{kind.__name__}'"
    for name, wanted in declared_arguments(kind).items():
        value = getattr(density, name)
        if wanted is bool:
            if not isinstance(value, bool):
                raise ModelError(f"{whose}: argument '{name}' must be True or False, got {described(value)}")
        elif wanted is Observable:
            if not isinstance(value, Observable):
                raise ModelError(
                    f"{whose}: argument '{name}' must be an observable, got {described(value)}; {order(kind)}"
                )
        elif wanted == Observables:
            each = check_observables(f"{whose}: argument '{name}'", value)
            object.__setattr__(density, name, each)
        else:
            checked = check_operands(whose, name, value, wanted, wanted.many, advice=order(kind), given=given)
            if wanted.many:
                object.__setattr__(density, name, checked)


def check_operands(
    whose: str, name: str, value: Any, domain: Allowed, depth: int, *, advice: str, given: frozenset[str]
) -> Any:
    """Return an argument, or a tuple of those of a list, or of its rows, each checked by itself."""
    what = f"{whose}: argument '{name}'"
    if not depth:
        return check_operand(what, value, domain, advice, given)
    if domain.terms and as_double(value) is not None and not isinstance(value, Quantity):
        raise ModelError(
            f"{what} must be a list with one parameter or number for each term, got {value!r}; the order is that of the last term"
        )
    return tuple(
        check_operands(whose, f"{name}[{k}]", one, domain, depth - 1, advice=advice, given=given)
        for k, one in enumerate(listed(what, value))
    )


def check_observables(what: str, observables: Any) -> Observables:
    """Return observables as a tuple, each of them once."""
    each = listed(what, observables)
    for one in each:
        if not isinstance(one, Observable):
            raise ModelError(f"{what} must be observables, got {described(one)}")
    names = [o.name for o in each]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ModelError(f"{what} {', '.join(map(repr, twice))} given twice")
    return each


@lru_cache(maxsize=256)
def declared_arguments(kind: type) -> dict[str, Any]:
    """Return ``Observable``, ``Observables``, ``bool`` or the domain of each field whose type declares it; types that cannot be resolved declare nothing."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError:
        return {}
    wanted: dict[str, Any] = {}
    for field in fields(kind) if is_dataclass(kind) else ():
        hint = hints[field.name]
        domains = [a for a in get_args(hint)[1:] if isinstance(a, Allowed)]
        if hint is Observable or domains:
            wanted[field.name] = domains[0] if domains else Observable
        elif hint is Parameter:
            wanted[field.name] = ANY
        elif hint is bool or hint == Observables:
            wanted[field.name] = hint
    return wanted


def check_operand(
    what: str, value: Any, domain: Allowed, advice: str = "", given: frozenset[str] = frozenset()
) -> Expr:
    """Return a number, a parameter or an expression of parameters and given observables, if its start is in a domain."""
    lone = isinstance(value, Observable) and value.name not in given
    if lone or not (isinstance(value, Quantity) or as_double(value) is not None):
        advice = f"; {advice}" * bool(advice)
        raise ModelError(
            f"{what} must be a number, a parameter or an expression of parameters, got {described(value)}{advice}"
        )
    number = as_double(value)
    if number is not None and not domain.holds(number):
        raise ModelError(f"{what} must be {domain.rule}, got {number:g}")
    expr = to_expr(value)
    if columns := [s for s in symbols(Op.COLUMN, expr) if s.name not in given]:
        text = f"{what} must not depend on observables, got '{to_text(expr, LINE)}' with {listing(columns)}"
        raise ModelError(f"{text}; {conditional(columns)}" if advice else text)
    check_start(what, expr, domain)
    return expr


def check_formula(what: str, formula: Any, domain: Allowed) -> Expr:
    """Return an expression that depends on parameters and is no condition, and whose start lies in a domain."""
    expr = check_operand(what, formula, domain)
    if not symbols(Op.SCALAR, expr):
        raise ModelError(f"{what} must depend on a parameter, got {to_text(expr, LINE)}")
    if truth(expr) is expr:
        raise ModelError(
            f"{what} must be a formula, got the condition '{to_text(expr, LINE)}'; limits are those of parameters, as in"
            " mf.Parameter('mu', 5.0, low=3.0)"
        )
    return expr


def conditional(columns: Iterable[Any]) -> str:
    """Return what to write for a density with parameters that depend on observables."""
    names = ", ".join(one.name for one in columns)
    return (
        f"write given=[{names}] if it is conditional on them, or mf.Density(formula, [..., {names}]) if not"
    )


def check_start(what: str, expr: Expr, domain: Allowed) -> None:
    """Refuse an expression whose value lies outside a domain at the start values and in the middle of ranges."""
    scalars, columns = symbols(Op.SCALAR, expr), symbols(Op.COLUMN, expr)
    starts = {p.name: p.start for p in scalars if isinstance(p, Parameter)}
    middles = {o.name: 0.5 * (o.low + o.high) for o in columns if isinstance(o, Observable)}
    if not (starts or middles) or len(starts) + len(middles) < len(scalars) + len(columns):
        return
    value = float(evaluate(expr, starts | middles))
    if blinded := blinded_in(expr):
        if not domain.holds(value):
            raise ModelError(
                f"{what} must be {domain.rule}, which it is not at the start of the blinded {listing(blinded)};"
                " choose another start, or narrower limits"
            )
    elif not domain.holds(value):
        where = "its start" if expr.op is Op.SCALAR else f"the start of {listing(scalars)}" if starts else ""
        where += f"{' and ' * bool(starts)}the middle of {listing(columns)}" if middles else ""
        raise ModelError(
            f"{what} must be {domain.rule}, got '{to_text(expr, LINE)}', which is {value:g} at {where};"
            " choose another start"
        )


def check_domain(density: Any, low: float, high: float = inf) -> None:
    """Refuse an observable ``x`` whose range reaches beyond that on which a density is defined."""
    x: Observable = density.x
    if x.low < low or x.high > high:
        raise ModelError(
            f"density '{type(density).__name__}': observable '{x.name}' must lie in [{low:g}, {high:g}],"
            f" got the range [{x.low:g}, {x.high:g}]; choose another range, or shift it"
        )


def listed(what: str, values: Any) -> tuple[Any, ...]:
    """Return a list as a tuple; one thing alone is a list of one."""
    if isinstance(values, Quantity) or as_double(values) is not None:
        return (values,)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ModelError(f"{what} must be a list, got {described(values)}")
    return tuple(values)


def described(value: Any) -> str:
    """Name a thing in a message."""
    if isinstance(value, (Observable, Parameter)):
        return f"{type(value).__name__.lower()} '{value.name}'"
    if isinstance(value, Expr):
        return f"expression '{to_text(value, LINE)}'"
    text = repr(value)
    return text if len(text) <= LINE else f"a {type(value).__name__}"


def order(kind: type) -> str:
    return f"the order is {kind.__name__}({', '.join(field.name for field in fields(kind))})"


def listing(some: Iterable[Any]) -> str:
    return ", ".join(f"'{one.name}'" for one in some)
