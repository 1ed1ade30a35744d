"""Machine code: LLVM's text compiled for this processor, beside other work, and cached in memory and on disk."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache

import llvmlite

from morefit.targets.ahead import compile_ahead, wait_for_all
from morefit.targets.cache import PROCESSOR, has_entry, key_of, load, source_version, store
from morefit.targets.cpu.abi import Code
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
            self.thread.join()
        return self.compile() if self.code is None else self.code

    def wait_visibly(self) -> Code:
        """Return the code, with a progress bar if that takes long."""
        if self.code is not None:
            return self.code
        with Bar("compiling: machine code", 1, shown=True):
            return self.wait()


MAX_PROGRAMS = 256  # cached in this process
# of LLVM's optimisation while it writes machine code; at 0, for tests that run little of it, the text is not optimised either,
# and sums have other bits: processes that a test starts inherit the level
LEVEL = 0 if os.environ.get("MOREFIT_LLVM_LEVEL") == "0" else 2

# taken around calls of LLVM, which has a lock of its own, and around forks: a child would inherit locks that no
# thread of it can release
_lock = threading.Lock()


def before_fork() -> None:
    wait_for_all()
    _lock.acquire()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=_lock.release, after_in_child=_lock.release)


@cache
def host() -> Host:
    """Return what LLVM knows of this processor; what it said of one that looks the same is on disk."""
    looks = appearance()
    key = None if looks is None else key_of("processor", source_version(), llvmlite.__version__, *looks)
    text = None if key is None else load(key, PROCESSOR)
    if text is None:
        from morefit.targets.cpu.codegen import look_at_host

        with _lock:
            text = look_at_host().text.encode()
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
    with _lock:
        code = _programs.get(key)
        if code is None:
            obj = load(key)
            code = link(obj, names) if obj else None
            if code is None:
                obj = build()
                store(key, obj)
                code = link(obj, names)
                assert code is not None
            _programs[key] = code
            if len(_programs) > MAX_PROGRAMS:
                _programs.popitem(last=False)
        _programs.move_to_end(key)
        return code


def build_object(source: str, *, driver: bool, loops: bool = False) -> bytes:
    """Optimise a text and compile it to an object file; ``loops`` over arrays are to be vectorised."""
    from morefit.targets.cpu import codegen  # imports LLVM, which code on disk does not need

    return codegen.build_object(source, host(), driver=driver, loops=loops, level=LEVEL)


def link(obj: bytes, names: Sequence[str]) -> Code | None:
    """Load an object file into memory; None if it is not one for this machine."""
    if (code := load_object(obj, names)) is not None:
        return code
    from morefit.targets.cpu import codegen

    return codegen.link(obj, names, host())
