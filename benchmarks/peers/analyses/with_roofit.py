"""RooFit from Python, with its vectorising backend; Migrad and Hesse of Minuit2."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from peers.analyses.worker import WEIGHT, Floating, Found, Part

warnings.filterwarnings("ignore", message="(?s).*distribution of ROOT is in alpha stage")

import ROOT  # noqa: E402  # warns when imported

ROOT.gErrorIgnoreLevel = ROOT.kWarning
ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.FATAL)
ROOT.RooMsgService.instance().setSilentMode(True)
Model = Callable[["Workshop"], Any]  # makes the pdf, or a list of one for each part


class Workshop:
    """Observables, parameters and parts of a model: RooFit does not own what it is made of."""

    def __init__(self, floating: Sequence[Floating]) -> None:
        self.floating = {p.name: ROOT.RooRealVar(p.name, "", p.start, p.low, p.high) for p in floating}
        self.observables: dict[str, Any] = {}
        self.constraints: list[Any] = []
        self.made: list[Any] = []

    def observable(self, name: str, low: float, high: float) -> Any:
        self.observables[name] = ROOT.RooRealVar(name, "", low, high)
        return self.observables[name]

    def number(self, value: float) -> Any:
        return self.keep(ROOT.RooConstVar(f"c{len(self.made)}", "", value))

    def keep(self, thing: Any) -> Any:
        self.made.append(thing)
        return thing

    def make(self, kind: str, *arguments: Any) -> Any:
        return self.keep(getattr(ROOT, kind)(f"{kind}{len(self.made)}", "", *arguments))

    def __getitem__(self, name: str) -> Any:
        return self.floating[name]

    def crystal_ball(self, x: Any, mu: str, sigma: str, alpha: Any, power: float) -> Any:
        alpha = alpha if not isinstance(alpha, float) else self.number(alpha)
        return self.make("RooCBShape", x, self[mu], self[sigma], alpha, self.number(power))


def fit_with(
    model: Model, conditional: str | None = None
) -> Callable[[Sequence[Floating], int], Callable[[Sequence[Part]], Found]]:
    """Return what makes fits of a model, given one of its observables if that is named."""

    def make(floating: Sequence[Floating], strategy: int) -> Callable[[Sequence[Part]], Found]:
        workshop = Workshop(floating)
        pdf = model(workshop)
        take = taker(workshop, pdf if isinstance(pdf, list) else [pdf])
        joined, category = simultaneous(workshop, pdf) if isinstance(pdf, list) else (pdf, None)

        def fit(parts: Sequence[Part]) -> Found:
            for p in floating:
                workshop[p.name].setVal(p.start)
                workshop[p.name].setError(p.step)
            data = take(parts, category)
            options = nll_options(workshop, conditional)
            if workshop.constraints:
                options["ExternalConstraints"] = ROOT.RooArgSet(*workshop.constraints)
            nll = joined.createNLL(data, **options)
            minimiser = ROOT.RooMinimizer(nll)
            minimiser.setPrintLevel(-1)
            minimiser.setStrategy(strategy)
            minimiser.setEps(0.1)
            status = minimiser.minimize("Minuit2", "Migrad")
            hesse = minimiser.hesse()
            return Found({p.name: workshop[p.name].getVal() for p in floating}, status == hesse == 0)

        return fit

    return make


def nll_options(workshop: Workshop, conditional: str | None) -> dict[str, Any]:
    """Return the options of a likelihood, given one of the observables if that is named."""
    options: dict[str, Any] = {"EvalBackend": "cpu"}
    if conditional is not None:
        options["ConditionalObservables"] = ROOT.RooArgSet(workshop.observables[conditional])
    return options


def simultaneous(workshop: Workshop, pdfs: Sequence[Any]) -> tuple[Any, Any]:
    """Return one pdf of several, and the category that tells them apart."""
    category = workshop.keep(ROOT.RooCategory("part", ""))
    for k in range(len(pdfs)):
        category.defineType(f"p{k}", k)
    joined = workshop.keep(ROOT.RooSimultaneous("joined", "", category))
    for k, pdf in enumerate(pdfs):
        joined.addPdf(pdf, f"p{k}")
    return joined, category


def taker(workshop: Workshop, pdfs: Sequence[Any]) -> Callable[[Sequence[Part], Any], Any]:
    """Return what makes a RooDataSet of columns."""
    observables = ROOT.RooArgSet(*workshop.observables.values())

    def take(parts: Sequence[Part], category: Any) -> Any:
        weight = WEIGHT if WEIGHT in parts[0] else None
        sets = [ROOT.RooDataSet.from_numpy(part, observables, weight_name=weight) for part in parts]
        if category is None:
            return sets[0]
        joined = ROOT.RooDataSet(
            "data", "", observables, Index=category, Import={f"p{k}": s for k, s in enumerate(sets)}
        )
        joined.parts = sets
        return joined

    return take


def add(w: Workshop, parts: Sequence[Any], coefficients: Sequence[Any]) -> Any:
    """Return a sum with fractions, or with as many yields."""
    return w.make("RooAddPdf", ROOT.RooArgList(*parts), ROOT.RooArgList(*coefficients))


def mass(w: Workshop) -> Any:
    m = w.observable("m", 5.0, 7.0)
    signal = w.make("RooGaussian", m, w["mu"], w["sigma"])
    return add(w, [signal, w.make("RooExponential", m, w["alpha"])], [w["fsig"]])


def two_crystal_balls(w: Workshop) -> Any:
    x = w.observable("x", 5.0, 5.6)
    balls = [w.crystal_ball(x, "mu", "s1", 1.5, 3.0), w.crystal_ball(x, "mu", "s2", -1.8, 4.0)]
    return add(w, [add(w, balls, [w["f"]]), w.make("RooExponential", x, w["c"])], [w["Ns"], w["Nb"]])


def johnson_and_threshold(w: Workshop) -> Any:
    x = w.observable("x", 0.0, 20.0)
    peak = w.make("RooJohnson", x, w["xi"], w["lam"], w["gamma"], w["delta"])
    formula = "pow(@0 + 1e-3, @1) * exp(-@2 * @0)"
    return add(w, [peak, w.make("RooGenericPdf", formula, ROOT.RooArgList(x, w["a"], w["b"]))], [w["f"]])


def fourteen_parameters(w: Workshop) -> Any:
    x = w.observable("x", 5.0, 6.0)
    balls = [w.crystal_ball(x, f"m{k}", f"s{k}", w[f"a{k}"], 3.0) for k in range(3)]
    yields = [*(w[f"N{k}"] for k in range(3)), w["Nb"]]
    return add(w, [*balls, w.make("RooExponential", x, w["c"])], yields)


def thirty_fractions(w: Workshop) -> Any:
    x = w.observable("x", 0.0, 31.0)
    peaks = [w.make("RooGaussian", x, w.number(1.0 + k), w.number(0.6)) for k in range(30)]
    return add(w, peaks, [w[f"f{k}"] for k in range(29)])


def mass_and_lifetime(w: Workshop) -> Any:
    m, t = w.observable("m", 5.0, 5.6), w.observable("t", 0.3, 12.0)
    decay = {n: w.make("RooExponential", t, w[n]) for n in ("gamma", "short", "long")}
    signal = w.make(
        "RooProdPdf", ROOT.RooArgList(w.make("RooGaussian", m, w["mu"], w["sigma"]), decay["gamma"])
    )
    times = add(w, [decay["short"], decay["long"]], [w["f"]])
    background = w.make("RooProdPdf", ROOT.RooArgList(w.make("RooExponential", m, w["c"]), times))
    return add(w, [signal, background], [w["Ns"], w["Nb"]])


def three_angles(w: Workshop) -> Any:
    path = Path(__file__).parents[1] / "workers" / "RooKstarMuMu.h"
    ROOT.gInterpreter.Declare(f'#pragma cling optimize(3)\n#include "{path}"')
    angles = [
        w.observable(n, -high, high) for n, high in (("ctl", 1.0), ("ctk", 1.0), ("phi", 3.141592653589793))
    ]
    names = ("FL", "S3", "S4", "S5", "AFB", "S7", "S8", "S9")
    return w.make("RooKstarMuMu", *angles, *(w[n] for n in names))


def angles_and_mass(w: Workshop) -> Any:
    density = three_angles(w)
    angles = list(w.observables.values())
    m = w.observable("m", 5.17, 5.7)
    signal = w.make("RooProdPdf", ROOT.RooArgList(density, w.crystal_ball(m, "mu", "sigma", 1.6, 3.0)))
    flat = w.make("RooUniform", ROOT.RooArgSet(*angles))
    background = w.make("RooProdPdf", ROOT.RooArgList(flat, w.make("RooExponential", m, w["c"])))
    return add(w, [signal, background], [w["fsig"]])


def four_categories(w: Workshop) -> Any:
    x, pdfs = w.observable("x", 5.0, 5.6), []
    signal = w.make("RooGaussian", x, w["mu"], w["sigma"])
    for k in range(4):
        share = w[f"eff{k}"]
        number = w.make("RooProduct", ROOT.RooArgList(w["N"], share))
        pdfs.append(add(w, [signal, w.make("RooExponential", x, w[f"c{k}"])], [number, w[f"Nb{k}"]]))
        w.constraints.append(w.make("RooGaussian", share, w.number(0.2 + 0.05 * k), w.number(0.01)))
    return pdfs


def sixty_one_parameters(w: Workshop) -> Any:
    x = w.observable("x", 0.0, 21.0)
    peaks = [w.make("RooGaussian", x, w[f"m{k}"], w[f"s{k}"]) for k in range(20)]
    background = w.make("RooExponential", x, w.number(-0.05))
    return add(w, [*peaks, background], [*(w[f"N{k}"] for k in range(20)), w["Nb"]])


def decay(w: Workshop) -> Any:
    t, error = w.observable("t", -1.0, 12.0), w.observable("sigma_t", 0.005, 0.2)
    resolution = w.make("RooGaussModel", t, w.number(0.0), w["scale"], error)
    return w.make("RooDecay", t, w["tau"], resolution, ROOT.RooDecay.SingleSided)


MODELS = {
    "the paper's mass model": fit_with(mass),
    "two Crystal Balls + exponential": fit_with(two_crystal_balls),
    "Johnson + threshold, by quadrature": fit_with(johnson_and_threshold),
    "14 parameters": fit_with(fourteen_parameters),
    "30 fractions": fit_with(thirty_fractions),
    "mass x lifetime": fit_with(mass_and_lifetime),
    "angles x mass, with background": fit_with(angles_and_mass),
    "four categories, constrained": fit_with(four_categories),
    "61 parameters": fit_with(sixty_one_parameters),
    "weighted mass fit": fit_with(mass),
    "weighted mass fit, datasets given": fit_with(mass),
    "decay, per-event resolution": fit_with(decay, "sigma_t"),
}


# shapes at a million events


def value_of(model: Model, conditional: str | None = None) -> Callable[[Sequence[Floating], Part], Any]:
    """Return what makes the nll of a dataset as a function of values by name."""

    def make(floating: Sequence[Floating], part: Part) -> Callable[[dict[str, float]], float]:
        workshop = Workshop(floating)
        pdf = model(workshop)
        data = workshop.keep(taker(workshop, [pdf])([part], None))
        nll = workshop.keep(pdf.createNLL(data, **nll_options(workshop, conditional)))

        def value(values: dict[str, float]) -> float:
            for name, number in values.items():
                workshop[name].setVal(number)
            return float(nll.getVal())

        return value

    return make


def double_crystal_ball(w: Workshop) -> Any:
    m = w.observable("m", 5.0, 5.6)
    names = ("mu", "sigma", "alpha_left", "n_left", "alpha_right", "n_right")
    signal = w.make("RooCrystalBall", m, *(w[n] for n in names))
    return add(w, [signal, w.make("RooChebychev", m, ROOT.RooArgList(w["c1"], w["c2"]))], [w["f"]])


def voigt(w: Workshop) -> Any:
    return w.make("RooVoigtian", w.observable("m", 5.0, 6.0), w["mu"], w["gamma"], w["sigma"])


def landau(w: Workshop) -> Any:
    m = w.observable("m", 0.0, 30.0)
    m.setBins(10_000, "cache")  # of the Fourier transform
    mean = w.make("RooFormulaVar", "@0 + 0.2227816 * @1", ROOT.RooArgList(w["mpv"], w["width"]))
    energy = w.make("RooLandau", m, mean, w["width"])
    return w.make("RooFFTConvPdf", m, energy, w.make("RooGaussian", m, w.number(0.0), w["sigma"]))


LARGE = {
    "double Crystal Ball + Chebyshev": value_of(double_crystal_ball),
    "decay, per-event resolution": value_of(decay, "sigma_t"),
    "Voigt": value_of(voigt),
    "Landau x Gaussian, numerical": value_of(landau),
    "three angles": value_of(three_angles),
}
