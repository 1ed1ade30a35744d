"""What notebooks show: every figure once, and of everything else no more than a screen."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib import import_module

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import morefit as mf
import zoo

INLINE = """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas
    from matplotlib.backends.backend_agg import new_figure_manager_given_figure  # noqa

    matplotlib.interactive(True)  # as the backend of notebooks does, when it is loaded for the first figure
"""
CELLS = """
    import matplotlib
    import morefit as mf

    x = mf.Observable("x", -5.0, 5.0)
    model = mf.Gaussian(x, mf.Parameter("mu", 0.0, -1.0, 1.0), 1.0)
    data = mf.generate(model, 100, seed=1)
    plot = mf.plot(model, data, "x")
    import matplotlib.pyplot as plt
    print(matplotlib.get_backend(), matplotlib.is_interactive(), plt.rcParams["font.family"], plot._repr_png_())
"""


@pytest.fixture(autouse=True)
def no_figures():
    yield
    plt.close("all")


def small_plot(ax=None):
    model, data, _ = zoo.mass(200)
    return mf.plot(model, data, "m", ax=ax)


def test_the_backend_of_notebooks_stays_as_it_set_itself(tmp_path):
    """Only the first figure used to be shown, and afterwards not even the user's own plots."""
    (tmp_path / "inline_backend.py").write_text(textwrap.dedent(INLINE))
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{textwrap.dedent(CELLS)}"],
        env=os.environ | {"MPLBACKEND": "module://inline_backend"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["module://inline_backend", "True", "['sans-serif']", "None"]


def test_a_style_leaves_all_settings_as_they_were():
    before = dict(plt.rcParams)
    small_plot()
    with pytest.raises(mf.OptionError, match="plot: ax must be Axes"):
        mf.plot(*zoo.mass(200)[:2], "m", ax=3)
    assert dict(plt.rcParams) == before


def test_a_plot_says_in_one_line_what_it_is():
    """This used to print 460 lines."""
    plot = small_plot()
    expected = "Plot: 2 panels with data, model, Gaussian, Exponential, legend, pulls; figure.savefig('plot.pdf') writes it"
    assert repr(plot) == str(plot) == expected
    assert repr(small_plot(ax=plt.figure().add_subplot())).startswith("Plot: 1 panel with data, model")


def test_a_plot_is_a_picture_where_nobody_else_shows_it(monkeypatch):
    plot = small_plot()
    assert plot._repr_png_().startswith(b"\x89PNG")  # Agg shows nothing by itself
    monkeypatch.setattr(plt, "isinteractive", lambda: True)
    monkeypatch.setattr(plt, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    assert plot._repr_png_() is None  # shown at the end of the cell
    plt.close(plot.figure)
    small_plot()  # has the number of the first
    assert plot._repr_png_().startswith(b"\x89PNG")  # asked for in a later cell


def test_a_plot_is_a_picture_after_interactive_mode_was_switched_off(monkeypatch):
    """This used to show the text only."""
    monkeypatch.setattr(plt, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    plot = small_plot()
    with plt.ion():
        assert plot._repr_png_() is None
    with plt.ioff():
        assert plot._repr_png_().startswith(b"\x89PNG")


def test_a_plot_on_a_figure_that_pyplot_does_not_know_is_a_picture(monkeypatch):
    monkeypatch.setattr(plt, "get_backend", lambda: "qtagg")
    assert small_plot(ax=Figure().add_subplot())._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["mass", "kstarmumu"])
def test_an_explanation_is_short_and_folded(name):
    """This used to print 420 000 characters."""
    model, data, _ = getattr(zoo, name)(100)
    found = mf.explain(model, data)
    assert repr(found).startswith("Explanation: ") and len(repr(found)) < 120 and "\n" not in repr(found)
    page = found._repr_html_()
    assert page.count("<details>") == page.count("</details>") == 5
    assert "<summary>kernel for value and gradient</summary>" in page and "time [ms]" in page
    assert (
        page.count("<pre")
        == page.count('<pre style="font-family:monospace;white-space:pre;overflow-x:auto">')
        == 6
    )  # columns stay aligned
    assert len(page) < 60_000 and len(str(found)) < 60_000


def test_parts_that_are_too_long_for_a_notebook_are_cut(monkeypatch):
    monkeypatch.setattr(import_module("morefit.inspect.explain"), "HTML_SHOWN", 100)
    page = mf.explain(zoo.mass(10)[0])._repr_html_()
    assert page.count("...\nprint the explanation to see all") >= 4 and len(page) < 3000


def results():
    """Give one of everything that a cell may end with."""
    model, data, _ = zoo.mass(500)
    nll = mf.Likelihood(model, data)
    yield from (
        model,
        mf.Dataset(data),
        nll,
        mf.fit(nll),
        mf.explain(model),
        mf.draw(model),
        small_plot(),
        mf.devices(),
    )
    yield mf.toy_study(model, toys=5, events=200, seed=1, progress=False)
    yield mf.intervals.profile(nll, "mu")
    yield mf.intervals.contour(nll, "mu", "sigma", size=5)
    yield mf.intervals.bootstrap(nll, replicas=5)
    yield mf.intervals.feldman_cousins(
        mf.Likelihood(model, data), "mu", np.linspace(5.27, 5.29, 3), toys=5, seed=1
    )
    yield mf.fisher_information(model, 100)


def test_the_repr_of_data_results_and_symbols_is_one_line():
    model, data, _ = zoo.mass(500)
    toys = mf.toy_study(model, toys=5, events=200, seed=1, progress=False)
    for one in (mf.Dataset(data), mf.fit(model, data), toys, *model.parameters, *model.observables):
        assert len(repr(one)) < 120 and "\n" not in repr(one), type(one)


def test_nothing_that_a_cell_may_end_with_fills_more_than_a_screen():
    for one in results():
        assert len(repr(one)) < 3000, type(one)
        assert repr(one).count("\n") < 60, type(one)


def test_issue_the_numbers_of_plots_are_shown_by_their_shapes():
    """They used to print every number of every curve: pages of them at the end of a cell."""
    model, data, _ = zoo.mass(200)
    shown = repr(mf.plots.project(model, data, "m", bins=10))
    assert "counts=<10 numbers>, errors=<2 x 10 numbers>" in shown
    assert len(shown) < 800
