"""The rules of a Newton step: the same for numbers and for expressions, and right where a Hessian is not."""

import numpy as np
import pytest

import morefit as mf
from morefit.expr import evaluate
from morefit.likelihood import Evaluation
from morefit.minimise.newton import NUMBERS, minimise
from morefit.minimise.newton_kernel import make_step
from morefit.minimise.newton_rules import (
    CONVERGED,
    DAMPING,
    GIVEN_UP,
    MAX_DAMPING,
    NOT_YET,
    UNKNOWN,
    Scaled,
    State,
    advance,
    cholesky,
    factorise_free,
    root_of_covariance,
)
from morefit.targets import Cpu
from tolerances import EXACT_ERRORS, SAME_STEP

GOAL = 1e-4


def random_matrices(rng, sets, count):
    """Symmetric matrices, most of them positive definite, some with a zero on the diagonal."""
    a = rng.normal(size=(sets, count, count))
    matrix = a @ a.transpose(0, 2, 1) + rng.choice([0.1, -0.5], (sets, 1, 1), p=[0.7, 0.3]) * np.eye(count)
    matrix[rng.random(sets) < 0.1, 0, 0] = 0.0
    return matrix


def random_steps(count, sets=400):
    """What steps may meet: limits, refused trial points, no value yet, nan, bad events."""
    rng = np.random.default_rng(count)
    low, high = np.full((sets, count), -1.0), np.full((sets, count), 1.0)
    x = np.clip(rng.normal(size=(sets, count)), low, high)
    trial = np.clip(rng.normal(size=(sets, count)), low, high)
    value = np.where(rng.random(sets) < 0.2, UNKNOWN, rng.normal(size=sets))
    damping = rng.choice([0.0, DAMPING, 0.3, 5e11], sets)
    flat = np.full(sets, UNKNOWN)
    size = rng.choice([1.0, 1e-3], (sets, 1))
    state = State(
        trial, np.zeros(sets), x, value, flat, size * rng.normal(size=(sets, count)),
        random_matrices(rng, sets, count), damping,
    )  # fmt: skip
    hessian = random_matrices(rng, sets, count)
    hessian[rng.random(sets) < 0.1, -1, -1] = np.nan
    found = Evaluation(
        np.where(rng.random(sets) < 0.1, np.nan, rng.normal(size=sets)),
        size * rng.normal(size=(sets, count)),
        hessian,
        (rng.random(sets) < 0.1).astype(np.int64),
    )
    return state, found, low, high


def rows_of(state, found, low, high, count):
    """Return what the compiled step reads; sums are those of the logarithm, so their signs are turned."""
    rows = {"status": state.status, "value": state.value, "edm": state.edm, "damping": state.damping}
    rows |= {"new_value": -found.value, "bad": found.bad.astype(float), "goal": np.full(len(low), GOAL)}
    for i in range(count):
        rows |= {f"trial{i}": state.trial[:, i], f"x{i}": state.x[:, i], f"g{i}": state.gradient[:, i]}
        rows |= {f"low{i}": low[:, i], f"high{i}": high[:, i], f"new_g{i}": -found.gradient[:, i]}
        for j in range(i + 1):
            rows |= {f"h{i}_{j}": state.hessian[:, i, j], f"new_h{i}_{j}": -found.hessian[:, i, j]}
    return rows


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_step_is_the_same_for_numbers_and_for_expressions(count):
    state, found, low, high = random_steps(count)
    step = make_step(count)
    rows = rows_of(state, found, low, high, count)
    with np.errstate(all="ignore"):
        after = advance(NUMBERS, state, found, low, high, GOAL)
        root, known = root_of_covariance(NUMBERS, after, low, high)
        errors = np.where(known[:, None], np.sqrt((root**2).sum(axis=1)), -1.0)
        written = dict(zip(step.layout.state, (evaluate(e, rows) for e in step.exprs), strict=True))
    wanted = {"status": after.status, "value": after.value, "edm": after.edm, "damping": after.damping}
    for i in range(count):
        wanted |= {f"trial{i}": after.trial[:, i], f"x{i}": after.x[:, i], f"error{i}": errors[:, i]}
    for name, numbers in wanted.items():
        np.testing.assert_allclose(np.broadcast_to(written[name], numbers.shape), numbers, SAME_STEP, 1e-12)
    assert set(after.status) == {NOT_YET, CONVERGED, GIVEN_UP}


def test_where_the_hessian_is_not_finite_no_point_is_taken():
    state, found, low, high = random_steps(3)
    broken = ~np.isfinite(found.hessian).all(axis=(1, 2))
    with np.errstate(all="ignore"):
        after = advance(NUMBERS, state, found, low, high, GOAL)
    assert broken.sum() > 10
    np.testing.assert_array_equal(after.x[broken], state.x[broken])
    assert np.isfinite(after.hessian).all()


@pytest.mark.parametrize("count", [1, 2, 3, 8, 30])
def test_the_shift_makes_any_hessian_positive_definite(count):
    matrix = np.random.default_rng(1).normal(size=(200, count, count))
    matrix = matrix + matrix.transpose(0, 2, 1)
    matrix /= np.sqrt(np.abs(np.einsum("bi,bj->bij", *2 * [np.diagonal(matrix, axis1=1, axis2=2)])))
    factor = factorise_free(NUMBERS, Scaled(matrix, matrix, matrix, matrix, matrix))
    lowest = np.linalg.eigvalsh(matrix)[:, 0]
    np.testing.assert_array_equal(factor.definite, lowest > 0)
    assert np.all(factor.change + DAMPING > -lowest)


def test_a_hessian_that_is_almost_positive_definite_is_shifted_by_little():
    """This used to be Gershgorin's bound, about one, and steps became a crawl."""
    rng = np.random.default_rng(2)
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    matrix = rotation @ np.diag([-0.005, 0.3, 0.8, 1.0, 1.2, 2.5]) @ rotation.T
    scale = 1 / np.sqrt(np.diag(matrix))
    one = (matrix * np.outer(scale, scale))[None]
    factor = factorise_free(NUMBERS, Scaled(one, one, one, one, one))
    lowest = np.linalg.eigvalsh(one[0])[0]
    assert lowest < 0
    assert not factor.definite[0]
    assert -lowest < factor.change[0] < 0.1
    assert cholesky(NUMBERS, one + (factor.change[0] + DAMPING) * np.eye(6)).definite[0]


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
    found = minimise(bent_at_zero, np.array([[0.1, 0.0], [0.0, 5.0]]), limits, 1e-20)
    assert found.valid.all()
    np.testing.assert_allclose(found.x, [[0.0, 2.0]] * 2, atol=1e-12)
    # the slope is 5, so nll is one half higher at 0.1: the error of Minuit; b alone has unit curvature
    np.testing.assert_allclose(found.covariance, [[[0.01, 0.0], [0.0, 1.0]]] * 2)


def test_the_error_at_a_limit_ends_at_the_other_limit():
    limits = np.array([[0.0, 0.05], [-np.inf, np.inf]])
    found = minimise(bent_at_zero, np.array([[0.02, 0.0]]), limits, 1e-20)
    np.testing.assert_allclose(found.errors, [[0.05, 1.0]])


def test_a_fit_that_only_goes_upwards_is_given_up_early():
    """Without the most damping it would go on until the last step, with steps that move nothing."""

    def upwards(sets, x):
        """A slope that leads nowhere: every other point is higher."""
        one = np.ones((len(x), 1))
        return Evaluation(1.0 * (x[:, 0] != 0), one, one[:, :, None], np.zeros(len(x), np.int64))

    found = minimise(upwards, np.zeros((1, 1)), np.array([[-np.inf, np.inf]]), 1e-20)
    assert not found.valid[0]
    assert found.steps[0] == 1 + np.ceil(np.log10(MAX_DAMPING / DAMPING)) + 2


def test_sets_that_are_done_are_not_evaluated_again():
    seen = []

    def evaluate_some(sets, x):
        seen.append(list(sets))
        return bent_at_zero(sets, x)

    limits = np.array([[0.0, 9.0], [-np.inf, np.inf]])
    found = minimise(evaluate_some, np.array([[0.0, 2.0], [0.4, 9.0], [0.0, 2.0]]), limits, 1e-20)
    assert seen[0] == [0, 1, 2]
    assert all(sets == [1] for sets in seen[1:])
    assert list(found.steps) == [1, len(seen), 1]


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


def test_without_effect_and_without_slope_a_parameter_at_its_limit_does_not_count_as_held():
    def flat(sets, x):
        zero = np.zeros(len(x))
        hessian = np.zeros((len(x), 2, 2))
        hessian[:, 1, 1] = 1.0
        return Evaluation(x[:, 1] ** 2 / 2, np.stack([zero, x[:, 1]], axis=1), hessian, zero.astype(np.int64))

    found = minimise(flat, np.array([[0.0, 1.0]]), np.array([[0.0, 1.0], [-9.0, 9.0]]), GOAL)
    assert not found.valid[0]
    assert np.isnan(found.errors).all()
