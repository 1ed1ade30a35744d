"""Toys whose first fit fails are fitted again: from other starts, the lowest counts, then by Minuit."""

import numpy as np
import pytest

from morefit.backend import Cpu, cpu
from morefit.cli import mass_model
from morefit.fit.ensemble import ANOTHER_START, MINUIT, NEWTON, SHIFTS, BatchFit, Ensemble

FAR = {"mu": 5.43, "sigma": 0.0412, "alpha": 2.0, "fsig": 0.15}  # some fits lose the signal from here


@pytest.fixture(scope="module")
def ensemble():
    model = mass_model()
    return Ensemble(model, model, {p.name: p.start for p in model.parameters}, FAR, 11, Cpu(threads=1))


def test_issue_events_are_read_once_for_all_toys(ensemble, monkeypatch):
    """This used to copy the events of all toys from the device for each toy."""
    reads, plain = [], cpu.Column.values.fget
    monkeypatch.setattr(cpu.Column, "values", property(lambda column: reads.append(1) or plain(column)))
    toys = ensemble.draw(0, np.array([5, 0, 7]))
    assert [len(toys.dataset(k)) for k in range(3)] == [5, 0, 7]
    assert len(reads) == 1  # column


def test_a_toy_that_is_fitted_again_takes_the_lowest_of_its_starts(ensemble):
    toys = ensemble.draw(0, np.full(300, 200))
    first, found = toys.fit_whole(ensemble), toys.fit()
    failed = np.flatnonzero(~first.valid)
    assert len(failed) > 3
    assert found.valid.all()
    np.testing.assert_array_equal(found.how == NEWTON, first.valid)
    for toy in failed:
        fit = BatchFit(ensemble, toys.one(int(toy)))
        tried = [fit.newton(ensemble.shifted(shift)) for shift in SHIFTS]
        nll = [float(t.nll[0]) for t in tried if t.valid[0]]
        assert nll or found.how[toy] in (ANOTHER_START, MINUIT)
        assert not nll or found.nll[toy] == min(nll)
    assert ANOTHER_START in found.how
