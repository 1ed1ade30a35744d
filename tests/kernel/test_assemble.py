"""What the loop computes: nothing twice."""

import pytest

from morefit.expr import Op, apply, column, scalar, toposort
from morefit.kernel.sums import Assembler, Request, event_terms
from morefit.rewrite.stages import regroup, split
from zoo_expressions import kstarmumu

x, y = column("x"), column("y")
a, b = scalar("a"), scalar("b")


def density_and_quotients(density, parameters):
    request = Request(apply(Op.LOG, density), tuple(parameters), 1)
    terms = regroup(event_terms(request))
    (part,) = Assembler(request, split(terms, "none").per_event).inner
    return part.value, part.first


def multiplications(roots, known):
    """Count those that the roots need beyond what is known."""
    return sum(len(n.args) - 1 for n in set(toposort(*roots)) - set(known) if n.op is Op.MUL)


@pytest.mark.parametrize(
    ("density", "numbers"),
    [
        (1 + a * x * y + b * x**2 * y, 0),
        (1 + 2 * a * x * y + 2 * b * x * y**2, 1),
        (1 + 2 * a * x * y + 4 * b * x * y**2, 2),
    ],
    ids=repr,
)
def test_a_linear_density_and_its_derivatives_share_products(density, numbers):
    """A multiplication by 1 / density is left for each parameter, and one for each number before some of them."""
    value, quotients = density_and_quotients(density, (a, b))
    assert multiplications(quotients, toposort(value)) == 2 + numbers


def test_the_quotients_of_the_angular_density_cost_a_multiplication_each():
    """And one for each of 2, 4 and 4/3; and the derivative by F_L, a sum of four, has numbers in two of them."""
    model = kstarmumu()
    value, quotients = density_and_quotients(model.density, model.parameters)
    assert multiplications(quotients, toposort(value)) == 8 + 3 + 2
