"""Choose a backend by name; "auto" decides by the number of events."""

from __future__ import annotations

from functools import cache

from morefit.errors import BackendError
from morefit.targets.base import Backend

# Events, counted once for each fit: below, a CPU is done before a GPU has its kernels. Loading a driver and building
# a fit takes about a second, in which two cores fit 20 million events in toys of any size.
WORTH_A_GPU = 20_000_000

NAMES = ("auto", "cpu", "opencl", "reference")


def choose_backend(backend: str | Backend, events: int = 0) -> Backend:
    """Accept a backend or its name: 'auto', 'cpu', 'opencl' or 'reference'.

    'auto' is the CPU, unless there is a GPU with double precision and there are enough events for it to be faster
    (counted once for each fit).
    """
    if not isinstance(backend, str) and hasattr(backend, "compile"):
        return backend
    if not isinstance(backend, str) or backend not in NAMES:
        raise BackendError(f"backend {backend!r}: not known; use one of {', '.join(map(repr, NAMES))}")
    if backend == "opencl" or (backend == "auto" and events >= WORTH_A_GPU):
        from morefit.targets.opencl.device import picked_device
        from morefit.targets.opencl.run import OpenCL

        if backend == "opencl":
            return OpenCL()
        if (picked := picked_device()) is not None:
            return OpenCL(picked.platform, picked.device)
    if backend == "reference":
        from morefit.targets.reference.run import Reference

        return Reference()
    return whole_cpu()


@cache  # every fit asks
def whole_cpu() -> Backend:
    """Return the processor with all that it has."""
    from morefit.targets.cpu.run import Cpu

    return Cpu()
