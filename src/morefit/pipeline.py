"""THE CORRIDOR between statistics and compiler, read this first: expressions in, a function of parameters and data out.

A kernel goes through the passes of ``PASSES``, in that order, each under the name used everywhere else. What differs
between sums, values, events to draw and integrals is in their ``Spec`` (``kernel/specs.py``). What comes out is in this file
as well: integrals that a kernel needs, and columns computed once per dataset, are kernels that go through the same passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import BackendError
from morefit.expr import (
    Expr,
    Op,
    OwnSymbol,
    column,
    domain_of,
    leaves,
    rebuild,
    scalar,
    substitute_all,
    toposort,
)
from morefit.expr.opaque import opaque_in
from morefit.expr.quadrature import NodeDomain, Nodes
from morefit.garbage import without_collection
from morefit.integrals.boxes import Made, SharedBoxes
from morefit.integrals.follow import FollowedIntegral, SampleIntegral
from morefit.integrals.integral import Integral
from morefit.kernel import specs
from morefit.kernel.ir import Kernel, Precision
from morefit.kernel.record import IntegralRecord, Parts, Record, Unrecorded, fingerprint
from morefit.kernel.specs import Spec
from morefit.kernel.sums import Request
from morefit.kernel.symbols import NODE_CONTRAST, NODE_WEIGHT, WEIGHT
from morefit.model import Pdf
from morefit.model.opaque import opaque_names
from morefit.rewrite.precompute import Precompute
from morefit.targets.base import Backend, Buffer, Events, Launch, Program, WholeIntegral
from morefit.targets.cache import KERNEL, key_of, load, source_version, store
from morefit.text.progress import Bar

if TYPE_CHECKING:  # passes import what they need: a kernel with a record goes through none
    from morefit.kernel.build import Loop, PerCall
    from morefit.kernel.sums import Structure
    from morefit.rewrite.stages import Stages


@dataclass(frozen=True)
class Settings:
    """How to compile: where, in which precision, and which event-only terms to precompute."""

    backend: Backend
    precision: Precision = Precision.DOUBLE
    precompute: Precompute = "auto"

    def for_trials(self) -> Settings:
        """Return where the boxes of integrals are tried: here, since drivers of devices take seconds to compile."""
        if self.backend.name in ("cpu", "reference"):
            return self
        from morefit.targets.cpu.run import Cpu

        return replace(self, backend=Cpu(threads=1))


def able_backend(model: Pdf, backend: Backend) -> Backend:
    """Return a backend that can evaluate a model: NumPy in the place of the CPU if it has functions of Python."""
    if not (names := opaque_names(model)) or backend.name == "reference":
        return backend
    if backend.name != "cpu":
        raise cannot_call(backend, names)
    from morefit.targets.reference.run import Reference

    return Reference()


def cannot_call(backend: Backend, names: Sequence[str]) -> BackendError:
    """Return the error for functions of Python in the wrong place."""
    advice = "use backend='reference' for these formulas" if backend.name == "cpu" else "use backend='cpu'"
    return BackendError(
        f"backend '{backend.name}': cannot call functions of Python, got {', '.join(names)}; {advice}"
    )


@lru_cache(maxsize=128)
def compile_sums(request: Request, parameters: tuple[Expr, ...], settings: Settings) -> Compiled:
    """Compile the sums a fit needs, as a function of all ``parameters``."""
    backend = settings.backend
    spec = specs.sums(request, backend.tiles_from, settings.precision)
    return run_passes(Draft(spec, parameters, settings))


@lru_cache(maxsize=256)
def compile_renamed(
    request: Request, parameters: tuple[Expr, ...], names: tuple[Expr, ...], settings: Settings
) -> Compiled:
    """Compile sums whose parameters have other names, so that formulas that differ in names alone share a program."""
    return compile_sums(request.renamed(dict(zip(parameters, names, strict=True))), names, settings)


@lru_cache(maxsize=128)
def compile_values(outputs: tuple[Expr, ...], parameters: tuple[Expr, ...], settings: Settings) -> Compiled:
    """Compile expressions to be computed and stored for each event."""
    return run_passes(Draft(specs.values(outputs), parameters, settings))


def compile_per_dataset(terms: tuple[Expr, ...], backend: Backend) -> Compiled:
    """Compile event-only terms, which are computed once."""
    return compile_values(terms, (), Settings(backend, precompute="none"))


@lru_cache(maxsize=64)
def compile_sampler(drawn: tuple[Expr, ...], accept: Expr, above: Expr, backend: Backend) -> Compiled:
    """Compile the drawing of events: expressions of random numbers, ``uniform`` or ``stream_uniform``."""
    return run_passes(Draft(specs.sample(drawn, accept, above), (), Settings(backend, precompute="none")))


def compile_integrals(integral: Integral, bodies: tuple[Expr, ...], settings: Settings) -> Compiled:
    """Compile integrals over one domain; always in double precision."""
    spec = specs.integrals(integral.integrand, bodies, integral.probes)
    return run_passes(Draft(spec, integral.parameters, replace(settings, precision=Precision.DOUBLE)))


# ------------------------------------------------------------------------------------------ passes


@dataclass(eq=False)
class Draft:
    """A kernel in the making: each pass adds what the next ones need."""

    spec: Spec
    parameters: tuple[Expr, ...]
    settings: Settings
    terms: tuple[Expr, ...] = field(init=False)
    functions: Mapping[Expr, Expr] = field(init=False)  # of parameters, and the scalars that stand for them
    structure: Structure | None = field(init=False)  # of second derivatives
    stages: Stages = field(init=False)
    loop: Loop = field(init=False)
    exprs: tuple[Expr, ...] = field(init=False)  # of the loop, as they are lowered
    per_call: PerCall = field(init=False)
    integrals: tuple[CompiledIntegral, ...] = field(init=False)
    kernel: Kernel = field(init=False)
    columns: tuple[Expr, ...] = field(init=False)
    per_dataset: Mapping[str, Expr] = field(init=False)
    program: Program = field(init=False)
    # what all processes that compile this kernel know it by; None if there is nothing such
    identity: str | None = None

    @property
    def recorded(self) -> bool:
        """Whether it can be stored: a function of Python, which only NumPy can call, may change between processes."""
        functions = opaque_in(self.roots)
        if functions and self.settings.backend.name != "reference":
            raise cannot_call(self.settings.backend, [one.name for one in functions])
        return not functions

    @property
    def key(self) -> str:
        """What its record is stored under: everything that a kernel depends on."""
        settings = (self.settings.precision.name, self.settings.precompute)
        options = (self.spec.name, *self.spec.options, *settings, len(self.parameters))
        return key_of("kernel", source_version(), repr(options), fingerprint(self.roots))

    @property
    def roots(self) -> tuple[Expr, ...]:
        return (*self.spec.roots, *self.parameters)

    def recall(self, key: str) -> bool:
        """Take the kernel from the record that this or another process stored, if there is one."""
        payload = load(key, KERNEL)
        if payload is None:
            return False
        record = Record.of(payload, Parts(self.roots))
        self.kernel, self.columns, self.per_dataset = record.kernel, record.columns, record.per_dataset
        self.compile_integrals(
            (Integral(one.domain, one.subject, self.parameters), one.bodies) for one in record.integrals
        )
        return True

    def remember(self, key: str) -> bool:
        """Store a record of the kernel; one of something that has none, or has data in it, is made anew in every process."""
        if sum(len(table.numbers) for table in self.kernel.tables) > MAX_STORED:
            return False
        integrals = tuple(
            IntegralRecord(one.integral.domain, one.integral.subject, one.bodies) for one in self.integrals
        )
        record = Record(self.kernel, self.columns, self.per_dataset, integrals)
        with suppress(Unrecorded):
            store(key, record.to_bytes(Parts(self.roots)), KERNEL)
            return True
        return False

    def derive(self) -> None:
        """Simplify and differentiate: everything that the loop needs, as expressions of parameters and columns."""
        self.terms, self.functions, self.structure = self.spec.terms()

    def regroup(self) -> None:
        """Put together what depends on the same things, of operations that targets have functions for."""
        from morefit.kernel.build import spell_functions
        from morefit.rewrite.stages import regroup

        self.terms = regroup(rebuild(self.terms, spell_functions))

    def split(self) -> None:
        """Cut the terms into what is computed per call, per dataset and per event."""
        from morefit.rewrite.stages import split

        self.stages = split(self.terms, self.settings.precompute, self.functions)

    def assemble(self) -> None:
        """Make the loop: logarithms, quotients, sums of pairs, and where each result goes."""
        self.loop = self.spec.assemble(self.stages.per_event, self.structure)

    def use_base_two(self) -> None:
        """Turn exponentials to base two, in the whole loop at once, so that densities and quotients still share them."""
        from morefit.kernel.build import PerCall
        from morefit.rewrite.forms import use_base_two

        self.exprs, powers = use_base_two(self.loop.exprs)
        self.per_call = PerCall.of(self.loop, self.exprs, self.stages.per_call, powers)

    def take_integrals(self) -> None:
        """Make programs of their own for the integrals of the per-call stage, which reads their results."""
        groups: dict[Integral, list[Expr]] = {}
        for node in toposort(*self.per_call.terms, enter_integrals=False):
            if node.op is Op.INTEGRAL:
                integral = Integral(domain_of(node), node.args[1:], self.parameters)
                groups.setdefault(integral, []).append(node)
        nodes = [node for group in groups.values() for node in group]
        results = {node: scalar(OwnSymbol(f"integral {k}")) for k, node in enumerate(nodes)}
        terms = substitute_all(self.per_call.terms, results) if nodes else self.per_call.terms
        self.per_call = replace(self.per_call, terms=terms, integrals=tuple(results.values()))
        self.compile_integrals((one, tuple(n.args[0] for n in group)) for one, group in groups.items())

    def compile_integrals(self, integrals: Iterable[tuple[Integral, tuple[Expr, ...]]]) -> None:
        self.integrals = tuple(CompiledIntegral.of(one, bodies, self.settings) for one, bodies in integrals)

    def lower(self) -> None:
        """Write both stages as lines; list the columns: precomputed terms, those of morefit's own, and data by name."""
        from morefit.kernel.build import build_kernel

        self.kernel = build_kernel(
            name=self.spec.name,
            loop=self.loop,
            exprs=self.exprs,
            per_call=self.per_call,
            parameters=(*self.parameters, *self.per_call.integrals),
            precision=self.settings.precision,
        )
        self.per_dataset = self.stages.per_dataset
        used = leaves(Op.COLUMN, *self.exprs)
        data = [leaf if isinstance(leaf.value, OwnSymbol) else column(leaf.name) for leaf in used]
        self.columns = tuple(self.per_dataset.get(leaf.name, leaf) for leaf in data)

    def compile(self) -> None:
        """Render the kernel, unless its code is known, and compile it; some backends wait until it is first used."""
        self.program = self.settings.backend.compile(self.kernel, self.identity)


# integrals of derivatives that are computed along with an integrand, rather than to compile that once more
MAX_BODIES = 48
# bytes of tables in a record: envelopes have less, rows of given data may have any number
MAX_STORED = 1 << 21
CACHE = "cache"  # the time to look for a record, and to read it
PASSES: dict[str, Callable[[Draft], None]] = {
    "derive": Draft.derive,
    "regroup": Draft.regroup,
    "split": Draft.split,
    "assemble": Draft.assemble,
    "base two": Draft.use_base_two,
    "integrals": Draft.take_integrals,
    "lower": Draft.lower,
    "compile": Draft.compile,
}


@without_collection()
def run_passes(draft: Draft) -> Compiled:
    """Take a draft through all passes; those before the last only if no process has done so before."""
    seconds = dict.fromkeys((CACHE, *PASSES), 0.0)
    begin = time.perf_counter()
    recorded, key = draft.recorded, draft.key
    known = recorded and draft.recall(key)
    if not known:
        draft.settings.backend.expect_kernels()
    seconds[CACHE] = time.perf_counter() - begin
    with Bar("compiling", len(PASSES), shown=True) as bar:
        for k, (name, run) in enumerate(PASSES.items()):
            if known and name != "compile":
                continue
            bar.done(k, f"compiling: {name}")
            begin = time.perf_counter()
            if name == "compile" and recorded and (known or draft.remember(key)):
                draft.identity = key
            run(draft)
            seconds[name] = time.perf_counter() - begin
    return Compiled(
        spec=draft.spec,
        per_dataset=draft.per_dataset,
        columns=draft.columns,
        program=draft.program,
        integrals=draft.integrals,
        pass_seconds=seconds,
        settings=draft.settings,
    )


# ------------------------------------------------------------------------------------------ what comes out


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program, and what has to be there before it can run."""

    spec: Spec
    per_dataset: Mapping[str, Expr]  # event-only terms to precompute, by the names of their columns
    columns: tuple[Expr, ...]  # of the program: observables, weights, precomputed terms
    program: Program
    integrals: tuple[CompiledIntegral, ...]
    pass_seconds: Mapping[str, float]
    settings: Settings

    @cached_property
    def stages(self) -> Stages:
        """The terms of the loop, cut; made anew, since a program does not need them."""
        draft = Draft(self.spec, (), self.settings)
        for make in (Draft.derive, Draft.regroup, Draft.split):
            make(draft)
        return draft.stages

    @property
    def seconds(self) -> dict[str, float]:
        """What each pass took so far; some backends compile when a program is first used."""
        return {**self.pass_seconds, "compile": self.program.compile_seconds}

    def expect(self) -> None:
        """Begin to build what a few events need, as the nodes of an integral are."""
        self.program.expect(None)
        if self.per_dataset:
            compile_per_dataset(tuple(self.per_dataset.values()), self.settings.backend).program.expect(None)

    def bind(
        self,
        data: Columns,
        events: Events,
        weights: Array | Buffer | None = None,
        boxes: SharedBoxes | None = None,
    ) -> Bound:
        """Bind to data; weights are one for each event, or one row of them for each set, or where the backend can read them."""
        self.program.expect(events)
        for one in self.integrals:
            one.compiled.expect()
        data.precompute(tuple(self.per_dataset.values()), self.settings)
        buffers: list[Buffer] = []
        steps: list[int] = []
        for wanted in self.columns:
            if wanted is not WEIGHT:
                buffers.append(data.buffer(wanted, self.settings))
                steps.append(0)
            elif isinstance(weights, np.ndarray):
                buffers.append(self.settings.backend.upload(np.ravel(weights), self.settings.precision))
                steps.append(weights.shape[-1] if weights.ndim > 1 else 0)
            else:
                assert weights is not None
                buffers.append(weights)
                steps.append(0)
        shared = SharedBoxes() if boxes is None else boxes
        bound = tuple(one.at_run_time(shared) for one in self.integrals)
        return Bound(self.program.bind(buffers, events, steps), bound)


@dataclass(frozen=True, eq=False)
class Bound:
    """A program bound to data, with the integrals it needs first."""

    launch: Launch
    integrals: tuple[FollowedIntegral | SampleIntegral, ...]

    def __call__(self, parameters: Array) -> Array:
        """Evaluate at parameters of shape (sets, parameters)."""
        if not self.integrals:
            return self.launch(parameters)
        integrals = [integral(parameters) for integral in self.integrals]
        return self.launch(np.concatenate([parameters, *integrals], axis=1))


@dataclass(frozen=True, eq=False)
class CompiledIntegral:
    """Integrals over one domain, compiled: the nodes of a quadrature are just another small dataset."""

    integral: Integral
    bodies: tuple[Expr, ...]
    compiled: Compiled
    known: dict[tuple[object, ...], Made] = field(default_factory=dict)  # boxes at starts of fits

    @classmethod
    def of(cls, integral: Integral, bodies: tuple[Expr, ...], settings: Settings) -> CompiledIntegral:
        return cls(integral, bodies, compile_integrals(integral, bodies, settings))

    def bind(self, nodes: Nodes, events: Events) -> Bound:
        return self.compiled.bind(node_columns(nodes), events)

    @cached_property
    def tried(self) -> Compiled:
        """The same integrals where boxes are tried."""
        settings = self.compiled.settings
        trials = settings.for_trials()
        return self.compiled if trials is settings else compile_integrals(self.integral, self.bodies, trials)

    def bind_trial(self, nodes: Nodes, events: Events) -> Bound:
        return self.tried.bind(node_columns(nodes), events)

    @cached_property
    def alone(self) -> Compiled:
        """The integrand alone, which most boxes are tried for, if it has many derivatives; else what computes them as well."""
        few = len(self.bodies) <= MAX_BODIES
        return self.tried if few else compile_integrals(self.integral, (), self.tried.settings)

    def bind_alone(self, nodes: Nodes, events: Events) -> Bound:
        return self.alone.bind(node_columns(nodes), events)

    def at_run_time(self, boxes: SharedBoxes) -> FollowedIntegral | SampleIntegral:
        """Return the integrals as functions of parameters: by boxes that follow them, or by a sample."""
        domain = self.integral.domain
        if isinstance(domain, NodeDomain):
            return SampleIntegral(domain.nodes, len(domain.axes), len(self.bodies), self.bind)
        return FollowedIntegral(
            self.integral,
            self.bodies,
            bind=self.bind,
            bind_trial=self.bind_trial,
            bind_alone=self.bind_alone,
            shared=boxes,
            known=self.known,
        )

    def fix(self, rows: Array, boxes: SharedBoxes, finer: int = 0) -> WholeIntegral:
        """Return the integrals for a whole fit, by boxes made for some rows of parameters, and halved some more times."""
        fixed = self.at_run_time(boxes).fix(rows, finer)
        data, compiled, here = node_columns(fixed.nodes), self.compiled, self.tried.settings
        data.precompute(tuple(compiled.per_dataset.values()), here)
        columns = tuple(data.buffer(wanted, here).values for wanted in compiled.columns)
        return WholeIntegral(
            program=compiled.program,
            nodes=columns,
            bodies=len(self.bodies),
            limits=fixed.limits,
            edges=fixed.edges,
        )


def node_columns(nodes: Nodes) -> Columns:
    """Return the nodes of a quadrature as a dataset."""
    return Columns({**nodes.columns, NODE_WEIGHT.name: nodes.weights, NODE_CONTRAST.name: nodes.contrast})


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
        compiled = compile_per_dataset(missing, backend)
        buffers = compiled.bind(self, Events.all_sets(self.count)).launch.store()
        for term, buffer in zip(missing, buffers, strict=True):
            self.buffers[term, backend, Precision.DOUBLE] = buffer
