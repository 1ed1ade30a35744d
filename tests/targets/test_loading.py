"""Object files in memory: those that need addresses alone are loaded without LLVM, others by it, with the same results."""

import ctypes
import sys

import numpy as np
import pytest

from morefit.targets.cpu import codegen, loading
from morefit.targets.cpu import compile as machine
from morefit.targets.cpu.host import Host, appearance
from morefit.targets.cpu.loading import load_object

pytestmark = pytest.mark.skipif(appearance() is None, reason="LLVM loads all object files of this machine")

# a constant, a call inside the file, and a function of C
COPY = """
@scale = private constant [2 x double] [double 3.0, double 0.5]
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal double @scaled(double %x, i64 %k) noinline {
  %p = getelementptr [2 x double], ptr @scale, i64 0, i64 %k
  %s = load double, ptr %p
  %y = fmul double %x, %s
  %z = fadd double %y, 0.0625
  ret double %z
}
define void @copy(ptr %x) {
  %n = load i64, ptr %x
  %from = getelementptr i64, ptr %x, i64 1
  %to = getelementptr i64, ptr %x, i64 5
  %size = shl i64 %n, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  %a = load double, ptr %to
  %b = call double @scaled(double %a, i64 1)
  store double %b, ptr %to
  ret void
}
"""
COUNTER = """
@counter = internal global i64 0
define void @count(ptr %x) {
  %n = load i64, ptr @counter
  %m = add i64 %n, 1
  store i64 %m, ptr @counter
  store i64 %m, ptr %x
  ret void
}
"""


def copied(code):
    """Return what the function makes of some numbers."""
    numbers = np.arange(10.0)
    numbers[:1].view(np.int64)[0] = 3
    code.functions["copy"](int(numbers.ctypes.data))
    return numbers[5:].tolist()


def test_code_loaded_without_llvm_is_what_llvm_loads():
    obj = machine.build_object(COPY, driver=False)
    own, by_llvm = load_object(obj, ["copy"]), codegen.link(obj, ["copy"], machine.host())
    assert copied(own) == copied(by_llvm) == [0.5625, 2.0, 3.0, 8.0, 9.0]


def test_code_is_not_in_memory_that_can_be_written():
    code = load_object(machine.build_object(COPY, driver=False), ["copy"])
    address = code.addresses["copy"]
    with open("/proc/self/maps", encoding="utf-8") as maps:
        (rights,) = [
            line.split()[1]
            for line in maps
            if int(line.split("-")[0], 16) <= address < int(line.split()[0].split("-")[1], 16)
        ]
    assert rights == "r-xp"


def test_memory_is_given_back_with_the_code(monkeypatch):
    code = load_object(machine.build_object(COPY, driver=False), ["copy"])
    page = code.addresses["copy"] // 4096 * 4096
    resident = ctypes.create_string_buffer(1)
    probe = ctypes.CDLL(None).mincore
    probe.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    assert probe(page, 1, resident) == 0
    del code
    assert probe(page, 1, resident) != 0


def test_what_needs_memory_to_write_to_is_left_to_llvm():
    obj = machine.build_object(COUNTER, driver=False)
    assert load_object(obj, ["count"]) is None
    code, number = machine.link(obj, ["count"]), ctypes.c_int64()
    for _ in range(2):
        code.functions["count"](ctypes.addressof(number))
    assert number.value == 2


def test_a_function_that_nobody_has_is_left_to_llvm():
    text = "declare void @nobody_has_this()\ndefine void @f(ptr %x) { call void @nobody_has_this() ret void }"
    assert load_object(machine.build_object(text, driver=False), ["f"]) is None


def test_a_function_that_is_not_there_is_no_code():
    assert load_object(machine.build_object(COPY, driver=False), ["paste"]) is None


@pytest.mark.parametrize("obj", [b"", b"\x7fELF", b"not an object file" * 10])
def test_what_is_no_object_file_is_no_code(obj):
    assert load_object(obj, ["copy"]) is None


def test_where_memory_cannot_be_made_executable_llvm_is_asked(monkeypatch):
    obj = machine.build_object(COPY, driver=False)
    monkeypatch.setattr(loading, "PROT_EXEC", -1)
    assert load_object(obj, ["copy"]) is None


def test_what_llvm_knows_of_a_processor_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path))
    asked = []
    monkeypatch.setattr(codegen, "look_at_host", lambda: asked.append(1) or Host("a", "+b,-c", 4, "x86"))
    first, second = (machine.host.__wrapped__() for _ in range(2))
    assert first == second == Host("a", "+b,-c", 4, "x86")
    assert len(asked) == 1
    monkeypatch.setattr(machine, "appearance", lambda: ["another"])
    machine.host.__wrapped__()
    assert len(asked) == 2
    monkeypatch.setattr(machine, "appearance", lambda: None)  # LLVM is asked every time
    machine.host.__wrapped__()
    assert len(asked) == 3


def test_an_emulator_is_another_processor(monkeypatch):
    features = sys.modules["numpy._core._multiarray_umath"].__cpu_features__
    before = appearance()
    monkeypatch.setitem(features, next(name for name, there in features.items() if there), False)
    assert appearance() != before
