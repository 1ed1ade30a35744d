"""Integrals as functions of parameters: by boxes that follow these, or by a sample whose events are the nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.expr import Expr
from morefit.expr.adapt import adapt
from morefit.expr.evaluate import cannot_integrate, evaluate, places_at, zeros_in_boxes, zeros_of_sums
from morefit.expr.quadrature import Adapted, Boxes, Measure, Nodes, refine
from morefit.integrals.boxes import COARSER, SMALL_BOX, FixedBoxes, Made, Reading, SharedBoxes
from morefit.integrals.integral import NARROW, Integral
from morefit.kernel.resolved import MAX_PROBES
from morefit.targets.base import Events
from morefit.text.progress import Bar

NEXT_TO = 16  # boxes
CUT = 0.9  # of the width of a box, at most, if it was cut
MAX_ROWS = 4  # rows of parameters that boxes are made for together, and that earlier boxes were made for
MAX_REMAKES = 4  # of boxes in one call
RESOLVED = 1e-8  # highest Legendre coefficients relative to the integral: less needs no better boxes,
# where the coefficients do not fall geometrically, so that the error is no square of them
RESOLVED_SINGULAR = 1e-10
GROWTH = 3.0  # of those coefficients, after which boxes are made anew
COARSE = 1.5  # widths of a peak that a box may have in any case
DERIVATIVES = 4e-10  # tolerance for derivatives of the integral, relative to their sizes
MORE_BOXES = {1: 48, 2: 256, 3: 512}  # that they may take
MAX_KNOWN = 16  # boxes of an integral, for as many starts of fits

Bind = Callable[[Nodes, Events], Callable[[Array], Array]]  # nodes to a compiled sum over them


class SampleIntegral:
    """Integrals by a sample: its events are the nodes, whatever the values of the parameters."""

    def __init__(self, nodes: Nodes, axes: int, bodies: int, bind: Bind) -> None:
        self.nodes, self.axes, self.bodies, self.bind = nodes, axes, bodies, bind

    @cached_property
    def launch(self) -> Callable[[Array], Array]:
        return self.bind(self.nodes, Events.all_sets(len(self.nodes.weights)))

    def __call__(self, parameters: Array) -> Array:
        """Return the integrals at parameters of shape (sets, parameters)."""
        return self.launch(parameters)[:, : self.bodies]

    def fix(self, parameters: Array, finer: int) -> FixedBoxes:
        """Return the nodes, which resolve the integrand by definition."""
        return FixedBoxes(self.nodes, np.array([np.inf]), np.zeros((1, self.axes, 2)))


def bind_boxes(bind: Bind, boxes: Boxes) -> Callable[[Array], Array]:
    """Bind integrals to the nodes of some boxes, the same for all sets of parameters."""
    nodes = boxes.nodes()
    return bind(nodes, Events.all_sets(len(nodes.weights)))


class FollowedIntegral:
    """Integrals by boxes that are made for the parameters of the first call, and anew when those have moved too far.

    ``bind_trial`` is for the boxes that are tried on the way, ``bind_alone`` for those that only the integrand is looked at in. ``known`` are the boxes that were made for rows of parameters
    alone: fits of other data begin at the same ones.
    """

    def __init__(
        self,
        integral: Integral,
        bodies: tuple[Expr, ...],
        bind: Bind,
        bind_trial: Bind,
        bind_alone: Bind,
        shared: SharedBoxes,
        known: dict[tuple[object, ...], Made],
    ) -> None:
        self.integral, self.shared = integral, shared
        self.bind, self.bind_trial, self.bind_alone = bind, bind_trial, bind_alone
        self.key, self.known = (integral, bodies), known

    def __call__(self, parameters: Array) -> Array:
        """Return the integrals at parameters of shape (sets, parameters); nan where they cannot be computed."""
        if self.key not in self.shared.made:
            numbers = parameters[np.isfinite(parameters).all(axis=1)]
            if not len(numbers):
                return np.full((len(parameters), len(self.key[1])), np.nan)
            self.remake(numbers[:1], parameters[:0])
        out = self.launch(parameters)
        lost = self.unresolved(parameters, out)
        for _ in range(MAX_REMAKES):
            if not len(lost):
                break
            if not self.remake(parameters[lost[:MAX_ROWS]], self.shared.made[self.key].rows):
                out[lost[:MAX_ROWS]] = np.nan
                break
            out = self.launch(parameters)
            lost = self.unresolved(parameters, out)
        return out[:, : -len(self.integral.probes) - 2]

    def fix(self, parameters: Array, finer: int) -> FixedBoxes:
        """Make boxes for some rows of parameters, for those who compute the integrals and check them on their own.

        In one dimension they are half as wide as they must be there, so that they hold for parameters around them; all are
        halved ``finer`` more times along each axis.
        """
        if self.key not in self.shared.made:
            self.remake(parameters, parameters[:0])
        made = self.shared.made[self.key]
        coarsest = COARSER * np.maximum(made.coarseness, COARSE)
        # no narrow peak is at places outside, if boxes are wide at the end: they may move inside
        coarsest[MAX_PROBES:][made.ends[MAX_PROBES:] > SMALL_BOX / NARROW] = np.inf
        # compiled fits do not scan: all rows are lost to them
        contrast = -1.0 if len(made.scanned) else GROWTH * max(made.contrast, self.floor)
        limits = np.concatenate([[contrast], coarsest])
        boxes, axes = made.adapted.boxes, len(self.integral.domain.axes)
        for axis in (*([0] if axes == 1 else []), *(finer * list(range(axes)))):
            boxes = boxes.halved(np.full(len(boxes), axis))
        return FixedBoxes(boxes.nodes(), limits, boxes.edges)

    @property
    def floor(self) -> float:
        """The contrast below which boxes need not be better."""
        singular = any(axis.singular for axis in self.integral.domain.axes)
        return RESOLVED_SINGULAR if singular else RESOLVED

    def launch(self, parameters: Array) -> Array:
        made, known = self.shared.made[self.key], self.shared.bound
        if self.key not in known or known[self.key][0] is not made:
            known[self.key] = (made, bind_boxes(self.bind, made.adapted.boxes))
        return known[self.key][1](parameters)[:, :-1]

    def unresolved(self, parameters: Array, out: Array) -> NDArray[np.int64]:
        """Return the rows at which boxes resolve the integrand less well than where they were made, the worst first."""
        made = self.shared.made[self.key]
        reading = Reading.of(out, self.integral, made.adapted.boxes)
        with np.errstate(all="ignore"):
            coarser = np.hstack([reading.coarseness, reading.tails])
            coarser /= COARSER * np.maximum(np.hstack([made.coarseness, made.tails]), COARSE)
            worse = np.fmax(  # no node may be near a narrow peak: the contrast of nothing is not a number
                reading.contrast / (GROWTH * max(made.contrast, self.floor)), coarser.max(axis=1, initial=0.0)
            )
        known = np.isfinite(reading.value) & np.isfinite(parameters).all(axis=1)
        if len(made.scanned):
            boxes = made.adapted.boxes
            moved = [
                bool(ok) and made.has_lost(self.scan(boxes, row))
                for ok, row in zip(known, parameters, strict=True)
            ]
            worse = np.where(moved, np.inf, worse)
        lost = np.flatnonzero(known & (worse > 1))
        return np.asarray(lost[np.argsort(-worse[lost], kind="stable")], np.int64)

    def remake(self, rows: Array, earlier: Array) -> bool:
        """Make boxes for rows of parameters and for some earlier ones; return whether that was possible."""
        name = (rows.tobytes(), rows.shape, self.shared.worst, self.shared.more_points)
        if len(earlier) or name not in self.known:
            with Bar("boxes of integrals", None, shown=True):
                made = self.make(rows, earlier)
            if made is None:
                return False
            if not len(earlier):
                self.known[name] = made
                if len(self.known) > MAX_KNOWN:
                    del self.known[next(iter(self.known))]
        else:
            made = self.known[name]
        self.shared.made[self.key] = made
        return True

    def make(self, rows: Array, earlier: Array) -> Made | None:
        """Return boxes for rows of parameters and for some earlier ones, if that is possible."""
        adapted = self.adapt(joint := np.concatenate([rows, earlier[:MAX_ROWS]]))
        if not adapted.error <= self.shared.worst and len(earlier):
            adapted = self.adapt(joint := rows)
        if not adapted.error <= self.shared.worst:
            if not len(earlier):
                raise cannot_integrate(self.integral.values(rows[0]), adapted.error)
            return None
        out = bind_boxes(self.bind_trial, adapted.boxes)(joint)[:, :-1]
        reading = Reading.of(out, self.integral, adapted.boxes)
        contrast = float(np.nan_to_num(reading.contrast, nan=0.0).max())
        coarseness = reading.coarseness.max(axis=0)
        coarseness[MAX_PROBES:][coarseness[MAX_PROBES:] > SMALL_BOX / NARROW] = np.inf
        scanned = self.scan(adapted.boxes, rows[0]) if self.integral.is_scanned else np.empty(0)
        if not np.any(scanned <= SMALL_BOX):
            scanned = np.empty(0)
        return Made(
            rows=joint,
            adapted=adapted,
            contrast=contrast,
            coarseness=coarseness,
            tails=reading.tails.max(axis=0),
            ends=reading.ends.min(axis=0),
            scanned=scanned,
        )

    def scan(self, boxes: Boxes, row: Array) -> Array:
        """Return the widths of boxes around the zeros of sums that no formula gives, at a row of parameters.

        Those next to a peak that is tracked move with it. Boxes that were not cut, such as small ones between an edge and the
        next, have no narrow peak and count as the whole axis.
        """
        domain, values = self.integral.domain, self.integral.values(row)
        zeros = zeros_of_sums(self.integral.integrand, domain.axes[0], values)
        first = Boxes.first(domain, boxes.power).widths_at(zeros[:, None])[:, 0]
        widths = boxes.widths_at(zeros[:, None])[:, 0]
        tracked = np.array(
            [float(evaluate(p, values)) for p in self.integral.subject[1 : 1 + domain.tracked]]
        )
        near = np.abs(zeros[:, None] - tracked) <= NEXT_TO * widths[:, None]
        cut = np.where(widths < CUT * first, widths, 1.0)
        return np.asarray(cut[~near.any(axis=1)], np.float64)

    def adapt(self, rows: Array) -> Adapted:
        """Find boxes that integrate at all of some rows of parameters: the integrand, then all that is integrated."""
        last = -len(self.integral.probes) - 2  # of the outputs: the integrand

        def measure(boxes: Boxes, bind: Bind, outputs: slice) -> Array:
            """Integrate over each box at each row, (boxes, rows x outputs)."""
            nodes = boxes.nodes()
            starts = np.repeat(np.arange(len(boxes)) * boxes.nodes_each, len(rows))
            events = Events(starts, starts + boxes.nodes_each, False)
            out = bind(nodes, events)(np.tile(rows, (len(boxes), 1)))[:, :-1]
            return np.asarray(out[:, outputs].reshape(len(boxes), -1))

        known = self.shared.alone.get(self.integral)
        if known is None or known[0] != rows.tobytes():
            known = (
                rows.tobytes(),
                self.adapt_integrand(
                    rows, lambda boxes: measure(boxes, self.bind_alone, slice(last, last + 1))
                ),
            )
            self.shared.alone[self.integral] = known
        adapted = known[1]
        max_boxes = 2 * len(adapted.boxes) + MORE_BOXES[len(self.integral.domain.axes)]
        finer = refine(
            lambda boxes: measure(boxes, self.bind_trial, slice(0, last + 1)),
            adapted.boxes,
            DERIVATIVES,
            max_boxes,
        )
        best = finer if finer.error < np.inf else adapted  # smaller boxes may have nodes on top of a pole
        return Adapted(best.boxes, adapted.error, best.totals)

    def adapt_integrand(self, rows: Array, measure: Measure) -> Adapted:
        """Find boxes that integrate the integrand at all of some rows of parameters."""
        domain, subject = self.integral.domain, self.integral.subject
        places = [p for row in rows for p in places_at(subject, domain, self.integral.values(row))]
        return adapt(
            domain,
            measure,
            np.array(places),
            points=domain.points + self.shared.more_points,
            search=lambda boxes: zeros_in_boxes(
                self.integral.integrand, boxes, self.integral.values(rows[0])
            ),
        )
