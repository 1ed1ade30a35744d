"""Functions for formulas, besides those of NumPy: special functions, polynomials, interpolation."""

from morefit.expr.interpolate import clip, interp, piecewise, table
from morefit.functions.polynomials import (
    bernstein,
    bernstein_series,
    chebyshev,
    chebyshev_series,
    hermite,
    hermite_series,
    legendre,
    legendre_series,
    spherical_harmonic,
)
from morefit.functions.special import (
    arccosh,
    arcsinh,
    arctanh,
    beta,
    betainc,
    betaln,
    digamma,
    erf,
    erfc,
    erfcx,
    gammainc,
    gammaincc,
    gammaln,
    iv,
    ive,
    kv,
    kve,
    log_ndtr,
    ndtr,
    ndtri,
    sign,
    wofz_imag,
    wofz_real,
)
from morefit.functions.splines import spline

__all__ = [
    "arccosh", "arcsinh", "arctanh", "bernstein", "bernstein_series", "beta", "betainc", "betaln", "chebyshev", "chebyshev_series", "clip",
    "digamma", "erf", "erfc", "erfcx", "gammainc", "gammaincc", "gammaln", "hermite", "hermite_series", "interp", "iv", "ive", "kv", "kve", "legendre",
    "legendre_series", "log_ndtr", "ndtr", "ndtri", "piecewise", "sign", "spherical_harmonic", "spline", "table", "wofz_imag", "wofz_real",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
