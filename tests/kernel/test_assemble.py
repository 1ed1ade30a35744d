"""What the loop computes: nothing twice."""

import pytest

from morefit.expr import Op, add_all, apply, column, leaves, scalar, toposort
from morefit.kernel.assemble import Assembler
from morefit.kernel.ir import COUNT
from morefit.kernel.sums import MAX_SQUARES, TILES_FROM, Request, event_terms
from morefit.kernel.symbols import WEIGHT
from morefit.pipeline import Settings, compile_sums
from morefit.rewrite.stages import regroup, split
from morefit.targets.cpu.run import Cpu
from morefit.targets.reference.run import Reference
from zoo_expressions import kstarmumu

x, y = column("x"), column("y")
a, b = scalar("a"), scalar("b")


def density_and_quotients(density, parameters):
    request = Request(apply(Op.LOG, density), tuple(parameters), 1)
    terms = regroup(event_terms(request)[0])
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


# ---------------------------------------------------------------------------- what all events add alike


def norm_and_density(weighted):
    density, norm = 1 + a * x + b * x**2, 1 + a + b**2
    return Request(apply(Op.LOG, density) - apply(Op.LOG, norm), (a, b), 2, weighted)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_norm_and_its_derivatives_are_not_added_event_by_event(weighted):
    """Value, gradient and Hessian by a and b: six outputs, the second derivative by a and a among them."""
    request = norm_and_density(weighted)
    assembled = Assembler(request, split(regroup(event_terms(request)[0])).per_event).assemble()
    assert sorted(output for output, _ in assembled.counted) == list(range(6))
    assert all(leaves(Op.COLUMN, result) for result in assembled.results)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_weights_are_summed_only_where_something_is_counted_by_them(weighted):
    request = norm_and_density(weighted)
    kernel = compile_sums(request, (a, b), Settings(Reference())).program.kernel
    assert sum(r.output == COUNT for r in kernel.sums.results) == weighted
    bare = Request(apply(Op.LOG, 1 + a * x + b * x**2), (a, b), 2, weighted)
    kernel = compile_sums(bare, (a, b), Settings(Reference())).program.kernel
    assert not any(r.output == COUNT for r in kernel.sums.results) and not kernel.sums.per_count


def test_what_is_added_alike_is_told_in_the_text_of_a_kernel():
    plain, weighted = (
        str(compile_sums(norm_and_density(w), (a, b), Settings(Reference())).program.kernel)
        for w in (False, True)
    )
    assert "output 5 <- number of events * " in plain
    assert f"sum of weights <- exact {WEIGHT.name}" in weighted
    assert "output 5 <- sum of weights * " in weighted


# ---------------------------------------------------------------------------- squares


COUPLINGS = tuple(scalar(f"c{k}") for k in range(14))


def square_of(columns):
    return add_all(*(c * column(f"{columns}{k}") for k, c in enumerate(COUPLINGS))) ** 2


def hessian_kernel(density, weighted=False):
    request = Request(apply(Op.LOG, density), COUPLINGS, 2, weighted)
    return compile_sums(request, COUPLINGS, Settings(Reference())).program.kernel


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_hessian_of_squares_is_a_sum_of_outer_products(weighted):
    kernel = hessian_kernel(x * (square_of("re") + 2 * square_of("im")) + y, weighted)
    assert kernel.pairs.groups == 3
    assert len(kernel.pairs.left) == len(kernel.pairs.right) == 3 * 14
    assert max(result.output for result in kernel.sums.results) <= 14
    assert (
        len(kernel.per_event.lines) < 16 * 14
    )  # some for each coupling; one for each pair of each square would be more


def test_a_square_whose_factor_floats_is_no_outer_product():
    assert hessian_kernel(COUPLINGS[0] * square_of("re") + y).pairs.groups == 1


def test_more_squares_than_can_be_told_apart_are_differentiated():
    kernel = hessian_kernel(add_all(*(square_of(f"re{k}_") for k in range(MAX_SQUARES + 2))))
    assert kernel.pairs.groups == 1 + MAX_SQUARES


def test_squares_take_fewer_terms_than_a_part():
    assert all(n // 2 * (1 + n) < 1 + n + n * (n + 1) // 2 for n in range(1, TILES_FROM))


def linear(count):
    weights = [scalar(f"w{k}") for k in range(count)]
    return 1 + add_all(*(w * column(f"z{k}") for k, w in enumerate(weights))), tuple(weights)


@pytest.mark.parametrize(("count", "in_tiles"), [(7, False), (8, True), (9, True), (12, True)])
def test_products_of_eight_slopes_are_summed_in_tiles(count, in_tiles):
    density, weights = linear(count)
    kernel = compile_sums(Request(apply(Op.LOG, density), weights, 2), weights, Settings(Cpu(threads=1)))
    assert (kernel.program.kernel.pairs is not None) == in_tiles


@pytest.mark.parametrize(("count", "in_tiles"), [(9, False), (10, True)])
def test_few_with_many_second_derivatives_are_lines(count, in_tiles):
    density, weights = linear(count)
    curved = density + add_all(*(apply(Op.EXP, w * v * x) for w in weights for v in weights if w is not v))
    kernel = compile_sums(Request(apply(Op.LOG, curved), weights, 2), weights, Settings(Cpu(threads=1)))
    assert (kernel.program.kernel.pairs is not None) == in_tiles
