"""Coefficients of special functions that every compiled target evaluates by the same formulas."""

from __future__ import annotations

import math

# Coefficients, lowest first, are minimax fits by Remez exchange in 45 to 60 digits (mpmath), rounded to float.
# With s = f / (2 + f) and z = s^2, log(1 + f) = 2 s + s z P(z): (P(z) - 2/3) / z (2^-66.3 of the logarithm).
LOG_TAIL = (
    0.40000000000002256,
    0.2857142857010118,
    0.22222222519529145,
    0.1818178440843038,
    0.15386755212027706,
    0.1325687030566149,
    0.13195823911651527,
)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
TO_BASE_TWO = (1.4426950408889634, 2.0355273740931033e-17)  # one over log(2), as a pair
TO_BASE_TEN = (0.4342944819032518, 1.098319650216765e-17)
LN2_SHORT = (0.6931471805598903, 5.497923018708371e-14)  # the first has 42 bits: exact times an exponent

# x^2 (log(x) - 1 / (2 x) - digamma(x)) in 1 / x^2, for x >= 4 (2^-58.2).
DIGAMMA = (
    0.08333333333333333,
    -0.008333333333321164,
    0.003968253960062863,
    -0.004166664506846307,
    0.0075754629116926275,
    -0.021068983005329157,
    0.08210221531758262,
    -0.40050010557126225,
    2.0167613881393103,
    -7.996682843633904,
    16.661203444017758,
)
# x^3 (trigamma(x) - 1 / x - 1 / (2 x^2)) in 1 / x^2, for x >= 4 (2^-57.0).
TRIGAMMA = (
    0.16666666666666666,
    -0.03333333333329926,
    0.023809523782118657,
    -0.033333324663240696,
    0.07575614680342047,
    -0.2529726609807045,
    1.1576605897292462,
    -6.698875180371335,
    42.75552348910674,
    -247.30493047312376,
    1025.8342988708268,
    -2124.550091026613,
)
# x^2 (-tetragamma(x) x^2 - 1 - 1 / x) in 1 / x^2: the Bernoulli numbers B_2k (2k + 1), exact enough from x = 14 on
TETRAGAMMA = (1 / 2, -1 / 6, 1 / 6, -3 / 10, 5 / 6, -691 / 210, 35 / 2, -3617 / 30)
TETRAGAMMA_FROM = 14

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

# (x + 3.5) exp(x^2) erfc(x) in (x - 3.5) / (x + 3.5), for x >= 0: a Chebyshev series in 60 digits (2^-60.1).
ERFCX = (
    1.08705558926226,
    -0.937799724567112,
    0.6941136466346434,
    -0.43525602671688385,
    0.22573862164747685,
    -0.09231870663872668,
    0.026518619880091354,
    -0.003177050338081695,
    -0.0013053546720151845,
    0.0007145316417608183,
    -4.206231440598031e-05,
    -7.477684972717765e-05,
    1.8647914834658107e-05,
    7.243377122513782e-06,
    -3.394334457749112e-06,
    -7.948756363893205e-07,
    5.553555182031815e-07,
    1.1472966626503535e-07,
    -8.992022514235838e-08,
    -2.1772592953338724e-08,
    1.4013000419134449e-08,
    4.467996331853376e-09,
    -1.8359388002952127e-09,
    -7.544094409351097e-10,
    1.4309611518477094e-10,
    7.050244974761354e-11,
)
ERFCX_POLE = 3.5
# The first and second derivative of sqrt(pi) x erfcx(x) by 1 / (2 x^2), in 1 - 8 / (x + 2) for x >= 2: Chebyshev series in 40 digits.
ERFCX_TAIL_FROM, ERFCX_TAIL_POLE = 2.0, 2.0
ERFCX_TAIL_SLOPE = (
    -0.9243710595027881,
    -0.1833969560943585,
    0.1399192950287397,
    -0.027226128450257445,
    -0.011381995937574899,
    0.007716339420367709,
    -0.0007518188166555645,
    -0.0007657926234430127,
    0.00024033358132551576,
    4.9559410484832524e-05,
    -3.2014507480226924e-05,
    -3.582198328560495e-06,
    3.885237745341541e-06,
    4.2467534162714526e-07,
    -4.7638492553840914e-07,
    -7.821647119178743e-08,
    5.7871262113719963e-08,
    1.6001453824800606e-08,
    -6.422593520118066e-09,
    -3.0129958792651465e-09,
    5.573822793926808e-10,
    4.4856619363568236e-10,
    -2.6722012276482497e-11,
    -3.807475341889465e-11,
)
ERFCX_TAIL_BEND = (
    4.951717814547679,
    2.3477936975434077,
    -1.3519592246883856,
    -0.25253761338180747,
    0.3902790042226222,
    -0.03820193014396316,
    -0.0733797661153365,
    0.021459505417305732,
    0.010260362640621742,
    -0.005082128778650126,
    -0.0013112761298105402,
    0.0009291017586693386,
    0.00019599352766591342,
    -0.00015323163196662276,
    -3.7760865379287026e-05,
    2.349952564617102e-05,
    8.339620582094496e-06,
    -3.1619316995155183e-06,
    -1.8296231881197864e-06,
    3.0068641044239184e-07,
    3.576279425515317e-07,
    1.6933828757836857e-09,
    -5.394185775365677e-08,
    -7.125158970222748e-09,
    4.538070285068314e-09,
    1.0071973570122712e-09,
)

INVERSE_ROOT_PI = 1 / math.sqrt(math.pi)
# The Faddeeva function: a sum over nodes t with weights, at multiples of a step or between them; the thirteen largest weights.
FADDEEVA_STEP = math.sqrt(math.pi / 12)
FADDEEVA_ON, FADDEEVA_BETWEEN = (
    tuple(
        (t, (1 if t == 0 else 2) * FADDEEVA_STEP / math.pi * math.exp(-t * t))
        for t in (FADDEEVA_STEP * (k + offset) for k in range(13))
    )
    for offset in (0.0, 0.5)
)
FADDEEVA_RATE = 2 * math.pi / FADDEEVA_STEP  # the pole of the integrand adds nothing from y = RATE / 2 on
FADDEEVA_FAR = 1e4  # i z / (sqrt(pi) (z^2 - 1/2)) is right to 2^-54 from here on
# Second moments of the weights are wrong by 6e-15, as the sum is for the derivative far from the origin: by what to multiply it.
FADDEEVA_MOMENTS = tuple(
    0.5 * INVERSE_ROOT_PI / math.fsum(a * t * t for t, a in nodes)
    for nodes in (FADDEEVA_ON, FADDEEVA_BETWEEN)
)
FADDEEVA_MOMENT_FROM = 2.0
# From |z| = FADDEEVA_SERIES_FROM on higher derivatives are series in 1 / z^2, times i / z^(order + 1); the first is from FADDEEVA_FAR on.
FADDEEVA_SERIES_FROM, FADDEEVA_TERMS = 16.0, {1: 3, 2: 12, 3: 13, 4: 14}
FADDEEVA_SERIES = {
    order: tuple(
        (-1) ** order * INVERSE_ROOT_PI * math.factorial(2 * k + order) / (4**k * math.factorial(k))
        for k in range(terms)
    )
    for order, terms in FADDEEVA_TERMS.items()
}

# Bessel functions: one over the square of the step of the trapezoidal rule is BESSEL_STEP[0] + BESSEL_STEP[1] sqrt(x^2 + nu^2).
# Its error is exp(-2 pi d / step) K_nu(x cos(d)) for the best d < pi / 2, and this keeps it below 2^-54 of K_nu(x).
BESSEL_STEP = (20.0, 2.05)
BESSEL_STEPS_LIMIT, BESSEL_SERIES_LIMIT = 2000, 3000  # rounds, many more than any argument needs
# 2 (cosh(t) - 1) / t^2 in t^2, for t <= 1/4
COSH_LESS_ONE = tuple(2 / math.factorial(2 * k) for k in range(1, 8))
INVERSE_ROOT_TWO_PI = 1 / math.sqrt(2 * math.pi)
# I_nu(x) is an integral along a path for orders above CONTOUR_ORDER, and its derivatives by the order, if x > CONTOUR_FROM. It ends
# where exponents have fallen by BESSEL_DEPTH. Of small orders it goes on by 2 x more, up to x = 20: the end of the path, K_nu(x), is
# most of the derivative by the order.
CONTOUR_ORDER, CONTOUR_FROM, BESSEL_DEPTH = 20.0, 1.0, 42.0
LEAST_ORDER = 1e-30  # of the path: that of order zero has a corner

# The incomplete gamma function: lgamma(a) is Stirling's formula and, in 1 / a^2, this over a, from LARGE_SHAPE on.
STIRLING_TAIL = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
LARGE_SHAPE = 10.0
INCOMPLETE_LIMIT = 20_000  # terms; about 8 sqrt(a) are needed where x is about a
