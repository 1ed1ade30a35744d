"""Compute what likelihoods of the written densities must be: run it to make written_densities.json anew (minutes).

For each row, range and point: events, and the value, gradient and Hessian of the sum of ln f over them and of ln of the
integral, from closed forms where there are some, and else by quadrature between known break points with 50 digits. Where
there are both, they must agree.
"""

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from mpmath import mp, mpf

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from written import ROWS  # noqa: E402
from written.events import events_at  # noqa: E402
from written.exact import EXACT  # noqa: E402
from written.precise import DIGITS, Panels, break_points, compile_precise, derivatives, record  # noqa: E402

FILE = Path(__file__).with_name("written_densities.json")
EVENTS = 50
AGREE = mpf(10) ** -13  # constants of formulas are doubles
CASES = [(which, place) for which in ("full", "part") for place in ("start", "far")]


def by_quadrature(row, which, point):
    """Return the logarithm of the integral over one observable as a function of the point."""
    low, high = row.box(which)["x"]
    density = compile_precise(row.model(which).density())

    def function(values):
        return lambda x: density({**values, "x": x})

    ends = break_points(row.edges(record(point)), low, high)
    panels = Panels(function(point), ends)

    def log_integral(values):
        return mp.log(panels.integrate(function(values), break_points(row.edges(record(values)), low, high)))

    return log_integral


def in_closed_form(row, which):
    """Return the logarithm of the integral as a function of the point."""
    ranges = [tuple(map(mpf, r)) for r in row.box(which).values()]
    arguments = ranges[0] if len(ranges) == 1 else ranges
    return lambda values: mp.log(EXACT[row.name](record(values), *arguments))


def compute(job):
    """Return one entry of the file."""
    name, which, place = job
    mp.dps = DIGITS
    row, start = ROWS[name], time.perf_counter()
    point = {n: mpf(v) for n, v in row.point(place).items()}
    log_integral = in_closed_form(row, which) if name in EXACT else by_quadrature(row, which, point)
    if name in EXACT and len(row.ranges) == 1 and not row.singular:
        other = by_quadrature(row, which, point)(point)
        assert abs(other - log_integral(point)) < AGREE, (job, other, log_integral(point))
    events = events_at(row, which, row.point(place), EVENTS)
    density = compile_precise(row.model(which).density())
    rows = [dict(zip(events, map(mpf, e), strict=True)) for e in zip(*events.values(), strict=True)]

    def log_densities(values):
        return mp.fsum(mp.log(density({**values, **event})) for event in rows)

    entry = {"events": events}
    for key, function in (("sum", log_densities), ("integral", log_integral)):
        entry[key] = [
            [float(v) for v in part]
            if part and not isinstance(part[0], list)
            else [list(map(float, line)) for line in part]
            for part in derivatives(function, point, row.floating, row.order)
        ]
    print("/".join(job), f"{time.perf_counter() - start:.1f} s", flush=True)
    return "/".join(job), entry


def main():
    """Compute all entries, or only those of the rows named; others stay as they are."""
    names = sys.argv[1:] or list(ROWS)
    known = json.loads(FILE.read_text()) if sys.argv[1:] and FILE.exists() else {}
    jobs = [(n, *case) for n in names for case in CASES]
    with ProcessPoolExecutor(2) as pool:
        known.update(pool.map(compute, jobs))
    wanted = ["/".join((n, *case)) for n in ROWS for case in CASES]
    lines = [f"{json.dumps(key)}: {json.dumps(known[key])}" for key in wanted if key in known]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
