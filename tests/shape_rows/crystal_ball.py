"""Points at which the Crystal Ball is tested."""

import mpmath as mp
from scipy import stats

import morefit as mf
from shape_rows import Point, Row
from shape_rows.gaussian import mp_normal


def mp_crystal_ball(x, low, high, mu, sigma, alpha, n):
    side, a = (-1, -alpha) if alpha < 0 else (1, alpha)
    ends = sorted(side * (edge - mu) / sigma for edge in (low, high))
    t = side * (x - mu) / sigma

    def tail(u):
        return 1 - a / n * (a + u)

    near, far = (mp.log(tail(min(u, -a))) for u in reversed(ends))
    steep = (1 - n) * (far - near)
    power = mp.exp((1 - n) * near) * (far - near) * (mp.expm1(steep) / steep if steep else 1)
    power *= n / a * mp.exp(-a * a / 2)
    core = mp_normal(max(ends[0], -a), max(ends[1], -a))
    value = -t * t / 2 if t > -a else -a * a / 2 - n * mp.log(tail(t))
    return value - mp.log(sigma * (power + core))


def crystal_ball_point(label, low, high, mu, sigma, alpha, n, at, **options):
    values = {"mu": mu, "sigma": sigma, "alpha": alpha, "n": n}
    return Point(label, low, high, values, at, (sigma, sigma, abs(alpha), n), peaks=(mu,), **options)


def scipy_crystal_ball(x, low, high, mu, sigma, alpha, n):
    if n <= 1:
        return None
    if alpha < 0:
        return scipy_crystal_ball(2 * mu - x, 2 * mu - high, 2 * mu - low, mu, sigma, -alpha, n)
    ball = stats.crystalball(alpha, n, mu, sigma)
    inside = ball.cdf(high) - ball.cdf(low)
    return ball.pdf(x) / inside if inside > 1e-3 else None


ROWS = {
    "CrystalBall": Row(
        mf.CrystalBall,
        mp_crystal_ball,
        [
            crystal_ball_point("across, in the core", 5.0, 7.0, 5.8, 0.1, 1.3, 2.5, 5.85),
            crystal_ball_point("across, in the tail", 5.0, 7.0, 5.8, 0.1, 1.3, 2.5, 5.3),
            crystal_ball_point("tail on the right, in the core", 5.0, 7.0, 5.8, 0.1, -1.3, 2.5, 5.75),
            crystal_ball_point("tail on the right, in the tail", 5.0, 7.0, 5.8, 0.1, -1.3, 2.5, 6.4),
            crystal_ball_point("n of one", 5.0, 7.0, 5.8, 0.1, 1.3, 1.0, 5.3, scale=20),
            crystal_ball_point("n of one, tail on the right", 5.0, 7.0, 5.8, 0.1, -1.3, 1.0, 6.4, scale=20),
            crystal_ball_point("n next to one", 5.0, 7.0, 5.8, 0.1, 1.3, 1.0 + 1e-9, 5.3, scale=20),
            crystal_ball_point("n just below one", 5.0, 7.0, 5.8, 0.1, 1.3, 1.0 - 1e-5, 5.3, scale=20),
            crystal_ball_point("wide", 5.0, 7.0, 5.8, 2e4, 1.3, 2.5, 5.3),
            crystal_ball_point("wide, cut inside", 5.0, 7.0, 2e4, 2e4, 1.0 - 3e-4, 2.5, 5.3, scale=1e5),
            crystal_ball_point("alpha next to zero", 5.0, 7.0, 5.8, 0.1, 1e-9, 2.5, 5.3, scale=20),
            crystal_ball_point("n large", 5.0, 7.0, 5.8, 0.1, 1.3, 80.0, 5.6, scale=1000),
            crystal_ball_point("all in the tail", 5.0, 5.5, 5.8, 0.1, 1.3, 2.5, 5.3, scale=20),
            crystal_ball_point("all in the tail, on the right", 6.1, 7.0, 5.8, 0.1, -1.3, 2.5, 6.4, scale=20),
            crystal_ball_point("all in the core", 5.75, 6.0, 5.8, 0.1, 1.3, 2.5, 5.85, scale=20),
        ],
        scipy_crystal_ball,
    ),
}  # fmt: skip
