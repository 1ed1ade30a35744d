"""Maximum-likelihood fits with densities compiled just in time."""

from typing import TYPE_CHECKING

from morefit.errors import (
    BackendError,
    BrokenJob,
    CompileError,
    DataError,
    FitError,
    ModelError,
    MorefitError,
    OptionError,
)

if TYPE_CHECKING:
    from morefit import functions, intervals, plots
    from morefit.data import CutReport, Dataset, read
    from morefit.expr import where
    from morefit.functions import (
        arccosh,
        arcsinh,
        arctanh,
        bernstein,
        bernstein_series,
        beta,
        betainc,
        betaln,
        chebyshev,
        chebyshev_series,
        clip,
        digamma,
        erf,
        erfc,
        erfcx,
        gammainc,
        gammaincc,
        gammaln,
        hermite,
        hermite_series,
        interp,
        iv,
        ive,
        kv,
        kve,
        legendre,
        legendre_series,
        log_ndtr,
        ndtr,
        ndtri,
        sign,
        spherical_harmonic,
        wofz_imag,
        wofz_real,
    )
    from morefit.inspect.explain import Explanation, explain
    from morefit.inspect.graphs import Drawing, draw
    from morefit.intervals.information import FisherInformation, fisher_information
    from morefit.likelihood import Constraint, Likelihood, constraint, generate
    from morefit.minimise import FitResult, fit
    from morefit.model import (
        Convolution,
        CrystalBall,
        Density,
        Exponential,
        Gaussian,
        Observable,
        Parameter,
        Pdf,
        Polynomial,
        Product,
        Sum,
        Uniform,
        physics,
        shapes,
    )
    from morefit.plots.canvas import Plot
    from morefit.plots.fitted import plot
    from morefit.targets import Cpu, OpenCL, devices
    from morefit.toys import ToyResults, fit_many, toy_study
else:
    from morefit.lazy import import_when_used

    __getattr__ = import_when_used(
        __name__,
        {
            "morefit": ["functions", "intervals", "plots"],
            "morefit.data": ["CutReport", "Dataset", "read"],
            "morefit.expr": ["where"],
            "morefit.functions": [
                "arccosh", "arcsinh", "arctanh", "bernstein", "bernstein_series", "beta", "betainc",
                "betaln", "chebyshev", "chebyshev_series", "clip", "digamma", "erf", "erfc",
                "erfcx", "gammainc", "gammaincc", "gammaln", "hermite", "hermite_series", "interp",
                "iv", "ive", "kv", "kve", "legendre", "legendre_series", "log_ndtr", "ndtr",
                "ndtri", "sign", "spherical_harmonic", "wofz_imag", "wofz_real",
            ],
            "morefit.inspect.explain": ["Explanation", "explain"],
            "morefit.inspect.graphs": ["Drawing", "draw"],
            "morefit.intervals.information": ["FisherInformation", "fisher_information"],
            "morefit.likelihood": ["Constraint", "Likelihood", "constraint", "generate"],
            "morefit.minimise": ["FitResult", "fit"],
            "morefit.model": [
                "Convolution", "CrystalBall", "Density", "Exponential", "Gaussian", "Observable", "Parameter", "Pdf",
                "Polynomial", "Product", "Sum", "Uniform", "physics", "shapes",
            ],
            "morefit.plots.canvas": ["Plot"],
            "morefit.plots.fitted": ["plot"],
            "morefit.targets": ["Cpu", "OpenCL", "devices"],
            "morefit.toys": ["ToyResults", "fit_many", "toy_study"],
        },
    )  # fmt: skip

__all__ = [
    "BackendError", "BrokenJob", "CompileError", "Constraint", "Convolution", "Cpu", "CrystalBall", "CutReport", "DataError", "Dataset",
    "Density", "Drawing", "Explanation", "Exponential", "FisherInformation", "FitError", "FitResult", "Gaussian",
    "Likelihood", "ModelError", "MorefitError", "Observable", "OpenCL", "OptionError", "Parameter", "Pdf", "Plot",
    "Polynomial", "Product", "Sum", "ToyResults", "Uniform", "arccosh", "arcsinh", "arctanh", "bernstein",
    "bernstein_series", "beta", "betainc", "betaln", "chebyshev", "chebyshev_series", "clip", "constraint", "devices", "digamma",
    "draw", "erf", "erfc", "erfcx", "explain", "fisher_information", "fit", "fit_many", "functions", "gammainc", "gammaincc", "gammaln", "generate",
    "hermite", "hermite_series", "interp", "intervals", "iv", "ive", "kv", "kve", "legendre", "legendre_series", "log_ndtr",
    "ndtr", "ndtri", "physics", "plot", "plots", "read", "shapes", "sign", "spherical_harmonic", "toy_study", "where",
    "wofz_imag", "wofz_real",
]  # fmt: skip
__version__ = "0.2.0.dev0"


def __dir__() -> list[str]:
    """Return the public names only, for completion."""
    return [*__all__, "__version__"]
