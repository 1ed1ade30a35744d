"""Drawings say what is computed: text that Graphviz accepts, graphs that mean the model, pictures that can be read."""

import math
import os
import re
import sys
from functools import cache

import numpy as np
import pytest
from scipy import special

import morefit as mf
from morefit.expr import Op, add_all, apply, evaluate, scalar, toposort
from morefit.expr.show.dot import COLOURS
from morefit.inspect.draw import choose
from morefit.inspect.fold import Fold, Graph, by_number
from morefit.kernel.sums import Request, event_terms
from morefit.rewrite.stages import regroup, split
from tolerances import SIX_DIGITS
from zoo import ZOO, kstarmumu, many, mass

LIMITED = 80  # boxes that are drawn unless told otherwise
ALL = 10**6
KINDS = {
    "before": {},
    "after": {"stage": "after"},
    "derivative before": {"derivative": 0},
    "derivative after": {"derivative": 0, "stage": "after"},
    "generation before": {"generation": True},
    "generation after": {"generation": True, "stage": "after"},
}
everything = pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in ZOO for kind in KINDS], ids=lambda part: part
)


@cache
def drawn(name, kind, limit=LIMITED):
    model, _, _ = ZOO[name]()
    options = dict(KINDS[kind])
    if "derivative" in options:
        options["derivative"] = model.parameters[options["derivative"]].name
    return mf.draw(model, limit=limit, **options)


# ---------------------------------------------------------------------------------------------- a parser of its own

TOKEN = re.compile(
    r'\s+|//[^\n]*|(?P<word>\w+)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<sign>->|[{}\[\];,=])|(?P<wrong>.)', re.S
)


def tokens(text):
    """Cut text of Graphviz into words, quoted texts and signs."""
    found = [m for m in TOKEN.finditer(text) if m.lastgroup]
    assert not [m.group() for m in found if m.lastgroup == "wrong"]
    unquoted = {"text": lambda t: re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), t[1:-1])}
    return [(m.lastgroup, unquoted.get(m.lastgroup, str)(m.group())) for m in found]


def parse(text):
    """Return nodes with their attributes and edges in order, by the grammar of Graphviz."""
    stream = tokens(text)
    nodes, edges = {}, []

    def take(*wanted):
        kind, token = stream.pop(0)
        assert kind in wanted or token in wanted, (token, wanted)
        return token

    def attributes():
        found = {}
        if stream[0][1] == "[":
            take("[")
            while stream[0][1] != "]":
                key = take("word")
                take("=")
                found[key] = take("word", "text")
                if stream[0][1] == ",":
                    take(",")
            take("]")
        return found

    for opening in ("digraph", "word", "{"):
        take(opening)
    while stream[0][1] != "}":
        first = take("word")
        if stream[0][1] == "=":
            take("=")
            take("word", "text")
        elif stream[0][1] == "->":
            take("->")
            edges.append((first, take("word"), attributes()))
        elif first != "node":
            nodes[first] = attributes()
        else:
            attributes()
        take(";")
    take("}")
    assert not stream
    return nodes, edges


@everything
def test_the_text_is_a_graph_for_graphviz(name, kind):
    nodes, edges = parse(drawn(name, kind).dot)
    assert all(start in nodes and end in nodes for start, end, _ in edges)
    reached = {"n0"} | {end for _, end, _ in edges}
    assert reached == set(nodes)
    assert all(node["label"] for node in nodes.values())


def test_the_parser_sees_what_is_wrong():
    for wrong in (
        "digraph g { n0 -> ; }",
        'digraph g { n0 [label="a]; }',
        "digraph g { n0 -> n1 }",
        "digraph g { ?; }",
    ):
        with pytest.raises((AssertionError, IndexError)):
            parse(wrong)


# ---------------------------------------------------------------------------------------------- what a drawing means

MEANING = {
    "exp": math.exp, "log": math.log, "expm1": math.expm1, "erfc": math.erfc, "erf": math.erf, "sqrt": math.sqrt,
    "sin": math.sin, "cos": math.cos, "abs": abs, "<": lambda a, b: float(a < b), "<=": lambda a, b: float(a <= b),
    "==": lambda a, b: float(a == b), "where": lambda c, a, b: a if c else b, "log1p": math.log1p,
    "exp2": lambda a: 2.0**a, "min": min, "max": max, "lgamma": special.gammaln, "digamma": special.digamma,
    "normal_integral": lambda *a: gaussian_area(*a), "normal_area": lambda *a: gaussian_area(*a),
    "power_area": lambda width, growth, n: ((1 + growth * width) ** (1 - n) - 1) / (growth * (1 - n)),
    "power_area_by_growth": Op.POWER_AREA_BY_GROWTH.numpy, "power_area_by_n": Op.POWER_AREA_BY_N.numpy,
    "ratio": lambda a, b: 0.0 if math.isinf(b) else a / b,
}  # fmt: skip


def gaussian_area(middle, width, sigma):
    low, high = ((middle + side * width) / sigma for side in (-0.5, 0.5))
    return sigma * math.sqrt(2 * math.pi) * (special.ndtr(high) - special.ndtr(low))


def value_of(dot, values):
    """Compute what a drawing says, box by box."""
    nodes, edges = parse(dot)
    below = {node: [] for node in nodes}
    for start, end, attributes in edges:
        below[start] += [end] * int(attributes.get("label", "x 1")[2:])
    done = {}
    stack = ["n0"]
    while stack:
        node = stack[-1]
        missing = [n for n in below[node] if n not in done]
        stack += missing
        if not missing:
            done[stack.pop()] = value_of_box(nodes[node]["label"], [done[n] for n in below[node]], values)
    return done["n0"]


def value_of_box(label, args, values):
    text = label.rpartition("=\n")[2]
    operation, *numbers = text.split(" ")
    args = args + [float(number) for number in numbers]
    if operation == "+":
        return math.fsum(args)
    if operation == "*":
        return math.prod(args)
    if operation == "**":
        return float(np.power(*args))
    if args:
        return MEANING[operation](*args)
    return values[text] if text in values else float(text)


def point(name):
    model, data, values = ZOO[name]()
    parameters = dict(zip((p.name for p in model.parameters), values, strict=True))
    return model, parameters | {column: float(numbers[0]) for column, numbers in data.items()}


MEANT = [name for name in ZOO if name != "numerical"]  # an integral has no value of its own


@pytest.mark.parametrize("stage", ["before", "after"])
@pytest.mark.parametrize("name", MEANT)
def test_a_drawing_means_the_logarithm_of_the_density(name, stage):
    model, values = point(name)
    found = value_of(mf.draw(model, stage=stage, limit=ALL).dot, values)
    assert found == pytest.approx(
        float(evaluate(model.log_intensity(), values)), rel=SIX_DIGITS, abs=SIX_DIGITS
    )


@pytest.mark.parametrize("stage", ["before", "after"])
@pytest.mark.parametrize("name", MEANT)
def test_a_drawing_means_its_derivative(name, stage):
    model, values = point(name)
    slope = model.parameters[0].name
    found = value_of(mf.draw(model, stage=stage, derivative=slope, limit=ALL).dot, values)
    step = 1e-5
    low, high = (
        float(evaluate(model.log_intensity(), values | {slope: values[slope] + by})) for by in (-step, step)
    )
    assert found == pytest.approx((high - low) / (2 * step), rel=10 * SIX_DIGITS, abs=10 * SIX_DIGITS)


@pytest.mark.parametrize("stage", ["before", "after"])
@pytest.mark.parametrize("name", MEANT)
def test_a_drawing_means_the_density_events_are_drawn_from(name, stage):
    model, values = point(name)
    parameters = {p.name: values[p.name] for p in model.parameters}
    event = {o.name: values[o.name] for o in model.observables}
    found = value_of(mf.draw(model, generation=True, stage=stage, values=parameters, limit=ALL).dot, event)
    assert found == pytest.approx(float(evaluate(model.density(), values)), rel=10 * SIX_DIGITS)


# ---------------------------------------------------------------------------------------------- colours and numbers


def boxes_of(drawing):
    nodes, _ = parse(drawing.dot)
    return [node for name, node in nodes.items() if name.startswith("n")]


def test_boxes_are_coloured_by_what_they_depend_on():
    a, m = mf.Parameter("a", 1.0), mf.Observable("m", 0.0, 1.0)
    found = {b["label"]: b["fillcolor"] for b in boxes_of(mf.draw(np.exp(a * m) + np.sin(m) + np.cos(a)))}
    kinds = {"a": "parameters", "m": "event", "exp": "both", "c0 =\nsin": "event", "b0 =\ncos": "parameters"}
    assert {label: found[label] for label in kinds} == {label: COLOURS[kind] for label, kind in kinds.items()}


def test_terms_are_numbered_as_the_kernel_names_them():
    model, _, _ = mass()
    request = Request(model.log_intensity(), (), 0)
    stages = split(regroup(event_terms(request)[0]))
    framed = {b["label"].partition(" =")[0] for b in boxes_of(mf.draw(model, stage="after", limit=ALL)) if "peripheries" in b}  # fmt: skip
    assert framed == {*stages.per_call, *stages.per_dataset} == {"b0", "b1", "b2"}


def test_terms_of_the_angular_density_are_precomputed():
    drawing = mf.draw(kstarmumu()[0], stage="after")
    framed = [b["label"].partition(" =")[0] for b in boxes_of(drawing) if "peripheries" in b]
    assert {name[0] for name in framed} == {"b", "c"} and len(framed) == len(set(framed)) > 4


def test_generation_has_no_parameters_left_and_fewer_boxes():
    model, _, _ = mass()
    before, after = (mf.draw(model, generation=True, stage=stage, limit=ALL) for stage in ("before", "after"))
    colours = {b["fillcolor"] for b in boxes_of(after)}
    assert COLOURS["parameters"] not in colours and COLOURS["both"] not in colours
    assert after.boxes < before.boxes / 5
    assert not [b for b in boxes_of(after) if "peripheries" in b]


def test_terms_with_a_factor_of_zero_are_not_drawn_for_generation():
    model, _, _ = kstarmumu()
    values = {p.name: 0.0 for p in model.parameters} | {"FL": 0.6}
    labels = [b["label"] for b in boxes_of(mf.draw(model, generation=True, stage="after", values=values))]
    assert "phi" not in labels and {"ctl", "ctk"} <= set(labels)


# ---------------------------------------------------------------------------------------------- large models


@pytest.mark.parametrize("kind", KINDS)
def test_sixty_one_parameters_still_give_a_picture_that_can_be_read(kind):
    drawing = drawn("many", kind)
    assert drawing.boxes == len(boxes_of(drawing)) <= LIMITED
    assert "x 20" in drawing.dot


def test_parts_that_are_alike_are_drawn_once_with_their_number():
    nodes, edges = parse(mf.draw(many()[0], stage="after").dot)
    labels = [node["label"] for node in nodes.values()]
    assert (
        labels.count("mu0 ... mu19") == labels.count("sigma0 ... sigma19") == labels.count("f0 ... f19") == 1
    )
    folded = [(start, end) for start, end, attributes in edges if attributes.get("label") == "x 20"]
    assert ("+", "*") in [(nodes[start]["label"], nodes[end]["label"]) for start, end in folded]
    assert "slope" in labels


def test_the_loop_is_drawn_before_what_parameters_make():
    for name in ("many", "mass", "crystal ball"):
        model, _, _ = ZOO[name]()
        subject = choose(model, "after", None, False, None)
        loop = Graph(subject.root, subject.terms, Fold.NAMES)
        whole = {b for b in loop.nearest(ALL) if loop.kinds[b[0]] == "both"}
        assert whole <= set(loop.nearest(60))


def test_a_graph_that_fits_is_drawn_whole():
    drawing = mf.draw(kstarmumu()[0])
    assert drawing.hidden == 0 and " x " not in drawing.dot and "cut" not in drawing.dot


def test_what_does_not_fit_is_dots():
    drawing = mf.draw(mass()[0], limit=10)
    assert drawing.boxes == 10 and 'label="..."' in drawing.dot
    nodes = len(toposort(mass()[0].log_intensity()))
    assert 0 < drawing.hidden < nodes
    assert mf.draw(mass()[0], limit=ALL).hidden == 0


def test_parts_whose_parameters_have_other_names_are_not_alike():
    a, b, x = scalar("a"), scalar("b"), mf.Observable("x", 0, 1)
    alike = Graph((np.exp(scalar("p1") * x) + np.exp(scalar("p2") * x)), {}, Fold.NAMES)
    different = Graph((np.exp(a * x) + np.exp(b * x)), {}, Fold.NAMES)
    assert alike.size() == 5 and different.size() == 8


def test_powers_and_signs_are_never_folded():
    x = mf.Observable("x", 0, 1)
    powers = add_all(0.3 * x**2, 0.4 * x**3, 0.5 * x**4)
    assert Graph(powers, {}, Fold.NUMBERS).size() == 8
    assert Graph(add_all(-np.exp(x), 0.3 * np.exp(x)), {}, Fold.NUMBERS).size() == 5
    factors = add_all(*(c * np.exp((c + 2) * x) for c in (0.3, 0.4, 0.7)))
    assert Graph(factors, {}, Fold.NAMES).size() == 11
    assert Graph(factors, {}, Fold.NUMBERS).size() == 5


def test_names_are_sorted_by_their_numbers():
    assert sorted(["f10", "f9", "f1_2", "f1_10", "a"], key=by_number) == ["a", "f1_2", "f1_10", "f9", "f10"]


def test_numbers_that_are_given_twice_count_twice():
    x = mf.Observable("x", 0.0, 1.0)
    twice = mf.draw(apply(Op.MAX, x.expr, x.expr))
    assert 'label="x 2"' in twice.dot


# ---------------------------------------------------------------------------------------------- files and notebooks

FAKE = """#!{python}
import sys
kind, = (a[2:] for a in sys.argv if a.startswith("-T"))
text = sys.stdin.read()
if "refuse" in text:
    sys.exit("Error: syntax error in line 1\\nmore")
sys.stdout.write("<svg>" + kind + " of " + text.split()[0] + "</svg>")
"""


@pytest.fixture
def graphviz(tmp_path, monkeypatch):
    """A program called dot that says what it was asked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "dot").write_text(FAKE.format(python=sys.executable))
    (folder / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.fixture
def no_graphviz(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", os.fspath(tmp_path))


@pytest.fixture
def drawing():
    return mf.draw(mf.Parameter("a", 1.0) * mf.Observable("m", 0.0, 1.0))


@pytest.mark.parametrize("suffix", [".dot", ".gv"])
def test_text_is_saved_without_graphviz(suffix, drawing, tmp_path, no_graphviz):
    drawing.save(tmp_path / f"graph{suffix}")
    assert (tmp_path / f"graph{suffix}").read_text() == drawing.dot == str(drawing)


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_pictures_are_made_by_graphviz(kind, drawing, tmp_path, graphviz):
    drawing.save(tmp_path / f"graph.{kind}")
    assert (tmp_path / f"graph.{kind}").read_text() == f"<svg>{kind} of digraph</svg>"


def test_without_graphviz_a_picture_says_what_to_install(drawing, tmp_path, no_graphviz):
    with pytest.raises(mf.BackendError, match=r"drawing: a .svg file is made by Graphviz, whose program 'dot' was not found; install Graphviz \(graphviz.org\), or save a .dot file"):  # fmt: skip
        drawing.save(tmp_path / "graph.svg")
    assert not (tmp_path / "graph.svg").exists()


def test_a_complaint_of_graphviz_is_passed_on(tmp_path, graphviz):
    drawing = mf.draw(mf.Parameter("refuse", 1.0))
    with pytest.raises(
        mf.BackendError, match=r"did not draw a .png file, got Error: syntax error in line 1; save a .dot"
    ):
        drawing.save(tmp_path / "graph.png")
    assert drawing._repr_svg_() is None


def test_a_program_that_does_not_run_is_named(drawing, tmp_path, graphviz):
    (tmp_path / "bin" / "dot").write_text("#!/nowhere/at/all\n")
    with pytest.raises(mf.BackendError, match=r"drawing: '.*dot' did not draw, got .*; save a .dot file"):
        drawing.save(tmp_path / "graph.svg")


def test_an_unknown_ending_is_refused(drawing):
    with pytest.raises(
        mf.ModelError, match=r"must end in .dot, .gv, .svg, .png, .pdf, got 'graph.jpg'; rename it"
    ):
        drawing.save("graph.jpg")


def test_a_notebook_shows_the_picture(drawing, graphviz):
    assert drawing._repr_svg_() == "<svg>svg of digraph</svg>"


def test_a_notebook_without_graphviz_shows_a_line(drawing, no_graphviz):
    assert drawing._repr_svg_() is None
    assert repr(drawing) == "Drawing: expression, as written; 3 boxes. Print it, or save('graph.svg')"
    assert "nodes not drawn" in repr(mf.draw(mass()[0], limit=5))


def test_a_notebook_shows_the_formula_of_a_model():
    model, _, _ = mass()
    shown = model._repr_latex_()
    assert shown.startswith("$") and shown.endswith("$") and r"\sigma" in shown and r"\mathrm{fsig}" in shown
    assert len(shown) < 200 < len(model.density()._repr_latex_())  # the integral is not spelt out


# ---------------------------------------------------------------------------------------------- complaints


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"stage": "middle"}, mf.OptionError, "draw: stage must be 'before' or 'after', got 'middle'"),
        ({"derivative": "Mu"}, mf.ModelError, "model: has no parameter 'Mu'; did you mean 'mu'[?]"),
        ({"derivative": "width"}, mf.ModelError, "model: has no parameter 'width'; there are "),
        (
            {"derivative": "mu", "generation": True},
            mf.OptionError,
            "generation has no derivatives, got derivative='mu'; leave one out",
        ),
        (
            {"values": {"mu": 1.0}},
            mf.OptionError,
            "draw: values are for generation; add generation=True or leave them out",
        ),
        (
            {"values": {"mux": 1.0}, "generation": True},
            mf.ModelError,
            "model: has no parameter 'mux'; did you mean 'mu'[?]",
        ),
        ({"limit": 0}, mf.OptionError, "draw: limit must be positive, got 0"),
    ],
)
def test_odd_wishes_are_refused(options, error, says):
    with pytest.raises(error, match=says):
        mf.draw(mass()[0], **options)


def test_only_models_and_expressions_are_drawn():
    with pytest.raises(mf.ModelError, match="draw: takes a model or an expression, got str"):
        mf.draw("model")
    with pytest.raises(
        mf.ModelError, match=r"generation needs a model, got an expression; wrap it in mf.Density"
    ):
        mf.draw(mf.Parameter("a", 1.0), generation=True)
