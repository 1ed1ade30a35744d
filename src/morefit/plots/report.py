"""The report of a fit: one HTML page with model, data, result, correlations, plots, goodness of fit and versions."""

from __future__ import annotations

import platform
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from math import isnan
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.errors import MorefitError, OptionError
from morefit.expr import to_latex
from morefit.intervals import GoodnessOfFit
from morefit.likelihood import (
    BinnedLikelihood,
    HistFactoryLikelihood,
    LeastSquares,
    Likelihood,
    TemplateLikelihood,
    Term,
)
from morefit.likelihood.table import CountsLikelihood
from morefit.minimise import FitResult
from morefit.minimise.text import footlines, headline, parameter_table
from morefit.model import Pdf
from morefit.plots.canvas import Plot, is_drawable
from morefit.plots.fitted import Drawing
from morefit.plots.impacts import correlation
from morefit.plots.style import OWN_STYLE, load_pyplot, styled
from morefit.records.output import complete_file
from morefit.text.tables import Column, Markup, html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = {"svg.fonttype": "path", "svg.hashsalt": "morefit"}  # the same text for the same picture
FORMULA_SIZE = 12.0  # points


def picture(figure: Figure, title: str) -> str:
    """Return a figure as an image, and close it."""
    text = svg(figure)
    load_pyplot().close(figure)
    return image(text, title)


def formula(text: str) -> str:
    """Return text with mathematics as an image; other text, and what matplotlib does not know, as it is written."""
    load_pyplot()
    if "$" not in text or not is_drawable(text):
        return f"<code>{escape(text.strip('$'))}</code>" if "$" in text else escape(text)
    from matplotlib.figure import Figure

    with styled(OWN_STYLE):
        figure = Figure(figsize=(0.01, 0.01))
        figure.text(0, 0, text, size=FORMULA_SIZE)
        return image(svg(figure, bbox_inches="tight", pad_inches=0.02, transparent=True), text, "formula")


def svg(figure: Figure, **options: Any) -> bytes:
    """Return a figure as SVG."""
    buffer = BytesIO()
    with styled(SETTINGS):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, **options)
    return buffer.getvalue()


def image(content: bytes, title: str, kind: str = "plot") -> str:
    """Return an element of HTML with an image."""
    data = b64encode(content).decode("ascii")
    return f'<img class="{kind}" alt="{escape(title)}" src="data:image/svg+xml;base64,{data}">'


PACKAGES = ("numpy", "scipy", "llvmlite", "iminuit", "pyopencl", "matplotlib", "mplhep")
MAX_CONSTRAINTS = 8  # more are unfolded by a click
NO_LIKELIHOOD = (
    "This result does not have the model and the data: it was read from a file, or copied from one that has them."
    " result.report(path, likelihood) shows them and draws plots."
)
BLINDED = "The model depends on blinded parameters, which could be read from its curve: no plot is drawn."
# nothing is loaded, and nothing is run
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light dark; --back: #fff; --fore: #1c1c1c; --line: #d4d4d4; --good: #d9f2d9; --bad: #f8c9c9; }
@media (prefers-color-scheme: dark) {
  :root { --back: #17191c; --fore: #e4e4e4; --line: #45484d; --good: #1d4023; --bad: #5c2323; }
  img.formula { filter: invert(0.9); }
}
body { background: var(--back); color: var(--fore); font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: auto; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; border-bottom: 1px solid var(--line); margin-top: 2rem; } h3 { font-size: 1rem; }
p { overflow-wrap: anywhere; } .verdict { padding: .5rem .8rem; border-radius: 4px; }
.good { background: var(--good); } .bad { background: var(--bad); }
.wide { overflow-x: auto; } pre { font-size: .85rem; margin: .5rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .8rem .15rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; } th { text-align: left; }
td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
td[style*=background] { color: #1c1c1c; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; } .plots figure { flex: 1 1 24rem; max-width: 30rem; }
figure { margin: 0; } figure img { background: #fff; padding: .4rem; max-width: 100%; box-sizing: border-box; border-radius: 4px; }
img.formula { vertical-align: middle; }
"""


def write_report(result: FitResult, path: str | PathLike[str], likelihood: Term | None) -> None:
    """Write the report of a fit to a file that needs no other files and no network."""
    if likelihood is not None:
        check_likelihood(result, likelihood)
    with complete_file(path, "report") as part:
        part.write_text(report_text(result, likelihood), encoding="utf-8")


def check_likelihood(result: FitResult, likelihood: Term) -> None:
    """Refuse a likelihood that the result cannot be of."""
    if not isinstance(likelihood, Term):
        raise OptionError(
            f"report: takes the likelihood of the fit, got {type(likelihood).__name__}; pass mf.Likelihood(model, data)"
        )
    names = [p.name for p in likelihood.all_parameters]
    if set(names) != set(result.names) or round(likelihood.entries) != result.events:
        raise OptionError(
            f"report: the result is that of {result.events} events and the parameters {', '.join(result.names)}, got a"
            f" likelihood of {likelihood.entries:g} and {', '.join(names)}; pass the likelihood of the fit"
        )


def report_text(result: FitResult, likelihood: Term | None) -> str:
    """Return the report of a fit as an HTML page."""
    sections = [("Result", result_section(result)), ("Correlations", correlation_section(result))]
    if likelihood is None:
        sections.append(("Model and data", paragraph(NO_LIKELIHOOD)))
    else:
        plots = [plotted(part, result) for part in likelihood.parts]
        sections[:0] = [
            ("Model", each_part(likelihood, map(model_section, likelihood.parts))),
            ("Data", each_part(likelihood, map(data_section, likelihood.parts))),
        ]
        sections.append(("Plots", each_part(likelihood, ("".join(figures) for figures, _ in plots))))
        sections.append(("Goodness of fit", goodness_section(result, likelihood, [row for _, row in plots])))
    sections.append(("Versions", versions(result)))
    verdict = "<br>".join(map(escape, (headline(result), *result.reasons)))
    body = "".join(f"<h2>{title}</h2>{text}" for title, text in sections if text)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Fit report</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>Fit report</h1>"
        f'<p class="verdict {"good" if result.valid else "bad"}">{verdict}</p>{body}</body></html>\n'
    )


def paragraph(*lines: str) -> str:
    """Return lines of text as a paragraph."""
    return f"<p>{'<br>'.join(map(escape, lines))}</p>" if lines else ""


def wide(content: str) -> str:
    """Return something that may be wider than the page, and scrolls then."""
    return f'<div class="wide">{content}</div>'


def each_part(likelihood: Term, texts: Iterable[str]) -> str:
    """Return what there is to say on each part of a likelihood, under its name if there are several."""
    names = likelihood.labels or [f"part {k}" for k, _ in enumerate(likelihood.parts, 1)]
    if len(likelihood.parts) == 1:
        return "".join(texts)
    return "".join(f"<h3>{escape(name)}</h3>{text}" for name, text in zip(names, texts, strict=True))


# ------------------------------------------------------------------------------------ model and data


def model_section(part: Likelihood) -> str:
    """Return the formula of a model, its tree, and the constraints."""
    if isinstance(part, LeastSquares | TemplateLikelihood):
        what = "y" if isinstance(part, LeastSquares) else r"\text{expected count}"
        rows, tree = [f"{what} = {to_latex(part.model.expected)}"], ""
    else:
        model = source_of(part)  # of which a workspace has no formula to show
        rows = [] if isinstance(part, HistFactoryLikelihood) else latex_rows(model)
        tree = wide(f"<pre>{escape(str(model))}</pre>")
    formulas = "".join(wide(f"<div>{formula(f'${row}$')}</div>") for row in rows)
    constraints = paragraph(*map(repr, part.constraints))
    if len(part.constraints) > MAX_CONSTRAINTS:
        constraints = (
            f"<details><summary>{len(part.constraints)} constraints</summary>{constraints}</details>"
        )
    return f"{formulas}{tree}{constraints}"


def source_of(part: Likelihood) -> Pdf:
    """Return the density of events of a likelihood."""
    return part.model.source if isinstance(part, BinnedLikelihood) else part.model


def latex_rows(model: Pdf) -> list[str]:
    """Return the lines of the LaTeX of a model, without their alignment."""
    text = model._repr_latex_().strip("$")
    text = re.sub(r"\\(begin|end)\{aligned\}", "", text)
    return [row.replace("&", "").strip() for row in text.split(r"\\")]


def data_section(part: Likelihood) -> str:
    """Return numbers of events, what was left out, and the span of each column."""
    if isinstance(part, LeastSquares):
        return paragraph(f"{part.ndata:g} points with {'correlated ' * part.correlated}errors")
    if isinstance(part, CountsLikelihood):
        weighted = isinstance(part, BinnedLikelihood) and part.model.weighted
        bins = " x ".join(map(str, part.counts.shape))
        return paragraph(
            f"{part.entries:g} {'weighted ' * weighted}counts in {bins} bins, {int(np.sum(part.counts == 0))} of them empty"
        )
    if not part.data.in_memory:
        return paragraph(*str(part.data).splitlines())
    data, ranges = part.data, source_of(part).observables
    outside = data.report.outside if data.report else {}
    columns = [data[o.name] for o in ranges]
    spans = ([f"{c.min():.6g}", f"{c.mean():.6g}", f"{c.max():.6g}"] if len(c) else [""] * 3 for c in columns)
    low, mean, high = zip(*spans, strict=True)
    table = [
        Column("observable", [o.name for o in ranges], numeric=False),
        Column("range", [f"[{o.low:.6g}, {o.high:.6g}]" for o in ranges], numeric=False),
        *(
            Column(name, cells)
            for name, cells in zip(("lowest", "mean", "highest"), (low, mean, high), strict=True)
        ),
        Column("left out", [str(outside.get(o.name, 0)) for o in ranges]),
    ]
    checks = [f"{len(data)} events, all of them numbers in the ranges" if len(data) else "no events"]
    checks += [str(data.report)] if data.report else []
    if data.weights is not None and len(data):
        w = data.weights
        worth = data.sum_of_weights**2 / float(np.sum(w**2))
        checks.append(
            f"weights from {w.min():.6g} to {w.max():.6g}, {int(np.sum(w < 0))} of them negative; their sum is"
            f" {data.sum_of_weights:.6g}, worth {worth:.6g} events without weights"
        )
    return paragraph(*checks) + wide(html_table(table))


# ------------------------------------------------------------------------------------ result


def result_section(result: FitResult) -> str:
    """Return the table of parameters and the notes of a result."""

    def named(name: str) -> str:
        label = result.labels.get(name, "")
        return Markup(f"{escape(name)} {formula(label)}") if label and label != name else name

    return wide(html_table(parameter_table(result, named))) + paragraph(*footlines(result))


def correlation_section(result: FitResult) -> str:
    """Return the picture of the correlations, if there are some."""
    if len(result.floating) < 2 or not np.isfinite(result.correlation).any():
        return ""
    return f"<figure>{picture(correlation(result).figure, 'correlations')}</figure>"


# ------------------------------------------------------------------------------------ plots and goodness of fit

Goodness = list[tuple[str, GoodnessOfFit]]  # by observable


def plot_names(part: Likelihood) -> list[str]:
    """Return what is plotted, one after the other: observables, channels, or points."""
    if isinstance(part, HistFactoryLikelihood | TemplateLikelihood):
        return list(part.channels)
    return ["x"] if isinstance(part, LeastSquares) else [o.name for o in source_of(part).drawn]


def plotted(part: Likelihood, result: FitResult) -> tuple[list[str], Goodness]:
    """Return a plot of each observable, or why there is none, and the chi-squares of the plots."""
    drawing, figures, tests = Drawing(lower="pulls"), [], []
    names = plot_names(part)
    blinded = any(p.blind for p in part.model.parameters)
    for name in names:
        try:
            if blinded and not isinstance(part, LeastSquares):
                tests.append((name, drawing.projection_of(part, name, result).chi2))
            elif not blinded:
                drawn: Plot[Any] = drawing.plot_part(part, name, result)
                tests.append((name, drawn.numbers.chi2))
                figures.append(f"<figure>{picture(drawn.figure, name)}</figure>")
        except MorefitError as error:
            figures.append(paragraph(f"'{name}' cannot be drawn: {error}"))
    if blinded:
        figures.append(paragraph(BLINDED))
    return [f'<div class="plots">{"".join(figures)}</div>'], tests


def goodness_section(result: FitResult, likelihood: Term, parts: Sequence[Goodness]) -> str:
    """Return the chi-square of the fit, if it has one, and those of the plots."""
    several = len(parts) > 1
    names = likelihood.labels or [f"part {k}" for k, _ in enumerate(parts, 1)]
    rows = [
        (f"{part}: {name}" if several else name, test)
        for part, own in zip(names, parts, strict=True)
        for name, test in own
    ]
    lines = []
    if result.ndf:
        lines.append(
            f"chi-square of the fit {result.chi2:.4g} with {result.ndf} degrees of freedom, p-value {result.p_value:.3g}"
        )
    if not rows:
        return paragraph(*lines)
    lines.append(
        "chi-square of the plotted bins: Pearson's, neighbours being merged until 5 events are expected; of weighted events,"
        " by the sums of squared weights"
    )
    numbers = [test for _, test in rows]
    table = [
        Column("observable", [name for name, _ in rows], numeric=False),
        Column("chi-square", [f"{test.statistic:.1f}" for test in numbers]),
        Column("degrees of freedom", [str(test.ndf) for test in numbers]),
        Column("p-value", ["" if isnan(test.p_value) else f"{test.p_value:.3g}" for test in numbers]),
    ]
    return paragraph(*lines) + wide(html_table(table))


# ------------------------------------------------------------------------------------ versions


def versions(result: FitResult) -> str:
    """Return what the fit and this report were made with."""
    each = [
        f"Python {platform.python_version()}",
        *installed(),
        platform.platform(),
        f"backend {result.backend}",
    ]
    return paragraph(", ".join(each))


def installed() -> Iterator[str]:
    """Go through the other packages that are installed, with their versions."""
    for name in PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
