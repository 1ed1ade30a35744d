"""Every identity in the algebra, checked by number wherever its left side is defined."""

from collections import Counter
from itertools import product

import mpmath
import pytest

from morefit.expr import Op, column, const, evaluate, integral_of, leaves, make, scalar, substitute
from morefit.expr.quadrature import Axis, Domain
from morefit.rewrite.forms import DOUBLE_ANGLES
from morefit.rewrite.rules import Collector, Rule, fold_constants
from morefit.rewrite.simplify import ALGEBRA, normalise
from mp_evaluate import DIGITS, Undefined, mp_evaluate
from tolerances import FOLDED_CONSTANTS

REAL = (-2.5, -1.0, -1 / 3, 0.0, 0.25, 1.0, 3.7)  # what a wildcard without a guard may stand for

RULES = [rule for rule in (*ALGEBRA, *DOUBLE_ANGLES) if isinstance(rule, Rule)]
COLLECTED = [(rule, pair) for rule in ALGEBRA if isinstance(rule, Collector) for pair in rule.examples]
IDENTITIES = [(r.name, r.before, r.after, r.where) for r in RULES] + [
    (f"{c.name}: {before!r}", before, after, c.where) for c, (before, after) in COLLECTED
]


def points(before, after, guards):
    wilds = leaves(Op.WILD, before, after)
    choices = [guards[w].examples if w in guards else REAL for w in wilds]
    for numbers in product(*choices):
        yield {w.name: value for w, value in zip(wilds, numbers, strict=True)}


@pytest.mark.parametrize(
    ("before", "after", "guards"), [i[1:] for i in IDENTITIES], ids=[i[0] for i in IDENTITIES]
)
def test_rule_keeps_the_value(before, after, guards):
    tried = 0
    with mpmath.workdps(DIGITS):
        for values in points(before, after, guards):
            try:
                left = mp_evaluate(before, values)
            except Undefined:
                continue  # the right side may fill a hole
            tried += 1
            try:
                right = mp_evaluate(after, values)
            except Undefined:
                pytest.fail(f"at {values} the left side is {left} and the right side is not defined")
            assert abs(left - right) <= FOLDED_CONSTANTS * max(abs(left), 1), (
                f"at {values}: {left} became {right}"
            )
    assert tried > 0


@pytest.mark.parametrize(
    ("before", "after", "guards"), [i[1:] for i in IDENTITIES], ids=[i[0] for i in IDENTITIES]
)
def test_rule_invents_no_value(before, after, guards):
    """Where the left side is NaN in numpy, a hole apart, so is the right side."""
    for values in points(before, after, guards):
        if 0.0 in values.values():
            continue  # x**3 / x and its like may be filled at zero
        left, right = float(evaluate(before, values)), float(evaluate(after, values))
        assert (left == left) == (right == right), f"at {values}: {left} became {right}"


def in_variables(expr):
    return substitute(expr, {w: scalar(w.name) for w in leaves(Op.WILD, expr)})


@pytest.mark.parametrize(("rule", "pair"), COLLECTED, ids=[f"{c.name}: {pair[0]!r}" for c, pair in COLLECTED])
def test_collector_does_what_its_example_says(rule, pair):
    before, after = map(in_variables, pair)
    assert normalise(before) == normalise(after)


@pytest.mark.parametrize(("rule", "pair"), COLLECTED, ids=[f"{c.name}: {pair[0]!r}" for c, pair in COLLECTED])
def test_collector_leaves_its_result_alone(rule, pair):
    (after,) = normalise(in_variables(pair[1]))
    assert normalise(after) == (after,)


def test_names_are_unique():
    assert [name for name, count in Counter(rule.name for rule in ALGEBRA).items() if count > 1] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_guards_accept_their_own_examples(rule):
    rejected = {w.name: v for w, g in rule.where.items() for v in g.examples if not g.accepts(const(v))}
    assert rejected == {}


def test_numbers_fold():
    assert fold_constants(const(2) ** 3) is const(8)


@pytest.mark.parametrize(
    "node", [make(Op.LOG, (const(0),)), const(0) ** -1, make(Op.SQRT, (const(-1),)), const(1e300) ** 2]
)
def test_what_is_not_finite_stays_as_it_is(node):
    assert fold_constants(node) is None


def test_issue_an_integral_without_parameters_folds():
    # this used to stay, and then had no place in any stage: the kernel could not be written
    (found,) = normalise(integral_of(column("m") ** 2, Domain((Axis("m", (0.0, 3.0)),))))
    assert found.number == pytest.approx(9.0, rel=FOLDED_CONSTANTS)


def test_an_integral_with_parameters_does_not_fold():
    integral = integral_of(scalar("a") * column("m"), Domain((Axis("m", (0.0, 3.0)),)))
    assert fold_constants(integral) is None
