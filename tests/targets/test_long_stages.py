"""Long per-call stages and many outputs: cut into functions and loops, with the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import morefit as mf
from morefit.targets.cpu import llvm, reduce_blocks
from morefit.targets.cpu.llvm import cut_body
from morefit.targets.cpu.run import Cpu
from morefit.targets.reference.run import Reference
from tolerances import SAME_LINES
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
