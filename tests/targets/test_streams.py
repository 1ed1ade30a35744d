"""Streams of random numbers: whoever draws from them, in whatever groups, gets the same events."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from ensembles import ensemble_of
from morefit.expr import ZERO
from morefit.kernel.symbols import stream_uniform
from morefit.likelihood import generate
from morefit.pipeline import compile_sampler
from morefit.random.host import COMPILED
from morefit.random.xoshiro import BLOCK
from morefit.sampling.generate import Sampler, all_values
from morefit.targets.base import Events
from morefit.targets.opencl.run import OpenCL
from morefit.targets.reference.run import Reference
from tolerances import REPEATED, SAME_RANDOM_NUMBER

SEED = 11
SIZES = np.array([700, 0, BLOCK + 300, 3 * BLOCK])
FIRST = (1 << 31) + 6  # the first toy: many bits, so many jumps


def chosen_numbers(backend):
    """Draw random numbers until one is small, so that events take different numbers of draws."""
    number = stream_uniform(1)
    program = compile_sampler((stream_uniform(0), number), number < 0.4, ZERO, backend).program
    found = program.sample(np.empty((len(SIZES), 0)), Events.slices(SIZES), SEED, FIRST)
    return np.array([c.values for c in found.columns])


def test_streams_do_not_depend_on_threads_or_vectors(fast):
    np.testing.assert_array_equal(chosen_numbers(fast), chosen_numbers(Reference()))


@pytest.mark.parametrize("fast", ["opencl"], indirect=True)
@pytest.mark.parametrize("group", [1, 32, 128])
def test_streams_do_not_depend_on_work_groups(fast, group):
    np.testing.assert_array_equal(chosen_numbers(OpenCL(work_group=group)), chosen_numbers(fast))


@pytest.mark.parametrize("name", ["mass", "kstarmumu"])
def test_events_from_streams_are_those_of_the_reference(fast, name):
    model = zoo.ZOO[name]()[0]
    found, expected = (
        Sampler(model, all_values(model, None), b, generator="xoshiro128++").draw(SIZES, SEED, FIRST)
        for b in (fast, Reference())
    )
    for o, a, b in zip(model.observables, found.columns, expected.columns, strict=True):
        assert np.abs(a.values - b.values).max() <= SAME_RANDOM_NUMBER * (o.high - o.low)


def ensemble(backend, generator):
    """An ensemble of the mass model that draws with a generator."""
    model = zoo.mass(1)[0]
    truth = all_values(model, None)
    made = ensemble_of(model, truth, truth, SEED, backend)
    made.samplers = (Sampler(model, truth, backend, generator=generator),)
    return made


@pytest.mark.parametrize("generator", COMPILED)
def test_whole_fits_draw_what_generate_draws(fast, generator):
    """A fit of other events would be off by an error or so."""
    sizes = SIZES[SIZES > 0]
    toys = ensemble(fast, generator).draw(0, sizes)
    whole = toys.fit_whole(toys.ensemble)
    datasets = generate(zoo.mass(1)[0], sizes.tolist(), seed=SEED, backend=fast, generator=generator)
    for toy, data in enumerate(datasets):
        np.testing.assert_array_equal(toys.datasets(toy)[0]["m"], data["m"])
    steps = toys.batch(toys.ensemble)
    batch = steps.newton(np.arange(len(sizes)), steps.start)
    assert whole.valid.all()
    assert (np.abs(whole.values - batch.values) <= REPEATED * batch.errors).all()
    assert (np.abs(whole.nll - batch.nll) <= REPEATED).all()
