"""Build kernels: expressions for the loop and for the per-call stage in, a kernel out, and the search for cells of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.expr import (
    Expr,
    Op,
    Table,
    leaves,
    lookup,
    make,
    rebuild,
    remake,
    rule_of,
    scalar,
    substitute_all,
    to_expr,
    toposort,
    where,
)
from morefit.expr.walk import arranged_by_form
from morefit.kernel.ir import Added, Body, Frame, Kernel, Pairs, Precision, Result, Sample, Scaled, Store, Sum
from morefit.kernel.lower import NOT_ARRANGED, Arranged, lower
from morefit.kernel.symbols import random_number
from morefit.random.xoshiro import jump_table

EQUAL_STEPS = 1e-9  # relative: edges closer than this to a regular grid are guessed by it
FINER = 1.1  # buckets are so much narrower than the narrowest cell that at most one edge lies in each, or next to it
REACH = 0.01  # of a bucket: how far rounding may carry a value into the next one
MAX_BUCKETS = 1 << 14


def spell_cells(node: Expr, args: tuple[Expr, ...]) -> Expr:
    """Write the search for a cell as lookups; every target finds the same cell, whatever it rounds."""
    if node.op is not Op.CELL:
        return spell_functions(node, args)
    table, x = args
    assert isinstance(table.value, Table)
    edges = table.value.array
    last = len(edges) - 2
    number = make(Op.EQUAL, (x, x))
    inside = clipped(where(number, x, edges[0]), edges[0], edges[-1])
    guess = guess_of(inside, edges)
    if guess is None:
        cell = bisected(inside, edges)
    else:
        cell = Op.MIN(guess + (lookup(table.value, guess + 1) <= x), last)
    return where(number, cell, last + 1)


def spell_functions(node: Expr, args: tuple[Expr, ...]) -> Expr:
    """Write an operation that targets have no function for by others."""
    return remake(node, args) if node.op.spelled is None else node.op.spelled(*args)


def guess_of(x: Expr, edges: Array) -> Expr | None:
    """Return a cell that is the right one or the one before it; None if the widths of cells are too different."""
    low, span, cells = float(edges[0]), float(edges[-1] - edges[0]), len(edges) - 1
    widths = np.diff(edges)
    if np.abs(edges - np.linspace(low, low + span, cells + 1)).max() < REACH * widths.min() and np.allclose(
        widths, span / cells, rtol=EQUAL_STEPS, atol=0
    ):
        return clipped(Op.FLOOR((x - low) * (cells / span) - 0.5), 0, cells - 1)
    buckets = int(min(np.ceil(FINER * span / widths.min()), MAX_BUCKETS + 1))
    if buckets > MAX_BUCKETS:
        return None
    starts = low + span / buckets * (np.arange(buckets) - REACH)
    first = np.clip(np.searchsorted(edges, starts, side="right") - 1, 0, cells - 1)
    bucket = clipped(Op.FLOOR((x - low) * (buckets / span)), 0, buckets - 1)
    return lookup(Table.of(first.astype(np.float64)), bucket)


def bisected(x: Expr, edges: Array) -> Expr:
    """Return the cell by bisection."""
    cells = len(edges) - 1
    size = 1 << (cells - 1).bit_length()
    padded = Table.of(np.concatenate([edges[:-1], np.full(size - cells, np.finfo(np.float64).max)]))
    cell, half = to_expr(0), size // 2
    while half:
        cell = where(lookup(padded, cell + half) <= x, cell + half, cell)
        half //= 2
    return cell


def clipped(x: Expr, low: float, high: float) -> Expr:
    return Op.MIN(Op.MAX(x, low), high)


Term = tuple[int, Expr]  # an output, and what is added to it


@dataclass(frozen=True)
class PairTerms:
    """Factors of which every pair is summed, as ``Pairs``."""

    left: tuple[Expr, ...]
    right: tuple[Expr, ...] = ()
    output: int = 0
    sign: float = 1.0
    groups: int = 1


@dataclass(frozen=True)
class ScaledTerm:
    """A sum over events that is added to an output, times a function of parameters."""

    row: int
    output: int
    factor: Expr


@dataclass(frozen=True)
class SumLoop:
    """Expressions whose values are reduced over events, and where each goes."""

    outputs: int
    results: tuple[Expr, ...]
    reduce: tuple[Result, ...]  # one for each result
    pairs: PairTerms | None = None
    counted: tuple[Term, ...] = ()  # the same for all events
    per_set: tuple[Term, ...] = ()  # added once for each set
    scaled: tuple[ScaledTerm, ...] = ()

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return (*self.results, *self.pairs.left, *self.pairs.right) if self.pairs else self.results


@dataclass(frozen=True)
class StoreLoop:
    """Expressions whose values are stored for each event.

    Those of an event that is drawn are of random numbers, and the last two are whether to accept it, and whether the
    density was above its envelope.
    """

    exprs: tuple[Expr, ...]
    draws: bool = False

    @property
    def outputs(self) -> int:
        return len(self.exprs) - 2 * self.draws


Loop = SumLoop | StoreLoop


@dataclass(frozen=True)
class PerCall:
    """The expressions of the per-call stage: what the scalars of the loop are, then what is added to outputs."""

    terms: tuple[Expr, ...]
    per_set: tuple[Added, ...] = ()
    per_count: tuple[Added, ...] = ()
    scaled: tuple[Scaled, ...] = ()
    integrals: tuple[Expr, ...] = ()  # scalars that the terms read besides parameters

    @classmethod
    def of(
        cls, loop: Loop, exprs: Sequence[Expr], hoisted: Mapping[str, Expr], powers: Mapping[str, Expr]
    ) -> PerCall:
        """Collect the stage of a loop of some expressions.

        ``hoisted`` are scalars as functions of parameters, ``powers`` others as functions of parameters and those.
        """
        known = {scalar(name): expr for name, expr in hoisted.items()}
        shown = substitute_all(powers.values(), known)
        scalars = known | {scalar(name): expr for name, expr in zip(powers, shown, strict=True)}
        terms = [scalars.get(leaf, leaf) for leaf in leaves(Op.SCALAR, *exprs)]

        def added(output: int, term: Expr) -> Added:
            terms.append(term)
            return Added(len(terms) - 1, output)

        if not isinstance(loop, SumLoop):
            return cls(tuple(terms))
        per_set = tuple(added(output, term) for output, term in loop.per_set)
        counted = substitute_all((term for _, term in loop.counted), known)
        outputs = [output for output, _ in loop.counted]
        per_count = tuple(map(added, outputs, counted))
        factors = substitute_all((one.factor for one in loop.scaled), known)
        scaled = tuple(
            Scaled(added(one.output, factor).result, one.row, one.output)
            for one, factor in zip(loop.scaled, factors, strict=True)
        )
        return cls(tuple(terms), per_set, per_count, scaled)


def build_kernel(
    *,
    name: str,
    loop: Loop,
    exprs: tuple[Expr, ...],
    per_call: PerCall,
    parameters: Sequence[Expr],
    precision: Precision,
) -> Kernel:
    """Lower both stages; ``exprs`` are those of the loop, rewritten. Kernels that draw are the same for most true values."""
    terms = per_call.terms
    scalars, columns = leaves(Op.SCALAR, *exprs), leaves(Op.COLUMN, *exprs)
    if any(node.op is Op.TABLE or node.op.spelled for node in toposort(*exprs, *terms)):
        exprs, terms = rebuild(exprs, spell_cells), rebuild(terms, spell_cells)
    tables = leaves(Op.TABLE, *exprs, *terms)
    arranged: Arranged = NOT_ARRANGED
    if isinstance(loop, StoreLoop) and loop.draws:
        arranged = arranged_by_form(*exprs)
        place = {node: k for k, node in enumerate(toposort(*exprs, arranged=arranged))}
        columns, tables = (sorted(some, key=lambda n: place.get(n, len(place))) for some in (columns, tables))
    sums = [node for node in toposort(*exprs, *terms) if node.op is Op.NODE_SUM]
    rules = dict.fromkeys(rule for node in sums for rule in rule_of(node).tables)
    places = {leaf: f"table {k}" for k, leaf in enumerate(tables)}  # a kernel serves all contents
    body = lower(exprs, names_of((*scalars, *columns)) | places, arranged=arranged)
    frame = frame_of(loop, columns, body, per_call)
    own = (jump_table(),) if isinstance(frame, Sample) and frame.streams else ()
    names = names_of(parameters)
    return Kernel(
        name=name,
        frame=frame,
        parameters=tuple(names.values()),
        per_call=lower(terms, names | places, "p"),
        scalars=tuple(names_of(scalars).values()),
        columns=tuple(names_of(columns).values()),
        per_event=body,
        outputs=loop.outputs,
        tables=(*(table_of(leaf).renamed(name) for leaf, name in places.items()), *rules, *own),
        precision=precision,
    )


def table_of(leaf: Expr) -> Table:
    assert isinstance(leaf.value, Table)
    return leaf.value


def names_of(leaves: Iterable[Expr]) -> dict[Expr, str]:
    return {leaf: leaf.name for leaf in leaves}


def frame_of(loop: Loop, columns: Sequence[Expr], body: Body, per_call: PerCall) -> Frame:
    if isinstance(loop, StoreLoop):
        numbers = [random_number(leaf) for leaf in columns] if loop.draws else []
        drawn = Sample(tuple(n.index for n in numbers), any(n.streams for n in numbers))
        return drawn if loop.draws else Store()
    pairs, atoms = None, dict(zip(loop.exprs, body.results, strict=True))
    if terms := loop.pairs:
        left, right = (tuple(atoms[factor] for factor in side) for side in (terms.left, terms.right))
        pairs = Pairs(left, right, terms.output, terms.sign, terms.groups)
    return Sum(loop.reduce, pairs, per_call.per_set, per_call.per_count, per_call.scaled)
