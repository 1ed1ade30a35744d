"""Expressions as text, LaTeX and graphs."""

import ast
import re
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given

from judge import judge
from morefit.expr import (
    OPERATIONS,
    Op,
    add_all,
    column,
    const,
    integral_of,
    make,
    scalar,
    to_dot,
    to_latex,
    to_text,
    where,
)
from morefit.expr.quadrature import Axis, Domain
from morefit.expr.show import COLOURS
from morefit.expr.show.dot import dot_text
from strategies import expressions, points

a, b, c, m = scalar("a"), scalar("b"), scalar("c"), column("m")
integral = integral_of(a * m, Domain((Axis("m", (5.0, 6.0, 7.0)),)))

TEXTS = {
    "a - b": a - b,
    "a/b": a / b,
    "-a": -a,
    "a - 3": a - 3,
    "1 - a": 1 - a,
    "a - (b - c)": a - (b - c),
    "-2*a": -2 * a,
    "a - 2*b": a - 2 * b,
    "1/a": 1 / a,
    "1/a**2": a**-2,
    "a**2": a**2,
    "(-a)**2": (-a) ** 2,
    "a**b**c": a ** (b**c),
    "(a**b)**c": (a**b) ** c,
    "a**(-b)": a**-b,
    "(-3)**a": const(-3) ** a,
    "exp(-a)": np.exp(-a),
    "where(a < b, a, b)": where(a < b, a, b),
    "(a <= b)**2": (a <= b) ** 2,
    "atan2(a, b)": np.arctan2(a, b),
    "0.333333*a": a * (1 / 3),
    "1e-05*a": 1e-5 * a,
    "integral(m*a, m, 5, 7)": integral,
}


@pytest.mark.parametrize("text", TEXTS)
def test_text_has_few_parentheses(text):
    assert to_text(TEXTS[text]).replace("a*m", "m*a") == text


LATEX = {
    r"\frac{a}{b}": a / b,
    r"\frac{1}{\sqrt{a}}": a**-0.5,
    r"\sqrt{a}": np.sqrt(a),
    r"a^{2}": a**2,
    r"\left(-a\right)^{2}": (-a) ** 2,
    r"\sin^{2}\left(a\right)": np.sin(a) ** 2,
    r"e^{-a}": np.exp(-a),
    r"\left(e^{a}\right)^{2}": np.exp(a) ** 2,
    r"\ln\left(a\right)": np.log(a),
    r"\left|a\right|": abs(a),
    r"\frac{1 - a}{b}": (1 - a) / b,
    r"-\frac{a}{b}": make(Op.MUL, (const(-1), a, b**-1)),
    r"2.5 \cdot 10^{-7} \, a": 2.5e-7 * a,
    r"\alpha": scalar("alpha"),
    r"\sigma_{m}": scalar("sigma_m"),
    r"S_{3}": scalar("S3"),
    r"\mathrm{FL}": scalar("FL"),
    r"f_{\mathrm{sig}}": scalar("f_sig"),
    r"\mu_{1, \mathrm{left}}": scalar("mu1_left"),
    r"\text{weight of the event}": column("weight of the event"),
    r"\begin{cases} a & \text{if } a < b \\ b & \text{otherwise} \end{cases}": where(a < b, a, b),
    r"a \neq 2": a != 2,
    r"\int_{5}^{7} a \, m \, \mathrm{d}m": integral,
}


@pytest.mark.parametrize("text", LATEX)
def test_latex_is_what_a_physicist_writes(text):
    assert to_latex(LATEX[text]).replace(r"m \, a", r"a \, m") == text


COMPARISONS = {ast.Lt: "less", ast.LtE: "less_equal", ast.Eq: "equal", ast.NotEq: "not_equal"}
NAMES = {op.name.lower(): op.numpy for op in OPERATIONS}


class Numbers(ast.NodeTransformer):
    """Turns Python's comparisons into morefit's, and whole numbers into others."""

    def visit_Compare(self, node):
        name = ast.Name(COMPARISONS[type(node.ops[0])], ast.Load())
        return ast.Call(name, [self.visit(node.left), self.visit(node.comparators[0])], [])

    def visit_Constant(self, node):
        return ast.Call(ast.Name("number", ast.Load()), [node], [])


def read(text, values):
    tree = ast.fix_missing_locations(Numbers().visit(ast.parse(text, mode="eval")))
    numbers = {name: np.float64(v) for name, v in values.items()}
    with np.errstate(all="ignore"):
        return float(eval(compile(tree, "text", "eval"), {"number": np.float64, **NAMES, **numbers}))


@given(expressions(), points())
def test_text_read_back_has_the_same_value(expr, values):
    judged = judge(expr, values)
    assume(judged is not None)
    value, tolerance = judged
    assert read(to_text(expr, None, digits=17), values) == pytest.approx(value, rel=0, abs=tolerance)


@given(expressions())
def test_latex_closes_what_it_opens(expr):
    text = to_latex(expr, None)
    assert text.count("{") == text.count("}")
    assert text.count(r"\left") == text.count(r"\right")


@cache
def deep(levels=35_000):
    node = a
    for _ in range(levels):
        node = np.exp(node * b + c)
    return node


def shared(levels=1000):
    node = a
    for _ in range(levels):
        node = node * node + node
    return node


@cache
def wide(terms=20_000):
    return add_all(*(scalar(f"p{k}") * m for k in range(terms)))


LARGE = {"deep": deep, "shared": shared, "wide": wide}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("show", [to_text, to_latex])
def test_large_graphs_fold_to_fit(name, show):
    text = show(LARGE[name](), limit=300)
    assert 100 < len(text) <= 300
    assert "..." in text or r"\ldots" in text


def test_what_folds_still_closes_its_parentheses():
    text = to_text(deep(), limit=300)
    assert text.count("(") == text.count(")")


def test_text_without_a_limit_is_whole():
    assert to_text(deep(10_000), limit=None).count("exp") == 10_000


@pytest.mark.parametrize("name", LARGE)
def test_large_graphs_are_drawn_in_part(name):
    drawn = to_dot(LARGE[name](), limit=50)
    assert len(re.findall(r"^  n\d+ \[", drawn, re.MULTILINE)) == 50


def fill(drawn, label):
    return re.search(rf'\[label="{re.escape(label)}", fillcolor="(.*?)"\]', drawn).group(1)


@pytest.mark.parametrize(
    ("label", "kind"),
    [("a", "parameters"), ("m", "event"), ("+", "both"), ("2", "nothing"), ("exp", "parameters")],
)
def test_colours_show_what_a_node_depends_on(label, kind):
    assert fill(to_dot(np.exp(a) + m**2), label) == COLOURS[kind]


def test_an_integral_depends_on_parameters_only():
    assert fill(to_dot(integral), "integral over m") == COLOURS["parameters"]


def test_shared_nodes_are_drawn_once():
    assert to_dot(np.exp(a) * np.sin(np.exp(a)), np.exp(a)).count('label="exp"') == 1


def test_a_graph_carries_its_title():
    assert r'label="the \"mass\" model"' in dot_text([], 'the "mass" model')
