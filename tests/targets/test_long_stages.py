"""Long per-call stages and many outputs: cut into functions and loops, with the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from launching import Layout, bind, model_of, moved, sums_of

import morefit as mf
from morefit.targets.cpu import llvm, loop, reduce_blocks
from morefit.targets.cpu.llvm import cut_body
from morefit.targets.cpu.run import Cpu
from morefit.targets.reference.run import Reference
from tolerances import SAME_LINES, SINGLE
from zoo import ZOO


def hessian(name, backend):
    model, data, point = ZOO[name](200)
    nll = mf.Likelihood(model, data, backend=backend)
    return nll.evaluate_full(point[None], 2), nll.compiled[2, False].program


@pytest.mark.parametrize("name", ["mass", "crystal ball", "extended", "squares"])
def test_a_stage_in_pieces_computes_the_same(name, monkeypatch):
    monkeypatch.setattr(llvm, "WHOLE", 20)
    monkeypatch.setattr(llvm, "PIECE", 17)
    monkeypatch.setattr(reduce_blocks, "LOOPED", 2)
    found, program = hessian(name, Cpu(threads=1, width=2))
    assert "@prepare_3" in program.source
    expected, _ = hessian(name, Reference())
    np.testing.assert_allclose(found.value, expected.value, rtol=SAME_LINES)
    for one, other in ((found.gradient, expected.gradient), (found.hessian, expected.hessian)):
        np.testing.assert_allclose(one, other, rtol=SAME_LINES * 100, atol=SAME_LINES * np.abs(other).max())


def test_what_a_piece_reads_an_earlier_one_keeps(monkeypatch):
    monkeypatch.setattr(llvm, "WHOLE", 20)
    monkeypatch.setattr(llvm, "PIECE", 17)
    _, program = hessian("mass", Reference())
    body = program.kernel.per_call
    pieces = cut_body(body)
    kept: dict[str, int] = {}
    for piece in pieces:
        assert piece.read.items() <= kept.items()
        kept |= piece.carried
    assert sorted(row for piece in pieces for row, _ in piece.results) == list(range(len(body.results)))


def test_a_short_stage_is_one_function():
    _, program = hessian("mass", Cpu(threads=1))
    assert "@prepare_1" not in program.source


# ------------------------------------------------------------------------------------ many scalars, many functions


@pytest.fixture
def all_in_memory(monkeypatch):
    """Load scalars where they are used, and call functions, as if there were many of them."""
    monkeypatch.setattr(loop, "MAX_SPREAD", 0)
    monkeypatch.setattr(llvm, "MAX_INLINED", 0)


@pytest.mark.parametrize("kind", ["value", "hessian", "fisher"])
@pytest.mark.parametrize("name", ZOO)
def test_scalars_that_are_loaded_where_they_are_used_are_the_same(name, kind, all_in_memory):
    backend, (_, _, point) = Cpu(threads=1), model_of(name)
    plain = sums_of(name, kind, False, Reference())
    changed = moved(plain, backend)
    assert "@own_scalars(" in changed.program.source and "%s0 " not in changed.program.source
    points = np.tile(point, (3, 1)) * [[1.0], [1.01], [0.99]]
    found, expected = (bind(one, name, Layout(37))(points) for one in (changed, plain))
    np.testing.assert_allclose(
        found, expected, rtol=SAME_LINES * 100, atol=SAME_LINES * np.abs(expected).max()
    )


def test_sums_over_nodes_and_branches_read_scalars_from_memory(all_in_memory):
    x, d = mf.Observable("x", 0.0, 10.0), mf.Observable("d", -2.0, 2.0)
    ball = mf.CrystalBall(x, mf.Parameter("mu", 5.0, 4.0, 6.0), mf.Parameter("w", 0.7, 0.2, 2.0), 1.5, 3.0)
    model = mf.Convolution(ball, mf.Gaussian(d, 0.0, mf.Parameter("s", 0.3, 0.1, 1.0)))
    data = {"x": np.linspace(1.0, 9.0, 21)}
    point = [5.1, 0.6, 0.4]
    # the width keeps machine code of other tests from being found
    found, expected = (
        mf.Likelihood(model, data, backend=backend).hessian(point)
        for backend in (Cpu(threads=1, width=2), Reference())
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_scalars_in_memory_are_rounded_in_single_precision(all_in_memory):
    model, data, point = ZOO["crystal ball"](200)
    values = [
        mf.Likelihood(model, data, backend=Cpu(threads=1, width=2), precision=precision).value(point)
        for precision in ("double", "single")
    ]
    assert values[0] == pytest.approx(values[1], rel=SINGLE * 10)


def test_functions_of_few_copies_are_inlined():
    source = sums_of("mass", "hessian", False, Cpu(threads=1)).program.source
    (exp,) = [
        line for line in source.splitlines() if line.startswith("define") and "@mf_exp2_flushed" in line
    ]
    assert "alwaysinline" in exp
