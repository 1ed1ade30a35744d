"""The corridor between statistics and compiler: expressions and data in, a function of parameters out.

Read this file first. Every stage appears once, in order, under the name used everywhere else:
simplify and derive (``event_terms``), regroup, split, assemble, lower, render and compile (in the backend), bind.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from morefit.arrays import Array
from morefit.expr import (
    ZERO,
    Expr,
    Op,
    Table,
    apply,
    column,
    domain_of,
    leaves,
    make,
    scalar,
    substitute,
    toposort,
    where,
)
from morefit.expr.quadrature import Nodes
from morefit.integrals import FollowedIntegral, Integral, SharedBoxes
from morefit.kernel import Body, Frame, Kernel, Precision, Reduce, Result, lower
from morefit.kernel.sample import tables_needed
from morefit.kernel.sums import WEIGHT, Assembled, Assembler, Request, event_terms, set_terms
from morefit.rewrite.columns import Precompute
from morefit.rewrite.exponents import use_base_two
from morefit.rewrite.simplify import normalise
from morefit.rewrite.stages import Stages, regroup, split
from morefit.targets import Backend, Buffer, Events, Launch, Program

NODE_WEIGHT = column("weight of the node")  # the columns of the nodes of a quadrature
NODE_CONTRAST = column("contrast of the node")
NEXT_TO_NOTHING = 1e-60  # of an integrand
LARGEST = 1e300  # number that is one for sure


@dataclass(frozen=True)
class Settings:
    """How to compile: where, in which precision, and which event-only terms to precompute."""

    backend: Backend
    precision: Precision = Precision.DOUBLE
    precompute: Precompute = "auto"


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program, and what has to be there before it can run."""

    stages: Stages
    program: Program
    integrals: tuple[CompiledIntegral, ...]
    stage_seconds: Mapping[
        str, float
    ]  # all but the last stage: some backends compile when a program is first used
    settings: Settings

    @property
    def seconds(self) -> dict[str, float]:
        """What each stage took so far."""
        return {**self.stage_seconds, "compile": self.program.compile_seconds}

    @cached_property
    def columns(self) -> tuple[Expr, ...]:
        """What the columns of the program are: observables, weights, precomputed terms."""
        terms = self.stages.per_dataset
        return tuple(terms[n] if n in terms else column(n) for n in self.program.kernel.columns)

    def bind(
        self, data: Columns, events: Events, weights: Array | None = None, boxes: SharedBoxes | None = None
    ) -> Bound:
        """Bind to data; weights are one for each event, or one row of them for each set."""
        data.precompute(tuple(self.stages.per_dataset.values()), self.settings)
        buffers: list[Buffer] = []
        steps: list[int] = []
        for wanted in self.columns:
            if wanted is WEIGHT:
                assert weights is not None
                buffers.append(self.settings.backend.upload(np.ravel(weights), self.settings.precision))
                steps.append(weights.shape[-1] if weights.ndim > 1 else 0)
            else:
                buffers.append(data.buffer(wanted, self.settings))
                steps.append(0)
        shared = SharedBoxes() if boxes is None else boxes
        bound = tuple(FollowedIntegral(one.integral, one.bodies, one.bind, shared) for one in self.integrals)
        return Bound(self.program.bind(buffers, events, steps), bound)


@dataclass(frozen=True, eq=False)
class Bound:
    """A program bound to data, with the integrals it needs first."""

    launch: Launch
    integrals: tuple[FollowedIntegral, ...]

    def __call__(self, parameters: Array) -> Array:
        """Evaluate at parameters of shape (sets, parameters)."""
        if not self.integrals:
            return self.launch(parameters)
        found = [integral(parameters) for integral in self.integrals]
        return self.launch(np.concatenate([parameters, *found], axis=1))


@dataclass(frozen=True, eq=False)
class CompiledIntegral:
    """Integrals over one domain, compiled: the nodes of a quadrature are just another small dataset."""

    integral: Integral
    bodies: tuple[Expr, ...]
    compiled: Compiled

    def bind(self, nodes: Nodes, events: Events) -> Bound:
        data = Columns({**nodes.columns, NODE_WEIGHT.name: nodes.weights, NODE_CONTRAST.name: nodes.contrast})
        return self.compiled.bind(data, events)


class Columns:
    """The columns of a dataset, and what has been uploaded or precomputed from them."""

    @classmethod
    def uploaded(cls, buffers: Mapping[str, Buffer], settings: Settings) -> Columns:
        """Take columns that are where the backend can read them already; they stay there."""
        columns = cls({})
        columns.count = next((b.count for b in buffers.values()), 0)
        for name, buffer in buffers.items():
            columns.buffers[column(name), settings.backend, Precision.DOUBLE] = buffer
        return columns

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = dict(arrays)
        self.count = len(next(iter(self.arrays.values()))) if self.arrays else 0
        self.buffers: dict[tuple[Expr, Backend, Precision], Buffer] = {}

    def buffer(self, wanted: Expr, settings: Settings) -> Buffer:
        """Return an observable or a precomputed term where the backend can read it."""
        key = (wanted, settings.backend, settings.precision)
        if key not in self.buffers:
            double = (wanted, settings.backend, Precision.DOUBLE)
            known = double in self.buffers
            numbers = self.buffers[double].values if known else self.arrays[wanted.name]
            self.buffers[key] = settings.backend.upload(numbers, settings.precision)
        return self.buffers[key]

    def precompute(self, terms: tuple[Expr, ...], settings: Settings) -> None:
        """Compute event-only terms that are not there yet, all in one pass, in double precision, where they are read."""
        backend = settings.backend
        missing = tuple(t for t in terms if (t, backend, Precision.DOUBLE) not in self.buffers)
        if not missing:
            return
        compiled = compile_values(missing, (), Settings(backend, precompute="none"))
        found = compiled.bind(self, Events.all_sets(self.count)).launch.store()
        for term, buffer in zip(missing, found, strict=True):
            self.buffers[term, backend, Precision.DOUBLE] = buffer


@dataclass
class Clock:
    """Times the stages by name."""

    seconds: dict[str, float] = field(default_factory=dict)
    last: float = field(default_factory=time.perf_counter)

    def stop(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self.last
        self.last = now


@lru_cache(maxsize=128)
def compile_sums(request: Request, parameters: tuple[Expr, ...], settings: Settings) -> Compiled:
    """Compile the sums a fit needs, as a function of all ``parameters``."""
    clock = Clock()
    terms = event_terms(request)
    clock.stop("derive")
    grouped = regroup(terms)
    clock.stop("regroup")
    stages = split(grouped, settings.precompute)
    clock.stop("split")
    assembled = Assembler(request, stages.per_event, settings.backend.tiles_from).assemble()
    name = "fisher" if request.fisher else ("value", "gradient", "hessian")[request.order]
    return finish(
        name, Frame.SUM, stages, assembled, request.outputs, set_terms(request), parameters, settings, clock
    )


@lru_cache(maxsize=128)
def compile_values(outputs: tuple[Expr, ...], parameters: tuple[Expr, ...], settings: Settings) -> Compiled:
    """Compile expressions to be computed for each event and kept."""
    clock = Clock()
    terms = normalise(*outputs)
    clock.stop("simplify")
    stages = split(regroup(terms), settings.precompute)
    clock.stop("split")
    results = tuple(Result(k, Reduce.ADD) for k in range(len(outputs)))
    assembled = Assembled(stages.per_event, results)
    return finish("values", Frame.STORE, stages, assembled, len(outputs), [], parameters, settings, clock)


@lru_cache(maxsize=64)
def compile_sampler(drawn: tuple[Expr, ...], accept: Expr, above: Expr, backend: Backend) -> Compiled:
    """Compile the drawing of events: expressions of the columns "uniform 0", "uniform 1", ..."""
    clock = Clock()
    stages = split(regroup((*drawn, accept, above)), "none")
    clock.stop("split")
    assembled = Assembled(stages.per_event, ())
    return finish("sample", Frame.SAMPLE, stages, assembled, len(drawn), [], (), Settings(backend), clock)


def compile_integrals(
    integral: Integral, bodies: Sequence[Expr], parameters: tuple[Expr, ...], settings: Settings
) -> Compiled:
    """Compile weighted sums over the nodes of a quadrature, and what tells how well they resolve the integrand.

    Always in double precision.
    """
    clock = Clock()
    counted = [b if b is integral.integrand else without_overflow(b, integral.integrand) for b in bodies]
    products = [make(Op.MUL, (NODE_WEIGHT, body)) for body in (*counted, integral.integrand)]
    products.append(make(Op.MUL, (NODE_CONTRAST, integral.integrand)))
    probes = normalise(*integral.probes)
    stages = split(regroup(tuple(products)), settings.precompute)
    clock.stop("split")
    results = tuple(Result(k, Reduce.EXACT) for k in range(len(products)))
    assembled = Assembled(stages.per_event, results)
    plain = Settings(settings.backend, precompute=settings.precompute)
    per_set = [ZERO] * len(products) + list(probes)
    return finish("integral", Frame.SUM, stages, assembled, len(per_set), per_set, parameters, plain, clock)


def without_overflow(slope: Expr, integrand: Expr) -> Expr:
    """Return a derivative of an integrand, zero where it is no number but the integrand is next to nothing.

    Far below a threshold 1 / (1 + exp(z)) is zero, and its derivative infinity times zero.
    """
    tiny = apply(Op.ABS, integrand) < NEXT_TO_NOTHING
    return where(apply(Op.ABS, slope) <= LARGEST, slope, where(tiny, ZERO, slope))


def finish(
    name: str, frame: Frame, stages: Stages, assembled: Assembled, outputs: int, set_terms: Sequence[Expr],
    parameters: tuple[Expr, ...], settings: Settings, clock: Clock,
) -> Compiled:  # fmt: skip
    """Lower, compile, and see to the integrals that the per-call stage needs."""
    loop, powers = use_base_two((*assembled.results, *assembled.outer, *assembled.outer_right))
    hoisted = {scalar(name): expr for name, expr in stages.per_call.items()}
    known = hoisted | {scalar(name): substitute(expr, hoisted) for name, expr in powers.items()}
    used = leaves(Op.SCALAR, *loop)
    columns = leaves(Op.COLUMN, *loop)
    wanted = [(k, term) for k, term in enumerate(set_terms) if term.op is not Op.CONST or term.number != 0.0]
    counted = [(k, substitute(term, hoisted)) for k, term in assembled.counted]
    per_call = [known.get(leaf, leaf) for leaf in used] + [term for _, term in (*wanted, *counted)]
    per_call, integrals, extra = take_integrals(per_call, parameters, settings)
    given = {leaf: leaf.name for leaf in (*parameters, *extra)}
    prologue = lower(per_call, given, "p")
    tables = {leaf: leaf.value for leaf in toposort(*loop) if isinstance(leaf.value, Table)}
    body = lower(loop, {leaf: leaf.name for leaf in (*used, *columns, *tables)})
    own = tables_needed(leaf.name for leaf in columns) if frame is Frame.SAMPLE else ()
    pairs = len(assembled.outer)
    outer = body.results[len(assembled.results) : len(assembled.results) + pairs]
    kernel = Kernel(
        name, frame, tuple(given.values()), prologue, tuple(leaf.name for leaf in used),
        tuple(leaf.name for leaf in columns), Body(body.lines, body.results), assembled.reduce, outputs,
        outer, body.results[len(assembled.results) + pairs :], assembled.outer_output, assembled.outer_sign,
        (*tables.values(), *own), tuple((len(used) + i, k) for i, (k, _) in enumerate(wanted)),
        tuple((len(used) + len(wanted) + i, k) for i, (k, _) in enumerate(counted)), settings.precision,
    )  # fmt: skip
    clock.stop("lower")
    program = settings.backend.compile(kernel)
    return Compiled(stages, program, integrals, clock.seconds, settings)


def take_integrals(
    exprs: Sequence[Expr], parameters: tuple[Expr, ...], settings: Settings
) -> tuple[list[Expr], tuple[CompiledIntegral, ...], list[Expr]]:
    """Replace the integrals in per-call terms by scalars that programs of their own compute first."""
    groups: dict[Integral, list[Expr]] = {}
    for node in toposort(*exprs, enter_integrals=False):
        if node.op is Op.INTEGRAL:
            groups.setdefault(Integral(domain_of(node), node.args[1:], parameters), []).append(node)
    replace: dict[Expr, Expr] = {}
    integrals = []
    for integral, nodes in groups.items():
        bodies = tuple(node.args[0] for node in nodes)
        compiled = compile_integrals(integral, bodies, parameters, settings)
        integrals.append(CompiledIntegral(integral, bodies, compiled))
        for node in nodes:
            replace[node] = scalar(f"integral {len(replace)}")
    return [substitute(e, replace) for e in exprs], tuple(integrals), list(replace.values())
