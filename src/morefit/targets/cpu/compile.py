"""Machine code: LLVM's text compiled for this processor, beside other work, and cached in memory and on disk."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite

from morefit.targets.ahead import compile_ahead, wait_for_all
from morefit.targets.builders import Builders
from morefit.targets.cache import PROCESSOR, has_entry, key_of, load, source_version, store
from morefit.targets.cpu.abi import Code
from morefit.targets.cpu.builder import with_ways
from morefit.targets.cpu.builders import builders_for
from morefit.targets.cpu.host import Host, appearance
from morefit.targets.cpu.loading import load_object
from morefit.text.progress import Bar


class Pending:
    """Machine code that a thread may be compiling."""

    def __init__(self, find: Callable[[], Code], *, ahead: bool) -> None:
        self.find = find
        self.code: Code | None = None
        self.seconds = 0.0
        self.thread = compile_ahead(self.compile) if ahead else None

    def compile(self) -> Code:
        """Compile now."""
        begin = time.thread_time()  # without what others compile before it
        self.code = self.find()
        self.seconds = time.thread_time() - begin
        return self.code

    def wait(self) -> Code:
        """Return the code as soon as it is there; a child of a process does without the threads of its parent."""
        if self.code is None and self.thread is not None:
            with own_builders().waited_for():
                self.thread.join()
        return self.compile() if self.code is None else self.code

    def wait_visibly(self) -> Code:
        """Return the code, with a progress bar if that takes long."""
        if self.code is not None:
            return self.code
        with Bar("compiling: machine code", None, shown=True):
            return self.wait()


MAX_PROGRAMS = 256  # cached in this process
# of LLVM's optimisation while it writes machine code; at 0, for tests that run little of it, the text is not optimised either,
# and sums have other bits: processes that a test starts inherit the level
LEVEL = 0 if os.environ.get("MOREFIT_LLVM_LEVEL") == "0" else 2

# around what is known of programs, and, perhaps inside of it, around calls of LLVM, which has a lock of its own; both are taken
# around forks: a child would inherit locks that no thread of it can release
_lock, _llvm = threading.Lock(), threading.Lock()
_changed = threading.Condition(_lock)
_building: set[str] = set()  # keys of programs


def before_fork() -> None:
    wait_for_all()
    _lock.acquire()
    _llvm.acquire()


def after_fork() -> None:
    _llvm.release()
    _lock.release()


def begin_child() -> None:
    """Forget the threads and processes of a parent."""
    _building.clear()
    own_builders.cache_clear()
    after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=after_fork, after_in_child=begin_child)


@contextmanager
def llvm_code() -> Iterator[Any]:
    """Import LLVM, which code on disk does not need, and call it: a child would inherit locks of imports as well."""
    with _llvm:
        from morefit.targets.cpu import codegen

        yield codegen


@cache
def host() -> Host:
    """Return what LLVM knows of this processor; what it said of one that looks the same is on disk."""
    looks = appearance()
    key = None if looks is None else key_of("processor", source_version(), llvmlite.__version__, *looks)
    text = None if key is None else load(key, PROCESSOR)
    if text is None:
        with llvm_code() as codegen:
            text = codegen.look_at_host().text.encode()
        if key is not None:
            store(key, text, PROCESSOR)
    return Host.of(text.decode())


_programs: OrderedDict[str, Code] = OrderedDict()


def find_code(source: str, names: Sequence[str]) -> Code:
    """Return machine code for a text: from this process, from disk, or compiled now."""
    return find_written((source,), lambda: source, names)


def find_written(identity: Sequence[str], written: Callable[[], str], names: Sequence[str]) -> Code:
    """Return machine code for what has this identity, and a text that is written if it must be compiled."""
    return find_by_key(identity, lambda: build_object(written(), driver=False), names)


def code_key(*identity: str) -> str:
    return key_of(*identity, host().cpu, host().features, llvmlite.__version__, str(LEVEL))


def is_compiled(*identity: str) -> bool:
    """Return whether this process or the disk has machine code for what has this identity."""
    key = code_key(*identity)
    return key in _programs or has_entry(key)


def find_by_key(identity: Sequence[str], build: Callable[[], bytes], names: Sequence[str]) -> Code:
    """Return machine code for what has this identity: from this process, from disk, or built now."""
    key = code_key(*identity)
    with _changed:
        if key in _building:
            with own_builders().waited_for():
                _changed.wait_for(lambda: key not in _building)
        if (code := known_code(key, names)) is not None:
            return code
        _building.add(key)
    try:
        obj = build()
        store(key, obj)
        code = link(obj, names)
        assert code is not None
        with _changed:
            remember(key, code)
        return code
    finally:
        with _changed:
            _building.discard(key)
            _changed.notify_all()


def known_code(key: str, names: Sequence[str]) -> Code | None:
    """Return machine code that this process has, or that is on disk."""
    if (code := _programs.get(key)) is not None:
        _programs.move_to_end(key)
    elif (obj := load(key)) and (code := link(obj, names)) is not None:
        remember(key, code)
    return code


def remember(key: str, code: Code) -> None:
    _programs[key] = code
    if len(_programs) > MAX_PROGRAMS:
        _programs.popitem(last=False)


@cache
def own_builders() -> Builders:
    """Return the processes that compile beside this one."""
    builders = builders_for(host(), LEVEL)
    if builders.count:
        atexit.register(builders.end)
    return builders


def expect_text() -> None:
    """Begin to start a process, if that is of use, for a text that is about to be written."""
    own_builders().start(wanted=1)


def build_object(source: str, *, driver: bool, loops: bool = False) -> bytes:
    """Optimise a text and compile it to an object file, here or in another process; ``loops`` over arrays are to be vectorised."""
    with own_builders().turn() as helper:
        obj = helper.build(with_ways(source, driver=driver, loops=loops)) if helper else None
        if obj is None:
            processor = host()
            with llvm_code() as codegen:
                obj = codegen.build_object(source, processor, driver=driver, loops=loops, level=LEVEL)
    return obj


def link(obj: bytes, names: Sequence[str]) -> Code | None:
    """Load an object file into memory; None if it is not one for this machine."""
    if (code := load_object(obj, names)) is not None:
        return code
    processor = host()
    with llvm_code() as codegen:
        linked: Code = codegen.link(obj, names, processor)
    return linked
