"""A step compiled is a step as Python, whatever it meets; and many minimisations at once."""

import numpy as np
import pytest

import morefit as mf
from backend_rows import there
from morefit.kernel.fit_layout import PLACES, FitLayout
from morefit.kernel.read_program import read_program
from morefit.likelihood import Evaluation
from morefit.minimise.newton import begin_steps, minimise
from morefit.minimise.newton_program import advance, begin_fit, fit_driver
from morefit.minimise.quadratic_model import UNKNOWN
from morefit.minimise.starts import BESIDE, PEAK, thorough_starts
from morefit.minimise.trust_region import CONVERGED, DEGENERATE, FLAT, GIVEN_UP, MOVING
from morefit.targets.cpu.run import Cpu
from morefit.targets.opencl.run import OpenCL
from running_drivers import PythonRecord, compile_driver
from tolerances import EXACT_ERRORS, SAME_STEP

GOAL = 1e-4
SCRATCH = "free"  # what follows is not needed after a step


def random_matrices(rng, sets, count):
    """Symmetric matrices: most of them positive definite, some with a zero on the diagonal or a flat direction."""
    a = rng.normal(size=(sets, count, count))
    a[rng.random(sets) < 0.1, :, 0] = 0.0
    matrix = a @ a.transpose(0, 2, 1)
    matrix += rng.choice([0.1, -0.5, 0.0], (sets, 1, 1), p=[0.6, 0.2, 0.2]) * np.eye(count)
    matrix[rng.random(sets) < 0.1, 0, 0] = 0.0
    flat = rng.random(sets) < 0.1
    matrix[flat, 0, :] = matrix[flat, :, 0] = 0.0
    return matrix


def random_records(count, sets=300):
    """Fits on their way: at limits, at refused points, without a value yet, with nan and bad events."""
    rng = np.random.default_rng(count)
    layout = FitLayout(count)
    limits = np.array([[-1.0, 1.0]] * count)
    if count > 2:
        limits[0], limits[1], limits[-1] = (0.0, 1.0), (0.1, 1.0), (-np.inf, np.inf)
    low, high = limits.T
    start = rng.uniform(-1, 1, (sets, count))
    many = thorough_starts(count)
    records = layout.first_records(start, limits, GOAL, many)

    def write(name, values):
        records[:, layout.record.slice(name)] = np.reshape(values, (sets, -1))

    size = rng.choice([1.0, 1e-3, 0.0], (sets, 1), p=[0.4, 0.3, 0.3])
    write("x", np.clip(1.5 * rng.normal(size=(sets, count)), low, high))
    write("trial", np.clip(1.5 * rng.normal(size=(sets, count)), low, high))
    write("value", np.where(rng.random(sets) < 0.2, UNKNOWN, rng.normal(size=sets)))
    write("gradient", size * rng.normal(size=(sets, count)))
    write("hessian", random_matrices(rng, sets, count))
    write("radius", rng.choice([UNKNOWN, 1.0, 0.1, 1e-10], sets))
    write("length", rng.choice([0.0, 0.5, 2.0], sets))
    write("doubts", rng.choice([0.0, 7.0], sets))
    write("starts", rng.choice([0.0, 1.0, 3.0, 4.0, 5.0, PEAK, BESIDE, BESIDE + 1, many - 1, many], sets))
    write("thorough", rng.choice([0.0, 1.0], sets))
    write("tries", rng.choice([1.0, 99.0], sets))
    write("best", rng.uniform(-1, 1, (sets, count)))
    write("end", np.clip(rng.uniform(-1, 1, (sets, count)), low, high))
    write("scan", rng.choice([0.0, 1.0, 2.0, 5.0, 15.0], sets, p=[0.8, 0.05, 0.05, 0.05, 0.05]))
    write("absent", rng.integers(0, count, sets))
    write("shapes", rng.choice([0.0, 1.0, 2.0], sets))
    write("shape", rng.choice([0.0, 1.0], (sets, count)))
    write("score", rng.choice([0.0, 1.0, 2.0], (sets, PLACES)))
    write("amount", rng.choice([0.1, 2.0], (sets, PLACES)))
    write("end_error", rng.choice([-1.0, 0.001, 0.1], (sets, count)))
    write("rough", rng.choice([0.0, 1.0], sets))
    write("first_bend", rng.choice([-1.0, 0.0, 0.1, 1.0], (sets, count)))
    write("doubtful_end", rng.choice([0.0, 0.5, 1.0, 2.0], sets))
    write("narrow", rng.choice([0.0, 1.0], sets))
    write("returns", rng.choice([0.0, 1.0, 2.0], sets))
    write("best_gradient", rng.normal(size=(sets, count)))
    write("best_hessian", random_matrices(rng, sets, count))
    write("best_rank", rng.choice([-1.0, 0.0, 2.0], sets))
    write("best_value", rng.normal(size=sets))
    write("running", np.ones(sets))
    hessian = np.tril(random_matrices(rng, sets, count))
    hessian[rng.random(sets) < 0.1, -1, -1] = np.nan
    flat = np.diag([0.0] + [1.0] * (count - 1))
    hessian[:5] = flat  # five that end at once, with a flat direction
    size[:5] = 0.0
    write("new_value", np.where(rng.random(sets) < 0.1, np.nan, rng.normal(size=sets) - 1))
    write("new_gradient", size * rng.normal(size=(sets, count)))
    write("new_hessian", hessian)
    write("bad", rng.random(sets) < 0.1)
    last = {"new_value": -9.0, "bad": 0.0, "starts": many, "best_rank": -1.0, "scan": 0.0}
    records[:5, [layout.record.first(name) for name in last]] = list(last.values())
    return layout, records


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_compiled_step_is_the_step_of_python_bit_by_bit(count):
    layout, records = random_records(count)
    compiled, seen = compile_driver(advance, {"Fit": layout.record}), set()
    state = slice(0, layout.record.first(SCRATCH))
    for record in records:
        mine, theirs = record.copy(), record.copy()
        with np.errstate(all="ignore"):
            advance(PythonRecord(layout.record, mine))
        compiled(theirs)
        np.testing.assert_array_equal(theirs[state], mine[state])
        after = PythonRecord(layout.record, mine)
        seen.add((after.status, after.running > 0))
    assert {status for status, _ in seen} - {DEGENERATE} == {MOVING, CONVERGED, GIVEN_UP, FLAT}
    assert {running for _, running in seen} == {True, False}


@pytest.mark.parametrize("count", [1, 3, 14, 30])
def test_whole_ways_are_the_same_compiled_and_as_python(count):
    """Random quartics within limits, from begin to end, thoroughly, with all other starts."""
    rng = np.random.default_rng(count)
    layout = FitLayout(count)
    matrix = random_matrices(rng, 1, count)[0] - 0.3 * np.eye(count)
    (record,) = layout.first_records(
        rng.uniform(-1, 1, (1, count)),
        np.array([[-2.0, 1.5]] * count),
        GOAL,
        thorough_starts(count) if count < 10 else 4,
        True,
    )
    ends = []
    for begin, go_on in (
        (begin_fit, advance),
        [compile_driver(f, {"Fit": layout.record}) for f in (begin_fit, advance)],
    ):
        numbers = record.copy()
        fit = PythonRecord(layout.record, numbers)
        taken = fit if begin is begin_fit else numbers
        with np.errstate(all="ignore"):
            begin(taken)
            while fit.running > 0:
                x = fit.trial.copy()
                fit.new_value = 0.5 * x @ matrix @ x + 0.25 * np.sum(x**4) + x.sum()
                fit.new_gradient[:] = matrix @ x + x**3 + 1
                fit.new_hessian[:] = np.tril(matrix + np.diag(3 * x**2)).ravel()
                fit.bad = 0.0
                go_on(taken)
        ends.append(numbers[: layout.record.first(SCRATCH)])
    np.testing.assert_array_equal(*ends)
    assert fit.status == CONVERGED
    assert np.all(fit.error >= 0)


@pytest.mark.parametrize("private", [False, True], ids=["", "scratch in private memory"])
@pytest.mark.parametrize("count", [2, 5])
def test_a_step_on_a_device_is_that_of_the_processor(count, private):
    """But for roundings: devices may fuse a product and a sum."""
    there(OpenCL())
    from morefit.targets.opencl.device import open_device, set_arguments
    from morefit.targets.opencl.program import PREFIX, Writer, function_lines

    layout, records = random_records(count, sets=64)
    writer = Writer(scratch=layout.state_size) if private else Writer()
    lines = [
        line
        for f in read_program(advance, {"Fit": layout.record}).functions
        for line in function_lines(f, "__global ", writer)
    ]
    record = f"records + get_global_id(0) * {layout.size}"
    text = "\n".join([
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma OPENCL FP_CONTRACT OFF", *lines,
        "__kernel void run(__global double *records) {",
        *([f"double scratch[{layout.size - layout.state_size}];"] if private else []),
        f"{PREFIX}advance({record}{', scratch' if private else ''}); }}",
    ])  # fmt: skip
    device = open_device(None, None)
    kernel, out = device.programs.kernels(records, text, {"run": "run"})["run"], records.copy()
    arguments = set_arguments(kernel, device.send(records))
    device.run(kernel, len(records), 1)
    device.read(arguments[0], out)
    compiled = compile_driver(advance, {"Fit": layout.record})
    for record in records:
        compiled(record)
    state = slice(0, layout.record.first(SCRATCH))
    np.testing.assert_allclose(out[:, state], records[:, state], rtol=SAME_STEP, atol=1e-12)


def test_where_the_hessian_is_not_finite_no_point_is_taken():
    layout, records = random_records(3)
    compiled, broken = compile_driver(advance, {"Fit": layout.record}), 0
    for record in records:
        fit, x = PythonRecord(layout.record, record), record[layout.record.slice("x")].copy()
        missing, value = not np.isfinite(fit.new_hessian).all(), fit.value
        fit.starts, fit.max_starts, fit.best_rank, fit.tries, fit.scan = 0.0, 0.0, -1.0, 0.0, 0.0
        compiled(record)
        if missing:
            broken += 1
            np.testing.assert_array_equal(fit.x, x)
            assert fit.value == value
        assert np.isfinite(fit.hessian).all()
    assert broken > 10


def bent_at_zero(sets, x):
    """3 a - 5 a^2 + 10 a^4 + (b - 2)^2 / 2 + a b: for a >= 0 a minimum at a = 0, where its Hessian is indefinite."""
    a, b = x.T
    value = 3 * a - 5 * a**2 + 10 * a**4 + (b - 2) ** 2 / 2 + a * b
    gradient = np.stack([3 - 10 * a + 40 * a**3 + b, b - 2 + a], axis=1)
    one = np.ones_like(a)
    hessian = np.stack([-10 + 120 * a**2, one, one, one], axis=1).reshape(-1, 2, 2)
    return Evaluation(value, gradient, hessian, np.zeros(len(x), np.int64))


def test_a_minimum_at_a_limit_is_valid_where_the_hessian_is_positive_definite_for_the_rest():
    limits = np.array([[0.0, 9.0], [-np.inf, np.inf]])
    minima = minimise(bent_at_zero, np.array([[0.1, 0.0], [0.0, 5.0]]), limits, 1e-20)
    assert minima.valid.all()
    np.testing.assert_allclose(minima.x, [[0.0, 2.0]] * 2, atol=1e-12)
    # the slope is 5, so nll is one half higher at 0.1: the error of Minuit; b alone has unit curvature
    np.testing.assert_allclose(minima.covariance, [[[0.01, 0.0], [0.0, 1.0]]] * 2)


def test_the_error_at_a_limit_ends_at_the_other_limit():
    limits = np.array([[0.0, 0.05], [-np.inf, np.inf]])
    minima = minimise(bent_at_zero, np.array([[0.02, 0.0]]), limits, 1e-20)
    np.testing.assert_allclose(minima.errors, [[0.05, 1.0]])


def test_sets_that_are_done_are_not_evaluated_again():
    seen = []

    def bowl(sets, x):
        """Return x^4 / 4 + x^2 / 2 in two dimensions."""
        seen.append(list(sets))
        hessian = np.einsum("bi,ij->bij", 1 + 3 * x**2, np.eye(2))
        return Evaluation((x**4 / 4 + x**2 / 2).sum(axis=1), x**3 + x, hessian, np.zeros(len(x), np.int64))

    limits = np.array([[-9.0, 9.0], [-np.inf, np.inf]])
    minima = minimise(bowl, np.array([[0.0, 0.0], [0.4, 3.0], [0.0, 0.0]]), limits, 1e-20)
    assert seen[0] == [0, 1, 2]
    assert all(sets == [1] for sets in seen[1:])
    assert list(minima.steps) == [1, len(seen), 1]


def tail_at_its_limit():
    """A fit of a Crystal Ball whose tail wants to be longer than its limit allows."""
    m = mf.Observable("m", 5.0, 5.6)
    shape = [mf.Parameter("mu", 5.28, 5.2, 5.4), mf.Parameter("sigma", 0.02, 0.005, 0.1)]
    tail = [mf.Parameter("a", 1.5, 0.3, 5.0), mf.Parameter("n", 3.0, 1.01, 30.0)]
    slope = mf.Parameter("slope", -1.0, -20.0, 20.0)
    parts = [mf.CrystalBall(m, *shape, *tail), mf.Exponential(m, slope)]
    model = mf.Sum(parts, fractions=[mf.Parameter("f", 0.6, 0.0, 1.0)])
    return mf.Likelihood(model, mf.generate(model, 200, seed=5), backend=Cpu(threads=1))


@pytest.mark.parametrize("minimiser", ["minuit", "newton"])
def test_issue_a_fit_at_a_limit_is_valid_although_its_hessian_is_not_positive_definite(minimiser):
    # this used to be "not positive definite, so there are no errors", for a quarter of such fits
    likelihood = tail_at_its_limit()
    result = mf.fit(likelihood, minimiser=minimiser)
    x = [result.values[n] for n in result.floating]
    hessian, slope = likelihood.hessian(x), likelihood.gradient(x)[3]
    assert np.linalg.eigvalsh(hessian)[0] < 0
    assert result.valid
    assert result.minimiser == minimiser
    assert result.at_limit == ("n",)
    free = [0, 1, 2, 4, 5]
    inverse = np.linalg.inv(hessian[np.ix_(free, free)])
    errors = np.array([result.errors[n] for n in result.floating])
    np.testing.assert_allclose(errors[free], np.sqrt(np.diag(inverse)), rtol=EXACT_ERRORS)
    np.testing.assert_allclose(errors[3], 1 / (2 * slope), rtol=EXACT_ERRORS)
    assert np.all(result.covariance[3, free] == 0)


def test_a_parameter_without_limits_and_without_effect_is_no_parameter_at_a_limit():
    m = mf.Observable("m", 5.0, 7.0)
    mu, fraction = mf.Parameter("mu", 5.28), mf.Parameter("f", 0.0, 0.0, 1.0, fixed=True)
    signal = mf.Gaussian(m, mu, mf.Parameter("sigma", 0.06, fixed=True))
    model = mf.Sum(
        [signal, mf.Exponential(m, mf.Parameter("alpha", -1.0, -10.0, 10.0))], fractions=[fraction]
    )
    result = mf.fit(model, mf.generate(model, 300, seed=1))
    assert result.at_limit == ()
    assert not result.valid
    assert result.undetermined == ("mu",)


def test_without_effect_and_without_slope_a_parameter_at_its_limit_does_not_count_as_fixed():
    def flat(sets, x):
        zero = np.zeros(len(x))
        hessian = np.zeros((len(x), 2, 2))
        hessian[:, 1, 1] = 1.0
        return Evaluation(x[:, 1] ** 2 / 2, np.stack([zero, x[:, 1]], axis=1), hessian, zero.astype(np.int64))

    minima = minimise(flat, np.array([[0.0, 1.0]]), np.array([[0.0, 1.0], [-9.0, 9.0]]), GOAL)
    assert not minima.valid[0]
    np.testing.assert_array_equal(minima.errors, [[np.nan, 1.0]])  # what is determined is so all the same
    assert (minima.status[0], minima.fixed[0]) == (FLAT, 0)


def test_steps_are_of_the_states_that_are_there():
    """Those of a device end in other states, whose errors are then corrected."""
    layout = FitLayout(1)
    start, limits = np.array([[3.0], [-2.0]]), np.array([[-10.0, 10.0]])
    records = layout.first_records(start, limits, GOAL, 0)
    steps = begin_steps(fit_driver(layout), layout, records)
    before = steps.states.copy()

    def step():
        x = steps.columns("trial")
        steps.column("new_value")[:], steps.columns("new_gradient")[:] = x[:, 0] ** 2, 2 * x
        steps.columns("new_hessian")[:] = 2.0
        steps.advance()
        return steps.states.copy()

    first = step()
    assert not np.array_equal(first, before)
    steps.states = before.copy()
    np.testing.assert_array_equal(step(), first)
    steps.take(np.array([True, False]))
    steps.states = before[1:].copy()
    np.testing.assert_array_equal(step(), first[1:])
