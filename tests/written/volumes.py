"""Integrals of the written densities in two and three dimensions: p holds parameters, x, y and z are pairs of ends."""

from mpmath import mp, mpf

from written.integrals import erf_between, peak_and, smooth


def needle_on_a_plane(p, x, y):
    peak = peak_and(p.mx, p.s, p.f, *x) * peak_and(p.my, p.s, 1, *y)
    return peak + (1 - p.f) / 100 * (x[1] - x[0]) * (y[1] - y[0])


def correlated_gaussian(p, x, y):
    root = mp.sqrt(1 - p.rho**2)

    def slice_at(u):  # the integral over v at a given u, where v - rho u is Gaussian with the width of root
        low, high = (((e - p.my) / p.sy - p.rho * u) / root for e in y)
        return mp.exp(-(u**2) / 2) * erf_between(low, high)

    low, high = ((e - p.mx) / p.sx for e in x)
    # where the slice is cut off, an error function rises over a width of root / rho
    bends = [((e - p.my) / p.sy + k * root) / p.rho for e in y for k in (-12, -8, -4, 0, 4, 8, 12)]
    near = [mpf(k) for k in range(-16, 17, 4)] + bends
    low, high = max(low, mpf(-16)), min(high, mpf(16))
    ends = [low, *sorted(k for k in near if low < k < high), high]
    return p.sx * p.sy * root * smooth(slice_at, ends)


def disc(p, x, y):
    def height(u):
        half = mp.sqrt(p.r**2 - u**2)
        return min(y[1], half) - max(y[0], -half)

    joints = [s * mp.sqrt(p.r**2 - e**2) for e in y for s in (-1, 1) if abs(e) < p.r]
    low, high = max(x[0], -p.r), min(x[1], p.r)
    # an angle makes the ends smooth
    ends = sorted(mp.asin(e / p.r) for e in {low, high, *(j for j in joints if low < j < high)})
    return smooth(
        lambda t: mp.exp(p.a * p.r * mp.sin(t)) * height(p.r * mp.sin(t)) * p.r * mp.cos(t), ends, 2
    )


def slanted_edge(p, x, y):
    def below(a, top):  # over y, up to the edge
        return (mp.exp(-2 * p.a * y[0]) - mp.exp(-2 * p.a * top)) / (2 * p.a) * mp.exp(-p.a * a)

    joint = min(max(p.c - y[1], x[0]), x[1])  # left of it the edge does not cut
    end = min(max(p.c - y[0], x[0]), x[1])
    total = below(0, y[1]) * (mp.exp(-p.a * x[0]) - mp.exp(-p.a * joint)) / p.a
    return total + smooth(lambda u: below(u, p.c - u), (joint, end))


def edge_at_three_tenths(p, x, y):
    edge = mpf(0.3)

    def column(u):  # the integral of exp(a u y) over y
        k = p.a * u
        low, high = y
        if abs(k) < mpf(10) ** -12:
            return (high - low) + k * (high**2 - low**2) / 2 + k**2 * (high**3 - low**3) / 6
        return (mp.exp(k * high) - mp.exp(k * low)) / k

    left = smooth(column, (x[0], edge))
    right = p.h * (mp.exp(-p.a * y[0]) - mp.exp(-p.a * y[1])) / p.a
    return left + right * (x[1] - edge)


def gaussian_in_three_dimensions(p, x, y, z):
    total = p.s**3
    for ends, place in ((x, p.mu), (y, p.mu), (z, p.mu * p.c)):
        total *= erf_between(*((e - place) / p.s for e in ends))
    return total


def corner_in_three_dimensions(p, x, y, z):
    def area(s):  # of the part of the rectangle below x + y = s
        def corner(t):
            return max(t, mpf(0)) ** 2 / 2

        d, w, h = s - x[0] - y[0], x[1] - x[0], y[1] - y[0]
        return corner(d) - corner(d - w) - corner(d - h) + corner(d - w - h)

    joints = [p.c - a - b for a in x for b in y]
    ends = [z[0], *sorted(j for j in joints if z[0] < j < z[1]), z[1]]
    return smooth(lambda t: area(p.c - t) * mp.exp(-p.a * t), ends)
