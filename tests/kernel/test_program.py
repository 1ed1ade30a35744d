"""Drivers: plain Python that compiles to LLVM and to OpenCL C, with the same numbers in all three."""

import inspect
import re

import drivers
import numpy as np
import pytest
import refused_drivers
from drivers import DRIVERS, LAYOUT

import morefit as mf
from backend_rows import there
from morefit.errors import CompileError
from morefit.kernel.program import Kind, Stage, integers_at, vector_at
from morefit.kernel.read_program import read_program
from morefit.kernel.statements import Program
from morefit.targets.opencl.run import OpenCL
from running_drivers import PythonRecord, compile_driver

SETS = 200
NAMES = [driver.__name__ for driver in DRIVERS]
HEAD = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma OPENCL FP_CONTRACT OFF"
by_name = pytest.mark.parametrize("name", NAMES)


def inputs():
    """Records and pairs of whole numbers, the second of which is not zero; some numbers are odd."""
    rng = np.random.default_rng(1)
    records = np.zeros((SETS, LAYOUT.size))
    records[:, : LAYOUT.first("out")] = rng.normal(size=(SETS, LAYOUT.first("out")))
    odd = rng.random(SETS) < 0.3
    records[odd, :2] = rng.choice([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e300], (odd.sum(), 2))
    ints = rng.integers(-9, 10, (SETS, 2))
    ints[ints[:, 1] == 0, 1] = 4
    return records, ints.astype(np.int32)


def as_python(name):
    records, ints = inputs()
    with np.errstate(all="ignore"):
        for record, (i, j) in zip(records, ints.tolist(), strict=True):
            getattr(drivers, name)(PythonRecord(LAYOUT, record), i, j)
    return records


def program_of(name) -> Program:
    return read_program(getattr(drivers, name), {"Box": LAYOUT})


@by_name
def test_compiled_by_llvm_a_driver_computes_what_python_does(name):
    run = compile_driver(getattr(drivers, name), {"Box": LAYOUT})
    records, ints = inputs()
    for record, (i, j) in zip(records, ints.tolist(), strict=True):
        run(record, i, j)
    np.testing.assert_array_equal(records, as_python(name))
    assert not np.array_equal(records, inputs()[0], equal_nan=True)


@pytest.fixture(scope="module")
def on_device():
    """All drivers built together, which takes a second: a function of the name of a driver."""
    there(OpenCL())
    from morefit.targets.opencl.device import open_device, set_arguments
    from morefit.targets.opencl.program import PREFIX, Writer, function_lines

    functions = {f.name: f for name in NAMES for f in program_of(name).functions}
    lines = [line for f in functions.values() for line in function_lines(f, "__global ", Writer())]
    cases = [f"if (which == {k}) {PREFIX}{name}(box, i, j);" for k, name in enumerate(NAMES)]
    head = "__kernel void run(__global double *records, __global const int *ints, const int which) {"
    own = f"__global double *box = records + get_global_id(0) * {LAYOUT.size};"
    pair = "const int i = ints[2 * get_global_id(0)], j = ints[2 * get_global_id(0) + 1];"
    text = "\n".join([HEAD, *lines, head, own, pair, *cases, "}"])
    device = open_device(None, None)

    def run(name):
        records, ints = inputs()
        kernel, out = device.programs.kernels(run, text, {"run": "run"})["run"], device.send(records)
        arguments = set_arguments(kernel, out, device.send(ints), np.int32(NAMES.index(name)))
        device.run(kernel, SETS, 1)
        device.read(arguments[0], records)
        return records

    return run


@by_name
def test_compiled_as_opencl_c_a_driver_computes_what_python_does(on_device, name):
    np.testing.assert_array_equal(on_device(name), as_python(name))


@pytest.mark.parametrize("name", ["parallel_turns", "parallel_turns_inside", "augmented", "leaving_loops"])
def test_items_of_a_group_compute_together_what_python_does(name):
    there(OpenCL())
    from morefit.targets.opencl.device import open_device, set_arguments
    from morefit.targets.opencl.program import PREFIX, GroupWriter, function_lines

    items, functions = 8, program_of(name).functions
    text = "\n".join([
        HEAD,
        *(line for f in functions for line in function_lines(f, "__global ", GroupWriter())),
        "__kernel void run(__global double *records, __global const int *ints) {",
        f"__global double *box = records + get_group_id(0) * {LAYOUT.size};",
        f"{PREFIX}{name}(box, ints[2 * get_group_id(0)], ints[2 * get_group_id(0) + 1]); }}",
    ])  # fmt: skip
    device, (records, ints) = open_device(None, None), inputs()
    kernel = device.programs.kernels(records, text, {"run": "run"})["run"]
    arguments = set_arguments(kernel, device.send(records), device.send(ints))
    device.run(kernel, SETS * items, items)
    device.read(arguments[0], records)
    np.testing.assert_array_equal(records, as_python(name))


REFUSALS = {
    "parallel_end": "a turn of a parallel loop must not end it, got for i in parallel(3):",
    "parallel_in_parallel": "a variable that a parallel loop assigns is read only there, got total",
    "parallel_store": "a turn of a parallel loop must not call 'stores', which stores numbers",
    "parallel_variable": "a variable that a parallel loop assigns is read only there, got total",
    "parallel_step": "loops run over a range, or a parallel one without a step",
    "a_list": "len([1, 2])",
    "a_string": "constants must be numbers, got 'text'",
    "a_text_of_the_module": "constants must be numbers, got TEXT",
    "a_with": "the language of drivers has no such statement, got with box:",
    "an_annotation": "the language of drivers has no such statement, got a: float = 1.0",
    "a_value_alone": "a value must be used, got max(box.a, 1.0)",
    "unknown_name": "a name must be an argument, a variable or a constant of the module, got missing",
    "unknown_field": "a field needs a record that has it, got box.missing",
    "field_of_a_number": "a field needs a record that has it, got x.real",
    "unknown_function": "a function must be known to the module, got missing(1.0)",
    "function_of_python": "a function must be known to the module, got sin(1.0)",
    "function_of_a_module": "a function must be called by its name, got refused_elsewhere.helper(1.0)",
    "number_of_a_condition": "a number is needed, got box.a > 0",
    "float_of_a_condition": "a number is needed, got box.a > 0",
    "condition_of_a_number": "a condition must be a comparison or a bool, got box.a",
    "not_a_number": "a condition must be a comparison or a bool, got box.a",
    "bool_of_a_number": "a condition must be a comparison or a bool, got box.a",
    "a_plus": "the language of drivers has no such operator, got +box.a",
    "a_power": "the language of drivers has no such operator, got box.a ** 2",
    "floor_of_floats": "// and % need whole numbers, got box.a // 2.0",
    "rest_of_floats": "// and % need whole numbers, got box.a % 2.0",
    "order_of_conditions": "a comparison needs two numbers, got (box.a > 0) < (box.a > 1)",
    "membership": "a comparison needs two numbers, got box.a in box.v",
    "index_that_is_not_whole": "an element needs an array and a whole number, got box.v[box.a]",
    "element_of_a_number": "an element needs an array and a whole number, got box.a[0]",
    "choice_of_two_types": "both values of a choice must be of one type, got 1.0 if box.a > 0 else box.a > 1",
    "three_numbers": "'max' needs 2 arguments in their order, got max(box.a, 1.0, 2.0)",
    "key_of_max": "'max' needs 2 arguments in their order, got max(box.a, 1.0, key=1)",
    "missing_argument": "'helper' needs x, each once, got helper()",
    "argument_twice": "'helper' needs x, each once, got helper(1.0, x=2.0)",
    "argument_of_another_name": "'helper' needs x, each once, got helper(y=2.0)",
    "argument_of_another_type": "argument 'x' of 'helper' must be float, got helper(box.v)",
    "value_of_nothing": "a value needs a function that returns one, got nothing(1.0)",
    "length_of_an_argument": "only arrays of records have a known length, got len(v)",
    "length_of_a_number": "only arrays of records have a known length, got len(box.a)",
    "address_that_is_not_whole": "a whole number is needed, got box.a",
    "two_addresses": "one argument is needed, got vector_at(1, 2)",
    "two_left_sides": "an assignment has one left side, got a = b = 1.0",
    "tuple_of_a_function": "a tuple needs one value for each name, got",
    "uneven_tuple": "a tuple needs one value for each name, got",
    "another_type": "float cannot be stored as int, got k",
    "condition_as_number": "bool cannot be stored as float, got box.v[0]",
    "array_as_number": "numbers are stored in variables, elements and fields, got box.v",
    "store_nowhere": "an element needs an array and a whole number, got helper(1.0)[0]",
    "loop_over_an_array": "loops run over a range, or a parallel one without a step, got for x in box.v:",
    "loop_over_two": "loops run over a range, or a parallel one without a step, got for",
    "loop_with_else": "a loop has no else, got for i in range(3):",
    "while_with_else": "a loop has no else, got while box.a > 0:",
    "loop_to_a_number": "a whole number is needed, got box.a",
    "step_of_zero": "the step of a range is a constant other than zero, got 0",
    "step_that_varies": "the step of a range is a constant other than zero, got k",
    "loop_that_is_changed": "the variable of a loop stays as it is inside, got i",
    "loop_in_itself": "the variable of a loop needs a name of its own, got for i in range(2):",
    "loop_with_a_number": "the variable of a loop needs a name of its own, got for i in range(3):",
    "loop_that_has_ended": "the variable of a loop is not known after it, got i",
    "no_number_returned": "must return float, got return",
    "a_number_returned": "must return nothing, got return 1.0",
    "another_type_returned": "must return float, got return box.a > 0",
    "an_array_returned": "a driver returns float, int, bool or None, not Vector, got",
    "nothing_said": "a driver returns float, int, bool or None, not nothing, got",
    "not_always_returned": "every way through it must return float, got",
    "argument_without_type": "an argument needs a type of the language, or a record with a layout, got x",
    "argument_without_layout": "or a record with a layout, got other: Record",
    "argument_with_default": "arguments must be plain, without defaults, got box: Box, x: float=1.0",
    "arguments_by_name": "arguments must be plain, without defaults, got box: Box, *, x: float",
    "one_that_calls_itself": "'one_that_calls_itself': no function may call itself; write a loop",
    "two_of_one_name": "'helper': each function needs a name of its own, got one in refused_elsewhere and one in refused_drivers",
    "one_that_is_inside": "'inside': a function must be defined at the top of its module",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_not_in_the_language_is_refused_with_its_line(name):
    with pytest.raises(CompileError, match=f"^driver .*{re.escape(REFUSALS[name])}"):
        read_program(getattr(refused_drivers, name), {"Box": refused_drivers.LAYOUT})


def test_the_message_names_the_line():
    driver = refused_drivers.unknown_name
    with pytest.raises(
        CompileError, match=f"'unknown_name': line {driver.__code__.co_firstlineno + 1}: "
    ) as error:
        read_program(driver, {"Box": refused_drivers.LAYOUT})
    assert error.value.source.startswith("def unknown_name(box: Box)")


def test_every_function_that_shall_be_refused_is_in_the_table():
    own = {n for n, f in inspect.getmembers(refused_drivers, inspect.isfunction) if f.__name__ == n}
    assert own - {"helper", "nothing", "make_inside", "vector_at", "parallel", "stores"} == set(REFUSALS)


def test_every_driver_is_in_the_list():
    functions = inspect.getmembers(drivers, inspect.isfunction)
    whole = {n for n, f in functions if list(inspect.signature(f).parameters) == ["box", "i", "j"]}
    assert whole == set(NAMES)


def test_functions_follow_those_they_call():
    program = program_of("calls")
    names = [f.name for f in program.functions]
    assert names == ["sign", "larger", "between", "scale", "shift", "entry_of", "first_above", "calls"]
    assert program.main.name == "calls"


def test_a_stage_is_what_it_runs():
    stage = Stage("double it", Kind.FLOAT)
    stage.run = lambda x: 2 * x
    assert stage(4) == 8


@pytest.mark.parametrize("view", [vector_at, integers_at])
def test_python_has_no_addresses(view):
    with pytest.raises(mf.CompileError, match="addresses exist in compiled code only"):
        view(0)
