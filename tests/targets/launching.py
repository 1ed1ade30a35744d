"""Compile the models of the zoo, bind them to events in any layout, and say how large the terms of each sum are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import morefit as mf
from morefit.arrays import Array
from morefit.integrals.boxes import SharedBoxes
from morefit.kernel.ir import COUNT, SCALED, Reduce
from morefit.pipeline import Bound, Columns, Compiled, Settings, compile_sums, compile_values
from morefit.targets.base import Backend, Events
from morefit.targets.cpu import compile as machine_code
from morefit.targets.reference.run import Reference, ReferenceLaunch
from tolerances import FLUSHED
from zoo import ZOO, around

MOST = 10_000  # events of each model
# 25 parameters are one more than squares of four and of eight have, as 61 are, and compile in a fifth of the time
FEWER = {"many": {"gaussians": 8}}
KINDS = {"value": (0, False), "gradient": (1, False), "hessian": (2, False), "fisher": (0, True)}


@cache
def model_of(name: str) -> tuple[mf.Pdf, dict[str, Array], Array]:
    """Return a model with enough events."""
    return ZOO[name](MOST, **FEWER.get(name, {}))


def moved(compiled: Compiled, backend: Backend) -> Compiled:
    """Compile the same kernels for another backend."""
    integrals = tuple(replace(i, compiled=moved(i.compiled, backend)) for i in compiled.integrals)
    program = backend.compile(compiled.program.kernel)
    settings = replace(compiled.settings, backend=backend)
    return replace(compiled, program=program, integrals=integrals, settings=settings)


def sums_of(name: str, kind: str, weighted: bool, backend: Backend) -> Compiled:
    """Compile the sums of a model: derived once, compiled for each backend and level of optimisation."""
    derived = derived_sums(name, kind, weighted)
    return derived if isinstance(backend, Reference) else moved_at_level(derived, backend, machine_code.LEVEL)


@cache
def derived_sums(name: str, kind: str, weighted: bool) -> Compiled:
    model, data, _ = model_of(name)
    likelihood = mf.Likelihood(model, data, weights=np.ones(MOST) if weighted else None)
    order, fisher = KINDS[kind]
    request = likelihood.request(order, fisher=fisher)
    return compile_sums(request, tuple(p.expr for p in model.parameters), Settings(Reference()))


def values_of(name: str, backend: Backend) -> Compiled:
    """Compile the density of a model, to be kept for each event."""
    derived = derived_values(name)
    return derived if isinstance(backend, Reference) else moved_at_level(derived, backend, machine_code.LEVEL)


@cache
def derived_values(name: str) -> Compiled:
    model, _, _ = model_of(name)
    leaves = tuple(p.expr for p in model.parameters)
    return compile_values((model.normalised(),), leaves, Settings(Reference()))


@cache
def moved_at_level(derived: Compiled, backend: Backend, level: int) -> Compiled:
    """Compile once for each level of optimisation, which files of tests switch: sums have other bits at another one."""
    return moved(derived, backend)


@dataclass(frozen=True)
class Layout:
    """Which events each set sees and with which weights; drawn from the layout alone, so that it is a key."""

    sizes: int | tuple[int, ...]  # events of all sets, or of each
    weighted: bool = False
    rows: int = 0  # sets that have weights of their own

    @property
    def events(self) -> Events:
        return Events.all_sets(self.sizes) if isinstance(self.sizes, int) else Events.slices(self.sizes)

    @property
    def weights(self) -> Array | None:
        rng, count = np.random.default_rng(self.rows), self.events.count
        if self.rows:
            return rng.poisson(1.0, (self.rows, count)).astype(float)
        return rng.uniform(-0.2, 2.0, count) if self.weighted else None


@cache
def boxes_of(compiled: Compiled) -> SharedBoxes:
    """Return the boxes of a program's integrals: made once for all layouts, which is what takes long."""
    return SharedBoxes()


def bind(compiled: Compiled, name: str, layout: Layout) -> Bound:
    """Bind to the first events of a model."""
    model, data, _ = model_of(name)
    columns = {o.name: np.resize(data[o.name], layout.events.count) for o in model.observables}
    return compiled.bind(Columns(columns), layout.events, layout.weights, boxes_of(compiled))


class Sizes(ReferenceLaunch):
    """Adds the sizes of the terms: what the error of a sum is measured by."""

    def reduce(self, results: list[Array], per_call: list[Any], count: float) -> Array:
        frame, out, sums = self.kernel.sums, np.zeros(self.kernel.outputs + 1), list[float]()
        for values, result in zip(results, frame.results, strict=False):
            sums.append(float(np.sum(np.abs(np.log(values) if result.reduce is Reduce.LOG else values))))
            if result.output == COUNT:
                count = sums[-1]
            elif result.output != SCALED:
                out[result.output] += sums[-1]
        for one in frame.scaled:
            out[one.output] += abs(sums[one.row] * per_call[one.result])
        if frame.pairs:
            factors, first = results[len(frame.results) :], frame.pairs.output
            left = np.abs(factors[: len(frame.pairs.left)])
            right = np.abs(factors[len(left) :] or left)
            n = frame.pairs.count
            blocks = [left[g : g + n] @ right[g : g + n].T for g in range(0, len(left), n)]
            lower = sum(blocks)[np.tril_indices(n)]
            out[first : first + len(lower)] += lower
        for added in frame.per_set:
            out[added.output] += abs(per_call[added.result])
        for added in frame.per_count:
            out[added.output] += abs(count * per_call[added.result])
        return out


def sizes(judge: Bound) -> Bound:
    """Return the sums of the sizes of the terms that a reference launch adds."""
    launch = judge.launch
    assert isinstance(launch, ReferenceLaunch)
    return replace(judge, launch=Sizes(launch.kernel, launch.columns, launch.events, launch.steps))


def with_diagonal(scale: Array, count: int) -> Array:
    """Measure pairs of derivatives also by the two alone: one term may be a difference of larger ones."""
    i, j = np.tril_indices(count)
    first = scale.shape[1] - 1 - len(i)
    if first >= 0:
        pairs = scale[:, first:-1]
        alone = pairs[:, np.flatnonzero(i == j)]
        pairs += np.sqrt(alone[:, i] * alone[:, j])
    return scale


@cache
def judged(name: str, kind: str, layout: Layout, sets: int) -> tuple[Array, Array]:
    """Return what the reference finds for so many sets around the model's values, and the sizes of the terms."""
    parameters = around(model_of(name)[2], sets)
    judge = bind(sums_of(name, kind, layout.weighted, Reference()), name, layout)
    return judge(parameters), with_diagonal(sizes(judge)(parameters), parameters.shape[1])


def assert_sums_agree(found: Array, name: str, kind: str, layout: Layout, tolerance: float) -> None:
    """Compare with the reference, each sum measured by the size of its terms; nothing may be counted as bad."""
    expected, scale = judged(name, kind, layout, len(found))
    assert found.shape == expected.shape
    assert not found[:, -1].any()
    error, allowed = np.abs(found - expected)[:, :-1], tolerance * scale[:, :-1] + FLUSHED
    worst = np.unravel_index(np.argmax(error - allowed), error.shape)
    assert (error <= allowed).all(), f"set {worst[0]}, output {worst[1]}: off by {error[worst]}"
