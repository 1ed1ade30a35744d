"""The two models of the paper, written out as expressions."""

import math
from types import SimpleNamespace

import numpy as np

from morefit.expr import Op, apply, column, const, scalar, where


def relative_exponential(z):
    """(exp(z) - 1) / z, smooth at zero."""
    series = const(1 / math.factorial(19))
    for k in range(17, -1, -1):
        series = series * z + 1 / math.factorial(k + 1)
    return where(abs(z) < 1, series, np.expm1(z) / z)


def mass_model():
    """A Gaussian on an exponential in 5 < m < 7."""
    m = column("m")
    mu, sigma, f, alpha = parameters = [scalar(name) for name in ("mu", "sigma", "f", "alpha")]
    centre, half = abs(6 - mu) / (np.sqrt(2) * sigma), 1 / (np.sqrt(2) * sigma)
    gauss = sigma * np.sqrt(np.pi / 2) * (apply(Op.ERFC, centre - half) - apply(Op.ERFC, centre + half))
    slope = 2 * np.exp(-alpha) * relative_exponential(2 * alpha)
    density = f * np.exp(-0.5 * ((m - mu) / sigma) ** 2) / gauss + (1 - f) * np.exp(alpha * (m - 6)) / slope
    point = {"mu": 5.28, "sigma": 0.06, "f": 0.3, "alpha": -1.0, "m": 5.3}
    return SimpleNamespace(density=density, parameters=parameters, columns=[m], point=point)


def kstarmumu():
    """The angular decay rate of B -> K* mu mu."""
    ctl, ctk, phi = columns = [column(name) for name in ("ctl", "ctk", "phi")]
    parameters = [scalar(name) for name in ("FL", "S3", "S4", "S5", "AFB", "S7", "S8", "S9")]
    FL, S3, S4, S5, AFB, S7, S8, S9 = parameters
    sk2, sl2 = 1 - ctk**2, 1 - ctl**2
    sk, sl = np.sqrt(sk2), np.sqrt(sl2)
    c2l, s2k, s2l = 2 * ctl**2 - 1, 2 * sk * ctk, 2 * sl * ctl
    rate = (1 - FL) * 0.75 * sk2 + FL * ctk**2 + (1 - FL) * 0.25 * sk2 * c2l - FL * ctk**2 * c2l
    rate += S3 * sk2 * sl2 * np.cos(2 * phi) + S4 * s2k * s2l * np.cos(phi) + S5 * s2k * sl * np.cos(phi)
    rate += AFB * 4 / 3 * sk2 * ctl + S7 * s2k * sl * np.sin(phi) + S8 * s2k * s2l * np.sin(phi)
    rate += S9 * sk2 * sl2 * np.sin(2 * phi)
    values = [0.6, 0.1, -0.2, 0.15, 0.05, -0.1, 0.2, -0.05, 0.3, -0.4, 1.1]
    names = [leaf.name for leaf in (*parameters, *columns)]
    point = dict(zip(names, values, strict=True))
    return SimpleNamespace(
        density=9 / (32 * np.pi) * rate, parameters=parameters, columns=columns, point=point
    )
