"""Write hs3.json: a file of the HS3 standard by RooFit, and what its likelihood is at some points.

python tests/reference/make_hs3.py       # with a Python that has ROOT 6.40
"""

import json
import os
import random
import tempfile
from pathlib import Path

import ROOT

OUT = Path(__file__).with_name("hs3.json")
HISTOGRAMS = []  # which RooFit does not own


def histogram(contents, errors=None):
    made = ROOT.TH1D(f"h{len(HISTOGRAMS)}", "", len(contents), 0, len(contents))
    made.SetDirectory(0)
    for k, content in enumerate(contents, 1):
        made.SetBinContent(k, content)
        made.SetBinError(k, errors[k - 1] if errors else 0.0)
    HISTOGRAMS.append(made)
    return made


def channel(number, parts):
    made = parts.Channel(f"c{number}")
    made.SetData(histogram([56 + number, 61, 41]))
    made.SetStatErrorConfig(0.01, "Gaussian" if number else "Poisson")
    signal = parts.Sample("signal")
    signal.SetHisto(histogram([5, 10, 4]))
    signal.AddNormFactor("mu", 1, 0, 10)
    signal.AddOverallSys("acceptance", 0.95, 1.05)
    made.AddSample(signal)
    background = parts.Sample("background")
    background.SetHisto(
        histogram([50, 45, 40], [3, 0.01, 3])
    )  # the error of the second bin is below the threshold
    background.ActivateStatError()
    background.AddOverallSys("scale", 0.93, 1.08)
    background.AddNormFactor("rate", 1, 0.2, 3)
    tilt = parts.HistoSys()
    tilt.SetName("tilt")
    tilt.SetHistoHigh(histogram([54, 45, 37]))
    tilt.SetHistoLow(histogram([47, 45, 42]))
    background.AddHistoSys(tilt)
    shape = parts.ShapeSys()
    shape.SetName(f"shape{number}")
    shape.SetErrorHist(histogram([0.1, 0.1, 0.2]))
    shape.SetConstraintType(parts.Constraint.Gaussian if number else parts.Constraint.Poisson)
    background.AddShapeSys(shape)
    made.AddSample(background)
    if number:
        other = parts.Sample("other")
        other.SetHisto(histogram([3, 2, 1]))
        free = parts.ShapeFactor()
        free.SetName("free")
        other.AddShapeFactor(free)
        made.AddSample(other)
    return made


def main():
    ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.WARNING)
    parts = ROOT.RooStats.HistFactory
    measurement = parts.Measurement("measured", "measured")
    measurement.SetPOI("mu")
    measurement.SetLumi(1.0)
    measurement.SetLumiRelErr(0.02)
    measurement.AddConstantParam("rate")
    for number in range(2):
        measurement.AddChannel(channel(number, parts))
    os.chdir(tempfile.mkdtemp())  # where RooFit writes files that nobody wants
    space = parts.MakeModelAndMeasurementFast(measurement)
    written = json.loads(str(ROOT.RooJSONFactoryWSTool(space).exportJSONtoString()))
    config, data = space.obj("ModelConfig"), space.data("obsData")
    pdf = config.GetPdf()
    nll = pdf.createNLL(data, ROOT.RooFit.GlobalObservables(config.GetGlobalObservables()))
    floating = sorted((p for p in pdf.getParameters(data) if not p.isConstant()), key=lambda p: p.GetName())
    rng, points = random.Random(1), []
    for k in range(6):
        for p in floating:
            reach = 1.6 if p.GetName().startswith("alpha") else 0.05 if p.GetName() == "Lumi" else 0.2
            p.setVal((not p.GetName().startswith("alpha")) + bool(k) * rng.uniform(-reach, reach))
        points.append({"values": {p.GetName(): p.getVal() for p in floating}, "nll": nll.getVal()})
    del written["misc"]
    OUT.write_text(json.dumps({"workspace": written, "points": points}) + "\n")
    os._exit(0)  # ROOT and Python disagree on who frees the histograms


if __name__ == "__main__":
    main()
