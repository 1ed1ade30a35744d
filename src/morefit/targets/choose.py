"""Choose a backend by name; "auto" decides by the number of events."""

from __future__ import annotations

from morefit.errors import BackendError
from morefit.targets.base import Backend
from morefit.targets.cpu.run import Cpu
from morefit.targets.opencl.device import picked_device
from morefit.targets.opencl.run import OpenCL
from morefit.targets.reference.run import Reference

# Events, counted once for each fit: below, a CPU is done before a GPU has its kernels. Loading a driver and building
# a fit takes about a second, in which two cores fit 20 million events in toys of any size.
WORTH_A_GPU = 20_000_000

NAMED: dict[str, type[Cpu] | type[OpenCL] | type[Reference]] = {
    "cpu": Cpu,
    "opencl": OpenCL,
    "reference": Reference,
}


def choose_backend(backend: str | Backend, events: int = 0) -> Backend:
    """Accept a backend or its name: 'auto', 'cpu', 'opencl' or 'reference'.

    'auto' is the CPU, unless there is a GPU with double precision and there are enough events for it to be faster
    (counted once for each fit).
    """
    if not isinstance(backend, str) and hasattr(backend, "compile"):
        return backend
    if backend == "auto":
        picked = picked_device() if events >= WORTH_A_GPU else None
        return Cpu() if picked is None else OpenCL(picked.platform, picked.device)
    if backend not in NAMED:
        known = ", ".join(map(repr, ("auto", *NAMED)))
        raise BackendError(f"backend {backend!r}: not known; use one of {known}")
    return NAMED[backend]()
