"""Acceptances made from simulation: coefficients, their covariance, what they are used for, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import morefit as mf

X, Y = mf.Observable("x", 0.0, 4.0), mf.Observable("y", -1.0, 1.0)
TRUTH = mf.acceptance.Expansion([X, Y], [[1.0, 0.2], [0.3, -0.1]])
FLAT = mf.Product([mf.Uniform(X), mf.Uniform(Y)])
STEEP = mf.Product([mf.Exponential(X, -0.4), mf.Polynomial(Y, [0.3])])


def thinned(pdf: mf.Pdf, events: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return generated events, and which of them are accepted."""
    data = mf.generate(pdf, events, seed=seed)
    t, y = data["x"] / 2 - 1, data["y"]
    efficiency = 0.5 * (1 + 0.2 * y + 0.3 * t - 0.1 * t * y)
    keep = np.random.default_rng(seed).random(events) < efficiency
    return {"x": data["x"], "y": y}, keep


def chosen(columns: dict[str, np.ndarray], keep: np.ndarray) -> dict[str, np.ndarray]:
    return {name: column[keep] for name, column in columns.items()}


def pulls(made: mf.acceptance.SampledExpansion, truth: np.ndarray) -> np.ndarray:
    free = made.errors > 0
    return ((made.numbers - truth) / np.where(free, made.errors, 1.0))[free]


@pytest.mark.parametrize("how", ["flat", "density", "sample"])
def test_coefficients_are_those_of_the_acceptance_within_their_errors(how):
    """Over 40 samples the pulls have mean 0 and width 1."""
    pdf = FLAT if how == "flat" else STEEP
    truth = np.array([[1.0, 0.2], [0.3, -0.1]]) * (0.5 if how == "sample" else 1.0)
    all_pulls = []
    for seed in range(40):
        columns, keep = thinned(pdf, 2000, seed)
        generated = {"flat": None, "density": STEEP, "sample": columns}[how]
        made = mf.acceptance.from_sample(chosen(columns, keep), [X, Y], orders=1, generated=generated)
        all_pulls.append(pulls(made, truth))
    assert np.abs(np.mean(all_pulls, axis=0)).max() < 4 / np.sqrt(40)
    assert np.std(all_pulls) == pytest.approx(1.0, abs=4 / np.sqrt(2 * 120))


def test_chebyshev_and_legendre_are_the_same_function():
    columns, keep = thinned(FLAT, 3000, 1)
    one, other = (
        mf.acceptance.from_sample(chosen(columns, keep), [X, Y], orders=[3, 2], kind=kind)
        for kind in ("legendre", "chebyshev")
    )
    t = np.linspace(-1, 1, 5)
    left = np.polynomial.legendre.leggrid2d(t, t, one.numbers)
    assert np.polynomial.chebyshev.chebgrid2d(t, t, other.numbers) == pytest.approx(left, rel=1e-12)
    assert one.covariance.shape == other.covariance.shape == (12, 12)
    assert repr(one) == f"Expansion(x, y; legendre, orders 3 x 2; from {keep.sum()} events)"


TABLES = {"histogram": [[0.0, 1.0, 4.0], [-1.0, 0.5, 1.0]], "spline": [[0.0, 1.0, 2.5, 4.0]]}


def in_one(columns: dict[str, np.ndarray], kind: str) -> dict[str, np.ndarray]:
    return columns if kind == "histogram" else {"x": columns["x"]}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("how", ["flat", "density", "sample"])
def test_histograms_and_splines_are_the_acceptance_within_their_errors(kind, how):
    """Over 60 samples the pulls have mean 0 and width 1; numbers are means over bins, or values at knots."""
    pdf, scale = FLAT if how == "flat" else STEEP, 0.5 if how == "sample" else 1.0
    observables, own = ([X, Y], STEEP) if kind == "histogram" else ([X], mf.Exponential(X, -0.4))
    truth, all_pulls = scale * true_table(kind, how), []
    for seed in range(60):
        columns, keep = thinned(pdf, 3000, seed)
        if kind == "spline":  # in x alone the acceptance is the mean over y
            rng = np.random.default_rng(seed)
            keep = rng.random(3000) < 0.5 * (1 + 0.3 * (columns["x"] / 2 - 1))
        columns = in_one(columns, kind)
        generated = {"flat": None, "density": own, "sample": columns}[how]
        made = mf.acceptance.from_sample(
            chosen(columns, keep), observables, bins=TABLES[kind], kind=kind, generated=generated
        )
        all_pulls.append(pulls(made, truth))
    assert np.abs(np.mean(all_pulls, axis=0)).max() < 4 / np.sqrt(60)
    assert np.std(all_pulls) == pytest.approx(1.0, abs=4 / np.sqrt(2 * 60 * 3))


def true_table(kind: str, how: str) -> np.ndarray:
    if kind == "spline":
        return 1 + 0.3 * (np.array(TABLES["spline"][0]) / 2 - 1)
    pdf, density = (
        (STEEP, mf.Efficiency(STEEP, TRUTH)) if how == "sample" else (FLAT, mf.Efficiency(FLAT, TRUTH))
    )
    total = TRUTH.coefficients[0, 0].number if how != "sample" else STEEP_MEAN
    boxes = [[{"x": x, "y": y} for y in pairs(TABLES["histogram"][1])] for x in pairs(TABLES["histogram"][0])]
    return np.array([[total * density.integrate(b) / pdf.integrate(b) for b in row] for row in boxes])


def pairs(edges: list[float]) -> list[tuple[float, float]]:
    return list(pairwise(edges))


T = np.polynomial.legendre.leggauss(20)
STEEP_MEAN = float(
    np.einsum("i,j,ij->", *(
        w * pdf for w, pdf in (
            (T[1], np.exp(-0.8 * T[0]) / (T[1] @ np.exp(-0.8 * T[0]))), (T[1], (1 + 0.3 * T[0]) / (T[1] @ (1 + 0.3 * T[0])))
        )
    ), 1 + 0.2 * T[0][None] + 0.3 * T[0][:, None] - 0.1 * T[0] * T[0][:, None])
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        ("histogram", "cpu"), ("histogram", "reference"), ("spline", "cpu"),
        pytest.param("spline", "reference", marks=pytest.mark.exhaustive),
    ],
)  # fmt: skip
def test_errors_of_a_table_enter_a_fit_by_its_constraint(kind, backend):
    columns, keep = thinned(FLAT, 3000, 3)
    made = mf.acceptance.from_sample(chosen(columns, keep), X, bins=TABLES[kind][0], kind=kind)
    tau = mf.Parameter("tau", -0.4, -2.0, 1.0)
    pdf = mf.Exponential(X, tau)
    data = mf.generate(mf.Efficiency(pdf, made), 4000, seed=4)
    free, measured = made.floating("acc")
    fixed = mf.fit(mf.Efficiency(pdf, made), data, backend=backend)
    constrained = mf.fit(mf.Efficiency(pdf, free), data, constraints=measured, backend=backend)
    assert fixed.valid and constrained.valid
    assert set(constrained.floating) == {"tau", *(f"acc_{k}" for k in range(made.numbers.size))}
    assert constrained.errors["tau"] > 1.2 * fixed.errors["tau"]
    assert fixed.values["tau"] == pytest.approx(-0.4, abs=4 * fixed.errors["tau"])


def test_tables_in_two_observables_float_print_and_vary():
    columns, keep = thinned(FLAT, 3000, 3)
    made = mf.acceptance.from_sample(
        chosen(columns, keep), [X, Y], bins=TABLES["histogram"], kind="histogram"
    )
    assert repr(made) == f"Acceptance(x, y; histogram, 2 x 2 values; from {keep.sum()} events)"
    free, measured = made.floating("acc")
    box = {"x": (0, 1), "y": (0, 1)}
    fixed, floating = (mf.Efficiency(STEEP, one) for one in (made, free))
    assert floating.integrate(box) == pytest.approx(fixed.integrate(box), rel=1e-9)
    result = mf.fit(floating, mf.generate(fixed, 500, seed=1), constraints=measured)
    assert result.valid
    drawn = np.array([mf.Efficiency(FLAT, made.varied(seed)).integrate({"x": (0, 1)}) for seed in range(50)])
    assert 0 < drawn.std() < 0.05


def test_empty_bins_are_zero_without_an_error():
    events = {"x": np.linspace(0, 1.9, 100)}
    made = mf.acceptance.from_sample(events, X, bins=4, kind="histogram")
    assert made.numbers[3] == made.errors[3] == 0.0
    free, _ = made.floating("acc")
    assert mf.Efficiency(mf.Uniform(X), free).integrate({"x": (3, 4)}) == 0.0


def test_weights_of_simulated_events_count():
    columns, keep = thinned(FLAT, 4000, 2)
    every = mf.Dataset(columns, [X, Y], weights=np.where(keep, 1.0, 1e-300))
    one = mf.acceptance.from_sample(every, [X, Y], orders=2)
    other = mf.acceptance.from_sample(chosen(columns, keep), [X, Y], orders=2)
    assert one.numbers == pytest.approx(other.numbers, rel=1e-9, abs=1e-12)
    assert one.covariance == pytest.approx(other.covariance, rel=1e-9, abs=1e-15)


def test_errors_of_an_acceptance_enter_a_fit_by_its_constraint():
    columns, keep = thinned(FLAT, 3000, 3)
    made = mf.acceptance.from_sample(chosen(columns, keep), [X, Y], orders=1)
    tau = mf.Parameter("tau", -0.4, -2.0, 1.0)
    pdf = mf.Product([mf.Exponential(X, tau), mf.Polynomial(Y, [0.3])])
    data = mf.generate(mf.Efficiency(pdf, TRUTH), 4000, seed=4)
    free, measured = made.floating("acc")
    fixed, constrained = (
        mf.fit(mf.Efficiency(pdf, made), data),
        mf.fit(mf.Efficiency(pdf, free), data, constraints=measured),
    )
    assert set(constrained.floating) == {"tau", "acc_0_1", "acc_1_0", "acc_1_1"}
    assert constrained.errors["tau"] > 1.2 * fixed.errors["tau"]


def test_variations_follow_the_errors_of_an_acceptance():
    columns, keep = thinned(FLAT, 3000, 3)
    made = mf.acceptance.from_sample(chosen(columns, keep), [X, Y], orders=1)
    drawn = [[c.number for c in made.varied(seed).coefficients.ravel()] for seed in range(400)]
    assert np.mean(drawn, axis=0) == pytest.approx(made.numbers.ravel(), abs=4 * made.errors.max() / 20)
    assert np.std(drawn, axis=0) == pytest.approx(made.errors.ravel(), rel=4 / np.sqrt(800), abs=1e-12)


def test_a_negative_acceptance_is_said_and_refused():
    events = {"x": np.linspace(0.5, 1.0, 200)}
    with pytest.warns(UserWarning, match=r"acceptance: negative in .* of the ranges, down to .* at x = "):
        made = mf.acceptance.from_sample(events, X, orders=2)
    with pytest.raises(mf.ModelError, match="must be finite and not negative"):
        mf.Efficiency(mf.Uniform(X), made)
    assert mf.Efficiency(mf.Uniform(X), np.maximum(made, 0)).integrate({"x": (0, 4)}) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"orders": 60}, mf.DataError, "61 coefficients need more events, got 50; lower the orders"),
        ({"orders": [1, 2]}, mf.ModelError, "needs one order for each of 1 observables, got 2"),
        ({"orders": 1.5}, mf.ModelError, "acceptance: an order must be a whole number, got 1.5"),
        ({"orders": -1}, mf.ModelError, "acceptance: an order must be"),
        ({"orders": 0}, mf.ModelError, "not all of them 0"),
        (
            {"orders": 2, "kind": "bins"},
            mf.ModelError,
            "kind must be one of 'legendre', 'chebyshev', 'histogram', 'spline', got 'bins'",
        ),
        ({"orders": 2, "kind": "histogram"}, mf.ModelError, "kind 'histogram' needs bins=, and no orders="),
        ({}, mf.ModelError, "kind 'legendre' needs orders=, and no bins="),
        ({"bins": 0, "kind": "histogram"}, mf.ModelError, "acceptance: bins must be at least 1, got 0"),
        ({"bins": 2, "kind": "spline"}, mf.ModelError, "a spline needs 3 bins or more, got 2"),
        (
            {"bins": [[1, 2], [1, 2]], "kind": "histogram"},
            mf.ModelError,
            "needs bins for each of 1 observables, got 2",
        ),
        ({"bins": [1.0, 4.0], "kind": "histogram"}, mf.ModelError, "must cover the range"),
        (
            {"bins": [0.0, 4.0, 2.0], "kind": "histogram"},
            mf.ModelError,
            "acceptance: bins of 'x' must be two or more",
        ),
        (
            {"bins": 50, "kind": "histogram"},
            mf.DataError,
            "50 coefficients need more events, got 50; use fewer bins",
        ),
        (
            {"bins": 4, "kind": "histogram", "generated": {"x": np.linspace(0, 2.9, 90)}},
            mf.DataError,
            "1 of 4 bins have no generated events; use fewer bins",
        ),
        (
            {"bins": 2, "kind": "histogram", "generated": {"x": np.linspace(0, 4, 50) ** 2 / 4}},
            mf.DataError,
            "more events are accepted than generated in 1 of 2 bins; give all generated events",
        ),
        (
            {"orders": 2, "generated": mf.Uniform(Y)},
            mf.ModelError,
            "generated must be a density in x, got one in y",
        ),
        (
            {"orders": 2, "generated": {"x": [1.0]}},
            mf.DataError,
            "1 generated events do not determine 3 coefficients",
        ),
        (
            {"orders": 2, "generated": mf.Density(mf.where(X < 2, 0, 1), X)},
            mf.ModelError,
            "the generated density must be positive at all events, got 0",
        ),
    ],
)
def test_arguments_that_make_no_expansion_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        mf.acceptance.from_sample({"x": np.linspace(0, 4, 50)}, X, **options)


def test_simulations_without_events_are_refused():
    with pytest.raises(mf.DataError, match="acceptance: the simulation has no events"):
        mf.acceptance.simulation({"x": []}, X)
    with pytest.raises(mf.DataError, match="1 of 1 events lie outside"):
        mf.acceptance.simulation({"x": [7.0]}, X)
