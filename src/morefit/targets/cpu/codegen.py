"""LLVM: texts optimised, compiled to object files, and linked where ``loading.py`` cannot; what it knows of this processor.

Only this module imports LLVM, which takes longer than to read code from disk. Its callers hold the lock of ``compile.py``. It
imports no NumPy, so that processes that build are there soon (``builder.py``).
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm

from morefit.errors import CompileError
from morefit.targets.cpu.host import Host

if TYPE_CHECKING:
    from morefit.targets.cpu.abi import Code

NAME = re.compile(r"%[\w.]+")
ASSIGNMENT = re.compile(r"  (%[\w.]+) = (?!phi|load|alloca|[us]div|[us]rem)(.*)")
OTHER_CALL = re.compile(r"call (?!.*@llvm\.)")
NUMBERED = re.compile(r"(?<=%)(?=\d)|^(?=\d+:)")  # places of names that LLVM counted, which must be in order
LOOPS = ("functions_first:", "loop:")  # the first that there is has the functions


def hoist(text: str) -> str:
    """Move lines of the loop of ``block`` whose operands are known before it to the end of its entry.

    They are those of the first block of the loop, which always runs, and compute numbers only: parts of inlined functions
    with a fixed argument. LLVM has a pass for it, which llvmlite does not offer; what is moved there after optimisation
    depends on registers.
    """
    lines = text.split("\n")
    begin = next(k for k, line in enumerate(lines) if line.startswith("define void @block("))
    end = next(k for k in range(begin, len(lines)) if lines[k] == "}")
    lines[begin:end] = [NUMBERED.sub("counted", line) for line in lines[begin:end]]
    leave = next(k for k in range(begin, end) if lines[k].startswith("  br "))
    starts = [k for label in LOOPS for k in range(begin, end) if lines[k].startswith(label)]
    if not starts:
        return text
    loop = starts[0]
    stop = next(k for k in range(loop, end) if lines[k].startswith("  br "))
    known = set(NAME.findall(lines[begin]))
    known.update(line.split()[0] for line in lines[begin:leave] if line.startswith("  %"))
    moved, rest = [], []
    for line in lines[loop + 1 : stop]:
        match = ASSIGNMENT.match(line)
        if match and not OTHER_CALL.search(line) and known.issuperset(NAME.findall(match[2])):
            known.add(match[1])
            moved.append(line)
        else:
            rest.append(line)
    return "\n".join([*lines[:leave], *moved, *lines[leave : loop + 1], *rest, *lines[stop:]])


IN_ORDER_OPTIONS = {"enable-misched": False}
# loops of drivers are short: what finds better addresses, instructions and orders of them takes two thirds of the time, for
# toys that are at most 2 % faster (docs/decisions/0006-llvm.md)
DRIVER_OPTIONS = {
    "disable-lsr": True, "fast-isel": True, "enable-misched": False, "disable-post-ra": True,
}  # fmt: skip
# passes that take a third of what is left, for toys that are as fast without; none of these defaults depends on the level
DRIVER_PASSES = {
    f"disable-{name}": True
    for name in (
        "cgp", "constant-hoisting", "mergeicmps", "partial-libcall-inlining", "early-taildup", "tail-duplicate",
        "branch-fold", "copyprop", "ssc", "postra-machine-sink", "postra-machine-licm",
    )
}  # fmt: skip

# the scheduler after registers are allocated takes a third of the time of a large text, where it gains nothing; kernels of few
# parameters are 2 to 5 % faster with it
LARGE_OPTIONS = {"disable-post-ra": True}
FAST_OPTIONS = {"fast-isel": True}
LARGE = 11_000  # lines


def options_for(source: str, driver: bool, level: int) -> dict[str, bool]:
    """Return the options of LLVM with which a text becomes machine code."""
    if driver:
        return DRIVER_OPTIONS | DRIVER_PASSES
    if not level:
        return FAST_OPTIONS
    options = IN_ORDER_OPTIONS if IN_ORDER in source else {}
    return options | LARGE_OPTIONS if source.count("\n") > LARGE else options


SHARED_WORK = "@mf_wofz_imag"  # comes with the real part, and once inlined most of their lines are the same
# a loop whose functions are computed ahead, and whose sums are in the order that needs fewest registers: LLVM's scheduler would
# change it; a comment of the text says so
IN_ORDER = "; sums in order"

# a loop with a function of several numbers, of which one is the same for all events, and so is much of the work
FIXED_ARGUMENT = "; fixed argument"

_unused: list[Any] = []  # engines of code that is no longer referenced


@cache
def start() -> None:
    """Prepare LLVM for this processor, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    switch(DRIVER_OPTIONS | IN_ORDER_OPTIONS, on=False)


def look_at_host() -> Host:
    """Describe this processor."""
    start()
    features, triple = llvm.get_host_cpu_features(), llvm.get_default_triple()
    machine = (
        "x86"
        if triple.startswith("x86_64")
        else "arm"
        if triple.startswith(("aarch64", "arm64"))
        else "other"
    )
    width = 8 if features.get("avx512f") else 4 if features.get("avx2") else 2
    text = features.flatten()
    if width == 8:
        text += ",-prefer-256-bit"  # else LLVM splits every vector of eight
    return Host(llvm.get_host_cpu_name(), text, width, machine)


def target_machine(host: Host, level: int) -> Any:
    start()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=host.cpu, features=host.features, opt=level, jit=True)


def build_object(source: str, host: Host, *, driver: bool, loops: bool, level: int) -> bytes:
    """Optimise a text and compile it to an object file; ``loops`` over arrays are to be vectorised."""
    try:
        module = llvm.parse_assembly(source)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"kernel: LLVM refused the text: {error}", source) from error
    machine = target_machine(host, level)
    if loops:
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization, options.slp_vectorization, options.loop_unrolling = True, False, False
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return bytes(machine.emit_object(module))
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_module_pass_manager()
    # the text is vectorised and free of common subexpressions already: the usual pipelines (O1, O2) take twice
    # as long and make no kernel faster (docs/decisions/0006-llvm.md)
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    if level:
        add_simplifications(passes, source, driver)
    passes.run(module, builder)
    if FIXED_ARGUMENT in source:
        module = llvm.parse_assembly(hoist(str(module)))
    with switched(options_for(source, driver, level)):
        return bytes(machine.emit_object(module))


def add_simplifications(passes: Any, source: str, driver: bool) -> None:
    """Add the passes that make the text shorter."""
    if driver:  # has its variables in memory, and gains nothing where its instructions are combined
        passes.add_sroa_pass()
    else:
        passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    if SHARED_WORK in source:
        passes.add_new_gvn_pass()


@contextmanager
def switched(options: Mapping[str, bool]) -> Iterator[None]:
    """Switch options of LLVM, which are those of the process, and back."""
    switch(options, on=True)
    try:
        yield
    finally:
        switch(options, on=False)


def switch(options: Mapping[str, bool], *, on: bool) -> None:
    """Switch options, or back. Before the first time some depend on the level, which made code depend on what was compiled before."""
    for name, value in options.items():
        llvm.set_option("morefit", f"-{name}={str(value is on).lower()}")


def link(obj: bytes, names: Sequence[str], host: Host) -> Code | None:
    """Let LLVM put an object file into memory; None if it is not one for this machine."""
    from morefit.targets.cpu.abi import code_at  # imports NumPy

    _unused.clear()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine(host, 0))
    try:
        engine.add_object_file(llvm.ObjectFileRef.from_data(obj))
        engine.finalize_object()
    except RuntimeError:
        return None
    code = code_at({name: int(engine.get_function_address(name)) for name in names})
    if code is not None:
        # an engine is freed by LLVM: that waits for the next call of this, with the lock
        weakref.finalize(code, _unused.append, engine).atexit = False
    return code
