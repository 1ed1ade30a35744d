"""The comparison with peers: the same problem for all, fits that are checked, results that are kept, honest tables."""

import copy
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tolerances import NUMPY_SUM

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import analyses
import large
import morefit as mf
from models import MODELS
from morefit.minimise.newton import begin_steps
from peers.analyses.worker import Floating, read_toys, time_value
from peers.by_hand import PEERS as BY_HAND
from peers.problem import PROBLEMS
from peers.results import kept, problems
from peers.systems import ENVIRONMENTS, PEERS
from peers.table import tables
from peers.worker import extrapolate

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_problem_of_the_peers_is_that_of_our_model(name):
    model, problem = MODELS[name][0](), PROBLEMS[name]
    assert {o.name: (o.low, o.high) for o in model.observables} == problem.observables
    ours = {p.name: (p.start, p.low, p.high) for p in model.parameters}
    assert ours == {p.name: (p.truth, p.low, p.high) for p in problem.parameters}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_likelihood_by_hand_is_ours(name):
    make_model, draw = MODELS[name]
    data, problem = draw(2_000, 3), PROBLEMS[name]
    likelihood = mf.Likelihood(make_model(), data)
    point = {n: t + 0.5 * s for n, t, s in zip(problem.names, problem.truth, problem.steps, strict=True)}
    expected = BY_HAND[name]["numpy"](data)([point[n] for n in problem.names])
    found = likelihood.value([point[p.name] for p in likelihood.parameters])
    assert found == pytest.approx(expected, rel=NUMPY_SUM)


def test_every_peer_has_an_environment_with_pinned_packages_and_a_worker():
    for peer in PEERS.values():
        assert all("==" in r for r in ENVIRONMENTS[peer.environment].requirements)
        assert (BENCHMARKS / "peers" / "workers" / f"{peer.worker}.py").exists()


def run_module(*arguments):
    paths = [str(BENCHMARKS), str(Path(mf.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    where = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    done = subprocess.run([sys.executable, "-m", *arguments], env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Return a folder with the common datasets, and what the judge found."""
    folder = tmp_path_factory.mktemp("common")
    return folder, run_module("peers.judge", str(folder))[0]


@pytest.mark.parametrize(
    ("worker", "variant"), [("with_numpy", ""), ("with_morefit", "single"), ("with_morefit", "batched")]
)
def test_a_worker_times_toys_that_are_right(judged, worker, variant):
    folder, judge = judged
    order = {
        "model": "mass", "variant": variant, "threads": 1, "sizes": [2_000], "strategy": 1, "edm": 1e-4,
        "repeats": 3, "enough": 0.0, "budget": 60.0, "known": [], "common": str(folder / "mass.npz"),
    }  # fmt: skip
    lines = run_module("peers.worker", worker, json.dumps(order))
    assert [line["kind"] for line in lines] == ["cell", "check"]
    common = {"system": "numpy", "model": "mass", "threads": 1, "key": "k"}
    assert lines[0]["fits"] == 2 * lines[0]["toys_a_repeat"]
    cell, check = ({**common, **line} for line in lines)
    assert problems({"judge": judge, "checks": [check], "cells": [cell]}) == []


def make_data(**changed):
    """Return results of one peer and of morefit, all right, but for what is changed in the peer's cell."""
    cell = {
        "model": "mass", "threads": 1, "events": 1000, "key": "k", "median_ms": 3.0, "import_s": 1.0, "first_s": 1.0,
        "fits": 100, "valid": 1.0, "pull_mean": [0.0] * 4, "pull_rms": [1.0] * 4,
    }  # fmt: skip
    names = {"model": "mass", "threads": 1, "key": "k"}
    judge = {"values": [5.28, 0.06, -1.0, 0.3], "errors": [0.002, 0.002, 0.04, 0.01]}
    return {
        "machine": {"processor": "some", "cores": 2},
        "settings": {"strategy": 1},
        "environments": {"numpy": {"numpy": "1"}},
        "judge": {"mass": judge},
        "checks": [{"system": s, **names, **judge, "valid": True} for s in ("numpy", "morefit-single")],
        "cells": [{"system": "numpy", **cell, **changed}, {"system": "morefit-single", **cell}],
    }


def test_right_fits_are_no_problem():
    assert problems(make_data()) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"pull_mean": [0.0, 0.7, 0.0, 0.0]}, "pulls have means 0.00, 0.70"),
        ({"pull_rms": [1.0, 1.0, 1.6, 1.0]}, "pulls have widths 1.00, 1.00, 1.60"),
        ({"valid": 0.9}, "10.0% of 100 fits are not valid"),
        ({"error": "it broke"}, "it broke"),
        ({"key": "other"}, "timed, but not compared"),
    ],
)
def test_wrong_toys_are_told(changed, said):
    (found,) = problems(make_data(**changed))
    assert found.startswith("numpy, mass") and said in found


@pytest.mark.parametrize(("which", "shift"), [("values", 4e-6), ("errors", 4e-6)])
def test_a_minimum_a_five_hundredth_of_an_error_off_is_told(which, shift):
    data = make_data()
    row = data["checks"][0]
    row[which] = [row[which][0] + shift, *row[which][1:]]
    (found,) = problems(data)
    assert "numpy, mass" in found and "off" in found


def test_cells_are_kept_with_the_same_versions_and_tried_again_otherwise():
    done = {"key": "k", "budget": 60.0, "median_ms": 1.0}
    assert kept(done, "k", 60.0) and kept(done, "k", 600.0)
    assert not kept(done, "other", 60.0) and not kept(None, "k", 60.0)
    assert not kept({"key": "k", "error": "it broke"}, "k", 60.0)
    long = {"key": "k", "budget": 60.0, "not_run": "over budget"}
    assert kept(long, "k", 60.0) and not kept(long, "k", 120.0)


def test_the_next_size_is_expected_on_a_straight_line():
    assert extrapolate([], 1000) == 0.0
    assert extrapolate([(1000, 0.5)], 10_000) == 0.5
    assert extrapolate([(1000, 0.5), (10_000, 0.59)], 100_000) == pytest.approx(0.5 + 1e-5 * 99_000)


def test_a_peer_that_is_faster_is_named_with_the_reason():
    faster = tables(make_data(median_ms=1.0))
    assert "| iminuit, numpy by hand | 1 | 1 |" in faster
    assert "iminuit, numpy by hand, mass (10^3 events 3.0 times). Why: a call" in faster
    assert "Faster than" not in tables(make_data(median_ms=30.0))


def test_what_was_not_run_is_said():
    data = make_data()
    data["cells"][0] = {
        k: copy.copy(data["cells"][0][k]) for k in ("system", "model", "threads", "events", "key")
    }
    data["cells"][0]["not_run"] = "over budget: about 45 s a toy"
    assert "1 thread, 10^3 events: over budget: about 45 s a toy." in tables(data)
    data["environments"]["zfit"] = {"cannot be installed": "ERROR: no such thing"}
    assert "zfit cannot be installed here: ERROR: no such thing" in tables(data)


# ------------------------------------------------------------------------- models of real analyses


def test_peers_read_the_toys_that_we_write(tmp_path):
    toys = [
        (mf.Dataset({"m": [5.1 + k, 6.0]}), mf.Dataset({"x": [k], "y": [2.0]}).with_weights([0.5]))
        for k in range(2)
    ]
    analyses.save_toys(tmp_path / "toys.npz", toys)
    read = read_toys(str(tmp_path / "toys.npz"))
    assert [[sorted(part) for part in toy] for toy in read] == [[["m"], ["w", "x", "y"]]] * 2
    assert read[1][0]["m"].tolist() == [6.1, 6.0] and read[1][1]["w"].tolist() == [0.5]


@pytest.mark.skipif(find_spec("ROOT") is not None, reason="RooFit is installed here")
def test_a_peer_that_fails_is_said_to(tmp_path):
    order = {"model": "none", "floating": [], "toys": "", "strategy": 1, "seconds": 9.0}
    said = analyses.run_peer("roofit", Path(sys.executable), order, str(tmp_path))
    assert said["failed"].startswith("ModuleNotFoundError")
    assert analyses.peer_text(said) == "failed"


def test_cells_of_peers_have_time_and_shares():
    assert analyses.peer_text({"toy_us": 2359.1, "valid": 1.0, "agree": 0.5}) == "2359 (100%, 50%)"
    assert analyses.peer_text({"skipped": "not written"}) == "-"


@pytest.mark.parametrize(
    "name",
    [
        "weighted mass fit",
        pytest.param("weighted mass fit, datasets given", marks=pytest.mark.exhaustive),
    ],
)
def test_weighted_analyses_are_timed(name):
    found = analyses.time_analysis(name, mf.Cpu(threads=1), 0.01, 1)
    assert found["valid"] > 0.99 and 3 < found["evaluations"] < 8
    assert found["toy_us"] > 0 and found["pass_ns_per_event"] > 0


def test_peers_have_the_weights_of_a_formula():
    name = "weighted mass fit"
    ensemble, _ = analyses.make_ensemble(name, mf.Cpu(threads=1))
    ((data,),) = analyses.datasets(name, ensemble, 1)
    np.testing.assert_allclose(data.weights, 1 / (0.9 - 0.6 * np.exp(-(data["m"] - 5.0) / 0.4)))


@pytest.mark.parametrize("name", ["Voigt", "three angles, histogram acceptance"])
def test_shapes_at_many_events_have_a_time(name):
    nll, said = large.time_pass(name, mf.Cpu(threads=1), 1, 1000)
    assert (
        said["pass_ns_per_event"] > 0 and said["value_ns_per_event"] > 0 and said["events"] == len(nll.data)
    )


def test_values_of_peers_are_timed_where_all_parameters_differ():
    points = []
    floating = [Floating("a", 1.0, 0.0, 2.0, 0.1), Floating("b", 3.0, 0.0, 9.0, 0.1)]
    said = time_value(lambda values: points.append(values) or 5.0, floating, 3)
    assert said["nll"] == 5.0 and said["value_s"] >= 0
    assert points[0] == {"a": 1.0, "b": 3.0}
    assert all(len({point[name] for point in points}) == 4 for name in "ab")


def test_a_step_reads_nothing_that_the_step_of_another_fit_left_behind():
    # this toy looks at how slow its steps are, in the units of the step before
    ensemble, events = analyses.make_ensemble("14 parameters", mf.Cpu(threads=1))
    batch, layout = ensemble.draw(144, events[None]).batch(ensemble), ensemble.layout
    ends = []
    for left in (0.0, 1e9):
        steps = begin_steps(ensemble.driver, layout, ensemble.first_record[None])
        while steps.running.any():
            sums = batch.evaluate(np.arange(1), steps.columns("trial").copy())
            steps.column("new_value")[:] = sums.value
            steps.columns("new_gradient")[:] = sums.gradient
            steps.columns("new_hessian")[:] = sums.hessian.reshape(1, -1)
            steps.scratch[layout.state_size :] = left
            steps.advance()
        ends.append(steps.states)
    np.testing.assert_array_equal(*ends)
