"""Every statistics test runs on every fast backend, with numbers of toys that this backend can afford."""

from __future__ import annotations

import pytest
from sizes import SIZES, Sizes

from backend_rows import STATISTICS, there
from morefit.targets import Backend


@pytest.fixture(scope="module", params=STATISTICS)
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each backend that draws and fits many toys in reasonable time."""
    return there(STATISTICS[request.param])


@pytest.fixture(scope="module")
def sizes(backend: Backend) -> Sizes:
    """The numbers of events and toys for this backend."""
    return SIZES[backend.name]
