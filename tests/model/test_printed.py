"""Models in print: short reprs, trees of components with start values, and LaTeX that can be read."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import morefit as mf
from zoo import ZOO

M, T = mf.Observable("m", 5.0, 7.0), mf.Observable("t", 0.0, 10.0)
MU, SIGMA = mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13)
FSIG, ALPHA = mf.Parameter("fsig", 0.3, 0.0, 1.0), mf.Parameter("alpha", -1.0, -10.0, 10.0)
TAU = mf.Parameter("tau", 1.5, fixed=True)


def mass(**options):
    return mf.Sum([mf.Gaussian(M, MU, SIGMA), mf.Exponential(M, ALPHA)], fractions=[FSIG], **options)


@dataclass(frozen=True, eq=False)
class Own(mf.Pdf):
    """A density as users write them."""

    x: mf.Observable
    a: mf.Parameter
    b: float = 2.0

    def density(self):
        return 1 + self.a * self.x**2


class Plain(mf.Pdf):
    """A density that is no dataclass and may be changed until it is used."""

    def __init__(self, x, a):
        self.x, self.a, self._secret = x, a, 3

    def density(self):
        return 1 + self.a * self.x**2


TREES = [
    (mass(), """\
Sum in m from 5 to 7
├─ fsig = 0.3: Gaussian in m; mu = 5.28, sigma = 0.06
└─ 1 - fsig = 0.7: Exponential in m; slope = alpha = -1"""),
    (mf.Product([mass(labels=["signal", "background"]), mf.Exponential(T, -1 / TAU)]), """\
Product in m from 5 to 7, t from 0 to 10
├─ Sum in m
│  ├─ signal, fsig = 0.3: Gaussian in m; mu = 5.28, sigma = 0.06
│  └─ background, 1 - fsig = 0.7: Exponential in m; slope = alpha = -1
└─ Exponential in t; slope = -1/tau = -0.666667 fixed"""),
    (mf.Sum([mf.Gaussian(M, MU + 0.1, 0.06), mf.Polynomial(M, [ALPHA, 0.5])], yields=[300, 700 * FSIG]), """\
Sum in m from 5 to 7
├─ 300: Gaussian in m; mu = 0.1 + mu = 5.38, sigma = 0.06
└─ 700*fsig = 210: Polynomial in m; coefficients[0] = alpha = -1, coefficients[1] = 0.5"""),
    (mf.Density(T * np.exp(-T / TAU), T), "Density in t from 0 to 10; formula = t*exp((-t)/tau), tau = 1.5 fixed"),
    (mf.Uniform(M), "Uniform in m from 5 to 7"),
    (Own(M, ALPHA), "Own in m from 5 to 7; a = alpha = -1, b = 2"),
    (Plain(M, ALPHA), "Plain in m from 5 to 7; a = alpha = -1"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "text"), TREES, ids=[repr(model)[:20] for model, _ in TREES])
def test_a_model_prints_as_a_tree_with_start_values(model, text):
    assert str(model) == text


def test_long_lines_of_a_tree_end_between_arguments():
    text = str(ZOO["kstarmumu"](1)[0])
    first, second = text.split("\n")
    assert first.endswith("S3 = -0.02,") and second.startswith("    S4 = 0.12, S5")
    assert max(map(len, text.split("\n"))) <= 110


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (M, "Observable('m', 5.0, 7.0)"),
        (mf.Observable("m", 5, 7, label="$m$"), "Observable('m', 5.0, 7.0, label='$m$')"),
        (MU, "Parameter('mu', 5.28, 5.0, 6.0)"),
        (mf.Parameter("a", 1), "Parameter('a', 1.0)"),
        (mf.Parameter("a", 1, 0), "Parameter('a', 1.0, 0.0, None)"),
        (mf.Parameter("a", 1, fixed=True, label="$a$"), "Parameter('a', 1.0, fixed=True, label='$a$')"),
        (mf.Gaussian(M, MU, 0.1), "Gaussian(m, mu, 0.1)"),
        (mf.Polynomial(M, [ALPHA, 2]), "Polynomial(m, [alpha, 2])"),
        (mass(), "Sum([Gaussian(m, mu, sigma), Exponential(m, alpha)], fractions=[fsig])"),
        (mf.Product([mf.Uniform(M), mf.Uniform(T)]), "Product([Uniform(m), Uniform(t)])"),
        (mf.Density(T**2, T), "Density(t**2, [t])"),
        (Own(M, ALPHA), "Own(m, alpha, 2)"),
        (Plain(M, ALPHA), "Plain(m, alpha)"),
    ],
)
def test_reprs_are_short(one, text):
    assert repr(one) == text


@pytest.mark.parametrize(
    "one", [M, MU, mf.Parameter("a", 1, 0, fixed=True, label="$a$"), mf.Parameter("b", 2)]
)
def test_reprs_of_observables_and_parameters_make_them_again(one):
    assert eval(repr(one), {"Observable": mf.Observable, "Parameter": mf.Parameter}) is one


@pytest.mark.parametrize("name", ZOO)
def test_no_repr_or_formula_fills_a_screen(name):
    model = ZOO[name](1)[0]
    assert len(repr(model)) <= 300
    assert len(model._repr_latex_()) <= 700
    assert repr(pickle.loads(pickle.dumps(model))) == repr(model)


def test_looking_at_a_density_does_not_use_it():
    model = Plain(M, ALPHA)
    repr(model)
    model.a = MU
    assert repr(model) == "Plain(m, mu)"


def test_a_repr_of_ones_own_is_left_alone():
    @dataclass(frozen=True)
    class Named(Own):
        def __repr__(self):
            return "mine"

    @dataclass(frozen=True)
    class Inherited(Named):
        c: float = 1.0

    assert repr(Named(M, ALPHA)) == repr(Inherited(M, ALPHA)) == "mine"


# ------------------------------------------------------------------------- notebooks


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (mass(), r"$\begin{aligned} p\left(m\right) &= \mathrm{fsig} \, \mathrm{Gaussian}\left(m; \mu, \sigma\right)"
                 r" + \left(1 - \mathrm{fsig}\right) \mathrm{Exponential}\left(m; \alpha\right) \end{aligned}$"),
        (mf.Gaussian(M, MU, SIGMA), r"$p\left(m\right) \propto e^{-0.5 \, \left(\frac{m - \mu}{\sigma}\right)^{2}}$"),
        (mf.Product([mf.Density(T * np.exp(-T / TAU), T), mass()]),
         r"$\begin{aligned} p\left(t, m\right) &= p_{1}\left(t\right) \, \left[\mathrm{fsig} \,"
         r" \mathrm{Gaussian}\left(m; \mu, \sigma\right) + \left(1 - \mathrm{fsig}\right)"
         r" \mathrm{Exponential}\left(m; \alpha\right)\right]"
         r" \\ p_{1}\left(t\right) &\propto t \, e^{\frac{-t}{\tau}} \end{aligned}$"),
        (mf.Sum([mf.Uniform(M), mf.Polynomial(M, [ALPHA, 1])], yields=[MU, 3]),
         r"$\begin{aligned} p\left(m\right) &\propto \mu \, \mathrm{Uniform}\left(m\right)"
         r" + 3 \, \mathrm{Polynomial}\left(m; \alpha, 1\right) \end{aligned}$"),
        (mf.Sum([mf.Uniform(M), mf.Exponential(M, ALPHA), mf.Convolution(mf.shapes.Argus(M, 6, -1), mf.Gaussian(T, 0, TAU))],
                yields=[MU, 3, 4]),
         r"$\begin{aligned} p\left(m\right) &\propto \mu \, \mathrm{Uniform}\left(m\right)"
         r" \\ &\quad + 3 \, \mathrm{Exponential}\left(m; \alpha\right) \\ &\quad + 4 \, \mathrm{Convolved}\left(m;"
         r" \mathrm{Argus}\left(m; 6, -1, 0.5\right), \mathrm{Gaussian}\left(t; 0, \tau\right), 0, \infty\right) \end{aligned}$"),
    ],
    ids=["sum", "one", "product", "yields", "lines"],
)  # fmt: skip
def test_a_notebook_shows_how_densities_are_put_together(model, text):
    """This used to spell out the series of an integral, in 1724 characters."""
    assert model._repr_latex_() == text


# ------------------------------------------------------------------------- labels


@pytest.mark.parametrize("labels", [["a"], ["a", "a"], ["a", 1], ["a", ""], "ab"])
def test_labels_are_one_text_per_density(labels):
    with pytest.raises(mf.ModelError, match="sum: labels must be"):
        mass(labels=labels)


def test_components_are_called_by_their_labels_or_kinds():
    assert mass(labels=["signal", "background"]).share_names() == ("signal", "background")
    assert mass().share_names() == ("Gaussian", "Exponential")
    twice = mf.Sum([mf.Uniform(M), mf.Gaussian(M, MU, 1), mf.Gaussian(M, MU, 2)], fractions=[0.1, 0.2])
    assert twice.share_names() == ("Uniform", "Gaussian 1", "Gaussian 2")
    assert mf.Product([mf.Uniform(T), mass(labels=["s", "b"])]).share_names() == ("s", "b")
    assert mf.Uniform(M).share_names() == ("Uniform",)


def test_a_range_without_an_end_is_shown():
    model = mf.Convolution(mf.shapes.Gamma(M, 3.0, 2.0), mf.Gaussian(T, 0, TAU), truth=(0, np.inf))
    assert r"0, \infty" in model._repr_latex_()
