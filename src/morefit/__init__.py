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
    from morefit import acceptance, functions, histfactory, intervals, plots
    from morefit.data.dataset import Dataset
    from morefit.data.files import FileDataset
    from morefit.data.kendall import kendall_tau
    from morefit.data.labels import Category
    from morefit.data.reading import read
    from morefit.data.report import CutReport
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
        piecewise,
        sign,
        spherical_harmonic,
        spline,
        table,
        wofz_imag,
        wofz_real,
    )
    from morefit.inspect.draw import Drawing, draw
    from morefit.inspect.explain import Explanation, explain
    from morefit.intervals.information import FisherInformation, fisher_information
    from morefit.likelihood import (
        BinnedLikelihood,
        Constraint,
        LeastSquares,
        Likelihood,
        Simultaneous,
        TemplateLikelihood,
        constraint,
        generate,
    )
    from morefit.minimise import FitResult, fit
    from morefit.minimise.combine import Combination, combine
    from morefit.minimise.sweights import SWeights, sweights
    from morefit.model import (
        Choice,
        Convolution,
        CrystalBall,
        Density,
        Derived,
        Efficiency,
        Exponential,
        Gaussian,
        Histogram,
        KernelDensity,
        MomentMorph,
        Morph,
        Observable,
        Parameter,
        Pdf,
        Polynomial,
        Product,
        Restricted,
        Spline,
        Sum,
        Uniform,
        histogram_function,
        physics,
        shapes,
    )
    from morefit.model.opaque import opaque
    from morefit.plots.canvas import Plot
    from morefit.plots.fitted import plot
    from morefit.targets.cpu.run import Cpu
    from morefit.targets.opencl.discover import devices
    from morefit.targets.opencl.run import OpenCL
    from morefit.toys.many import fit_many
    from morefit.toys.results import ToyResults
    from morefit.toys.study import toy_study
else:
    from morefit.lazy import import_when_used

    __getattr__ = import_when_used(
        __name__,
        {
            "morefit": ["acceptance", "functions", "histfactory", "intervals", "plots"],
            "morefit.data.dataset": ["Dataset"],
            "morefit.data.files": ["FileDataset"],
            "morefit.data.kendall": ["kendall_tau"],
            "morefit.data.labels": ["Category"],
            "morefit.data.reading": ["read"],
            "morefit.data.report": ["CutReport"],
            "morefit.expr": ["where"],
            "morefit.functions": [
                "arccosh", "arcsinh", "arctanh", "bernstein", "bernstein_series", "beta", "betainc",
                "betaln", "chebyshev", "chebyshev_series", "clip", "digamma", "erf", "erfc",
                "erfcx", "gammainc", "gammaincc", "gammaln", "hermite", "hermite_series", "interp",
                "iv", "ive", "kv", "kve", "legendre", "legendre_series", "log_ndtr", "ndtr",
                "ndtri", "piecewise", "sign", "spherical_harmonic", "spline", "table", "wofz_imag", "wofz_real",
            ],
            "morefit.inspect.explain": ["Explanation", "explain"],
            "morefit.inspect.draw": ["Drawing", "draw"],
            "morefit.intervals.information": ["FisherInformation", "fisher_information"],
            "morefit.likelihood": ["BinnedLikelihood", "Constraint", "LeastSquares", "Likelihood", "Simultaneous", "TemplateLikelihood", "constraint", "generate"],
            "morefit.minimise": ["FitResult", "fit"],
            "morefit.minimise.combine": ["Combination", "combine"],
            "morefit.minimise.sweights": ["SWeights", "sweights"],
            "morefit.model": [
                "Choice", "Convolution", "CrystalBall", "Density", "Derived", "Efficiency", "Exponential", "Gaussian", "Histogram", "KernelDensity", "MomentMorph", "Morph", "Observable",
                "Parameter", "Pdf", "Polynomial", "Product", "Restricted", "Spline", "Sum", "Uniform", "histogram_function", "physics", "shapes",
            ],
            "morefit.model.opaque": ["opaque"],
            "morefit.plots.canvas": ["Plot"],
            "morefit.plots.fitted": ["plot"],
            "morefit.targets.cpu.run": ["Cpu"],
            "morefit.targets.opencl.discover": ["devices"],
            "morefit.targets.opencl.run": ["OpenCL"],
            "morefit.toys.many": ["fit_many"],
            "morefit.toys.results": ["ToyResults"],
            "morefit.toys.study": ["toy_study"],
        },
        rooms=["shapes", "physics", "functions", "intervals", "plots", "acceptance", "histfactory"],
        hints="morefit.text.names",
    )  # fmt: skip

__all__ = [
    "BackendError", "BinnedLikelihood", "BrokenJob", "Category", "Choice", "Combination", "CompileError", "Constraint", "Convolution", "Cpu", "CrystalBall", "CutReport", "DataError", "Dataset",
    "Density", "Derived", "Drawing", "Efficiency", "Explanation", "Exponential", "FileDataset", "FisherInformation", "FitError", "FitResult", "Gaussian",
    "Histogram", "KernelDensity", "LeastSquares", "Likelihood", "ModelError", "MomentMorph", "MorefitError", "Morph", "Observable", "OpenCL", "OptionError", "Parameter", "Pdf", "Plot",
    "Polynomial", "Product", "Restricted", "SWeights", "Simultaneous", "Spline", "Sum", "TemplateLikelihood", "ToyResults", "Uniform", "acceptance", "arccosh", "arcsinh", "arctanh", "bernstein",
    "bernstein_series", "beta", "betainc", "betaln", "chebyshev", "chebyshev_series", "clip", "combine", "constraint", "devices", "digamma",
    "draw", "erf", "erfc", "erfcx", "explain", "fisher_information", "fit", "fit_many", "functions", "gammainc", "gammaincc", "gammaln", "generate",
    "hermite", "hermite_series", "histfactory", "histogram_function", "interp", "intervals", "iv", "ive", "kendall_tau", "kv", "kve", "legendre", "legendre_series", "log_ndtr",
    "ndtr", "ndtri", "opaque", "physics", "piecewise", "plot", "plots", "read", "shapes", "sign", "spherical_harmonic", "spline", "sweights", "table",
    "toy_study", "where",
    "wofz_imag", "wofz_real",
]  # fmt: skip
__version__ = "0.2.0.dev0"


def __dir__() -> list[str]:
    """Return the public names only, for completion."""
    return [*__all__, "__version__"]
