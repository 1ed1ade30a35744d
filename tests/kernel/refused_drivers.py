"""Functions that are not in the language of drivers, or that compiled code would run otherwise than Python does."""
# ruff: noqa: B007, F821, RET503

from math import sin

import refused_elsewhere
from refused_elsewhere import helper as other_helper

from morefit.kernel.program import Layout, Record, Vector, parallel, vector_at


class Box(Record):
    a: float
    v: Vector
    w: Vector


LAYOUT = Layout((("a", None), ("v", 3), ("w", 9)))
TEXT = "text"


def helper(x: float) -> float:
    return x


def nothing(x: float) -> None:
    return


def a_list(box: Box) -> None:
    box.a = len([1, 2])


def a_string(box: Box) -> None:
    box.a = "text"


def a_text_of_the_module(box: Box) -> None:
    box.a = TEXT


def a_with(box: Box) -> None:
    with box:
        box.a = 1.0


def an_annotation(box: Box) -> None:
    a: float = 1.0
    box.a = a


def a_value_alone(box: Box) -> None:
    max(box.a, 1.0)


def unknown_name(box: Box) -> None:
    box.a = missing


def unknown_field(box: Box) -> None:
    box.a = box.missing


def field_of_a_number(box: Box, x: float) -> None:
    box.a = x.real


def unknown_function(box: Box) -> None:
    box.a = missing(1.0)


def function_of_python(box: Box) -> None:
    box.a = sin(1.0)


def function_of_a_module(box: Box) -> None:
    box.a = refused_elsewhere.helper(1.0)


def number_of_a_condition(box: Box) -> None:
    box.a = 1.0 + (box.a > 0)


def float_of_a_condition(box: Box) -> None:
    box.a = float(box.a > 0)


def condition_of_a_number(box: Box) -> None:
    if box.a:
        box.a = 1.0


def not_a_number(box: Box) -> None:
    box.a = 1.0 if not box.a else 0.0


def bool_of_a_number(box: Box) -> None:
    box.a = 1.0 if bool(box.a) else 0.0


def a_plus(box: Box) -> None:
    box.a = +box.a


def a_power(box: Box) -> None:
    box.a = box.a**2


def floor_of_floats(box: Box) -> None:
    box.a = box.a // 2.0


def rest_of_floats(box: Box) -> None:
    box.a = box.a % 2.0


def order_of_conditions(box: Box) -> None:
    box.a = 1.0 if (box.a > 0) < (box.a > 1) else 0.0


def membership(box: Box) -> None:
    box.a = 1.0 if box.a in box.v else 0.0


def index_that_is_not_whole(box: Box) -> None:
    box.a = box.v[box.a]


def element_of_a_number(box: Box) -> None:
    box.a = box.a[0]


def choice_of_two_types(box: Box) -> None:
    box.a = 1.0 if (1.0 if box.a > 0 else box.a > 1) else 0.0


def three_numbers(box: Box) -> None:
    box.a = max(box.a, 1.0, 2.0)


def key_of_max(box: Box) -> None:
    box.a = max(box.a, 1.0, key=1)


def missing_argument(box: Box) -> None:
    box.a = helper()


def argument_twice(box: Box) -> None:
    box.a = helper(1.0, x=2.0)


def argument_of_another_name(box: Box) -> None:
    box.a = helper(y=2.0)


def argument_of_another_type(box: Box) -> None:
    box.a = helper(box.v)


def value_of_nothing(box: Box) -> None:
    box.a = nothing(1.0)


def length_of_an_argument(box: Box, v: Vector) -> None:
    box.a = len(v)


def length_of_a_number(box: Box) -> None:
    box.a = len(box.a)


def address_that_is_not_whole(box: Box) -> None:
    box.a = vector_at(box.a)[0]


def two_addresses(box: Box) -> None:
    box.a = vector_at(1, 2)[0]


def two_left_sides(box: Box) -> None:
    a = b = 1.0
    box.a = a + b


def tuple_of_a_function(box: Box) -> None:
    a, b = helper(1.0)
    box.a = a + b


def uneven_tuple(box: Box) -> None:
    a, b = 1.0, 2.0, 3.0
    box.a = a + b


def another_type(box: Box) -> None:
    k = 1
    k = box.a
    box.a = k


def condition_as_number(box: Box) -> None:
    box.v[0] = box.a > 0


def array_as_number(box: Box) -> None:
    box.v = box.v


def store_nowhere(box: Box) -> None:
    helper(1.0)[0] = 2.0


def loop_over_an_array(box: Box) -> None:
    for x in box.v:
        box.a += x


def loop_over_two(box: Box) -> None:
    for i, j in range(3):
        box.a += i


def loop_with_else(box: Box) -> None:
    for i in range(3):
        box.a += i
    else:
        box.a = 0.0


def while_with_else(box: Box) -> None:
    while box.a > 0:
        box.a -= 1.0
    else:
        box.a = 0.0


def loop_to_a_number(box: Box) -> None:
    for i in range(box.a):
        box.a += i


def step_of_zero(box: Box) -> None:
    for i in range(0, 3, 0):
        box.a += i


def step_that_varies(box: Box, k: int) -> None:
    for i in range(0, 3, k):
        box.a += i


def loop_that_is_changed(box: Box) -> None:
    for i in range(3):
        i += 1
        box.a += i


def loop_in_itself(box: Box) -> None:
    for i in range(3):
        for i in range(2):
            box.a += i


def loop_with_a_number(box: Box) -> None:
    i = 1.0
    for i in range(3):
        box.a += i


def loop_that_has_ended(box: Box) -> None:
    for i in range(3):
        box.a += i
    box.a += i


def no_number_returned(box: Box) -> float:
    return


def a_number_returned(box: Box) -> None:
    return 1.0


def another_type_returned(box: Box) -> float:
    return box.a > 0


def an_array_returned(box: Box) -> Vector:
    return box.v


def nothing_said(box: Box):
    box.a = 1.0


def not_always_returned(box: Box) -> float:
    if box.a > 0:
        return 1.0


def argument_without_type(box: Box, x) -> None:
    box.a = x


def argument_without_layout(box: Box, other: Record) -> None:
    box.a = 1.0


def argument_with_default(box: Box, x: float = 1.0) -> None:
    box.a = x


def arguments_by_name(box: Box, *, x: float) -> None:
    box.a = x


def stores(box: Box) -> float:
    box.a = 1.0
    return 2.0


def parallel_end(box: Box) -> None:
    for i in parallel(3):
        if box.v[i] > 0.0:
            break


def parallel_in_parallel(box: Box) -> None:
    for i in parallel(3):
        for j in parallel(i):
            total = box.v[j]
            box.w[3 * i + j] = total
        box.v[i] = total


def parallel_store(box: Box) -> None:
    for i in parallel(3):
        box.v[i] = stores(box)


def parallel_variable(box: Box) -> None:
    for i in parallel(3):
        total = box.v[i]
        box.v[i] = 2.0 * total
    box.a = total


def parallel_step(box: Box) -> None:
    for i in parallel(0, 3, 2):
        box.v[i] = 1.0


def one_that_calls_itself(box: Box) -> None:
    one_that_calls_itself(box)


def two_of_one_name(box: Box) -> None:
    box.a = helper(1.0) + other_helper(1.0)


def one_that_is_inside(box: Box) -> None:
    box.a = INSIDE(1.0)


def make_inside():
    def inside(x: float) -> float:
        return x

    return inside


INSIDE = make_inside()
