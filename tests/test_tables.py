"""Every operation is one record with all its meanings; the tests name what a record lacks."""

import pytest

from morefit.expr import LEAVES, OPERATIONS, Op, Trait, with_trait
from morefit.expr.operations import EVERY_OPERATION, LlvmKind
from morefit.kernel.ir import Arith
from morefit.rewrite.derive import OWN_SLOPES, partials_of
from morefit.targets.cpu.vecmath import FUNCTIONS
from morefit.targets.cpu.vecmath.function import REGISTERED

NOT_IN_KERNELS = {
    Op.INTEGRAL,
    Op.NODE_SUM,
    Op.CELL,
    Op.NAMED,
    *(op for op in OPERATIONS if op.spelled),
}  # computed apart, or written as other operations
MACHINE = [op for op in OPERATIONS if op not in NOT_IN_KERNELS] + [Arith.SUB, Arith.NEG, Arith.DIV]
WRITTEN_BY_HAND = {Op.ADD, Op.MUL, Op.POW, Op.WHERE, Op.INTEGRAL, Op.NODE_SUM}  # in show/text.py
LACKS = {
    "a price": [op for op in OPERATIONS if op.price < 1],
    "LaTeX": [op for op in OPERATIONS if op.latex is None and op not in WRITTEN_BY_HAND],
    "LLVM": [op for op in MACHINE if op.llvm is None],
    "C": [op for op in MACHINE if not op.c],
    "C for each argument": [
        op for op in MACHINE if any(f"{{{k}}}" not in op.c for k in range(op.arity or 2))
    ],
    "a derivative": [
        op
        for op in OPERATIONS
        if (op.partials is not None) + (Trait.OWN_SLOPE in op.traits) + (Trait.NO_SLOPE in op.traits) != 1
    ],
    "a partial for each argument": [
        op for op in OPERATIONS if op.partials is not None and len(partials_of(op)) != op.arity
    ],
    "a rank of its own": [
        op for op in EVERY_OPERATION if [o.rank for o in EVERY_OPERATION].count(op.rank) != 1
    ],
    "the name of its attribute": [op for op in EVERY_OPERATION if getattr(Op, op.name) is not op],
}


@pytest.mark.parametrize("what", LACKS)
def test_every_record_is_complete(what):
    assert LACKS[what] == [], f"operations that lack {what}"


def test_leaves_are_no_operations():
    assert set(OPERATIONS) | LEAVES == set(EVERY_OPERATION)
    assert not set(OPERATIONS) & LEAVES


def test_no_two_operations_are_spelled_alike():
    for spellings in ([op.c for op in MACHINE], [name for op in OPERATIONS for name in op.ufuncs]):
        assert sorted(spellings) == sorted(set(spellings))


def test_derivatives_of_their_own_are_written():
    assert set(OWN_SLOPES) == with_trait(Trait.OWN_SLOPE)


def test_every_function_that_kernels_call_is_written():
    calls = [op.llvm for op in MACHINE if op.llvm.kind is LlvmKind.CALL]
    assert {call.name for call in calls} == set(FUNCTIONS)
    assert {call.flushed for call in calls if call.flushed} == {n for n, f in REGISTERED.items() if f.flushed}
