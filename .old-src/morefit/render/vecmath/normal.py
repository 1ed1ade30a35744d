"""Write the inverse of the normal distribution: ndtri."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.render.vecmath.arithmetic import INFINITY, NAN, choose, lean_polynomial, widened
from morefit.render.writer import Writer

# Rational fits, lowest coefficient first, by reweighted least squares in 60 digits (mpmath), rounded to float.
# The quantile over p - 1/2, in 0.425^2 - (p - 1/2)^2, for |p - 1/2| <= 0.425 (relative, 2^-60).
CENTRE_TOP = (
    3.387132872796367,
    153.77743851250153,
    2739.075014318347,
    24342.533136072932,
    113716.33377288164,
    270477.4171790601,
    292219.5906443986,
    109935.66676878475,
    6376.988146840982,
)
CENTRE_BOTTOM = (
    1.0,
    48.405731382558486,
    932.0843568408378,
    9128.480063981833,
    48318.61233061955,
    135932.22495744392,
    186902.6191675965,
    104048.83352231326,
    14733.426527742076,
)
# The quantile of the smaller tail p, in sqrt(-log(p)) - 1.6, from p = 0.075 to e^-25 (2^-55.7).
TAIL_TOP = (
    1.4234371107496837,
    4.6322772189645045,
    5.775469283800085,
    3.6545205854108844,
    1.2739004850367688,
    0.2426262431776016,
    0.022813725980118663,
    0.0007775409206890815,
)
TAIL_BOTTOM = (
    1.0,
    2.054554084306819,
    1.6789457631629665,
    0.6915001151293609,
    0.14861131242165498,
    0.015258853322666386,
    0.0005497120673783344,
    1.0510457936654452e-09,
)
# The same in sqrt(-log(p)) - 5, for smaller p (2^-55.1).
FAR_TOP = (
    6.657904643501103,
    5.46549967109914,
    1.786113768000331,
    0.2969345540817053,
    0.02658514693526577,
    0.0012464195861359613,
    2.7237407953494916e-05,
    2.0235934186412262e-07,
)
FAR_BOTTOM = (
    1.0,
    0.6000897590482773,
    0.13706634801643783,
    0.014901734696056938,
    0.0007891225506345452,
    1.8544661365764817e-05,
    1.4308871734298712e-07,
    2.082179696183795e-15,
)
CENTRE = 0.425
TAIL_FROM, FAR_FROM = 1.6, 5.0


@widened
def ndtri(w: Writer, p: str) -> str:
    """Return x such that a standard normal number is below it with probability p; NaN outside [0, 1]."""
    q = w.sub(p, w.number(0.5))
    centre = w.fma(q, w.neg(q), w.number(CENTRE * CENTRE))
    central = w.compare("ogt", centre, w.number(0.0))
    upper = w.compare("ogt", q, w.number(0.0))
    small = w.select(upper, w.sub(w.number(1.0), p), p)
    root = w.intrinsic("sqrt", w.neg(w.call("log", small)))
    far = w.compare("ogt", root, w.number(FAR_FROM))
    shifted = w.sub(root, w.select(far, w.number(FAR_FROM), w.number(TAIL_FROM)))
    top = horner(w, blended(w, far, FAR_TOP, TAIL_TOP), shifted)
    bottom = horner(w, blended(w, far, FAR_BOTTOM, TAIL_BOTTOM), shifted)
    middle = w.mul(q, lean_polynomial(w, CENTRE_TOP, centre))
    top = w.select(central, middle, w.select(upper, top, w.neg(top)))
    bottom = w.select(central, lean_polynomial(w, CENTRE_BOTTOM, centre), bottom)
    result = w.div(top, bottom)
    end = w.select(upper, w.number(INFINITY), w.number(-INFINITY))
    result = w.select(w.compare("oeq", small, w.number(0.0)), end, result)
    return choose(w, "olt", small, 0.0, NAN, result)


def blended(w: Writer, mask: str, yes: Sequence[float], no: Sequence[float]) -> list[str]:
    """Choose one of two polynomials in each lane."""
    return [w.select(mask, w.number(a), w.number(b)) for a, b in zip(yes, no, strict=True)]


def horner(w: Writer, coefficients: Sequence[str], x: str) -> str:
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = w.fma(total, x, c)
    return total
