"""Integrals of the written densities in closed form, with many digits: p holds parameters, (a, b) are the ends."""

import itertools
from types import SimpleNamespace

from mpmath import mp, mpf

from written.peaks import HERMITE
from written.precise import NODES, panel

HALF = mpf(1) / 2


def erf_between(a, b):
    """Return the integral of exp(-t**2 / 2)."""
    if a > 0:  # far from the middle nothing must cancel
        return mp.sqrt(mp.pi / 2) * (mp.erfc(a / mp.sqrt(2)) - mp.erfc(b / mp.sqrt(2)))
    if b < 0:
        return erf_between(-b, -a)
    return mp.sqrt(mp.pi / 2) * (mp.erf(b / mp.sqrt(2)) - mp.erf(a / mp.sqrt(2)))


def gamma_between(s, a, b):
    """Return the integral of t**(s - 1) exp(-t)."""
    return mp.gammainc(s, a, b)


def pieces(a, b, *joints):
    """Cut an interval at joints given in ascending order; pieces may be empty."""
    ends = [a, *(min(max(j, a), b) for j in joints), b]
    return list(itertools.pairwise(ends))


def by_primitive(primitive):
    """Return an integral from its primitive."""
    return lambda p, a, b: primitive(p, b) - primitive(p, a)


def smooth(function, ends, cuts=1):
    """Integrate a smooth function over panels between given ends, each cut so many times."""
    total = mpf(0)
    for a, b in itertools.pairwise(ends):
        places = mp.linspace(a, b, cuts + 1)
        total += mp.fsum(panel(function, s, t, NODES[1]) for s, t in itertools.pairwise(places))
    return total


def student_t(p, x):
    t = (x - p.mu) / p.sigma
    return p.sigma * t * mp.hyp2f1(HALF, (p.nu + 1) / 2, mpf(3) / 2, -(t**2) / p.nu)


def johnson_su(p, a, b):
    ends = [p.gamma + p.delta * mp.asinh((x - p.xi) / p.lam) for x in (a, b)]
    return p.lam / p.delta * erf_between(*ends)


def bifurcated_gaussian(p, a, b):
    (a, m), (n, b) = pieces(a, b, p.mu)
    left = p.sl * erf_between((a - p.mu) / p.sl, (m - p.mu) / p.sl)
    return left + p.sr * erf_between((n - p.mu) / p.sr, (b - p.mu) / p.sr)


def lorentz(m, gamma, a, b):
    """Return the integral of 1 / ((x - m)**2 + gamma**2 / 4)."""
    return 2 / gamma * (mp.atan(2 * (b - m) / gamma) - mp.atan(2 * (a - m) / gamma))


def relativistic_breit_wigner(p, x):
    return mp.atan((x**2 - p.m**2) / (p.m * p.gamma)) / 2


def voigt(p, a, b):
    places = ((mpf(w), p.mu + mp.sqrt(2) * p.sigma * mpf(t)) for t, w in zip(*HERMITE, strict=True))
    return mp.fsum(w * p.gamma * lorentz(place, p.gamma, a, b) for w, place in places)


def exponentially_modified_gaussian(p, x):
    # the density of a Gaussian plus an exponential, up to lambda / 2
    u, v = p.lam * (x - p.mu), p.lam * p.sigma
    tail = mp.exp(-u + v**2 / 2) * mp.ncdf((u - v**2) / v)
    return 2 / p.lam * (mp.ncdf(u / v) - tail)


def moyal(p, x):
    return p.sigma * mp.sqrt(2 * mp.pi) * mp.erfc(mp.exp(-(x - p.mu) / p.sigma / 2) / mp.sqrt(2))


def gumbel(p, x):
    return p.beta * mp.exp(-mp.exp(-(x - p.mu) / p.beta))


def hyperbolic_secant(p, a, b):
    ends = [mp.pi / 2 * (x - p.mu) / p.sigma for x in (a, b)]
    low, high = (2 * mp.atan(mp.exp(-abs(t))) for t in ends)
    if ends[0] > 0:
        total = low - high
    else:
        total = (mp.pi / 2 - low) + (mp.pi / 2 - high if ends[1] > 0 else high - mp.pi / 2)
    return p.sigma * 2 / mp.pi * total


def logistic(p, x):
    return p.sigma / (1 + mp.exp(-(x - p.mu) / p.sigma))


def peak_and(mu, sigma, f, a, b):
    return f * erf_between((a - mu) / sigma, (b - mu) / sigma) / mp.sqrt(2 * mp.pi)


def power_tail(alpha, n, s, t):
    """Return the integral of exp(-alpha**2 / 2) (alpha / n (n / alpha - alpha + u))**(-n) from s to t, where u > alpha."""
    if s == t:
        return 0
    low, high = (1 + alpha / n * (u - alpha) for u in (s, t))
    return mp.exp(-(alpha**2) / 2) * n / alpha * (low ** (1 - n) - high ** (1 - n)) / (n - 1)


def crystal_ball(p, a, b):
    a, b = (a - p.mu) / p.sigma, (b - p.mu) / p.sigma
    (a, j), (k, b) = pieces(a, b, -p.alpha)
    return p.sigma * (power_tail(p.alpha, p.n, -j, -a) + erf_between(k, b))


def double_crystal_ball(p, a, b):
    a, b = (a - p.mu) / p.sigma, (b - p.mu) / p.sigma
    left, core, right = pieces(a, b, -p.al, p.ar)
    tails = power_tail(p.al, p.nl, -left[1], -left[0]) + power_tail(p.ar, p.nr, *right)
    return p.sigma * (tails + erf_between(*core))


def exponential_tail(k, s, t):
    """Return the integral of exp(k**2 / 2 - k u) from s to t."""
    return mp.exp(k**2 / 2) * (mp.exp(-k * s) - mp.exp(-k * t)) / k


def gaussian_with_a_tail(p, a, b):
    (a, j), (k, b) = pieces((a - p.mu) / p.sigma, (b - p.mu) / p.sigma, -p.k)
    return p.sigma * (exponential_tail(p.k, -j, -a) + erf_between(k, b))


def gaussian_with_two_tails(p, a, b):
    left, core, right = pieces((a - p.mu) / p.sigma, (b - p.mu) / p.sigma, -p.kl, p.kr)
    tails = exponential_tail(p.kl, -left[1], -left[0]) + exponential_tail(p.kr, *right)
    return p.sigma * (tails + erf_between(*core))


def generalised_normal(p, a, b):
    (a, m), (n, b) = pieces(a, b, p.mu)

    def half(near, far):
        if near == far:
            return 0
        low, high = ((t / p.alpha) ** p.beta for t in (near, far))
        return p.alpha / p.beta * gamma_between(1 / p.beta, low, high)

    return half(p.mu - m, p.mu - a) + half(n - p.mu, b - p.mu)


def laplace(p, a, b):
    (a, m), (n, b) = pieces(a, b, p.m)
    left = mp.exp((m - p.m) / p.b) - mp.exp((a - p.m) / p.b)
    return p.b * (left + mp.exp(-(n - p.m) / p.b) - mp.exp(-(b - p.m) / p.b))


def asymmetric_laplace(p, a, b):
    (a, m), (n, b) = pieces(a, b, p.m)
    s, t = p.b * p.kappa, p.b / p.kappa
    left = s * (mp.exp((m - p.m) / s) - mp.exp((a - p.m) / s))
    return left + t * (mp.exp(-(n - p.m) / t) - mp.exp(-(b - p.m) / t))


def novosibirsk(p, a, b):
    # with v = ln(1 + tau t) / tau the exponent is a parabola and dt = exp(tau v) dv
    ends = [1 + p.tau * (x - p.mu) / p.sigma for x in (a, b)]
    low, high = (mp.log(e) / p.tau - p.tau if e > 0 else None for e in ends)
    far = 10**4
    low = -far if low is None else low
    high = far if high is None else high
    return p.sigma * erf_between(low, high)


def triangle(p, a, b):
    def below(x):  # the integral from the left end to x
        t = min(max((x - p.c) / p.w, -1), 1)
        return p.w * ((1 + t) ** 2 / 2 if t < 0 else 1 - (1 - t) ** 2 / 2)

    return below(b) - below(a)


def trapezoid(p, a, b):
    _left, up, top, down, _ = pieces(a, b, p.c - p.w - p.s, p.c - p.w, p.c + p.w, p.c + p.w + p.s)

    def ramp(s, t, foot):
        return ((t - foot) ** 2 - (s - foot) ** 2) / (2 * p.s)

    return ramp(*up, p.c - p.w - p.s) + top[1] - top[0] - ramp(*down, p.c + p.w + p.s)


def argus(p, a, b, power=HALF):
    top, bottom = (max(1 - (x / p.e) ** 2, mpf(0)) for x in (a, b))
    return p.e**2 / 2 * (-p.c) ** (-power - 1) * gamma_between(power + 1, -p.c * bottom, -p.c * top)


def gamma_below_one(p, a, b):
    return p.theta**p.k * gamma_between(p.k, a / p.theta, b / p.theta)


def beta_below_one(p, a, b):
    return mp.betainc(p.a, p.b, a, b)


def arcsine(p, x):
    return mp.asin(x) - p.a * mp.sqrt(1 - x**2)


def arcsine_with_a_radius(p, a, b):
    ends = [mp.asin(min(max(x / p.r, mpf(-1)), mpf(1))) for x in (a, b)]
    return smooth(lambda t: mp.exp(p.a * p.r * mp.sin(t)), ends, 2)


def weibull_below_one(p, x):
    return -p.lam / p.k * mp.exp(-((x / p.lam) ** p.k))


def log_normal_with_a_threshold(p, a, b):
    low = mp.log((a - p.theta) / p.m) / p.s if a > p.theta else mpf(-(10**4))
    return p.s * erf_between(low, mp.log((b - p.theta) / p.m) / p.s)


def power_law_above_a_threshold(p, a, b):
    low, high = (max(x - p.t, mpf(0)) / p.s for x in (a, b))
    return p.s ** (p.p + 1) * gamma_between(p.p + 1, low, high)


def pareto(p, a, b):
    a = max(a, p.m)
    return p.m / p.a * ((p.m / a) ** p.a - (p.m / b) ** p.a)


def d_star_threshold(p, a, b):
    a = max(a, p.t)
    power = (b * (b / p.t) ** p.a - a * (a / p.t) ** p.a) / (p.a + 1)
    rate = p.t / p.c  # x = t u: the integral of u**a exp(-rate (u - 1))
    decay = p.t * mp.exp(rate) * rate ** (-p.a - 1) * gamma_between(p.a + 1, rate * a / p.t, rate * b / p.t)
    return power - decay + p.b * ((b**2 - a**2) / (2 * p.t) - (b - a))


def erf_times_exponential(p, x):
    # by parts: the derivative of erfc((alpha - x) beta) is a Gaussian, whose product with the exponential is another one
    shift = p.gamma / (2 * p.beta**2)
    rest = mp.exp(-p.gamma * (p.alpha - 90) + p.gamma**2 / (4 * p.beta**2)) * mp.erf(
        p.beta * (x - p.alpha + shift)
    )
    return (rest - mp.erfc((p.alpha - x) * p.beta) * mp.exp(-p.gamma * (x - 90))) / p.gamma


def linear_turn_on(p, a, b):
    low, high = pieces(a, b, p.p)

    def ramp(x):
        return -p.s * (x + p.s) * mp.exp(-x / p.s) / p.p

    return ramp(low[1]) - ramp(low[0]) + p.s * (mp.exp(-high[0] / p.s) - mp.exp(-high[1] / p.s))


def q_gaussian_with_a_cut_off(p, a, b):
    root = mp.sqrt(1 - p.q)

    def primitive(x):
        u = min(max(root * (x - p.mu) / p.s, mpf(-1)), mpf(1))
        return p.s / root * u * mp.hyp2f1(HALF, -1 / (1 - p.q), mpf(3) / 2, u**2)

    return primitive(b) - primitive(a)


def tsallis(p, x):
    w = p.n * p.t
    u = 1 + x / w
    return w**2 * (u ** (2 - p.n) / (2 - p.n) - u ** (1 - p.n) / (1 - p.n))


def box(p, a, b):
    return min(b, p.b) - max(a, p.a)


def step_on_an_exponential(p, a, b):
    low, high = pieces(a, b, p.a)

    def decay(s, t):
        return p.s * (mp.exp(-s / p.s) - mp.exp(-t / p.s))

    return decay(*low) + (1 + p.h) * decay(*high)


def hundred_boxes(p, a, b):
    edges = [mpf(float(k) / 100) for k in range(101)]
    heights = [getattr(p, f"h{k}") for k in range(100)]
    return mp.fsum(
        h * max(min(b, t) - max(a, s), 0) for h, s, t in zip(heights, edges, edges[1:], strict=False)
    )


def kink_of_a_square(p, a, b):
    low, high = pieces(a, b, mp.sqrt(p.c))

    def cubic(s, t):
        return (t**3 - s**3) / 3 - p.c * (t - s)

    return p.a * (b - a) + cubic(*high) - cubic(*low)


def hats_between_knots(p, a, b):
    w = mpf(5) / 2
    hats = [triangle(SimpleNamespace(c=c, w=w), a, b) for c in (w, 2 * w, 3 * w)]
    return (b - a) * mpf(0.2) + p.l * hats[0] + p.m * hats[1] + p.r * hats[2]


def polynomial_in_mev(p, x):
    return x + p.c1 * x**2 / 2 + p.c2 * x**3 / 3 + p.c3 * x**4 / 4 + mpf(1e-16) * x**5 / 5 + p.c5 * x**6 / 6


def cosine_series(p, x):
    return x + p.a * mp.sin(x) + p.b * mp.sin(2 * x + p.phi) / 2


def decay_with_oscillation(p, x):
    rate, wave = 1 / p.tau, p.dm
    swing = mp.exp(-x * rate) * (wave * mp.sin(wave * x) - rate * mp.cos(wave * x)) / (rate**2 + wave**2)
    return -p.tau * mp.exp(-x * rate) + p.d * swing


def levy(p, x):
    return mp.sqrt(2 * mp.pi / p.c) * mp.erfc(mp.sqrt(p.c / (2 * x)))


def rayleigh_with_a_power(p, a, b):
    low, high = (0.5 * (x / p.s) ** 2 for x in (a, b))
    power = (p.p + 1) / 2
    return p.s ** (p.p + 1) * mpf(2) ** (power - 1) * gamma_between(power, low, high)
