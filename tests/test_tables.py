"""Every operation has its row in every table; the test names those that are missing."""

from unittest.mock import MagicMock

import pytest

from morefit.expr import ARITY, LEAVES, MEANING, PRICE, Op
from morefit.expr.show import LATEX_AROUND, LATEX_NAMES, LATEX_SIGNS
from morefit.kernel import Arith
from morefit.rewrite.derive import NO_DERIVATIVE, PARTIALS, SHAPED
from morefit.targets.cpu.emit import EMIT
from morefit.targets.cpu.vecmath import FUNCTIONS

OPERATIONS = {op for op in Op if op not in LEAVES}
TABLES = {
    "ARITY (expr/ops.py)": (OPERATIONS, set(ARITY)),
    "PRICE (expr/ops.py)": (OPERATIONS, set(PRICE)),
    "MEANING (expr/evaluate.py)": (OPERATIONS, set(MEANING)),
    "PARTIALS, SHAPED or NO_DERIVATIVE (rewrite/derive.py)": (
        OPERATIONS,
        set(PARTIALS) | SHAPED | NO_DERIVATIVE,
    ),
    "LATEX_NAMES, LATEX_AROUND or LATEX_SIGNS (expr/show/latex.py)": (
        OPERATIONS - {Op.ADD, Op.MUL, Op.POW, Op.WHERE, Op.INTEGRAL},
        set(LATEX_NAMES) | set(LATEX_AROUND) | set(LATEX_SIGNS),
    ),
    "EMIT (render/emit.py)": ((OPERATIONS - {Op.INTEGRAL}) | set(Arith), set(EMIT)),
}


def names(members):
    return sorted(member.name for member in members)


@pytest.mark.parametrize("table", TABLES)
def test_every_operation_has_a_row(table):
    wanted, there = TABLES[table]
    assert names(wanted - there) == [], f"operations without a row in {table}"


@pytest.mark.parametrize("table", TABLES)
def test_no_row_is_for_something_else(table):
    wanted, there = TABLES[table]
    assert names(there - wanted) == [], f"rows of {table} that are no operation"


def test_partials_have_one_entry_for_each_argument():
    assert [op.name for op, row in PARTIALS.items() if len(row) != ARITY[op]] == []


def test_every_function_that_kernels_call_is_written():
    called = set()
    for op, emit in EMIT.items():
        writer = MagicMock()
        emit(writer, *(f"%{i}" for i in range(ARITY.get(op, 1 if op is Arith.NEG else 2) or 2)))
        called |= {call.args[0] for call in writer.call.call_args_list}
    assert sorted(called - set(FUNCTIONS)) == [], "functions missing in vecmath.FUNCTIONS"
