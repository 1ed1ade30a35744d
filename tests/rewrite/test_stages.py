"""Splitting by what things depend on: same values, less in the loop."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge import judge, walk
from morefit.expr import (
    NodeRule,
    Op,
    column,
    evaluate,
    integral_of,
    leaves,
    make,
    node_price,
    node_sum,
    price,
    scalar,
    toposort,
)
from morefit.expr.quadrature import Axis, Domain
from morefit.pipeline import Columns, Settings, compile_values
from morefit.rewrite.derive import gradient
from morefit.rewrite.precompute import READ_PRICE, choose_columns
from morefit.rewrite.simplify import bind, normalise
from morefit.rewrite.stages import Depends, depends_on, event_sums, regroup, split
from morefit.targets.base import Events
from morefit.targets.reference.run import Reference
from strategies import COLUMNS, SCALARS, expressions, points
from tolerances import REORDERED
from zoo_expressions import kstarmumu, mass_model

a, b, c, m, n = *SCALARS, *COLUMNS
several = st.lists(expressions(), min_size=1, max_size=3).map(tuple)
TRANSCENDENTAL = {Op.SIN, Op.COS, Op.SQRT, Op.EXP, Op.EXP2, Op.ERF, Op.ERFC, Op.LOG}


def run(stages, values):
    """Compute the outputs stage by stage; each stage sees only what it may see."""
    scalars = {leaf: v for leaf, v in values.items() if leaf in ("a", "b", "c")}
    columns = {leaf: v for leaf, v in values.items() if leaf in ("m", "n")}
    per_call = {name: walk(e, scalars)[e] for name, e in stages.per_call.items()}
    per_dataset = {name: walk(e, columns)[e] for name, e in stages.per_dataset.items()}
    return [walk(e, {**values, **per_call, **per_dataset})[e] for e in stages.per_event]


def assert_same_values(roots, found, values):
    for root, number in zip(roots, found, strict=True):
        judged = judge(root, values)
        if judged:
            value, tolerance = judged
            assert number == pytest.approx(value, rel=0, abs=tolerance)


@given(several, points())
def test_regrouping_keeps_the_values(roots, values):
    assert_same_values(roots, [walk(e, values)[e] for e in regroup(roots)], values)


@given(several, points(), st.sampled_from(["auto", "all", "none"]))
def test_splitting_keeps_the_values(roots, values, precompute):
    assert_same_values(roots, run(split(roots, precompute), values), values)


@given(several, points(), st.sampled_from(["auto", "all", "none"]))
def test_regrouping_and_splitting_keep_the_values(roots, values, precompute):
    assert_same_values(roots, run(split(regroup(roots), precompute), values), values)


@given(several)
def test_parameter_only_terms_leave_the_loop(roots):
    stages = split(regroup(roots))
    left = [
        e for e, d in depends_on(*stages.per_event).items() if d is Depends.PARAMETERS and node_price(e) > 0
    ]
    assert left == []


@given(several)
def test_per_call_terms_read_no_event(roots):
    assert leaves(Op.COLUMN, *split(regroup(roots)).per_call.values()) == []


@given(several, st.sampled_from(["auto", "all"]))
def test_per_dataset_terms_read_no_parameter(roots, precompute):
    assert leaves(Op.SCALAR, *split(regroup(roots), precompute).per_dataset.values()) == []


@given(several)
def test_nothing_is_precomputed_when_told_so(roots):
    assert split(regroup(roots), "none").per_dataset == {}


@given(several)
def test_every_event_only_term_is_precomputed_when_told_so(roots):
    stages = split(regroup(roots), "all")
    left = [e for e, d in depends_on(*stages.per_event).items() if d is Depends.EVENT and node_price(e) > 0]
    assert left == []


def test_an_integral_has_no_events_left():
    integral = integral_of(a * m, Domain((Axis("m", (0.0, 1.0)),)))
    assert depends_on(integral)[integral] is Depends.PARAMETERS


def test_an_integral_is_computed_once_per_call():
    integral = integral_of(np.exp(a * m), Domain((Axis("m", (0.0, 1.0)),)))
    stages = split(regroup((np.exp(a * m) / integral,)))
    assert not any(e.op is Op.INTEGRAL for e in toposort(*stages.per_event))


def test_issue_a_sum_over_nodes_of_the_event_alone_is_a_column():
    # this used to be computed at every evaluation, 200 ns for each event
    rule = NodeRule.of(1, 0)
    total = node_sum(make(Op.EXP, (column("x") * column(rule.symbol),)), rule)
    roots = regroup([scalar("a") * total + column("x")])
    stages = split(roots)
    assert any(n.op is Op.NODE_SUM for e in stages.per_dataset.values() for n in toposort(e))
    assert not any(n.op is Op.NODE_SUM for n in toposort(*stages.per_event))
    assert not split(roots, "none").per_dataset
    assert not event_sums([node_sum(make(Op.EXP, (scalar("a") * column(rule.symbol),)), rule)])


def test_the_mass_model_has_three_terms_per_call():
    assert len(split(regroup((mass_model().density,))).per_call) == 3


def test_the_mass_model_precomputes_nothing():
    assert split(regroup((mass_model().density,))).per_dataset == {}


def test_terms_whose_weights_differ_by_a_number_share_one_product():
    (body,) = split(regroup((0.75 * (1 - a) * m + 0.25 * (1 - a) * n + a * m - 2 * a * n,)), "none").per_event
    products = [e for e in toposort(body) if e.op is Op.MUL and leaves(Op.SCALAR, e) and leaves(Op.COLUMN, e)]
    assert len(products) == 2


def test_a_number_that_all_terms_of_a_weight_have_stays_with_the_weight():
    stages = split(regroup((2 * a * m + 2 * a * n + b,)), "none")
    assert [price(e) for e in stages.per_event] == [3]  # a sum, a product, a sum


def test_kstarmumu_has_no_root_sine_or_cosine_in_the_loop():
    stages = split(regroup((kstarmumu().density,)))
    assert not any(e.op in TRANSCENDENTAL for e in toposort(*stages.per_event))


def test_kstarmumu_with_derivatives_has_no_root_sine_or_cosine_in_the_loop():
    model = kstarmumu()
    stages = split(regroup((model.density, *gradient(model.density, model.parameters))))
    assert not any(e.op in TRANSCENDENTAL for e in toposort(*stages.per_event))


def test_precomputing_makes_the_loop_of_kstarmumu_cheaper():
    regrouped = regroup((kstarmumu().density,))
    assert price(*split(regrouped, "auto").per_event) < price(*split(regrouped, "none").per_event)


@pytest.mark.parametrize("model", [mass_model(), kstarmumu()], ids=["mass", "kstarmumu"])
@pytest.mark.parametrize("precompute", ["auto", "all", "none"])
def test_the_models_of_the_paper_keep_their_value(model, precompute):
    stages = split(regroup((model.density,)), precompute)
    terms = {**stages.per_call, **stages.per_dataset}
    values = {name: evaluate(e, model.point) for name, e in terms.items()}
    found = evaluate(stages.per_event[0], {**model.point, **values})
    assert found == pytest.approx(evaluate(model.density, model.point), rel=REORDERED)


def flat_kstarmumu():
    """The rate at F_L = 0.6 and all else zero, as in the generation of the paper."""
    model = kstarmumu()
    values = {leaf.name: 0.0 for leaf in model.parameters} | {"FL": 0.6}
    (bound,) = bind((model.density,), values)
    return model, bound


def test_binding_leaves_the_first_four_terms():
    _, bound = flat_kstarmumu()
    assert bound.op is Op.MUL
    (total,) = [f for f in bound.args if f.op is Op.ADD]
    assert len(total.args) == 4


def test_binding_makes_the_rate_flat_in_phi():
    _, bound = flat_kstarmumu()
    assert sorted(leaf.name for leaf in leaves(Op.COLUMN, bound)) == ["ctk", "ctl"]


def test_binding_leaves_no_parameter():
    _, bound = flat_kstarmumu()
    assert leaves(Op.SCALAR, bound) == []


def test_binding_keeps_the_value():
    model, bound = flat_kstarmumu()
    point = model.point | {leaf.name: 0.0 for leaf in model.parameters} | {"FL": 0.6}
    value, tolerance = judge(model.density, point)
    assert evaluate(bound, point) == pytest.approx(value, rel=0, abs=tolerance)


def loop_price(needed, read):
    """Price what the loop reads and computes, given which nodes it reads."""
    total, seen, stack = 0, set(), list(needed)
    while stack:
        node = stack.pop()
        if node in seen or node.op is Op.CONST:
            continue
        seen.add(node)
        if node in read or not node.args:
            total += READ_PRICE
        else:
            total += node_price(node)
            stack += node.args
    return total


CHEAP = [Op.SQRT, Op.ABS, Op.EXP]  # around the price of reading, where the choice is hard
event_only = expressions(COLUMNS, CHEAP, 5)


@given(st.lists(event_only, min_size=1, max_size=3))
def test_the_choice_of_columns_is_the_cheapest(roots):
    needed = [r for r in dict.fromkeys(normalise(*roots)) if depends_on(r)[r] is Depends.EVENT]
    inner = [e for e in toposort(*needed) if e.args and depends_on(e)[e] is Depends.EVENT]
    if not needed or len(inner) > 10:
        return
    subsets = (set(s) for size in range(len(inner) + 1) for s in combinations(inner, size))
    best = min(loop_price(needed, s) for s in subsets)
    assert loop_price(needed, set(choose_columns(needed))) == best


def test_a_sine_is_read_rather_than_computed():
    assert choose_columns([np.sin(m)]) == [np.sin(m)]


def test_a_square_is_computed_rather_than_read():
    assert choose_columns([m, m**2]) == []


NAMES = ["b0", "c0", "v0", "p0", "b1", "c_0"]


@pytest.mark.parametrize("precompute", ["auto", "all", "none"])
def test_names_of_the_user_do_not_clash_with_names_of_stages(precompute):
    pars = [scalar(name) for name in NAMES]
    event = column("c1")
    outputs = [np.exp(p**2 * np.sin(event)) * np.cos(event * 2) + np.exp(p) for p in pars]
    values = {name: 0.1 * (k + 1) for k, name in enumerate(NAMES)}
    data = np.array([0.3, 0.7])
    settings = Settings(Reference(), precompute=precompute)
    compiled = compile_values(tuple(outputs), tuple(pars), settings)
    bound = compiled.bind(Columns({"c1": data}), Events.all_sets(2))
    found = bound(np.array([list(values.values())]))[0]
    for output, row in zip(outputs, found, strict=True):
        assert row == pytest.approx(evaluate(output, {**values, "c1": data}), rel=REORDERED)


def test_issue_a_parameter_that_no_output_uses_may_have_the_name_of_a_stage():
    pars = (scalar("x"), scalar("b0"))
    compiled = compile_values((np.exp(scalar("x")) * m,), pars, Settings(Reference()))
    found = compiled.bind(Columns({"m": np.array([2.0])}), Events.all_sets(1))(np.array([[0.5, 7.0]]))
    assert found[0, 0, 0] == pytest.approx(2 * np.exp(0.5), rel=REORDERED)
