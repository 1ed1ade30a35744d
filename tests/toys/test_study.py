"""A study gives the same bits however it is cut, spread, stopped and resumed, and loses no toy."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

import morefit as mf
import zoo
from ensembles import task_of
from morefit import workers
from morefit.errors import BackendError, BrokenJob, DataError, ModelError
from morefit.jobs import run as run_module
from morefit.jobs.checkpoint import read_saved
from morefit.jobs.digest import fingerprint
from morefit.likelihood import generate
from morefit.likelihood.signs import negative_place
from morefit.random.host import stream_key
from morefit.records.results import concatenate, save_result
from morefit.sampling.generate import Sampler, poisson_sizes
from morefit.toys import negative, study, text
from morefit.toys.results import ARRAYS, HOW, LAYOUT, ToyResults
from morefit.toys.study import MAX_EVENTS, WANTED, Pace, choose_pace, cut, toy_study
from morefit.toys.task import STREAM, compute_block
from tolerances import REPEATED

TOYS = 24
EVENTS = [100 + toy for toy in range(TOYS)]  # so that a statistic knows its toy
CALLS = []


def gaussian():
    return zoo.gaussian(1)[0]


def same(one, other):
    """Assert that two results agree in everything but the time they took, to the last bit."""
    assert (one.names, one.truth, one.seed, one.first) == (other.names, other.truth, other.seed, other.first)
    for name in ARRAYS:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    assert list(one.statistics) == list(other.statistics)
    for name in one.statistics:
        assert one.statistics[name].tobytes() == other.statistics[name].tobytes(), name


# What statistics are made of here; they must be found by workers.


def remember(dataset, values):
    """Note the toy and take a little time."""
    CALLS.append(len(dataset) - 100)
    time.sleep(0.02)
    return dataset["x"].mean() - values["mu"]


class Once:
    """Does something the first time that it sees a certain toy, in whatever process that is."""

    def __init__(self, action, toy, flag):
        self.action, self.toy, self.flag = action, toy, Path(flag)

    def __call__(self, dataset, values):
        if len(dataset) - 100 == self.toy and not self.flag.exists():
            self.flag.touch()
            self.action()
        return {"first": dataset["x"][0], "mu": values["mu"]}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def press_control_c():
    raise KeyboardInterrupt


def spawned(workers=2):
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


class OddFirst(ThreadPoolExecutor):
    """Lets blocks that begin with an odd toy finish before others."""

    def submit(self, work):
        return super().submit(delayed, work)


def delayed(work):
    _, block = work.args  # versions, and the work of a block
    time.sleep(0.0 if block.args[1] % 2 else 0.05)
    return work()


# ------------------------------------------------------------------------------------ results


def test_toys_are_those_of_their_stream_and_fits_those_of_fit():
    model = gaussian()
    toys = toy_study(model, toys=3, events=[50, 80, 120], seed=5)
    for toy, data in enumerate(generate(model, [50, 80, 120], seed=stream_key(5, STREAM))):
        alone = mf.fit(model, data)
        shift = (toys.values[toy] - [alone.values[n] for n in toys.names]) / toys.errors[toy]
        assert np.all(np.abs(shift) < 0.02)
        assert toys.values[toy, "mu"] == toys.values["mu"][toy] == toys.values[toy, toys.names.index("mu")]
        assert alone.covariance["mu", "sigma"] == alone.covariance[0, 1]
    assert toys.events.tolist() == [50, 80, 120]


@pytest.mark.parametrize("name", ["mass", "extended", "numerical", "crystal_ball"])
def test_bits_do_not_depend_on_blocks_or_threads(name):
    model = getattr(zoo, name)(1)[0]
    options = {"toys": 20, "events": 150, "seed": 3}
    whole = toy_study(model, **options)
    assert len(whole) == 20
    for block, backend in ((1, "auto"), (7, mf.Cpu(threads=1)), (20, mf.Cpu(threads=3))):
        same(toy_study(model, block=block, backend=backend, **options), whole)


def test_bits_do_not_depend_on_the_kind_of_toys_around(monkeypatch):
    monkeypatch.setattr(study, "SMALL", 150)
    options = {"toys": 6, "events": [100, 200, 120, 130, 300, 90], "seed": 4}
    same(toy_study(gaussian(), block=1, **options), toy_study(gaussian(), **options))


def hill():
    """A density that is above any envelope through a few of its points, with an integral that has a formula."""
    x = mf.Observable("x", -1.0, 1.0)
    return mf.Density(1 - mf.Parameter("a", 0.7, 0.0, 1.0) * (x - 0.17) ** 2, [x])


@pytest.mark.parametrize("model", [hill(), zoo.numerical(1)[0]], ids=["whole", "batch"])
def test_a_raised_envelope_changes_no_other_toy(monkeypatch, model):
    sizes, seed, truth = [21] * 40, stream_key(2, STREAM), {p.name: p.start for p in model.parameters}
    monkeypatch.setattr(Sampler.__init__, "__defaults__", (0.0, *Sampler.__init__.__defaults__[1:]))
    samplers = [Sampler(model, truth, mf.Cpu()) for _ in sizes]
    for toy, sampler in enumerate(samplers):
        sampler.draw(np.array([sizes[toy]]), seed, toy)
    assert 0 < sum(sampler.margin > 0 for sampler in samplers) < len(sizes)  # else this tests nothing
    options = {"toys": 40, "events": sizes, "seed": 2, "statistic": lambda d, v: d["x"].sum()}
    whole = toy_study(model, **options)
    for block in (1, 9):
        same(toy_study(model, block=block, **options), whole)
    drawn = [data["x"].sum() for data in generate(model, sizes, seed=seed)]
    assert whole.statistics["statistic"].tolist() == drawn


def test_a_toy_without_events_is_counted_as_failed():
    toys = toy_study(gaussian(), toys=3, events=[100, 0, 100], seed=1)
    assert len(toys) == 3
    assert toys.valid.tolist() == [True, False, True]
    same(toys, toy_study(gaussian(), toys=3, events=[100, 0, 100], seed=1, block=1))


def test_toys_whose_density_is_negative_between_events_are_counted(monkeypatch):
    """They used to be like any other, while mf.fit of the same data is not valid."""
    x = mf.Observable("x", 0.0, 10.0)
    yields = [mf.Parameter("flat", 20.0, 0, 1e3), mf.Parameter("dip", 0.0, -30, 100)]
    model = mf.Sum([mf.Uniform(x), mf.Gaussian(x, 5.0, 0.5)], yields=yields)
    monkeypatch.setattr(negative, "LOOKED_AT", 40)
    monkeypatch.setattr(text, "LOOKED_AT", 40)
    toys = toy_study(model, toys=60, seed=1, block=25, progress=False)
    below = [bool(negative_place(model, dict(zip(toys.names, row, strict=True)))) for row in toys.values]
    assert 0 < sum(below[:40]) < 40 and any(below[40:])
    assert np.array_equal(toys.how == HOW.index("negative density"), below[:40] + [False] * 20)
    assert toys.valid.all()
    assert f"IN {sum(below[:40])} OF 40 TOYS the fitted density is negative between events" in str(toys)


def test_extended_models_draw_their_numbers_of_events():
    model = zoo.extended(1)[0]
    toys = toy_study(model, toys=30, seed=9)
    assert toys.events.tolist() == poisson_sizes(1000.0, 30, stream_key(9, STREAM)).tolist()
    same(toys, toy_study(model, toys=30, seed=9, block=11))


def test_values_and_another_model_to_fit():
    x = mf.Observable("x", -5.0, 5.0)
    sigma = mf.Parameter("sigma", 1.0, 0.1, 3.0, fixed=True)
    narrow = mf.Gaussian(x, mf.Parameter("mu", 0.0, -1.0, 1.0), sigma)
    toys = toy_study(
        gaussian(), toys=50, events=400, truth={"sigma": 2.0, "mu": 0.5}, fit_model=narrow, seed=1
    )
    assert toys.names == ("mu",)
    assert dict(toys.truth) == {"mu": 0.5, "sigma": 2.0}
    assert abs(toys.values.mean() - 0.5) < 0.1
    assert np.ptp(toys.errors) < 0.01  # sigma stays where the fitted model holds it
    assert abs(toys.errors.mean() - 1.0 / 20) < 0.01


def test_starts_are_the_users_or_the_truth():
    options = {"toys": 4, "events": 500, "seed": 1}
    here = toy_study(gaussian(), **options)
    there = toy_study(gaussian(), start={"mu": -0.9, "sigma": 2.5}, **options)
    assert there.valid.all()
    assert np.all(np.abs(here.values - there.values) < 0.02 * here.errors)
    assert here.values.tobytes() != there.values.tobytes()


def test_statistics_see_data_and_fitted_values():
    toys = toy_study(
        gaussian(), toys=5, events=EVENTS[:5], seed=1, statistic=lambda d, v: len(d) + v["mu"], block=2
    )
    assert toys.statistics["statistic"].tolist() == (toys.events + toys.values[:, 0]).tolist()


def test_an_error_in_a_statistic_names_the_toy():
    def fail(dataset, values):
        return 1 / (len(dataset) - 103)

    with pytest.raises(ZeroDivisionError) as caught:
        toy_study(gaussian(), toys=5, events=EVENTS[:5], seed=1, statistic=fail)
    assert "statistic of toy 3" in caught.value.__notes__[0]


def fickle(dataset, values):
    return {"a" if len(dataset) < 103 else "b": 1.0}


def test_statistics_must_have_the_same_names_in_every_toy():
    with pytest.raises(ModelError, match=r"the same names for every toy, a, got b for toy 3"):
        toy_study(gaussian(), toys=5, events=EVENTS[:5], seed=1, statistic=fickle)


def test_any_error_after_the_first_block_carries_what_is_finished():
    """Finished toys used to be lost with the statistic's own error if there was no file."""
    with pytest.raises(BrokenJob, match=r"got b for toy 3; 3 of 5 toys are finished; use save=") as caught:
        toy_study(gaussian(), toys=5, events=EVENTS[:5], seed=1, statistic=fickle, block=1)
    assert isinstance(caught.value.__cause__, ModelError)
    assert caught.value.finished.events.tolist() == EVENTS[:3]
    rule = r"toy study: ZeroDivisionError: division by zero; 2 of 5 toys are finished"
    with pytest.raises(BrokenJob, match=rule) as caught:
        toy_study(
            gaussian(), toys=5, events=EVENTS[:5], seed=1, statistic=lambda d, v: 1 / (len(d) - 102), block=2
        )
    assert caught.value.finished.events.tolist() == EVENTS[:2]


# ------------------------------------------------------------------------------------ blocks


def test_blocks_hold_so_many_toys_and_events():
    sizes = np.full(12_000, 16_000)
    assert list(cut(0, 12_000, sizes, Pace(5000))) == [(k, k + 2000) for k in range(0, 12_000, 2000)]
    assert list(cut(3, 10, sizes, Pace(3))) == [(3, 6), (6, 9), (9, 10)]
    few = np.full(12_000, 10)
    assert list(cut(0, 12_000, few, Pace(5000))) == [(0, 5000), (5000, 10_000), (10_000, 12_000)]


def test_blocks_grow_where_they_take_no_time():
    pace, found = Pace(10), []
    for first, stop in cut(0, 400, np.full(400, 5), pace):
        found.append(stop - first)
        pace.update((0.0, 0.6 * WANTED, 0.4 * WANTED, 1.0)[min(len(found), 4) - 1])
    assert found == [10, 80, 80, 160, 70]  # eight times as many at most, as many as the time allows, no fewer
    assert pace.events == 8 * MAX_EVENTS
    fixed = Pace(10, fixed=True)
    fixed.update(0.0)
    assert (fixed.toys, fixed.events) == (10, MAX_EVENTS)


def test_blocks_whose_events_are_looked_at_do_not_hold_more_of_them():
    def most_events(statistic):
        pace = choose_pace(None, statistic)
        for _ in range(9):
            pace.update(0.0)
        return pace.events

    assert most_events(None) == 8 * MAX_EVENTS
    assert most_events(lambda data, values: 1.0) == MAX_EVENTS


def test_a_toy_larger_than_a_block_is_one():
    sizes = np.array([10, 48_000_000, 48_000_000, 10, 10])
    assert list(cut(0, 5, sizes, Pace(5000))) == [(0, 1), (1, 2), (2, 3), (3, 5)]


# ------------------------------------------------------------------------------------ workers


def test_processes_give_the_same_bits():
    options = {"toys": TOYS, "events": EVENTS, "seed": 7, "statistic": remember}
    here = toy_study(gaussian(), **options)
    with spawned() as pool:
        same(toy_study(gaussian(), executor=pool, **options), here)
        same(toy_study(gaussian(), executor=pool, block=5, **options), here)
        with pytest.raises(BackendError, match="must pickle; define models and functions in a module"):
            toy_study(gaussian(), toys=2, events=10, executor=pool, statistic=lambda d, v: 0.0)


def test_the_order_in_which_blocks_finish_does_not_matter():
    options = {"toys": TOYS, "events": EVENTS, "seed": 7}
    with OddFirst(3) as pool:
        same(toy_study(gaussian(), executor=pool, block=3, **options), toy_study(gaussian(), **options))


def test_a_broken_pool_keeps_what_is_finished(tmp_path):
    options = {"toys": TOYS, "events": EVENTS, "seed": 7, "block": 2, "save": tmp_path / "study.npz"}
    options["statistic"] = Once(die, 15, tmp_path / "flag")
    with (
        spawned(1) as pool,
        pytest.raises(
            BrokenJob, match=r"workers are gone .* of 24 toys are finished and saved in .* call again"
        ) as caught,
    ):
        toy_study(gaussian(), executor=pool, **options)
    assert 0 < len(caught.value.finished) <= 14
    same(ToyResults.load(tmp_path / "study.npz"), caught.value.finished)
    options["statistic"].flag.unlink()
    with spawned(1) as pool, pytest.raises(BrokenJob, match="use save= to be able to resume"):
        toy_study(gaussian(), executor=pool, **(options | {"save": None}))
    with spawned(1) as pool:
        resumed = toy_study(gaussian(), executor=pool, **options)
    same(resumed, toy_study(gaussian(), **(options | {"save": None})))


def test_an_error_on_a_worker_arrives():
    with ThreadPoolExecutor(2) as pool, pytest.raises(ValueError, match="no luck"):
        toy_study(gaussian(), toys=9, events=10, executor=pool, statistic=unlucky)


def unlucky(dataset, values):
    raise ValueError("no luck")


def test_a_cancelled_block_breaks_the_study():
    class Cancelling(ThreadPoolExecutor):
        def submit(self, *args):
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with Cancelling(1) as pool, pytest.raises(BrokenJob, match="0 of 4 toys are finished"):
        toy_study(gaussian(), toys=4, events=10, executor=pool)


def test_dask_loses_nothing_when_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
    options = {"toys": TOYS, "events": EVENTS, "seed": 7, "block": 2}
    options["statistic"] = Once(die, 15, tmp_path / "flag")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = set(client.run(os.getpid).values())
        found = toy_study(gaussian(), executor=client, **options)
        client.wait_for_workers(2)
        after = set(client.run(os.getpid).values())
    assert len(before & after) == 1  # one was killed and replaced
    same(found, toy_study(gaussian(), **options))


ON_MPI = """
import sys
from mpi4py.futures import MPIPoolExecutor
import morefit as mf
import zoo

if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        assert pool.num_workers == 2
        toys = mf.toy_study(zoo.gaussian(1)[0], toys=60, events=200, seed=8, executor=pool, progress=False)
    toys.save(sys.argv[1])
"""


def mpi_environment():
    """Allow three processes on fewer cores and, if tests run as root, that; launchers but Open MPI's ignore it."""
    names = ["PRTE_MCA_rmaps_default_mapping_policy", "OMPI_MCA_rmaps_base_oversubscribe"]
    options = dict(zip(names, [":oversubscribe", "1"], strict=True))
    if os.geteuid() == 0:
        kinds = [f"{who}_ALLOW_RUN_AS_ROOT{how}" for who in ("OMPI", "PRTE") for how in ("", "_CONFIRM")]
        options |= dict.fromkeys(kinds, "1")
    options["PYTHONPATH"] = os.pathsep.join(
        [str(Path(zoo.__file__).parent), os.environ.get("PYTHONPATH", "")]
    )
    return os.environ | options


def test_mpi_gives_the_same_bits(tmp_path):
    pytest.importorskip("mpi4py", reason="needs mpi4py")
    launcher = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if launcher is None:
        pytest.skip("needs mpiexec, of any MPI")
    script, saved = tmp_path / "study.py", tmp_path / "toys.npz"
    script.write_text(ON_MPI)
    command = [launcher, "-n", "3", sys.executable, "-m", "mpi4py.futures", str(script), str(saved)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=mpi_environment())
    assert ran.returncode == 0, ran.stderr
    same(ToyResults.load(saved), toy_study(gaussian(), toys=60, events=200, seed=8))


def test_anything_else_is_no_executor():
    with pytest.raises(BackendError, match=r"executor must be a concurrent\.futures\.Executor .*, got int"):
        toy_study(gaussian(), toys=1, events=10, executor=4)


# ------------------------------------------------------------------------------------ stopping and resuming


def test_control_c_returns_what_is_finished(tmp_path, capsys):
    options = {"toys": TOYS, "events": EVENTS, "seed": 7, "block": 4}
    options |= {"statistic": Once(press_control_c, 10, tmp_path / "flag"), "save": tmp_path / "study.npz"}
    stopped = toy_study(gaussian(), **options)
    assert (stopped.first, len(stopped)) == (0, 8)
    assert "interrupted; 8 of 24 toys are finished and saved in" in capsys.readouterr().err
    same(toy_study(gaussian(), **options), toy_study(gaussian(), **(options | {"save": None})))


def test_control_c_before_the_first_block_is_just_that(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        toy_study(
            gaussian(),
            toys=4,
            events=EVENTS[:4],
            statistic=Once(press_control_c, 1, tmp_path / "flag"),
            seed=1,
        )


def test_control_c_on_a_worker_leaves_gaps_that_are_filled_later(tmp_path, capsys):
    options = {"toys": TOYS, "events": EVENTS, "seed": 7, "block": 2, "save": tmp_path / "study.npz"}
    options["statistic"] = Once(press_control_c, 8, tmp_path / "flag")
    with OddFirst(2) as pool:
        stopped = toy_study(gaussian(), executor=pool, **options)
    assert 0 < len(stopped) < TOYS
    assert "interrupted" in capsys.readouterr().err
    same(toy_study(gaussian(), **options), toy_study(gaussian(), **(options | {"save": None})))


def test_a_file_with_gaps_is_filled(tmp_path):
    path, options = tmp_path / "study.npz", {"toys": 12, "events": EVENTS[:12], "seed": 7}
    CALLS.clear()  # what a statistic fills in is a value that it uses
    whole = toy_study(gaussian(), save=path, statistic=remember, block=2, **options)
    facts = read_saved("toy study", path, LAYOUT, ToyResults).facts
    parts = [compute_block(own_task(options), k, np.array(EVENTS[k : k + 2])) for k in (4, 8, 10)]
    runs = {"facts": facts, "runs": [[4, 6], [8, 12]]}
    save_result("toy study", path, LAYOUT, concatenate(LAYOUT, parts), runs)
    same(ToyResults.load(path), ToyResults.join(parts[1:]))
    CALLS.clear()
    same(toy_study(gaussian(), save=path, statistic=remember, **options), whole)
    assert sorted(CALLS) == [0, 1, 2, 3, 6, 7]


def own_task(options):
    truth = {p.name: p.start for p in gaussian().parameters}
    return task_of(gaussian(), truth, options["seed"], mf.Cpu(), remember)


SCRIPT = """
import test_study, morefit.jobs.checkpoint as checkpoint
checkpoint.SAVE_SECONDS, checkpoint.SAVE_SHARE = 0.0, 1.0
test_study.resumable({path!r})
"""


def resumable(path):
    return toy_study(gaussian(), toys=TOYS, events=EVENTS, seed=7, statistic=remember, block=2, save=path)


def test_a_killed_study_resumes_with_the_same_bits(tmp_path):
    path = tmp_path / "study.npz"
    paths = os.pathsep.join(
        map(str, [Path(__file__).parent, Path(__file__).parents[1], Path(mf.__file__).parent.parent])
    )
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(path=str(path))], env=os.environ | {"PYTHONPATH": paths}
    )
    while not path.exists():
        assert child.poll() is None, "the study ended before it could be killed"
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    done = len(ToyResults.load(path))
    assert 0 < done < TOYS
    CALLS.clear()
    resumed = resumable(path)
    assert CALLS == list(range(done, TOYS))
    same(resumed, toy_study(gaussian(), toys=TOYS, events=EVENTS, seed=7, statistic=remember))


def test_a_finished_study_is_loaded(tmp_path):
    path = tmp_path / "study.npz"
    CALLS.clear()
    first = resumable(path)
    CALLS.clear()
    again = resumable(path)
    same(again, first)
    same(ToyResults.load(path), first)
    assert again.seconds == first.seconds
    assert not CALLS


def test_more_toys_extend_a_study(tmp_path):
    path = tmp_path / "study.npz"
    toy_study(gaussian(), toys=5, events=50, seed=7, save=path)
    same(
        toy_study(gaussian(), toys=9, events=50, seed=7, save=path),
        toy_study(gaussian(), toys=9, events=50, seed=7),
    )


def test_without_a_seed_that_of_the_file_is_taken(tmp_path):
    path = tmp_path / "study.npz"
    first = toy_study(gaussian(), toys=3, events=50, save=path)
    same(toy_study(gaussian(), toys=3, events=50, save=path), first)
    assert toy_study(gaussian(), toys=3, events=50).seed != first.seed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 8}, "seed is 7 in the file, 8 requested"),
        ({"events": 60}, "events of toy 0 are 50 in the file, 60 requested"),
        ({"toys": 2}, "toys are up to 3 in the file, 2 requested"),
        ({"truth": {"mu": 0.2}}, "truth mu is 0.1 in the file, 0.2 requested"),
        ({"start": {"mu": 0.2}}, "start mu is 0.1 in the file, 0.2 requested"),
        ({"statistic": remember}, "statistic is None in the file, 'test_study.remember' requested"),
    ],
)
def test_a_file_of_another_study_is_refused(tmp_path, changes, message):
    options = {"toys": 3, "events": 50, "seed": 7, "save": tmp_path / "study.npz"}
    toy_study(gaussian(), **options)
    with pytest.raises(
        DataError, match=f"the file belongs to a different study: {message}.*; name another file"
    ):
        toy_study(gaussian(), **(options | changes))


def test_a_file_of_another_model_is_refused(tmp_path):
    options = {"toys": 3, "events": 50, "seed": 7, "save": tmp_path / "study.npz"}
    x, mu = mf.Observable("x", -5.0, 5.0), mf.Parameter("mu", 0.1, -1.0, 1.0)
    toy_study(mf.Gaussian(x, mu, 1.0), **options)
    with pytest.raises(
        DataError,
        match=r"different study: model looks like that of the file but is not the same: numbers in it, .*; fitted model",
    ):
        toy_study(mf.Gaussian(x, mu, 1.0 + 1e-15), **options)
    with pytest.raises(
        DataError, match=r"different study: model formula is 'exp.*' in the file, '.*' requested"
    ):
        toy_study(mf.Exponential(x, mu), **options)


def test_a_file_of_another_version_is_refused(tmp_path, monkeypatch):
    options = {"toys": 3, "events": 50, "seed": 7, "save": tmp_path / "study.npz"}
    toy_study(gaussian(), **options)
    monkeypatch.setattr(workers, "morefit_version", lambda: "0.0.0")
    with pytest.raises(DataError, match=r"versions morefit is .* in the file, '0.0.0' requested"):
        toy_study(gaussian(), **options)


def test_files_that_hold_no_study_are_refused(tmp_path):
    results = toy_study(gaussian(), toys=3, events=50, seed=7)
    results.save(tmp_path / "results.npz")
    (tmp_path / "text.npz").write_text("not a zip file")
    messages = {
        "results.npz": "holds results, but not what they were computed from, so it cannot be resumed; name another",
        "text.npz": "not a file of morefit or damaged, got BadZipFile",
    }
    for name, message in messages.items():
        with pytest.raises(DataError, match=f"toy study '.*{name}': .*{message}"):
            toy_study(gaussian(), toys=3, events=50, save=tmp_path / name)
    with pytest.raises(DataError, match=r"there is no folder .*; make it first"):
        toy_study(gaussian(), toys=3, events=50, save=tmp_path / "nowhere" / "study.npz")


def test_fingerprints_are_the_same_in_every_process():
    code = "import json, zoo; from morefit.jobs.digest import fingerprint as f; print(json.dumps(f(zoo.crystal_ball(1)[0])))"
    paths = os.pathsep.join(
        map(str, [Path(__file__).parent, Path(__file__).parents[1], Path(mf.__file__).parent.parent])
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": paths}, capture_output=True, check=True
    )
    assert json.loads(run.stdout) == fingerprint(zoo.crystal_ball(1)[0])


def test_files_are_complete_archives(tmp_path):
    resumable(tmp_path / "study.npz")
    with zipfile.ZipFile(tmp_path / "study.npz") as archive:
        assert archive.testzip() is None
    with np.load(tmp_path / "study.npz") as file:
        header = json.loads(str(file["header"]))
    assert header["facts"]["seed"] == 7
    assert header["runs"] == [[0, TOYS]]


# ------------------------------------------------------------------------------------ progress


class Terminal(StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("progress", [True, False])
def test_progress_is_shown_on_a_terminal(monkeypatch, progress):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("morefit.text.progress.SECONDS_UNSHOWN", 0.0)
    toy_study(gaussian(), toys=8, events=50, seed=1, block=2, progress=progress)
    assert ("toys/s" in sys.stderr.getvalue()) is progress
    assert ("8/8" in sys.stderr.getvalue()) is progress


def test_nothing_is_shown_elsewhere(capsys):
    toy_study(gaussian(), toys=8, events=50, seed=1)
    assert capsys.readouterr() == ("", "")


# ------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"events": None}, "events is missing; the model predicts no number, as one with yields would"),
        (
            {"truth": {"sigmo": 1.0}},
            "parameter 'sigmo': not in the model, but in truth; did you mean 'sigma'?",
        ),
        ({"start": {"q": 1.0}}, "parameter 'q': not in the model, but in start; there are 'mu', 'sigma'"),
        ({"truth": {"mu": np.nan}}, "parameter 'mu': truth must be a finite number, got nan"),
        ({"start": {"mu": 2.0}}, r"parameter 'mu': start must lie in \[-1.0, 1.0\], got 2.0"),
    ],
)
def test_what_does_not_make_sense_is_refused(options, message):
    with pytest.raises(ModelError, match=message):
        toy_study(gaussian(), **({"toys": 2, "events": 10, "seed": 1} | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"toys": 0}, "toys must be at least 1, got 0"),
        ({"toys": 2.5}, "toys must be a whole number, got 2.5"),
        ({"toys": True}, "toys must be a whole number, got True"),
        ({"events": -1}, "events must be at least 0, got -1"),
        ({"events": [5, -1]}, "events must be at least 0, got -1"),
        ({"events": [5, 5, 5]}, "events must be one number, or one for each of 2 toys, got 3"),
        ({"events": 1.5}, "events must be a whole number, got .*1.5"),
        ({"events": "many"}, "events must be a whole number, got .*many"),
        ({"seed": -1}, "seed: must be a whole number from 0"),
        ({"block": 0}, "block must be at least 1, got 0"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(mf.OptionError, match=message):
        toy_study(gaussian(), **({"toys": 2, "events": 10, "seed": 1} | options))


def test_whole_numbers_may_be_written_as_physicists_do():
    assert len(toy_study(gaussian(), toys=1e1, events=1e2, seed=1)) == 10


# a device that is lost


def lose_after(monkeypatch, blocks):
    """Let the device go away after some blocks."""
    real, done = run_module.here, []

    def here(*arguments):
        for part in real(*arguments):
            if len(done) == blocks:
                raise BackendError("backend 'opencl': Toy failed while running a kernel")
            done.append(1)
            yield part

    monkeypatch.setattr(run_module, "here", here)


def test_a_lost_device_leaves_what_is_finished(monkeypatch, tmp_path):
    options = {"toys": 12, "events": 50, "seed": 7, "block": 4, "progress": False}
    whole = toy_study(gaussian(), **options)
    with monkeypatch.context() as patch:
        lose_after(patch, 2)
        with pytest.raises(
            BackendError, match=r"failed while running a kernel; 8 of 12 toys are finished"
        ) as caught:
            toy_study(gaussian(), save=tmp_path / "study.npz", **options)
    np.testing.assert_array_equal(caught.value.finished.values, whole.values[:8])
    rest = toy_study(gaussian(), save=tmp_path / "study.npz", backend="reference", **options)
    assert rest.backend == "cpu and reference"
    np.testing.assert_array_equal(rest.values[:8], whole.values[:8])
    assert (np.abs(rest.values - whole.values) <= REPEATED * whole.errors).all()


def test_a_device_lost_at_once_is_an_error(monkeypatch):
    lose_after(monkeypatch, 0)
    with pytest.raises(BackendError, match=r"^backend 'opencl': Toy failed while running a kernel$"):
        toy_study(gaussian(), toys=3, events=50, seed=1, progress=False)


def test_results_say_where_they_were_made():
    assert toy_study(gaussian(), toys=2, events=50, seed=1, progress=False).backend == "cpu"
    assert "on cpu: draw and fit" in str(toy_study(gaussian(), toys=2, events=50, seed=1, progress=False))
