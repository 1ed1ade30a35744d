"""Pulls of thousands of toys are standard normal, but for what a thousand events are too few for."""

import math

import pytest

import zoo
from backend_rows import on_one_backend
from morefit.toys.study import toy_study
from tolerances import PULL_SIGMAS

EVENTS = 1_000
MOST_BY_MINUIT = 1e-3  # of all toys
SIGNAL = 300  # events of the mass model that measure mu and sigma

# The pull of a width s from n events has the mean sqrt(2 n) (1 - E[sigma / s]) = -5/4 sqrt(2 / n), to first order:
# an s that came out small comes with an error that is small as well. All other pulls are centred to 1 / sqrt(n) of
# something smaller, which so few toys do not see.
PULL_MEAN = {"sigma": -1.25 * math.sqrt(2 / SIGNAL)}

pytestmark = [pytest.mark.slow, on_one_backend]  # test_newton.py compares the toys of the others with these


@pytest.fixture(scope="module", params=["mass", "kstarmumu"])
def toys(request, backend, sizes):
    model = getattr(zoo, request.param)(1)[0]
    return toy_study(model, toys=sizes.study, events=EVENTS, seed=20261115, backend=backend)


def test_every_toy_is_counted(toys, sizes):
    assert len(toys) == sizes.study
    assert (toys.events == EVENTS).all()
    assert toys.valid.all()


def test_hardly_any_toy_needs_minuit(toys):
    assert toys.fraction_by("minuit") + toys.fraction_by("failed") <= MOST_BY_MINUIT


def test_pulls_are_standard_normal(toys):
    for name in toys.names:
        mean, mean_error, width, width_error = toys.pull_summary(name)
        assert abs(mean - PULL_MEAN.get(name, 0.0)) < PULL_SIGMAS * mean_error, name
        assert abs(width - 1) < PULL_SIGMAS * width_error, name
