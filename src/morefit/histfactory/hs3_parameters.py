"""Parameters in files of the HS3 standard: their values, limits and constraints, as a measurement of pyhf would configure them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.histfactory.workspace import entry, text
from morefit.validate import as_number

LOWEST = 1e-10  # of parameters that multiply bins, as in pyhf
NAMED_MEASUREMENT = "nom_{}"  # what RooFit calls the measurement that constrains the parameter of a bin


@dataclass(frozen=True, eq=False)
class Constrained:
    """Parameters that modifiers mention: the measurements that constrain single ones, and those of bins in their order."""

    values: Mapping[str, Mapping[str, Any]]  # of parameters and constants, by name
    measured: dict[str, tuple[float, float]] = field(default_factory=dict)  # and the error, by parameter
    factors: set[str] = field(default_factory=set)  # those of them that multiply samples
    bins: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by the name of the first
    free: set[str] = field(default_factory=set)  # those of them without constraints

    def constrain(self, where: str, distribution: Mapping[str, Any], parameter: str) -> None:
        """Take a distribution as the constraint of a parameter: a Gaussian of it and of what was measured."""
        kind = text(where, distribution, "type")
        if kind not in ("gaussian_dist", "normal_dist"):
            raise DataError(f"{where}: constraints must be of the type 'gaussian_dist', got {kind!r}")
        ends = [entry(where, distribution, end) for end in ("x", "mean")]
        if parameter not in ends:
            raise DataError(f"{where}: must be a constraint of '{parameter}', got one of {ends[0]!r:.60}")
        measured = self.number(where, ends[1 - ends.index(parameter)])
        self.measured[parameter] = measured, self.number(where, entry(where, distribution, "sigma"))

    def number(self, where: str, value: Any) -> float:
        """Return a number, or that of a constant by its name."""
        known = self.values.get(value, {}).get("value") if isinstance(value, str) else value
        number = as_number(known)
        if number is None:
            raise DataError(f"{where}: needs a number, or a constant of the file, got {value!r:.60}")
        return number

    def name_bins(self, where: str, names: Sequence[str], size: int) -> str:
        """Take the parameters of bins, and return the name that they have together."""
        if len(names) != size:
            raise DataError(
                f"{where}: 'parameters' must have {size} names, one for each bin, got {len(names)}"
            )
        if self.bins.setdefault(names[0], tuple(names)) != tuple(names):
            raise DataError(f"{where}: shares '{names[0]}' with others, but not all of its parameters")
        return names[0]


def parameter_values(points: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return what the first point says of each parameter, that of default values if there is one."""
    values = points.get("default_values", next(iter(points.values()), {}))
    rows = values.get("parameters") or [
        {"name": name, **one} for name, one in values.items() if isinstance(one, Mapping)
    ]
    return {text("parameter_points", one, "name"): one for one in rows}


def limits_of(domains: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[Any, Any]]:
    """Return the limits of parameters, None for an end that is open."""
    limits: dict[str, tuple[Any, Any]] = {}
    for domain in domains.values():
        for one in domain.get("axes", domain.get("variables", ())):
            limits[text("domain", one, "name")] = one.get("min"), one.get("max")
    return limits


def configurations(known: Constrained, limits: Mapping[str, tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
    """Go through the limits, start values and measurements of parameters, as a measurement of pyhf would configure them."""
    of_bins = {name for names in known.bins.values() for name in names}
    for name in dict.fromkeys([*limits, *known.values, *known.measured]):
        if name in of_bins:
            continue
        one, (low, high) = known.values.get(name, {}), limits.get(name, (None, None))
        if one.get("const") and name.startswith("gamma_"):
            raise DataError(f"parameter '{name}': is constant, which is not read of parameters of bins")
        spec: dict[str, Any] = {"name": name}
        if low is not None and high is not None:
            spec["bounds"] = [[low, high]]
        if one:
            spec |= {
                "inits": [entry("parameter_points", one, "value")],
                "fixed": bool(one.get("const", False)),
            }
        if name in known.measured:
            measured, error = known.measured[name]
            spec |= {"auxdata": [measured]} | ({"sigmas": [error]} if name in known.factors else {})
        yield spec
    yield from (bins_configured(known, names, limits) for names in known.bins.values())


def bins_configured(
    known: Constrained, names: tuple[str, ...], limits: Mapping[str, tuple[Any, Any]]
) -> dict[str, Any]:
    """Return the configuration of parameters of bins; RooFit names their measurements after them."""
    values = known.values
    spec: dict[str, Any] = {"name": names[0]}
    if all(name in values for name in names):
        spec["inits"] = [entry("parameter_points", values[name], "value") for name in names]
        spec["fixed"] = [bool(values[name].get("const", False)) for name in names]
    ends = [limits.get(name, (None, None)) for name in names]
    if all(low is not None and high is not None for low, high in ends):
        spec["bounds"] = [[max(low, LOWEST), high] for low, high in ends]
    measured = [values.get(NAMED_MEASUREMENT.format(name), {}).get("value") for name in names]
    if names[0] not in known.free and any(one is not None for one in measured):
        if None in measured:
            raise DataError(f"parameter '{names[0]}': some bins have a measurement, and others have none")
        spec["auxdata"] = measured
    return spec
