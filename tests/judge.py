"""What an expression is worth at a point, and how much of that is left after rounding."""

import math

import numpy as np

from morefit.expr import COMPARISONS, Op, toposort
from tolerances import EPSILON, ROUNDINGS

NOISE = 1e-10  # relative, on every node: shows what the formula makes of roundings
FAR = 1e100  # numbers beyond, or closer to zero than its inverse, may overflow in another order


def walk(root, values, noise=None):
    """Evaluate every node; ``noise`` disturbs each result."""
    done = {}
    with np.errstate(all="ignore"):
        for node in toposort(root):
            if node.op is Op.CONST:
                done[node] = node.number
            elif not node.args:
                done[node] = float(values[node.name])
            else:
                done[node] = float(node.op.numpy(*(done[a] for a in node.args)))
                if noise is not None and node.op not in COMPARISONS:
                    done[node] *= 1 + NOISE * noise.uniform(-1, 1)
    return done


def on_a_cut(node, done):
    """Say whether a node stands where the sign of a zero matters."""
    return node.op is Op.ATAN2 and abs(done[node.args[0]]) < 1e-6


def judge(root, values):
    """Return the value at a point and the tolerance it deserves; None where another order of steps may fail."""
    plain = walk(root, values)
    numbers = list(plain.values())
    if not all(math.isfinite(v) and abs(v) < FAR and (v == 0 or abs(v) > 1 / FAR) for v in numbers):
        return None
    if any(on_a_cut(node, plain) for node in plain):
        return None
    spread = 0.0
    for seed in range(5):
        other = walk(root, values, np.random.default_rng(seed))
        if any(plain[n] != other[n] for n in plain if n.op in COMPARISONS) or not math.isfinite(other[root]):
            return None
        spread = max(spread, abs(other[root] - plain[root]))
    return plain[root], ROUNDINGS * EPSILON * (spread / NOISE + abs(plain[root])) + 1 / FAR
