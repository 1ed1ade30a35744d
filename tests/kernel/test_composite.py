"""Functions of few expressions of many parameters: their Hessians are outer products, and the same as by the chain rule written out."""

import numpy as np
import pytest

import morefit as mf
from morefit.expr import Op, add_all, apply, column, const, evaluate, scalar, where
from morefit.kernel.composite import Composite
from morefit.kernel.sums import TILES_FROM, Request, event_terms
from morefit.pipeline import Columns, Settings, compile_sums
from morefit.rewrite.derive import derivatives
from morefit.targets.base import Events
from morefit.targets.cpu.run import Cpu

MANY = TILES_FROM + 1
PARAMETERS = tuple(scalar(f"p{k}") for k in range(MANY))
N = column("n")


def mixture(power=1.0):
    """Return a sum of many terms, each with a parameter of its own."""
    return add_all(*(p**power * column(f"c{k}") for k, p in enumerate(PARAMETERS)))


MU, VARIANCE = mixture(), mixture(2.0)
FUNCTIONS = {
    "poisson": N * apply(Op.LOG, MU) - (MU - N),
    "square": -0.5 * (N - MU) ** 2 / (1 + N),
    "choice": where(N > 2, N * apply(Op.LOG, MU) - MU, -MU),
    "two": where(VARIANCE > 0, -((N - MU) ** 2) / (N + VARIANCE), apply(Op.LOG, MU)),
    "root": apply(Op.SQRT, 1 + MU**2) * VARIANCE,
    "three": apply(Op.EXP, -0.01 * MU) * VARIANCE / (1 + PARAMETERS[0] ** 2),
}


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(1)
    names = {f"c{k}": rng.uniform(0.1, 1.0, 37) for k in range(MANY)}
    return names | {"n": rng.poisson(4.0, 37).astype(float)}


def hessian_by_chain_rule(formula, point, columns):
    """Differentiate twice, and evaluate every derivative in numpy."""
    values = dict(zip((p.name for p in PARAMETERS), point, strict=True)) | columns
    slopes = derivatives(formula, PARAMETERS)
    rows = [evaluate(d, values) for k, s in enumerate(slopes) for d in derivatives(s, PARAMETERS[: k + 1])]
    return np.array([np.sum(np.broadcast_to(row, 37)) for row in rows])


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hessians_are_those_of_the_chain_rule(name, weighted, careful, columns):
    point = np.linspace(0.5, 1.5, MANY)
    request = Request(FUNCTIONS[name], PARAMETERS, 2, weighted=weighted, careful=careful)
    assert isinstance(event_terms(request).structure, Composite)
    compiled = compile_sums(request, PARAMETERS, Settings(Cpu(threads=1)))
    weights = np.linspace(0.5, 2.0, 37) if weighted else None
    sums = compiled.bind(Columns(columns), Events.all_sets(37), weights)(point[None])[0]
    formula = FUNCTIONS[name] * (column("w") if weighted else const(1.0))
    expected = hessian_by_chain_rule(formula, point, columns | ({"w": weights} if weighted else {}))
    size = 1 + MANY
    assert sums[size : size + len(expected)] == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_the_products_of_slopes_are_summed_in_tiles():
    request = Request(FUNCTIONS["two"], PARAMETERS, 2)
    kernel = compile_sums(request, PARAMETERS, Settings(Cpu(threads=1))).program.kernel
    assert kernel.pairs.groups == 2
    # the value, slopes, and second derivatives of the squares
    assert len(kernel.sums.results) == 1 + 2 * MANY


@pytest.mark.parametrize("formula", [apply(Op.LOG, MU), apply(Op.EXP, MU) * apply(Op.COS, MU**2)], ids=repr)
def test_products_with_all_second_derivatives_are_left_alone(formula):
    """One logarithm is divided by its density; the product of all terms has every second derivative."""
    product = formula if formula.op is Op.LOG else mixture(3.0) * add_all(*PARAMETERS) * MU * VARIANCE
    assert not isinstance(event_terms(Request(product, PARAMETERS, 2)).structure, Composite)


def test_counts_where_next_to_nothing_is_expected_have_a_hessian():
    """The squares of slopes of an expected count of 1e-200 are zero, and a second derivative by it is infinite."""
    x = mf.Observable("x", 0.0, 300.0)
    places = np.linspace(5.0, 200.0, 14)
    peaks = [mf.Gaussian(x, float(place), 1.0) for place in places]
    model = mf.Sum(peaks, yields=[mf.Parameter(f"n{k}", 100.0, 0.0, 1e4) for k in range(14)])
    counts = np.zeros(300)
    counts[233], counts[100] = 3.0, 2.0
    nll = mf.BinnedLikelihood(model, (counts, np.linspace(0.0, 300.0, 301)))
    point = np.linspace(50.0, 150.0, 14)
    hessian = nll.hessian(point)
    # all of the count far from the peaks is due to the last one: n / yield**2
    assert hessian[13, 13] == pytest.approx(3.0 / point[13] ** 2, rel=1e-9)
    assert np.isfinite(hessian).all()
