"""Rows of tables, such as counts of bins, are drawn in compiled code: their distributions, and the same on every backend."""

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from morefit.kernel import rows_program
from morefit.kernel.rows_layout import RowsDraw, RowsTable
from morefit.random.philox import uniforms
from morefit.targets.cpu.rows import run_rows
from morefit.targets.opencl import fit as opencl_fit
from morefit.targets.opencl.run import OpenCL

TOYS = 20_000
UNLIKELY = 1e-4  # of a correct draw
MEANS = np.array([0.0, 1e-3, 0.3, 2.0, 9.99, 10.0, 17.3, 250.0, 1e4, 1e8])
SHARES = np.array([0.0, 0.1, 0.2, 0.4, 1e-4, 0.3, 0.0, 2.0, 0.0])
M = mf.Observable("m", 0.0, 10.0)
EDGES = np.linspace(0, 10, 31)
TEMPLATE = np.round(60 * np.exp(-0.5 * ((EDGES[:-1] - 4) / 1.5) ** 2) + 5)


def chi_square_probability(counts, distribution):
    """Return how likely numbers are to be as far from a distribution, in up to 40 bins of some probability each."""
    edges = np.unique(distribution.ppf(np.linspace(0.002, 0.998, 40)))
    chances = np.diff([0.0, *distribution.cdf(edges), 1.0])
    seen = np.diff([0, *(np.count_nonzero(counts <= e) for e in edges), len(counts)])
    used = chances * len(counts) > 5
    if used.sum() < 2:
        return 1.0
    expected = chances[used] * len(counts)
    return stats.chi2.sf(np.sum((seen[used] - expected) ** 2 / expected), used.sum() - 1)


def test_poisson_numbers_of_any_mean_have_their_distribution():
    (counts,) = run_rows(RowsTable.of({}, [RowsDraw(column=0, means=MEANS)]), TOYS, seed=5)
    assert not counts[:, 0].any()
    chances = [
        chi_square_probability(x, stats.poisson(m)) for x, m in zip(counts.T[1:], MEANS[1:], strict=True)
    ]
    assert min(chances) > UNLIKELY


@pytest.mark.parametrize("events", [0, 1, 30, 10_000])
def test_counts_that_add_up_to_a_number_have_binomial_distributions(events):
    (counts,) = run_rows(RowsTable.of({}, [RowsDraw(column=0, means=SHARES, events=events)]), TOYS, seed=6)
    assert np.all(counts.sum(axis=1) == events) and not counts[:, SHARES == 0].any()
    rows, shares = counts.T[SHARES > 0], SHARES[SHARES > 0] / SHARES.sum()
    chances = [
        chi_square_probability(x, stats.binom(events, p)) for x, p in zip(rows, shares, strict=True) if events
    ]
    assert min(chances, default=1.0) > UNLIKELY
    if events > 1:
        covariance = np.cov(rows)
        expected = events * (np.diag(shares) - np.outer(shares, shares))
        np.testing.assert_allclose(covariance, expected, atol=0.05 * expected.max())


def test_a_number_of_events_is_drawn_again_only_by_another_toy_row_or_draw():
    draws = [RowsDraw(column=k, means=np.full(50, 40.0)) for k in range(2)]
    columns = run_rows(RowsTable.of({}, draws), 400, seed=7).reshape(2, 400, 50)
    flat = [columns[0].ravel(), columns[1].ravel(), run_rows(RowsTable.of({}, draws), 400, seed=8)[0].ravel()]
    correlations = np.corrcoef(flat)[np.triu_indices(3, 1)]
    neighbours = [np.corrcoef(columns[0, :-1].ravel(), columns[0, 1:].ravel())[0, 1]]
    neighbours.append(np.corrcoef(columns[0, :, :-1].ravel(), columns[0, :, 1:].ravel())[0, 1])
    assert np.abs([*correlations, *neighbours]).max() < 5 / np.sqrt(len(flat[0]))


def tables():
    weights = np.where(np.arange(len(MEANS)) % 3, 0.5, 0.0)
    weighted = RowsDraw(
        column=1, means=MEANS[::-1], factors=weights, squares=weights**2, offsets=1 - weights, spread=3,
        normalised=True,
    )  # fmt: skip
    scaled = RowsDraw(column=0, means=MEANS, factors=np.full(len(MEANS), 0.25), total=2)
    shared = RowsDraw(column=0, means=MEANS[:-1] + 1, events=500.0)
    return [
        RowsTable.of({4: np.arange(10.0)}, [scaled, weighted]),
        RowsTable.of({}, [shared]),
    ]


@pytest.mark.parametrize("table", tables())
def test_compiled_rows_are_those_of_the_program_in_python(table, monkeypatch):
    def uniform(seed_low, seed_high, toy_low, toy_high, row, attempt, which):
        both = uniforms(seed_low + (seed_high << 32), toy_low + (toy_high << 32), np.array([row]), attempt)
        return float(both[which][0])

    monkeypatch.setattr(rows_program.uniform, "run", uniform)
    seed, toy = 2**63 + 11, 2**33 + 4
    compiled = run_rows(table, 2, seed, toy)
    for k in range(2):
        out = np.zeros(table.columns * table.rows)
        halves = (seed % 2**32, seed >> 32, (toy + k) % 2**32, (toy + k) >> 32)
        rows_program.draw_rows(table.words, table.numbers, out, table.rows, *halves)
        np.testing.assert_allclose(compiled[:, k].ravel(), out, rtol=1e-14)


def test_columns_of_contents_follow_from_numbers_of_events():
    count, content, total, spread, copied = run_rows(tables()[0], 50, seed=1)
    np.testing.assert_array_equal(total, np.repeat(count.sum(axis=1)[:, None], len(MEANS), axis=1))
    np.testing.assert_allclose(content.sum(axis=1), 1.0)
    assert np.all(spread[:, ::3] == 0) and np.all(copied == np.arange(10.0))
    np.testing.assert_array_equal(count % 0.25, 0.0)


def test_rows_do_not_depend_on_other_toys():
    table = RowsTable.of({}, [RowsDraw(column=0, means=np.tile(MEANS, 20))])
    all_toys = run_rows(table, 500, seed=3)
    np.testing.assert_array_equal(run_rows(table, 7, seed=3, first_toy=21), all_toys[:, 21:28])


# ------------------------------------------------------------------------------------------ whole fits


def workspace(more=0):
    """Return a workspace, with more samples that add nothing."""
    samples = [
        {"name": "s", "data": (0.4 * TEMPLATE).tolist(), "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
        {"name": "b", "data": [30.0] * 30, "modifiers": [{"name": "norm", "type": "normsys", "data": {"hi": 1.1, "lo": 0.9}}]},
    ]  # fmt: skip
    samples += [{"name": f"n{k}", "data": [0.0] * 30, "modifiers": []} for k in range(more)]
    return mf.histfactory.read({
        "channels": [{"name": "c", "samples": samples}], "version": "1.0.0",
        "observations": [{"name": "c", "data": np.round(0.4 * TEMPLATE + 30).tolist()}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
    })  # fmt: skip


def test_devices_draw_and_fit_the_same_toys_of_formulas_and_models_of_counts():
    shape = mf.Exponential(M, mf.Parameter("slope", -0.3, -2.0, 0.0))
    both = mf.BinnedLikelihood(shape, (TEMPLATE, EDGES)) + workspace()
    cpu, device = (
        mf.toy_study(both, toys=6, seed=4, backend=backend, progress=False)
        for backend in (mf.Cpu(threads=1), OpenCL())
    )
    assert not np.any([cpu.how, device.how])  # all by Newton's method
    np.testing.assert_allclose(device.values, cpu.values, rtol=1e-8)
    np.testing.assert_allclose(device.errors, cpu.errors, rtol=1e-8)


def test_toys_of_counts_at_several_truths_are_drawn_in_one_launch(monkeypatch):
    together, run = [], opencl_fit.run_joined
    monkeypatch.setattr(
        opencl_fit,
        "run_joined",
        lambda r, g, toys, rows: (together.append(len(toys.records)), run(r, g, toys, rows)),
    )
    options = {"toys": 8, "seed": 2, "progress": False}
    device, cpu = (
        mf.intervals.feldman_cousins(workspace(), "mu", [0.8, 1.2], backend=b, **options)
        for b in (OpenCL(), mf.Cpu(threads=1))
    )
    assert together == [2, 2]
    np.testing.assert_array_equal(device.p_values, cpu.p_values)


def test_stored_counts_are_fitted_by_devices_in_whole_fits():
    counts = [TEMPLATE.tolist(), (TEMPLATE + 3).tolist(), np.full(30, 40.0)]
    device, cpu = (mf.fit_many(workspace(), counts, backend=b) for b in (OpenCL(), mf.Cpu(threads=1)))
    np.testing.assert_allclose(device.values, cpu.values, rtol=1e-8)
    larger = mf.fit_many(workspace(more=9), counts, backend=OpenCL())  # the same kernels, in more memory
    np.testing.assert_allclose(larger.values, cpu.values, rtol=1e-8)


def test_counts_are_not_fitted_with_other_bins():
    """This used to fit the first counts of each toy, or those of two toys."""
    other = mf.histfactory.read({
        "channels": [{"name": "c", "samples": [{"name": "s", "data": [9.0] * 4, "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}]}],
        "observations": [{"name": "c", "data": [9.0] * 4}], "version": "1.0.0",
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
    })  # fmt: skip
    with pytest.raises(mf.FitError, match="as many bins as the one drawn from, 30, got 4"):
        mf.toy_study(workspace(), fit_model=other, toys=2, seed=1, progress=False)
