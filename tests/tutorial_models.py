"""What tests of RooFit's tutorials share: the model that most of them fit, and whether a fit returns the truth."""

import morefit as mf

FEW_SIGMA = 4.0  # by how much a fitted value may differ from the truth


def near_truth(result, **truth):
    """Return whether a fit is valid, and its values are what was generated, within a few of their errors."""
    return result.valid and all(
        abs(result.values[n] - v) < FEW_SIGMA * result.errors[n] for n, v in truth.items()
    )


def signal_and_background(mean=5.0, narrow=0.5, wide=1.0, **weights):
    """Return two Gaussians of one mean over a Chebyshev polynomial."""
    x = mf.Observable("x", 0, 10)
    a0, a1 = mf.Parameter("a0", 0.5, 0, 1), mf.Parameter("a1", -0.2, -1, 1)
    share = mf.Parameter("share", 0.8, 0, 1)
    peaks = [mf.Gaussian(x, mean, narrow), mf.Gaussian(x, mean, wide)]
    signal = mf.Sum(peaks, fractions=[share], labels=["narrow", "wide"])
    background = mf.shapes.Chebyshev(x, [a0, a1])
    return mf.Sum([signal, background], labels=["signal", "background"], **weights)
