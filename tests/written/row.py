"""Densities as users write them in a notebook: plain formulas without an integral, with values near and far.

A row is a function: its arguments are observables (named in ``ranges``) and parameters, whose defaults are
(start, low, high). ``part`` is a second set of ranges, ``far`` a point far from the start values, ``truth`` the point
that events for a fit are drawn at, ``edges`` says where the formula bends, breaks or has a peak: a judge may know.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace

import morefit as mf

Ranges = Mapping[str, tuple[float, float]]
ROWS: dict[str, "Row"] = {}


@dataclass(frozen=True)
class Row:
    """A formula, where it is used, and what a judge must know of it."""

    formula: Callable
    ranges: Ranges
    part: Ranges
    far: Mapping[str, float]
    truth: Mapping[str, float]
    edges: Callable[[SimpleNamespace], list] = lambda p: []
    fixed: tuple[str, ...] = ()  # parameters that do not float
    loose: tuple[str, ...] = ()  # fixed in fits, because no parabola describes them: a moving step or kink
    as_class: bool = False  # written as a class of the user's own
    order: int = 2  # of the derivatives that are looked at
    blur: float = 0.0  # of ln of the integral, from the rounding of x next to a pole that is not at zero
    singular: bool = False  # a root or a pole, or too many panels, for plain quadrature with many digits

    @property
    def name(self) -> str:
        return self.formula.__name__

    @cached_property
    def parameters(self) -> dict[str, tuple[float, float, float]]:
        """Start value and limits by name."""
        arguments = inspect.signature(self.formula).parameters
        return {n: a.default for n, a in arguments.items() if n not in self.ranges}

    @property
    def floating(self) -> list[str]:
        return [n for n in self.parameters if n not in self.fixed]

    def point(self, which: str) -> dict[str, float]:
        """Return all parameter values at the start, far from it, or at the truth of a fit."""
        start = {n: float(v[0]) for n, v in self.parameters.items()}
        return start | {"start": {}, "far": dict(self.far), "truth": dict(self.truth)}[which]

    def box(self, which: str) -> Ranges:
        return {"full": self.ranges, "part": self.part}[which]

    def model(
        self, which: str = "full", fixed: tuple[str, ...] = (), start: Mapping[str, float] = {}
    ) -> mf.Pdf:
        """Return the density over its full or partial ranges; its integral is the library's to find."""
        observables = [mf.Observable(n, *r) for n, r in self.box(which).items()]
        parameters = [
            mf.Parameter(n, start.get(n, v[0]), v[1], v[2], fixed=n in self.fixed or n in fixed)
            for n, v in self.parameters.items()
        ]
        if self.as_class:
            return Own(self.formula, observables, parameters)
        return mf.Density(self.formula(*observables, *parameters), observables)

    def known(self, which: str = "full") -> mf.Pdf:
        """Return the same density with an integral of one: what is left of a likelihood are its events."""
        model = self.model(which)
        return mf.Density(model.density(), model.observables, integral=1.0, check=False)


class Own(mf.Pdf):
    """A formula as a class of the user's own."""

    def __init__(self, formula, observables, parameters):
        self.formula, self.columns, self.needed = formula, tuple(observables), tuple(parameters)

    def density(self):
        return self.formula(*self.columns, *self.needed)


def row(ranges, part, far, truth, **options):
    """Enter a formula into the table; ranges of a single observable ``x`` are a pair."""

    def enter(formula):
        boxes = [r if isinstance(r, dict) else {"x": r} for r in (ranges, part)]
        ROWS[formula.__name__] = Row(formula, *boxes, far, truth, **options)
        return formula

    return enter


def around(place, width):
    """Return break points about a peak, ever farther apart."""
    return [place + s * width * 4**k for k in range(-1, 9) for s in (-1, 1)] + [place]


def peak(p):
    return around(p.mu, p.sigma)
