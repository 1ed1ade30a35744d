"""A number to be fitted, which may be blind: a hidden offset or scale computed from a phrase is in no text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from morefit.dataclass import dataclass
from morefit.digests import sha256
from morefit.errors import ModelError
from morefit.expr import (
    HIDDEN,
    Expr,
    NamedQuantity,
    Op,
    Table,
    const,
    evaluate,
    lookup,
    scalar,
    symbols,
    with_name,
)
from morefit.model.observable import check_limits, check_name, check_number
from morefit.text.arguments import in_sentences
from morefit.text.elsewhere import CHANGES
from morefit.text.rounding import is_number_format
from morefit.validate import follows

SHARE = 0.1  # of the range of a parameter: the largest offset
MAX_CHANGE = 0.5  # of a scale from one
MAX_ANGLE = 1000.0
# what other programs keep in parameters
OF_RESULTS = ("value", "error", "getval", "geterror", "numpy", "stderr", "merror")
ORDER = "; the order is name, start, low, high"
WAYS = ("offset", "scale")  # to hide a value
Numbers = tuple[float, float, float]  # start, low and high of a parameter


def true_value(shown: Expr, phrase: str, by: str, numbers: Numbers) -> Expr:
    """Return the true value that belongs to a shown one: plus a hidden offset, or times a hidden scale.

    Nothing folds these into numbers: they are a size times the sine of a hidden angle, plus one for a scale. The angle is that
    of the first draw with which the true start lies inside the limits. Every number that is visible in code enters the
    hash, so that two offsets of one phrase are independent of each other.
    """
    start, low, high = numbers
    size = largest_offset(numbers) if by == "offset" else largest_change(numbers)
    draw, true_start = 0, math.nan
    while not low <= true_start <= high:
        text = f"{phrase} {size.hex()} {draw}{' scale' * (by == 'scale')}".encode()
        angle = int.from_bytes(sha256(text).digest()[:6], "big") / 2**48 * MAX_ANGLE
        change = size * math.sin(angle)
        draw, true_start = draw + 1, start + change if by == "offset" else start * (1 + change)
    hidden = const(size) * Op.SIN(lookup(Table(f"{HIDDEN} angle", np.array([angle]).tobytes()), 0))
    return shown + hidden if by == "offset" else shown * (1 + hidden)


def unblinded_value(shown: float, phrase: str, by: str, numbers: Numbers) -> float:
    """Return the true value that belongs to a shown one as a number."""
    return float(evaluate(true_value(const(shown), phrase, by, numbers), {}))


def largest_offset(numbers: Numbers) -> float:
    """Return a tenth of the range between limits; without them the power of ten below the start value, or one."""
    start, low, high = numbers
    if math.isfinite(high - low):
        return SHARE * (high - low)
    return 10.0 ** math.floor(math.log10(abs(start)) - 1) if start else 1.0


def largest_change(numbers: Numbers) -> float:
    """Return a half, or less where that would change the start value by more than a tenth of the range between limits."""
    start, low, high = numbers
    return min(MAX_CHANGE, SHARE * (high - low) / abs(start)) if start else MAX_CHANGE


def phrase_digest(phrase: str) -> str:
    """Return what tells whether a phrase is the right one."""
    return sha256(f"morefit blind {phrase}".encode()).hexdigest()[:16]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Parameter(NamedQuantity):
    """A number to be fitted: where to start, its limits (None: no limit), whether it is fixed.

    ``low`` and ``high`` are the limits. It never changes; fitted values live in results. In formulas it stands for its value. With ``blind``, a phrase,
    that is the shown value plus an offset that is computed from the phrase and the limits and printed nowhere, or times
    such a scale with ``blind_by="scale"``; all start values, limits and results are those of the shown value.

    Example: ``mf.Parameter("mu", 5.28, 5.2, 5.4)``
    """

    start: float
    low: float = -math.inf
    high: float = math.inf
    fixed: bool = False
    label: str = ""  # for tables and plots; the name if empty
    blind: str = ""  # the phrase that hides the true value; empty: nothing is hidden
    blind_by: str = "offset"  # or "scale"

    @in_sentences
    def __new__(
        cls,
        name: str,
        start: Any,
        low: Any = None,
        high: Any = None,
        fixed: bool = False,
        label: str = "",
        blind: str = "",
        blind_by: str = "offset",
    ) -> Parameter:
        check_name("parameter", name)
        begin = check_number("parameter", name, "start", start, advice=ORDER)
        if not math.isfinite(begin):
            raise ModelError(f"parameter '{name}': start must be finite, got {start}")
        ends = check_limits(name, (low, high))
        if not ends[0] <= begin <= ends[1]:
            order = ORDER if high is None else ""
            raise ModelError(
                f"parameter '{name}': start must lie in [{ends[0]}, {ends[1]}], got {start}{order}"
            )
        if not isinstance(fixed, (bool, np.bool_)):
            raise ModelError(f"parameter '{name}': fixed must be True or False, got {fixed!r}")
        if not isinstance(blind, str):
            raise ModelError(f"parameter '{name}': blind must be a phrase, got {blind!r}")
        if blind_by not in list(WAYS) or (blind_by != "offset" and not blind):
            raise ModelError(
                f"parameter '{name}': blind_by must be 'offset' or 'scale', with blind= a phrase, got {blind_by!r}"
            )
        return cls.interned(name, begin, *ends, bool(fixed), label, blind, blind_by)

    @property
    def symbol(self) -> Expr:
        """The number that is fitted and shown."""
        return scalar(self)

    @property
    def expr(self) -> Expr:
        if not self.blind:
            return self.symbol
        numbers = (self.start, self.low, self.high)
        return with_name(self, true_value(self.symbol, self.blind, self.blind_by, numbers))

    def with_limits(self, low: float, high: float) -> Parameter:
        """Return the same parameter with other limits."""
        how = (self.fixed, self.label, self.blind, self.blind_by)
        return Parameter.interned(self.name, self.start, low, high, *how)

    def with_start(self, start: float) -> Parameter:
        """Return the same parameter with another start value; limits that exclude it are moved there."""
        ends = min(self.low, start), max(self.high, start)
        return Parameter.interned(self.name, start, *ends, self.fixed, self.label, self.blind, self.blind_by)

    def unblind(self, phrase: str, shown: float) -> float:
        """Return the true value that belongs to a shown one."""
        if not self.blind or phrase != self.blind:
            why = "the phrase is another one" if self.blind else "it is not blinded"
            raise ModelError(f"parameter '{self.name}': cannot be unblinded, {why}")
        return unblinded_value(shown, phrase, self.blind_by, (self.start, self.low, self.high))

    @property
    def blinding(self) -> tuple[str, str, float, float, float] | None:
        """What the offset or scale is computed from, but for the phrase; None if nothing is hidden."""
        return (
            (phrase_digest(self.blind), self.blind_by, self.start, self.low, self.high)
            if self.blind
            else None
        )

    def is_blinded_as(self, blinding: tuple[Any, ...] | None) -> bool:
        """Return whether shown values of this parameter mean the same as those of one that is blinded in some way."""
        if blinding is None or not self.blind:
            return blinding is None and not self.blind
        digest, by, *numbers = blinding
        if (digest, by) != (phrase_digest(self.blind), self.blind_by):
            return False
        return unblinded_value(1.0, self.blind, by, tuple(numbers)) == self.unblind(self.blind, 1.0)

    def __format__(self, spec: str) -> str:
        """Return the start value in the format of a number, or the text of the parameter."""
        return format(self.start if is_number_format(spec) else str(self), spec)

    def __repr__(self) -> str:
        limits = [None if math.isinf(end) else end for end in (self.low, self.high)]
        numbers = ", ".join(map(repr, [self.start, *limits * (limits != [None, None])]))
        label = f", label={self.label!r}" * bool(self.label)
        blind = ", blind=..." * bool(self.blind) + ", blind_by='scale'" * (self.blind_by == "scale")
        return f"Parameter({self.name!r}, {numbers}{', fixed=True' * self.fixed}{label}{blind})"

    if not TYPE_CHECKING:  # where it would hide what is misspelt

        def __getattr__(self, name: str) -> NoReturn:
            own = vars(self).get("name", "")
            advice = f": a fit returns it, as in result.values[{own!r}]" * (name.lower() in OF_RESULTS)
            advice += f": {in_fits(own)}" * (name.lower() in CHANGES)
            raise AttributeError(f"parameter '{own}': has no '{name}'{advice}")


def refuse_change(parameter: Parameter, name: str, value: object) -> NoReturn:
    """Refuse to set an attribute, in the words of those who want to."""
    raise FrozenInstanceError(
        f"parameter '{parameter.name}': never changes, so that '{name}' cannot be set; {in_fits(parameter.name)}"
    )


def in_fits(name: str) -> str:
    """Return how a parameter has another start, other limits, or is fixed."""
    return f"pass fixed=, start= or limits= to mf.fit, or model.replace({{{name!r}: mf.Parameter(...)}})"


Parameter.__setattr__ = refuse_change  # type: ignore[assignment, method-assign]


class HasBlinded(Protocol):
    """What knows how the parameters of its values were blinded, as a fit result does."""

    @property
    def values(self) -> Mapping[str, float]: ...

    @property
    def blinded(self) -> Mapping[str, tuple[Any, ...]]: ...


def check_blinding(parameters: Iterable[Parameter], values: Any) -> None:
    """Refuse the result of a fit in which parameters were blinded otherwise: its numbers stand for other values."""
    if not follows(values, HasBlinded):
        return
    for p in parameters:
        if p.name in values.values and not p.is_blinded_as(values.blinded.get(p.name)):
            fit, here = (
                "blinded" if hidden else "not blinded" for hidden in (p.name in values.blinded, p.blind)
            )
            how = (
                f"is {here} here, but {fit} in the fit" if fit != here else "is blinded otherwise in the fit"
            )
            raise ModelError(
                f"parameter '{p.name}': {how} that the result is of; pass a result of this model"
            )


def blinded_in(expr: Expr) -> list[Parameter]:
    """Return the blinded parameters that an expression depends on."""
    return [s for s in symbols(Op.SCALAR, expr) if isinstance(s, Parameter) and s.blind]
