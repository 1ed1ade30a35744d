"""Points at which densities of decay times are tested."""

import mpmath as mp

import morefit as mf
from shape_rows import Point, Row, quadrature_row


def smeared(t, kappa, sigma):
    """A decay with a complex rate, convolved with a Gaussian of mean zero."""
    u = (sigma * kappa - t / sigma) / mp.sqrt(2)
    return mp.exp(kappa * (kappa * sigma**2 / 2 - t)) * mp.erfc(u) / 2


def decay(t, tau, *resolution):
    if not resolution:
        return -t / tau
    if len(resolution) == 1:
        return mp.log(smeared(t, 1 / tau, resolution[0]))
    first, second, mean, f = resolution
    return mp.log(f * smeared(t - mean, 1 / tau, first) + (1 - f) * smeared(t - mean, 1 / tau, second))


def make_decay(t, tau, *resolution):
    if len(resolution) < 2:
        return mf.shapes.Decay(t, tau, resolution)
    first, second, mean, f = resolution
    return mf.shapes.Decay(t, tau, [first, second], mean, f)


def mp_b_decay(t, low, high, tau, delta_m, delta_gamma, sinh, cos, sin, *sigma):
    def seen(time, kappa):
        return smeared(time, kappa, sigma[0]) if sigma else mp.exp(-kappa * time)

    def area(kappa):  # as f' = gauss - kappa f
        gauss = mp.ncdf(high / sigma[0]) - mp.ncdf(low / sigma[0]) if sigma else 0
        return (gauss + seen(low, kappa) - seen(high, kappa)) / kappa

    def total(function):
        rate = 1 / tau
        long, short = function(rate - delta_gamma / 2), function(rate + delta_gamma / 2)
        wave = function(mp.mpc(rate, -delta_m))
        return ((1 + sinh) * long + (1 - sinh) * short) / 2 + cos * mp.re(wave) + sin * mp.im(wave)

    return mp.log(total(lambda kappa: seen(t, kappa)) / total(area))


def make_b_decay(t, tau, delta_m, delta_gamma, sinh, cos, sin, *sigma):
    return mf.shapes.BDecay(t, tau, delta_m, delta_gamma, 1.0, sinh, cos, sin, sigma)


def decay_point(label, at, low, high, units, scale=10.0, **values):
    return Point(label, low, high, values, at, units, scale)


UNITS = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
B0 = {"tau": 1.5, "delta_m": 0.5, "delta_gamma": 0.2, "sinh": 0.3, "cos": 0.4, "sin": -0.3}
ROWS = {
    "Decay": quadrature_row(
        make_decay,
        decay,
        [
            decay_point("one width", 0.7, -1.0, 10.0, (1.0, 0.1), tau=1.5, s=0.1),
            decay_point("perfect", 0.7, 0.0, 10.0, (1.0,), tau=1.5),
            decay_point("before the decay", -0.3, -1.0, 10.0, (1.0, 0.1), tau=1.5, s=0.1),
            decay_point("late", 9.0, 5.0, 10.0, (1.0, 0.1), tau=1.5, s=0.1),
            decay_point("a poor resolution", 0.7, -10.0, 10.0, (0.5, 2.0), 1e3, tau=0.5, s=2.0),
            decay_point("two widths", 0.2, -1.0, 10.0, (1.0, 0.05, 0.2, 0.05, 1.0), tau=1.5, s1=0.05, s2=0.2, mean=0.02, f=0.7),
        ],
        lambda tau, *r: (-0.5, 0, 0.5, 2, 5),
        lengths=("tau", "s"),
    ),
    "BDecay": Row(
        make_b_decay,
        mp_b_decay,
        [
            decay_point("one width", 0.7, -1.0, 10.0, (*UNITS, 0.1), 100.0, **B0, s=0.1),
            decay_point("perfect", 0.7, 0.0, 10.0, UNITS, **B0),
            decay_point("before the decay", -0.1, -1.0, 10.0, (*UNITS, 0.1), 100.0, **B0, s=0.1),
            decay_point("fast oscillations", 0.7, -1.0, 10.0, (*UNITS, 0.1), 1e3, **B0 | {"delta_m": 17.7}, s=0.05),
        ],
        fit=False,  # data hardly tell a lifetime from a difference of two; mixing alone is fitted below the table
    ),
}  # fmt: skip
