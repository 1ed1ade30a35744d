"""RooFit from Python: built-in densities for the mass, a compiled class of our own for the angles."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from peers.system import Columns, Found, System, Task, one_by_one, tolerance

warnings.filterwarnings("ignore", message="(?s).*distribution of ROOT is in alpha stage")

import ROOT  # noqa: E402  # warns when imported

ROOT.gErrorIgnoreLevel = ROOT.kWarning
ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.ERROR)
ROOT.RooMsgService.instance().setSilentMode(True)


def mass_pdf(task: Task, m: list[Any], free: list[Any]) -> Any:
    mu, sigma, alpha, fsig = free
    signal = ROOT.RooGaussian("signal", "", *m, mu, sigma)
    background = ROOT.RooExponential("background", "", *m, alpha)
    pdf = ROOT.RooAddPdf("pdf", "", [signal, background], [fsig])
    pdf.parts = (signal, background)  # RooFit does not own what it is made of
    return pdf


def kstar_pdf(task: Task, angles: list[Any], free: list[Any]) -> Any:
    """Compile the class with ROOT's own compiler; the paper's was made by RooClassFactory, and compiled as well."""
    path = Path(__file__).with_name("RooKstarMuMu.h")
    ROOT.gInterpreter.Declare(f'#pragma cling optimize(3)\n#include "{path}"')
    return ROOT.RooKstarMuMu("pdf", "", *angles, *free)


PDFS = {"mass": mass_pdf, "kstarmumu": kstar_pdf}


def make(task: Task) -> System:
    """Draw with the pdf's generate, fit with Migrad and Hesse of Minuit2."""
    problem = task.problem
    observables = [ROOT.RooRealVar(n, "", low, high) for n, (low, high) in problem.observables.items()]
    free = [ROOT.RooRealVar(p.name, "", p.truth, p.low, p.high) for p in problem.parameters]
    pdf = PDFS[task.model](task, observables, free)
    columns_of = ROOT.RooArgSet(*observables)
    columns_of.parts = observables  # neither does a set
    options = {"EvalBackend": task.variant}
    if task.variant == "legacy" and task.threads > 1:
        options["NumCPU"] = task.threads

    def reset() -> None:
        for p, variable in zip(problem.parameters, free, strict=True):
            variable.setVal(p.truth)
            variable.setError(p.step)

    def draw(events: int, seed: int) -> Any:
        reset()
        ROOT.RooRandom.randomGenerator().SetSeed(seed + 1)  # seed 0 means the clock
        return pdf.generate(columns_of, events)

    def fit(data: Any, edm: float) -> Found:
        reset()
        nll = pdf.createNLL(data, **options)
        minimiser = ROOT.RooMinimizer(nll)
        minimiser.setPrintLevel(-1)
        minimiser.setStrategy(task.strategy)
        minimiser.setEps(tolerance(edm))
        if task.variant == "legacy":
            minimiser.optimizeConst(2)  # as fitTo does
        status = minimiser.minimize("Minuit2", "Migrad")
        hesse = minimiser.hesse()
        return Found([v.getVal() for v in free], [v.getError() for v in free], status == hesse == 0)

    def take(columns: Columns) -> Any:
        return ROOT.RooDataSet.from_numpy(columns, columns_of)

    return one_by_one(draw, fit, take, task.edm, f"ROOT {ROOT.gROOT.GetVersion()}")
