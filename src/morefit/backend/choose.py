"""Turn what a user says about the backend into a backend."""

from __future__ import annotations

from morefit.backend.base import Backend
from morefit.backend.cpu import Cpu
from morefit.backend.opencl import OpenCL
from morefit.backend.reference import Reference
from morefit.errors import BackendError

NAMED: dict[str, type[Cpu] | type[OpenCL] | type[Reference]] = {
    "auto": Cpu,
    "cpu": Cpu,
    "opencl": OpenCL,
    "reference": Reference,
}


def choose_backend(backend: str | Backend) -> Backend:
    """Accept a backend or its name: 'auto', 'cpu', 'opencl' or 'reference'."""
    if not isinstance(backend, str):
        return backend
    if backend not in NAMED:
        raise BackendError(f"backend '{backend}': not known; use one of {', '.join(map(repr, NAMED))}")
    return NAMED[backend]()
