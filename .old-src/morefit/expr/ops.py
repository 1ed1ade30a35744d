"""The closed set of operations an expression can be made of, and what each costs."""

from __future__ import annotations

from enum import Enum, auto


class Op(Enum):
    """One operation. Add a member here, then let ``tests/test_tables.py`` name the missing rows."""

    # leaves
    CONST = auto()  # a number known now
    SCALAR = auto()  # one number per call: a parameter, or a value hoisted out of the loop
    COLUMN = auto()  # one number per event: an observable, or a value computed once per dataset
    WILD = auto()  # matches anything; lives only in rules
    TABLE = auto()  # numbers known now, to be looked up by their place

    # arithmetic; ADD and MUL take any number of arguments
    ADD = auto()
    MUL = auto()
    POW = auto()

    # functions
    EXP = auto()
    EXP2 = auto()
    EXPM1 = auto()
    LOG = auto()
    LOG1P = auto()
    SQRT = auto()
    SIN = auto()
    COS = auto()
    TAN = auto()
    ASIN = auto()
    ACOS = auto()
    ATAN = auto()
    ATAN2 = auto()
    SINH = auto()
    COSH = auto()
    TANH = auto()
    ERF = auto()
    ERFC = auto()
    NDTRI = auto()  # the inverse of the standard normal distribution
    LGAMMA = auto()
    DIGAMMA = auto()
    TRIGAMMA = auto()
    TETRAGAMMA = auto()

    # choices; a comparison is 1.0 where it holds and 0.0 elsewhere
    ABS = auto()
    FLOOR = auto()
    MIN = auto()
    MAX = auto()
    LESS = auto()
    LESS_EQUAL = auto()
    EQUAL = auto()
    WHERE = auto()

    # LOOKUP(table, place): the number at a place, which must be a whole number inside the table
    LOOKUP = auto()

    # a sum over the nodes of a quadrature rule, whose columns are bound inside it
    INTEGRAL = auto()

    __hash__ = object.__hash__  # Enum's own hashes the name, in Python: a tenth of the time of every rewrite

    def __lt__(self, other: Op) -> bool:
        return bool(self.value < other.value)


LEAVES = frozenset({Op.CONST, Op.SCALAR, Op.COLUMN, Op.WILD, Op.TABLE})
NARY = frozenset({Op.ADD, Op.MUL})  # commutative and associative, any number of arguments
SYMMETRIC = NARY | {Op.MIN, Op.MAX, Op.EQUAL}  # the order of the arguments does not matter
COMPARISONS = frozenset({Op.LESS, Op.LESS_EQUAL, Op.EQUAL})

# how many arguments each operation takes; 0 stands for any number
ARITY: dict[Op, int] = {op: 1 for op in Op if op not in LEAVES} | {
    Op.ADD: 0,
    Op.MUL: 0,
    Op.POW: 2,
    Op.ATAN2: 2,
    Op.MIN: 2,
    Op.MAX: 2,
    Op.LESS: 2,
    Op.LESS_EQUAL: 2,
    Op.EQUAL: 2,
    Op.LOOKUP: 2,
    Op.WHERE: 3,
}

# rough price of one evaluation in additions, measured on vectors of eight doubles (benchmarks/vecmath.py);
# for ADD and MUL the price of each argument after the first
PRICE: dict[Op, int] = {
    Op.ADD: 1,
    Op.MUL: 1,
    Op.POW: 120,
    Op.EXP: 18,
    Op.EXP2: 15,
    Op.EXPM1: 28,
    Op.LOG: 26,
    Op.LOG1P: 32,
    Op.SQRT: 16,
    Op.SIN: 26,
    Op.COS: 26,
    Op.TAN: 60,
    Op.ASIN: 45,
    Op.ACOS: 45,
    Op.ATAN: 35,
    Op.ATAN2: 60,
    Op.SINH: 45,
    Op.COSH: 45,
    Op.TANH: 45,
    Op.ERF: 60,
    Op.ERFC: 90,
    Op.NDTRI: 120,
    Op.LGAMMA: 200,
    Op.DIGAMMA: 200,
    Op.TRIGAMMA: 200,
    Op.TETRAGAMMA: 200,
    Op.ABS: 1,
    Op.FLOOR: 1,
    Op.MIN: 1,
    Op.MAX: 1,
    Op.LESS: 1,
    Op.LESS_EQUAL: 1,
    Op.EQUAL: 1,
    Op.WHERE: 1,
    Op.LOOKUP: 12,
    Op.INTEGRAL: 1000,
}
DIVISION_PRICE = 10  # of the reciprocal that a negative power needs
