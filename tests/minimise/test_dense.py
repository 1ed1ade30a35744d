"""Linear algebra in plain loops, against numpy: as Python, and compiled."""

import numpy as np
import pytest

from morefit.minimise import dense
from running_drivers import compile_driver
from tolerances import REORDERED

NAMES = ("cholesky", "failed_direction", "forward", "backward", "eigen")
SIZES = [1, 2, 3, 5, 12, 17, 30]
KINDS = ["any", "positive", "diagonal", "degenerate", "rank one", "scales", "tiny", "huge", "blocks", "zero"]


@pytest.fixture(scope="module", params=["python", "compiled"])
def run(request):
    """The functions by name."""
    if request.param == "python":
        return {name: getattr(dense, name) for name in NAMES}
    return {name: compile_driver(getattr(dense, name)) for name in NAMES}


def random_matrix(size, kind):
    """A symmetric matrix of some kind."""
    rng = np.random.default_rng(size)
    a = rng.normal(size=(size, size))
    scale = 10.0 ** rng.uniform(-8, 8, size)
    column = rng.normal(size=size)
    rotation = np.linalg.qr(a)[0]
    return {
        "any": a + a.T,
        "positive": a @ a.T + np.eye(size),
        "diagonal": np.diag(column),
        "degenerate": (lambda m: m + m.T)(rotation * rng.choice([1.0, 2.0], size) @ rotation.T),
        "rank one": np.outer(column, column),
        "scales": (a + a.T) * np.outer(scale, scale),
        "tiny": 1e-100 * (a + a.T),
        "huge": 1e100 * (a + a.T),
        "blocks": (a + a.T) * (np.add.outer(np.arange(size), np.arange(size)) % 2 == 0),
        "zero": np.zeros((size, size)),
    }[kind]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_eigenvalues_and_eigenvectors_are_those_of_numpy(run, size, kind):
    matrix = random_matrix(size, kind)
    values, vectors = np.empty(size), np.empty(size * size)
    assert run["eigen"](matrix.ravel(), size, np.empty(size), values, vectors)
    vectors, largest = vectors.reshape(size, size), np.abs(matrix).max() or 1.0
    unit, scaled = matrix / largest, values / largest
    tolerance = size * REORDERED
    np.testing.assert_allclose(np.sort(scaled), np.linalg.eigvalsh(unit), atol=tolerance)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(size), atol=tolerance)
    np.testing.assert_allclose(vectors * scaled @ vectors.T, unit, atol=tolerance)


def test_eigenvalues_of_what_is_no_number_end_nowhere(run):
    matrix = np.full(9, np.nan)
    with np.errstate(all="ignore"):
        run["eigen"](matrix, 3, np.empty(3), np.empty(3), np.empty(9))  # comes back


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_factor_and_solutions_are_those_of_numpy(run, size, scale):
    unit, right = random_matrix(size, "positive"), np.random.default_rng(size).normal(size=size)
    matrix, lower, out = scale * unit, np.zeros(size * size), np.empty(size)
    least = run["cholesky"](matrix.ravel(), 0.0, size, 0.0, lower)
    factor = lower.reshape(size, size)
    np.testing.assert_allclose(factor / np.sqrt(scale), np.linalg.cholesky(unit), atol=size * REORDERED)
    assert least == np.diag(factor).min() ** 2 or least == pytest.approx(np.diag(factor).min() ** 2)
    run["forward"](lower, size, right, out)
    np.testing.assert_allclose(factor @ out, right, atol=size * REORDERED)
    run["backward"](lower, size, out, out)  # in place
    np.testing.assert_allclose(matrix @ out, right, atol=100 * size * REORDERED)


@pytest.mark.parametrize("corner", [-1.0, 0.0, 1e-14, np.nan])
def test_a_matrix_that_is_not_positive_definite_has_no_factor(run, corner):
    matrix = np.array([2.0, 1.0, 1.0, 0.5 + corner])
    assert not run["cholesky"](matrix, 0.0, 2, 1e-13, np.zeros(4)) > 1e-13


@pytest.mark.parametrize("kind", ["any", "scales", "blocks"])
@pytest.mark.parametrize("size", SIZES[1:])
def test_the_pivot_that_stops_a_factorisation_is_a_curvature(run, kind, size):
    matrix, lower, out = random_matrix(size, kind), np.ones(size * size), np.zeros(size)
    matrix -= 2 * np.diag(np.diag(matrix)) * (np.arange(size) == size - 1)  # a negative one for sure
    matrix[-1, -1] = min(matrix[-1, -1], -np.abs(matrix[-1, -1]))
    pivot = run["cholesky"](matrix.ravel(), 0.0, size, 0.0, lower)
    squared = run["failed_direction"](lower, size, out)
    row = int(np.argmin(np.diag(lower.reshape(size, size)) > 0))
    direction = np.zeros(size)
    direction[:row], direction[row] = -out[:row], 1.0
    assert squared == pytest.approx(direction @ direction)
    assert pivot < 0
    assert direction @ matrix @ direction == pytest.approx(pivot, rel=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_a_shift_is_added_to_the_diagonal(run, size):
    matrix, lower, other = random_matrix(size, "any"), np.zeros(size * size), np.zeros(size * size)
    shift = 1.0 - np.linalg.eigvalsh(matrix)[0]
    least = run["cholesky"](matrix.ravel(), shift, size, 0.0, lower)
    assert least == run["cholesky"]((matrix + shift * np.eye(size)).ravel(), 0.0, size, 0.0, other)
    np.testing.assert_array_equal(lower, other)


def test_only_the_lower_triangle_is_factorised(run):
    matrix = random_matrix(4, "positive")
    lower, other = np.zeros(16), np.zeros(16)
    run["cholesky"](matrix.ravel(), 0.0, 4, 0.0, lower)
    run["cholesky"](np.tril(matrix).ravel(), 0.0, 4, 0.0, other)
    np.testing.assert_array_equal(lower, other)


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_and_as_python_the_numbers_are_the_same(kind):
    size, both = 7, []
    matrix = random_matrix(size, kind).ravel()
    for eigen in (dense.eigen, compile_driver(dense.eigen)):
        values, vectors = np.empty(size), np.empty(size * size)
        eigen(matrix, size, np.empty(size), values, vectors)
        both.append((values, vectors))
    for mine, theirs in zip(*both, strict=True):
        np.testing.assert_array_equal(mine, theirs)
