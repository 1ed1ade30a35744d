"""A result of another fit as a measurement: its values with their covariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.model import Parameter
from morefit.model.arguments import described
from morefit.model.evaluation import HasValues
from morefit.model.parameter import check_blinding


@runtime_checkable
class Measurement(HasValues, Protocol):
    """What has values of parameters and their covariance, as a fit result has."""

    def covariance_of(self, *parameters: Any) -> Array: ...


def measured_by(
    result: Measurement, parameters: Sequence[object], *, plain: bool
) -> tuple[list[float], Array]:
    """Return what a result measured of some parameters: values and their covariance, if nothing else is said of them."""
    if not plain:
        raise ModelError("constraint: a result has its covariance, as a Gaussian; leave error and kind out")
    if wrong := [one for one in parameters if not isinstance(one, Parameter)]:
        raise ModelError(f"constraint: a result measures parameters, got {described(wrong[0])}")
    covariance = result.covariance_of(*parameters)  # which refuses what it does not have
    measured = [one for one in parameters if isinstance(one, Parameter)]
    check_blinding(measured, result)
    return [result.values[p.name] for p in measured], covariance
