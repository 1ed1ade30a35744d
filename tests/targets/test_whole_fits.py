"""Whole fits in compiled code: any likelihood ends where steps between evaluations end, with the same bits for any split."""

import weakref
from dataclasses import replace

import numpy as np
import pytest

import morefit as mf
from backend_rows import there
from morefit.kernel.fit_layout import FitLayout
from morefit.minimise.newton import is_valid
from morefit.minimise.newton_program import fit_driver
from morefit.targets.cpu import compile as machine
from morefit.targets.cpu.fit_driver import copy_text
from morefit.targets.cpu.run import Cpu
from morefit.targets.opencl import fit_space
from morefit.targets.opencl.dialect import OPENCL
from morefit.targets.opencl.fit import FitRunner
from morefit.targets.opencl.fit_shape import StepShape
from morefit.targets.opencl.fit_steps import step_source
from morefit.targets.opencl.host_steps import build_steps, host_takes_steps
from morefit.targets.opencl.run import OpenCL
from morefit.toys.arguments import template_of
from morefit.toys.batch import GOAL
from morefit.toys.ensemble import Ensemble
from morefit.toys.stored import StoredToys
from morefit.toys.whole_fits import whole_batch
from tolerances import EXACT_ERRORS, SAME_MINIMUM, SAME_TOY

BACKENDS = {
    "one-thread": Cpu(threads=1),
    "two-threads": Cpu(threads=2),
    "width-1": Cpu(threads=1, width=1),
    "opencl": OpenCL(),
}
X, Y = mf.Observable("x", -3.0, 3.0), mf.Observable("y", 0.0, 2.0)


def peak(prefix="", sigma=0.5):
    mu, width = mf.Parameter("mu", 0.1, -2.0, 2.0), mf.Parameter("sigma", sigma, 0.1, 2.0)
    return mf.Sum(
        [mf.Gaussian(X, mu, width), mf.Exponential(X, mf.Parameter(f"{prefix}slope", -0.3, -3.0, 3.0))],
        fractions=[mf.Parameter(f"{prefix}f", 0.6, 0.0, 1.0)],
    )


def joint():
    """Two samples with a common peak."""
    return template_of("test", peak("a_")) + template_of("test", peak("b_"))


def constrained():
    """A width that is measured elsewhere; toys draw it anew."""
    known = mf.constraint(mf.Parameter("sigma", 0.5, 0.1, 2.0), 0.5, 0.03)
    return template_of("test", peak(), [known])


def joint_constrained():
    known = mf.constraint(mf.Parameter("sigma", 0.5, 0.1, 2.0), 0.5, 0.03)
    return template_of("test", peak("a_"), [known]) + template_of("test", peak("b_"))


def integral_of_one():
    """A density whose integral is found numerically."""
    a, b = mf.Parameter("a", 0.7, 0.1, 3.0), mf.Parameter("b", 0.4, -2.0, 2.0)
    return template_of("test", mf.Density(np.exp(-a * X**2 + b * X) + 0.1, [X]))


def integral_of_two():
    a, b = mf.Parameter("a", 0.7, 0.1, 3.0), mf.Parameter("b", 0.4, -2.0, 2.0)
    return template_of("test", mf.Density(np.exp(-a * X**2 + b * X * Y) + 0.2, [X, Y]))


def mixture(components):
    """Gaussians side by side, of which fractions float: sums of pairs in tiles."""
    places = np.linspace(-2.8, 2.8, components)
    fractions = [mf.Parameter(f"f{k}", 1 / components, 0.0, 1.0) for k in range(components - 1)]
    width = 4.0 / components
    return template_of("test", mf.Sum([mf.Gaussian(X, c, width) for c in places], fractions=fractions))


# what is fitted, and how many events each part of a toy has
LIKELIHOODS = {
    "joint": (joint, [500, 300]),
    "constrained": (constrained, [400]),
    "joint_constrained": (joint_constrained, [300, 40]),
    "integral_of_one": (integral_of_one, [300]),
    "integral_of_two": (integral_of_two, [300]),
    "fourteen": (lambda: mixture(15), [3000]),
    "eighteen": (lambda: mixture(19), [4000]),  # beyond sixteen, tiles are larger on a device
}


def ensemble_of(name, backend):
    term = LIKELIHOODS[name][0]()
    start = {p.name: p.start for p in term.all_parameters}
    return Ensemble(drawn=term, fitted=term, truth=start, start=start, seed=3, backend=backend)


def sizes_of(name, toys=6):
    """Return numbers of events that differ from toy to toy."""
    return np.array(LIKELIHOODS[name][1]) + np.arange(toys)[:, None]


# A device compiles a whole fit for seconds: of what a larger one contains, it has the larger; so does code without vectors.
PARTS = {"joint", "constrained", "integral_of_one"}


def marked(name, place):
    """Return a case: exhaustive on the side if a larger one contains it, slow where it takes seconds to compile."""
    on_device = place == "opencl"
    alike = (place in ("opencl", "width-1") and name in PARTS) or (name, place) == ("eighteen", "width-1")
    slow = [pytest.mark.slow] * (
        name == "eighteen" or (on_device and name in ("fourteen", "integral_of_two"))
    )
    return pytest.param(name, place, marks=[pytest.mark.exhaustive] * alike + slow)


def cases():
    for name in LIKELIHOODS:
        for place in BACKENDS:
            yield marked(name, place)


@pytest.mark.parametrize(("name", "place"), list(cases()))
def test_a_whole_fit_ends_where_steps_between_evaluations_end(name, place):
    ensemble = ensemble_of(name, there(BACKENDS[place]))
    toys = ensemble.draw(5, sizes_of(name))
    whole, batch = toys.fit_whole(ensemble), toys.batch(ensemble)
    steps = batch.newton(np.arange(len(toys)), batch.start)
    assert whole is not None
    assert whole.valid.mean() > 0.9
    assert_same_fits(whole, steps)


def assert_same_fits(one, other):
    """Compare fits of the same toys by the same steps, but for roundings."""
    np.testing.assert_array_equal(one.valid, other.valid)
    known = np.isfinite(other.errors)
    np.testing.assert_array_equal(np.isfinite(one.errors), known)
    away = np.abs(one.values - other.values)[known] / other.errors[known]
    assert away.max() < SAME_TOY
    np.testing.assert_allclose(one.errors[known], other.errors[known], rtol=EXACT_ERRORS)
    np.testing.assert_allclose(one.nll, other.nll, rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["joint", "constrained", "joint_constrained", "integral_of_one", "integral_of_two"]
)
def test_minuit_ends_at_the_same_minimum(name):
    ensemble = ensemble_of(name, Cpu(threads=1))
    toys = ensemble.draw(5, sizes_of(name, 3))
    whole = toys.fit_whole(ensemble)
    for toy in range(3):
        result = mf.fit(toys.likelihood(toy, ensemble.fitted), minimiser="minuit")
        assert result.valid and whole.valid[toy]
        assert result.nll == pytest.approx(whole.nll[toy], abs=2 * GOAL)
        values, errors = (np.array([x[n] for n in ensemble.floating]) for x in (result.values, result.errors))
        assert np.all(np.abs(values - whole.values[toy]) < SAME_MINIMUM * errors)
        np.testing.assert_allclose(whole.errors[toy], errors, rtol=SAME_MINIMUM)


@pytest.mark.parametrize(("name", "place"), [
    ("joint", "one-thread"), ("joint", "two-threads"), ("constrained", "two-threads"), ("joint_constrained", "two-threads"),
    ("joint_constrained", "opencl"), ("integral_of_one", "two-threads"), ("integral_of_two", "two-threads"),
    ("integral_of_two", "opencl"), ("fourteen", "two-threads"),
])  # fmt: skip
def test_toys_have_the_same_bits_for_any_split_and_any_number_of_threads(name, place):
    backend = there(BACKENDS[place])
    together = ensemble_of(name, backend)
    apart = ensemble_of(name, Cpu(threads=1) if isinstance(backend, Cpu) else backend)
    sizes = sizes_of(name, 12)
    whole = together.draw(7, sizes).fit_whole(together)
    parts = [apart.draw(7 + k, sizes[k : k + 5]).fit_whole(apart) for k in range(0, 12, 5)]
    for field in ("values", "errors", "nll", "edm"):
        joined = np.concatenate([getattr(p, field) for p in parts])
        assert joined.tobytes() == getattr(whole, field).tobytes()


@pytest.mark.parametrize(("name", "place"), [
    ("joint", "one-thread"), ("constrained", "one-thread"), ("integral_of_one", "one-thread"), ("joint_constrained", "width-1"),
    ("joint_constrained", "opencl"), ("integral_of_two", "opencl"),
])  # fmt: skip
def test_stored_toys_have_the_bits_of_drawn_ones(name, place):
    ensemble = ensemble_of(name, there(BACKENDS[place]))
    toys = ensemble.draw(2, sizes_of(name, 4))
    stored = StoredToys.of(ensemble, [toys.one(k) for k in range(4)])
    drawn, again = toys.fit_whole(ensemble), stored.fit_whole(ensemble)
    for field in ("values", "errors", "nll", "edm"):
        np.testing.assert_array_equal(getattr(drawn, field), getattr(again, field))


@pytest.mark.parametrize(("name", "place", "fixed"), [
    ("joint", "one-thread", {"mu": 0.15}), ("joint", "one-thread", {"a_f": 0.6, "b_slope": -0.2}),
    ("constrained", "one-thread", {"sigma": 0.48}), ("integral_of_one", "one-thread", {"a": 0.65}),
    ("joint_constrained", "width-1", {"a_f": 0.6, "sigma": 0.48}), ("joint_constrained", "opencl", {"a_f": 0.6, "sigma": 0.48}),
    ("integral_of_two", "opencl", {"a": 0.65}),
])  # fmt: skip
def test_fixed_parameters_stay_where_they_are(name, place, fixed):
    full = ensemble_of(name, there(BACKENDS[place]))
    ensemble = full.fixing(fixed)
    toys = full.draw(5, sizes_of(name, 6))
    whole, batch = toys.fit_whole(ensemble), toys.batch(ensemble)
    assert_same_fits(whole, batch.newton(np.arange(6), batch.start))
    assert not set(fixed) & set(ensemble.floating)
    assert np.all(whole.nll >= toys.fit_whole(full).nll - 2 * GOAL)


@pytest.mark.parametrize("place", ["one-thread", "opencl"])
def test_a_part_of_a_toy_may_have_no_events(place):
    """What only that part measures is undetermined."""
    ensemble = ensemble_of("joint", there(BACKENDS[place]))
    toys = ensemble.draw(1, np.array([[400, 0], [0, 400], [400, 400]]))
    whole, batch = toys.fit_whole(ensemble), toys.batch(ensemble)
    assert_same_fits(whole, batch.newton(np.arange(3), batch.start))
    unknown = [
        {n for n, e in zip(ensemble.floating, row, strict=True) if np.isnan(e)} for row in whole.errors
    ]
    assert unknown == [{"b_f", "b_slope"}, {"a_f", "a_slope"}, set()]


# one fit at a time


DATA = mf.generate(peak(), 900, seed=1)


@pytest.mark.parametrize("options", [
    {}, {"weights": np.linspace(0.2, 1.8, 900)}, {"fixed": {"mu": 0.25}}, {"fixed": ["slope"], "weights": np.full(900, 0.5)},
], ids=["plain", "weighted", "fixed", "fixed and weighted"])  # fmt: skip
@pytest.mark.parametrize("backend", [Cpu(threads=1), Cpu(threads=2), Cpu(threads=1, width=1)], ids=repr)
def test_one_fit_in_one_call_ends_where_steps_and_minuit_end(options, backend, monkeypatch):
    likelihood = mf.Likelihood(peak(), DATA, weights=options.get("weights"), backend=backend)
    fixed = options.get("fixed", ())
    once, minuit = mf.fit(likelihood, fixed=fixed), mf.fit(likelihood, fixed=fixed, minimiser="minuit")
    monkeypatch.setattr("morefit.minimise.path.fit_at_once", lambda *_: None)
    steps = mf.fit(likelihood, fixed=fixed, minimiser="newton")
    assert once.valid and steps.valid and minuit.valid
    assert (once.minimiser, minuit.minimiser) == ("newton", "minuit")
    assert dict(once.calls) == {"value": 0, "gradient": 0, "hessian": once.calls["hessian"]}
    for name in once.names:
        error = steps.errors[name]
        assert once.values[name] == pytest.approx(steps.values[name], abs=SAME_TOY * error)
        assert once.errors[name] == pytest.approx(error, rel=EXACT_ERRORS)
        assert minuit.values[name] == pytest.approx(once.values[name], abs=SAME_MINIMUM * error)
        assert minuit.errors[name] == pytest.approx(error, rel=SAME_MINIMUM)


def test_a_joint_fit_in_one_call_shares_its_parameters():
    parts = [mf.Likelihood(peak(prefix), DATA, backend=Cpu(threads=1)) for prefix in ("a_", "b_")]
    result, minuit = mf.fit(parts[0] + parts[1]), mf.fit(parts[0] + parts[1], minimiser="minuit")
    assert result.minimiser == "newton"
    assert result.valid
    # the same data twice: the errors of what is common shrink, the others agree with each other
    assert result.values["a_f"] == pytest.approx(result.values["b_f"], abs=SAME_TOY * result.errors["a_f"])
    for name in result.names:
        assert minuit.values[name] == pytest.approx(
            result.values[name], abs=SAME_MINIMUM * result.errors[name]
        )


def test_a_fit_of_toys_says_what_is_not_valid():
    status, fixed = np.array([1.0, 2.0, 3.0, 3.0, 0.0, 4.0]), np.array([0.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    assert is_valid(status, fixed).tolist() == [True, False, False, True, False, False]


def test_issue_the_code_that_copies_events_lives_as_long_as_what_calls_it():
    """This used to be freed when 256 other programs had been used since, and the next fit of the model crashed."""
    x = mf.Observable("x", -5.0, 5.0)
    model = mf.Gaussian(x, mf.Parameter("mu", 0.1, -1.0, 1.0), mf.Parameter("sigma", 1.1, 0.1, 3.0))
    assert mf.fit(model, mf.generate(model, 200, seed=1), backend=Cpu(threads=1)).minimiser == "newton"
    code = weakref.ref(machine.find_code(copy_text(1), ["block"]))
    with machine._lock:
        machine._programs.clear()
    machine.find_code("define void @another(ptr %x) { ret void }", ["another"])
    assert code() is not None


def weighted_exponential():
    return template_of("test", mf.Exponential(X, mf.Parameter("slope", -0.4, -2.0, 2.0)), weights=1 + X**2)


@pytest.mark.parametrize("name", ["joint_constrained", "weighted"])
def test_steps_of_the_host_have_the_bits_of_steps_on_the_device(name, monkeypatch):
    backend = there(BACKENDS["opencl"])
    monkeypatch.setitem(LIKELIHOODS, "weighted", (weighted_exponential, [200]))
    ensemble = ensemble_of(name, backend)
    toys = ensemble.draw(5, sizes_of(name, 40))
    job, width = toys.whole_job(ensemble)
    rows = []
    for on_host in (True, False):
        monkeypatch.setattr(fit_space, "host_takes_steps", lambda *_, taken=on_host: taken)
        rows.append(backend.fit_whole(job, whole_batch(toys, ensemble), width))
    np.testing.assert_array_equal(*rows)


def test_the_host_takes_steps_until_the_device_would_have_been_built(monkeypatch, tmp_path):
    device = there(BACKENDS["opencl"]).open()
    monkeypatch.setattr(device, "info", replace(device.info, kind="GPU"))
    monkeypatch.setattr(device, "host_seconds", {})
    layout = FitLayout(4)
    source = step_source(fit_driver(layout), StepShape(wide=False, layout=layout), device.dialect)
    monkeypatch.setattr(device.programs, "build", lambda text: None)
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path))
    assert host_takes_steps(device, source, 5000)
    assert not host_takes_steps(device, source, 1_000_000)
    build_steps(device, source)
    assert not host_takes_steps(device, source, 1)
    device.host_seconds.clear()  # in another process
    assert host_takes_steps(device, source, 1)
    assert not host_takes_steps(device, source, 5000)


def test_texts_that_are_cut_give_the_bits_of_one_text(monkeypatch):
    backend, name = there(BACKENDS["opencl"]), "joint_constrained"
    device, rows = type(backend.open()), []
    for cut in (False, True):
        monkeypatch.setattr(device, "dialect", replace(OPENCL, cut_texts=cut))
        ensemble = ensemble_of(name, backend)
        toys = ensemble.draw(5, sizes_of(name))
        job, width = toys.whole_job(ensemble)
        rows.append(backend.fit_whole(job, whole_batch(toys, ensemble), width))
    np.testing.assert_array_equal(*rows)


def test_parts_that_are_alike_share_functions_and_programs():
    backend = there(BACKENDS["opencl"])
    job = ensemble_of("joint", backend).whole_fit()
    assert job.parts[0].sums is job.parts[1].sums  # of the CPU as well
    shared = {
        phase.name: phase.function
        for phase in FitRunner(backend.open(), job).source(32).phases
        if phase.shared
    }
    assert shared == {"draw1": "draw0", "prepare1": "prepare0", "sums1": "sums0", "combine1": "combine0"}
