"""Two fit results made by hand: a valid one, and one with everything that can be wrong."""

from math import inf, nan

import numpy as np

from morefit.minimise.result import FitResult

DEVIATIONS = np.array([0.000346, 0.000301, 0.00201, 0.0418])
CORRELATION = np.array(
    [
        [1.0, 0.012, -0.0002, 0.03],
        [0.012, 1.0, -0.331, 0.0],
        [-0.0002, -0.331, 1.0, 0.125],
        [0.03, 0.0, 0.125, 1.0],
    ]
)
GOOD = FitResult(
    names=("mu", "sigma", "fsig", "alpha", "tau"),
    values={"mu": 5.28012, "sigma": 0.0600213, "fsig": 0.29987, "alpha": -1.0321, "tau": 1.519},
    errors={"mu": 0.000346, "sigma": 0.000301, "fsig": 0.00201, "alpha": 0.0418, "tau": 0.0},
    floating=("mu", "sigma", "fsig", "alpha"),
    covariance=CORRELATION * np.outer(DEVIATIONS, DEVIATIONS),
    nll=-123456.78912,
    edm=1.23e-7,
    valid=True,
    reasons=(),
    at_limit=(),
    limits={"mu": (5, 6), "sigma": (0.005, 0.13), "fsig": (0, 1), "alpha": (-inf, inf), "tau": (0, inf)},
    calls={"value": 23, "gradient": 21, "hessian": 1},
    seconds={"compile": 0.0312, "minimise": 1.204, "hessian": 0.0113},
    minos={"mu": (-0.000345, 0.000347), "fsig": (-0.00199, 0.00203)},
    events=100_000,
    backend="cpu",
    minimiser="minuit",
)
BAD = FitResult(
    names=("signal_yield", "background_yield", "slope", "mean"),
    values={"signal_yield": 1234567.8, "background_yield": 0.0, "slope": 3.1e-9, "mean": 5.2},
    errors={"signal_yield": 1514.2, "background_yield": 12.0, "slope": 4.2e-10, "mean": nan},
    floating=("signal_yield", "background_yield", "slope", "mean"),
    covariance=np.diag([1514.2**2, 144.0, 4.2e-10**2, nan]),
    nll=nan,
    edm=0.31,
    valid=False,
    reasons=("call limit of 1000 reached", "covariance is not positive definite"),
    at_limit=("background_yield",),
    limits={"background_yield": (0, inf)},
    calls={"value": 1000},
    seconds={"minimise": 75.3},
    minos={},
    events=2_000_000,
    backend="opencl",
    minimiser="newton",
)
