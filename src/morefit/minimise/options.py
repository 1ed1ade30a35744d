"""Options of a fit: which minimiser, how close to the minimum, which errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral
from typing import Literal, cast

from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.minimise.covariance import Errors
from morefit.validate import as_number

Derivatives = Literal["analytic", "numeric"]
Minimiser = Literal["auto", "minuit", "newton"]


@dataclass(frozen=True)
class Options:
    """How to minimise, as ``mf.fit`` explains."""

    derivatives: Derivatives = "analytic"
    strategy: int | None = None
    tolerance: float = 0.1
    max_calls: int | None = None
    minos: bool | Iterable[str] = False
    errors: Errors = "auto"
    minimiser: Minimiser = "auto"
    print_level: int = 0
    simulation: bool = False  # whether errors include those of simulated samples
    progress: bool = False  # whether a fit that takes long shows a bar

    def __post_init__(self) -> None:
        if self.derivatives not in ("analytic", "numeric"):
            raise OptionError(f"fit: derivatives must be 'analytic' or 'numeric', got {self.derivatives!r}")
        if self.minimiser not in ("auto", "minuit", "newton"):
            raise OptionError(f"fit: minimiser must be 'auto', 'minuit' or 'newton', got {self.minimiser!r}")
        if self.strategy not in (None, 0, 1, 2):
            raise OptionError(f"fit: strategy must be 0, 1 or 2, got {self.strategy!r}")
        number, calls = as_number(self.tolerance), cast(object, self.max_calls)
        if number is None or not 0 <= number < math.inf:
            raise OptionError(f"fit: tolerance must be a positive number, got {self.tolerance!r}")
        if calls is not None and not (isinstance(calls, Integral) and int(calls) > 0):
            raise OptionError(f"fit: max_calls must be a positive whole number or None, got {calls!r}")
        if self.print_level not in (0, 1, 2, 3):
            raise OptionError(f"fit: print_level must be 0, 1, 2 or 3, got {self.print_level!r}")
        if self.minimiser == "newton" and self.of_minuit:
            raise OptionError(
                f"fit: {self.of_minuit[0]} is an option of Minuit, got minimiser='newton'; drop one of them"
            )

    @property
    def of_minuit(self) -> list[str]:
        """The options in use that only Minuit has."""
        used = {
            "strategy": self.strategy is not None,
            "max_calls": self.max_calls is not None,
            "print_level": self.print_level > 0,
        }
        return [name for name, is_used in used.items() if is_used]

    @property
    def uses_newton(self) -> bool:
        """Whether Newton's method comes first: not where Minuit was chosen, or an option that only it has."""
        return self.minimiser != "minuit" and not self.of_minuit
