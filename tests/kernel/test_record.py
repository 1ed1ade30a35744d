"""Records of kernels: a second process reads what a first one derived, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import morefit as mf
from morefit import pipeline
from morefit.expr import Op, apply, column, const, make, scalar
from morefit.kernel.record import GraphWriter, Parts, Record, Unrecorded, fingerprint, read_graph
from morefit.kernel.symbols import uniform
from morefit.pipeline import PASSES, Draft, compile_sampler, compile_sums, compile_values
from morefit.targets import cache
from strategies import COLUMNS, SCALARS
from zoo import kstarmumu, mass

a, b, c, m, n = *SCALARS, *COLUMNS


def forget():
    for compiled in (compile_sums, compile_values, compile_sampler):
        compiled.cache_clear()


@pytest.fixture
def second_process(tmp_path, monkeypatch):
    """Return a function that makes this process forget everything but the folder, and refuse every pass but the last."""
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path))
    forget()

    def refuse(draft):
        raise AssertionError("a pass was run")

    def start():
        forget()
        for name in PASSES:
            if name != "compile":
                monkeypatch.setitem(PASSES, name, refuse)

    yield start
    forget()


def quadrature():
    x = mf.Observable("x", 0.0, 4.0)
    p = mf.Parameter("p", 1.2, 0.5, 3.0)
    data = {"x": np.linspace(0.1, 3.9, 50)}
    return mf.Density(np.exp(-((x - p) ** 4)), x), data, [1.2]


MODELS = {"mass": lambda: mass(100), "kstarmumu": lambda: kstarmumu(100), "quadrature": quadrature}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_a_second_process_derives_nothing(name, weighted, second_process):
    model, data, point = MODELS[name]()
    weights = np.linspace(0.5, 1.5, len(next(iter(dict(data).values())))) if weighted else None

    def evaluate():
        nll = mf.Likelihood(model, data, weights=weights)
        results = [nll.value(point), nll.gradient(point), nll.hessian(point)]
        return results, [nll.compiled[order, False] for order in range(3)]

    before, first = evaluate()
    second_process()
    after, second = evaluate()
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(first, second, strict=True):
        assert one is not other
        assert one.program.kernel == other.program.kernel
        assert one.program.source == other.program.source


def test_a_second_process_draws_the_same_events(second_process):
    model, _, _ = mass(10)
    first = mf.generate(model, 100, seed=1)
    second_process()
    np.testing.assert_array_equal(mf.generate(model, 100, seed=1)["m"], first["m"])


def test_a_second_process_writes_no_text_of_kernels(second_process, monkeypatch):
    """It used to: machine code was known by the text."""
    model, data, point = mass(100)
    before = mf.Likelihood(model, data).value(point)
    second_process()
    monkeypatch.setattr("morefit.targets.cpu.llvm.render", lambda *_: pytest.fail("a text was written"))
    assert mf.Likelihood(model, data).value(point) == before


@pytest.mark.parametrize("recorded", [True, False])
def test_code_of_what_has_no_record_is_known_by_its_text(recorded, second_process, monkeypatch):
    if not recorded:
        monkeypatch.setattr(Draft, "remember", lambda *_: False)
    draft = Draft(pipeline.specs.values((a * m,)), (a,), pipeline.Settings(mf.Cpu(threads=1)))
    pipeline.run_passes(draft)
    assert draft.identity == (draft.key if recorded else None)


def test_vectors_of_other_widths_have_other_code(second_process):
    model, data, _ = mass(100)
    found = [mf.Likelihood(model, data, backend=mf.Cpu(1, width)).sums(0).program.code for width in (2, 4)]
    assert found[0] is not found[1]


def test_a_model_read_from_its_record_can_be_explained(second_process, monkeypatch):
    model, data, _ = mass(100)
    before = mf.explain(model, data).cut()
    monkeypatch.setattr(pipeline, "PASSES", dict(PASSES))
    forget()
    assert mf.explain(model, data).cut() == before


def test_another_source_makes_records_anew(second_process, monkeypatch):
    draft = Draft(pipeline.specs.values((a * m,)), (a,), pipeline.Settings(mf.Cpu(threads=1)))
    before = draft.key
    monkeypatch.setattr(pipeline, "source_version", lambda: "other")
    assert draft.key != before


def test_the_source_is_known_by_the_sizes_and_times_of_its_files():
    assert cache.source_version() == cache.source_version.__wrapped__()


@pytest.mark.parametrize(
    "other",
    [a * n, b * m, a + m, a * m * 2, a * column(mf.Observable("m", 0, 1)), a * uniform(0)],
    ids=["column", "scalar", "operation", "number", "kind", "random number"],
)
def test_other_formulas_have_other_fingerprints(other):
    assert fingerprint((a * m,)) != fingerprint((other,))


def test_fingerprints_tell_zero_from_minus_zero():
    assert fingerprint((a * const(0.0),)) != fingerprint((make(Op.MUL, (a, const(-0.0))),))


def test_expressions_come_back_as_the_same_objects():
    x, p = mf.Observable("x", 0.0, 1.0), mf.Parameter("p", 1.0)
    formula = apply(Op.EXP, p * x) + scalar("b0") * 0.1
    parts = Parts((formula,))
    writer = GraphWriter(parts)
    row = writer.add(formula)
    assert read_graph(writer.rows, parts)[row] is formula


def test_what_is_no_part_of_the_formula_has_no_record():
    writer = GraphWriter(Parts((a * m,)))
    with pytest.raises(Unrecorded, match="Observable"):
        writer.add(column(mf.Observable("x", 0, 1)))


def test_a_record_is_json_text(second_process, tmp_path):
    draft = Draft(pipeline.specs.values((a * m,)), (a,), pipeline.Settings(mf.Cpu(threads=1)))
    pipeline.run_passes(draft)
    payload = cache.load(draft.key, cache.KERNEL)
    assert Record.of(payload, Parts(draft.roots)).kernel == draft.kernel
    assert payload.startswith(b"{")
