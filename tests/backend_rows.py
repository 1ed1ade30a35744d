"""The backends that tests run on, a row each: a new one is one row in each table it belongs to."""

from __future__ import annotations

import pytest

from morefit.errors import BackendError
from morefit.targets.base import Backend
from morefit.targets.cpu.run import Cpu
from morefit.targets.opencl.discover import devices
from morefit.targets.opencl.run import OpenCL
from morefit.targets.reference.run import Reference

COMPILED: dict[str, Backend] = {
    "cpu": Cpu(threads=1),
    "two-threads": Cpu(threads=2),
    "width-4": Cpu(threads=1, width=4),
    "width-2": Cpu(threads=1, width=2),
    "width-1": Cpu(threads=1, width=1),
    "opencl": OpenCL(),
}
JUDGE: dict[str, Backend] = {"reference": Reference()}
STATISTICS: dict[str, Backend] = {"cpu": Cpu(), "opencl": OpenCL()}  # those fast enough for many toys
# for what other backends are compared with this one toy by toy, or tell no more than they do in tests beside
on_one_backend = pytest.mark.parametrize(
    "backend",
    ["cpu", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in STATISTICS if name != "cpu")],
    indirect=True,
    scope="module",
)


def there(backend: Backend) -> Backend:
    """Return a backend, or skip the test if this machine does not have it."""
    if isinstance(backend, OpenCL):
        try:
            found = any(device.double for device in devices())
        except BackendError as error:
            pytest.skip(str(error))
        if not found:
            pytest.skip("backend 'opencl': no device with double precision on this machine")
    return backend
