"""What arguments and attributes are called in other packages, and what is the same here: tables for messages."""

# words for arguments, and those that may be meant; the first that a function has is proposed
SYNONYMS: dict[str, tuple[str, ...]] = {
    "cl": ("level",),
    "confidence_level": ("level",),
    "n": ("events", "toys"),
    "size": ("events",),
    "ntoys": ("toys",),
    "values": ("truth", "start"),
    "params": ("truth", "start", "values"),
    "sigma": ("error",),
    "covariance": ("error",),
    "uncertainty": ("error",),
    "result": ("values", "best"),
    "pulls": ("lower",),
    "value": ("start",),
    "method": ("minimiser",),
    "bounds": ("limits", "low"),
    "limits": ("low",),
    "range": ("ranges", "low"),
    "const": ("fixed",),
}

BINNING = "counts in bins are data as np.histogram returns them, (counts, edges), or a histogram"
SAVING = "the figure of what is returned writes files, plot.figure.savefig(path)"
# arguments that something else replaces
ADVICE = {
    "extended": "a sum with yields is extended",
    "binned": BINNING,
    "bins": BINNING,
    "nbins": BINNING,
    "filename": SAVING,
    "path": SAVING,
    "savefig": SAVING,
}

FIT = "write mf.fit(model, data)"
DRAW, PLOT = "write mf.generate(model, events, seed=1)", "write mf.plot(model, data, values=result)"
VALUE = "pdf(x, values) is the normalised density"
# of densities and of results; likelihoods and parameters have no such table, as looking it up slows every attribute down
MODEL = {
    "fit": FIT,
    "fitTo": FIT,
    "generate": DRAW,
    "sample": DRAW,
    "plot": PLOT,
    "plotOn": PLOT,
    "eval": VALUE,
    "getVal": VALUE,
}
NUMBERS = "values[name] and errors[name] are those of a parameter"
MINIMUM = "the minimum is nll, minus the logarithm of the likelihood"
VALID = "valid says whether there is a minimum, and reasons why not"
RESULT = {
    "value": NUMBERS,
    "error": NUMBERS,
    "params": NUMBERS,
    "parameters": NUMBERS,
    "fcn": MINIMUM,
    "fval": MINIMUM,
    "status": VALID,
    "success": VALID,
    "hesse": "errors are those of the exact Hessian",
    "summary": "print it, or write report(path)",
    "plot": PLOT,
}
