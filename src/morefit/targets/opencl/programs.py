"""The programs of a device: built from their texts, or found in this process or on disk."""

from __future__ import annotations

import contextlib
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from morefit.errors import CompileError
from morefit.targets.ahead import compile_ahead
from morefit.targets.cache import key_of, load, store
from morefit.targets.opencl.builders import builders_for

if TYPE_CHECKING:
    from morefit.targets.opencl.device import Device

MAX_PROGRAMS = 256  # cached in this process
# Drivers with a cache on disk of their own. PoCL builds a kernel when it is first started, but all of a text when its
# binary is read: a first fit took 5.1 s with it and 1.6 s without, one of another process 0.12 s and 0.24 s.
KEEPS_ITS_OWN = frozenset({"Portable Computing Language"})
OLDER = "; this driver is older than the processor: install a newer one, or use backend 'cpu'"


class Programs:
    """Builds programs, for any thread, and has kernels of theirs that are not in use."""

    def __init__(self, owner: Device) -> None:
        self.cl, self.context, self.device, self.info = owner.cl, owner.context, owner.device, owner.info
        self.known: OrderedDict[str, Any] = OrderedDict()  # by their texts
        self.spare: dict[tuple[str, str], list[Any]] = {}  # functions of texts that are not in use
        self.lock = threading.Lock()
        self.turns: dict[str, threading.Lock] = {}  # of threads that want the same text
        own = self.device
        self.builders = builders_for(self.info, own.driver_version)
        self.identity = (own.name, own.driver_version, own.platform.version, own.version)

    def build(self, source: str) -> Any:
        """Return a program for a text: from this process, from disk, or built now."""
        with self.lock:
            turn = self.turns.setdefault(source, threading.Lock())
        with turn:  # one thread builds it, and others that want the same text wait
            program = self.known.get(source)  # by the text itself, which takes less time than its digest
            if program is None:
                key = key_of("opencl", source, *self.identity)
                program = self.from_binary(load(key)) or self.from_source(key, source)
            with self.lock:
                self.known[source] = program
                self.known.move_to_end(source)
                self.turns.pop(source, None)
                if len(self.known) > MAX_PROGRAMS:
                    self.known.popitem(last=False)
        return program

    def build_ahead(self, sources: Iterable[str]) -> None:
        """Begin to build texts that are not there, all at the same time: first what takes longest."""
        missing = [source for source in sources if source not in self.known]
        for source in sorted(missing, key=len, reverse=True):
            compile_ahead(partial(self.build, source))

    def kernels(self, owner: object, source: str, functions: Mapping[str, str]) -> dict[str, Any]:
        """Return kernels, by name, of functions of a text for as long as the owner lives; then another one may have them.

        pyopencl takes half a millisecond to make one.
        """
        built = self.build(source)
        kernels = {}
        for name, function in functions.items():
            spare = self.spare.get((source, function))
            kernels[name] = spare.pop() if spare else self.cl.Kernel(built, function)
        weakref.finalize(owner, self.take_back, source, [(functions[name], k) for name, k in kernels.items()])
        return kernels

    def take_back(self, source: str, kernels: Sequence[tuple[str, Any]]) -> None:
        if len(self.spare) > MAX_PROGRAMS:
            self.spare.clear()
        for function, kernel in kernels:
            self.spare.setdefault((source, function), []).append(kernel)

    def from_binary(self, binary: bytes | None) -> Any | None:
        """Build from a binary; None if there is none, or the driver does not take it."""
        if binary is None:
            return None
        try:
            return self.finished(self.cl.Program(self.context, [self.device], [binary]))
        except self.cl.Error:
            return None

    def from_source(self, key: str, source: str) -> Any:
        """Build a text, here or in another process, and store its binary for all."""
        with self.builders.turn() as helper:
            binary = helper.build(source) if helper else None
            program = self.from_binary(binary) or self.from_text(source)
        if self.info.platform_name not in KEEPS_ITS_OWN:
            with contextlib.suppress(self.cl.Error):  # a driver may have no binaries to give
                store(key, binary or program.get_info(self.cl.program_info.BINARIES)[0])
        return program

    def from_text(self, source: str) -> Any:
        try:
            return self.finished(self.cl.Program(self.context, source))
        except self.cl.Error as error:
            advice = OLDER if "unknown target CPU" in str(error) else ""
            raise CompileError(
                f"kernel: {self.info.name} refused the text: {error}{advice}", source
            ) from error

    def finished(self, program: Any) -> Any:
        """Build without pyopencl's own cache and without its remarks on what compilers print."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return program.build(options=[], cache_dir=False)
