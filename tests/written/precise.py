"""Integrals of expressions and their derivatives with many digits, between break points that a judge knows."""

import itertools
from functools import lru_cache
from types import SimpleNamespace

from mpmath import mp, mpf

from morefit.expr import Op, toposort
from mp_evaluate import MEANING, Undefined, real

DIGITS = 50
NODES = (30, 44)  # of the rule that says how far the other one is off, and of the one that is used
CONVERGED = mpf(10) ** -40  # relative, of an integral
STEP = mpf(10) ** -13  # of differences, relative to a parameter
MAX_HALVINGS = 60


def compile_precise(root):
    """Return a function of values by name that computes an expression in the working precision of mpmath."""
    order = list(toposort(root))
    place = {node: k for k, node in enumerate(order)}
    steps = []
    for node in order:
        if node.op is Op.CONST:
            steps.append((mpf(node.number), None, None))
        elif node.args:
            steps.append((None, MEANING[node.op], [place[a] for a in node.args]))
        else:
            steps.append((None, None, node.name))
    choice = MEANING[Op.WHERE]

    def compute(values):
        done = []
        for constant, meaning, args in steps:
            if constant is not None:
                done.append(constant)
            elif meaning is None:
                done.append(values[args])
            else:
                done.append(apply(meaning, [done[k] for k in args], choice))
        if done[-1] is None:
            raise Undefined(repr(root))
        return done[-1]

    return compute


def apply(meaning, args, choice):
    """Apply an operation; what has no value is None, which is bad only where it is needed."""
    if any(a is None for a in args):
        return choice(*args) if meaning is choice and args[0] is not None else None
    try:
        return real(meaning)(*args)
    except Undefined:
        return None


@lru_cache
def legendre(count, digits):
    """Return nodes in (0, 1) and weights."""
    rule = []
    for k in range(count):
        t = mp.cos(mp.pi * (k + mpf(3) / 4) / (count + mpf(1) / 2))
        for _ in range(100):
            before, now = mpf(1), t
            for n in range(2, count + 1):
                before, now = now, ((2 * n - 1) * t * now - (n - 1) * before) / n
            slope = count * (t * now - before) / (t**2 - 1)
            t, step = t - now / slope, now / slope
            if abs(step) < mpf(10) ** (5 - digits):
                break
        rule.append(((1 + t) / 2, 1 / ((1 - t**2) * slope**2)))
    return rule


def panel(function, a, b, count):
    return (b - a) * mp.fdot((w, function(a + (b - a) * u)) for u, w in legendre(count, mp.dps))


class Panels:
    """Cuts between break points, found once and moved along with them afterwards."""

    def __init__(self, function, ends):
        self.cuts = []
        whole = [panel(function, a, b, NODES[1]) for a, b in itertools.pairwise(ends)]
        size = mp.fsum(abs(w) for w in whole)
        for a, b in itertools.pairwise(ends):
            self.cuts.append(self.refine(function, a, b, size))

    def refine(self, function, a, b, size, depth=0):
        """Return the places, in (0, 1], that panels between a and b end at."""
        rough, fine = (panel(function, a, b, n) for n in NODES)
        if abs(rough - fine) <= CONVERGED * size:
            return [mpf(1)]
        assert depth < MAX_HALVINGS, "the integral does not converge; give more break points"
        m = (a + b) / 2
        halves = [self.refine(function, *ends, size, depth + 1) for ends in ((a, m), (m, b))]
        return [u / 2 for u in halves[0]] + [(1 + u) / 2 for u in halves[1]]

    def integrate(self, function, ends):
        total = mpf(0)
        for a, b, cuts in zip(ends, ends[1:], self.cuts, strict=False):
            inner = [a, *(a + (b - a) * u for u in cuts)]
            total += mp.fsum(panel(function, s, t, NODES[1]) for s, t in itertools.pairwise(inner))
        return total


def break_points(edges, low, high):
    """Return the ends of a range and all break points, those outside moved to an end: their number never changes."""
    return [mpf(low), *sorted(min(max(mpf(e), mpf(low)), mpf(high)) for e in edges), mpf(high)]


def derivatives(function, point, names, order=2):
    """Return [value], gradient and Hessian (up to an order) of a function of a point, by differences with many digits."""
    step = {n: STEP * (abs(point[n]) or 1) for n in names}

    def at(**moves):
        return function({n: v + moves.get(n, 0) * step.get(n, 0) for n, v in point.items()})

    value = at()
    up, down = {n: at(**{n: 1}) for n in names}, {n: at(**{n: -1}) for n in names}
    gradient = [(up[n] - down[n]) / (2 * step[n]) for n in names]
    if order == 1:
        return [value], gradient
    hessian = [[mpf(0)] * len(names) for _ in names]
    for i, a in enumerate(names):
        hessian[i][i] = (up[a] - 2 * value + down[a]) / step[a] ** 2
        for j, b in enumerate(names[:i]):
            both = at(**{a: 1, b: 1}) + at(**{a: -1, b: -1})
            mixed = (both - up[a] - down[a] - up[b] - down[b] + 2 * value) / (2 * step[a] * step[b])
            hessian[i][j] = hessian[j][i] = mixed
    return [value], gradient, hessian


def record(values):
    """Return values by name as attributes."""
    return SimpleNamespace(**values)
