"""Parameters of a HistFactory workspace: those that its modifiers need, their constraints, and what a measurement configures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags
from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError
from morefit.histfactory.workspace import LARGEST, PER_BIN, Channel, Modifier, numbers, text
from morefit.likelihood import Constraint
from morefit.likelihood.auxiliary import AuxiliaryCount
from morefit.likelihood.constraint import GaussianConstraint
from morefit.model import Parameter
from morefit.text.suggest import suggest

LOWEST = 1e-10  # of parameters that multiply bins with a constraint, as in pyhf
CONFIGURABLE = ("inits", "bounds", "auxdata", "factors", "sigmas", "fixed")


@dataclass(frozen=True, eq=False)
class ParameterSet:
    """The parameters of one name, one or one for each bin, and the measurements that constrain them.

    What is measured is a Gaussian number with ``sigmas``, or a count that is expected to be the parameter times ``factors``;
    a parameter without either has no constraint.
    """

    name: str
    kind: str
    inits: Array
    bounds: Array  # (parameters, 2)
    fixed: Flags
    auxdata: Array | None = None
    sigmas: Array | None = None
    factors: Array | None = None
    places: Mapping[str, int] = field(default_factory=dict)  # of the first bin of each channel
    first: int = 0  # among all parameters
    names: tuple[str, ...] = ()  # of bins; pyhf numbers them

    def place(self, channel: str) -> int:
        """Return where the parameter of the first bin of a channel is among all."""
        return self.first + self.places[channel]

    def parameters(self) -> list[Parameter]:
        """Return the parameters, with the names that pyhf gives them."""
        rows = zip(self.inits.tolist(), self.bounds.tolist(), self.fixed.tolist(), strict=True)
        try:
            return [
                Parameter(name, start, low, high, fixed)
                for name, (start, (low, high), fixed) in zip(self.own_names(), rows, strict=True)
            ]
        except ModelError as error:
            raise DataError(f"workspace: {error}") from None

    def own_names(self) -> tuple[str, ...]:
        """Return the name of each parameter."""
        name = self.name.replace(" ", "_")
        if self.kind not in PER_BIN:
            return (name,)
        return self.names or tuple(f"{name}[{k}]" for k in range(len(self.inits)))

    def constraints(self) -> Iterator[Constraint]:
        """Return what was measured of the parameters."""
        for k, p in enumerate(self.parameters() if self.auxdata is not None else ()):
            assert self.auxdata is not None
            measured = (float(self.auxdata[k]),)
            if self.factors is not None and self.factors[k] > 0:
                yield AuxiliaryCount(p.symbol, measured, float(self.factors[k]))
            if self.sigmas is not None and self.sigmas[k] > 0:
                yield GaussianConstraint((p.symbol,), measured, ((float(self.sigmas[k]) ** 2,),))


def parameter_sets(channels: Sequence[Channel]) -> dict[str, ParameterSet]:
    """Return the parameters that modifiers need, by name, in the order in which they appear."""
    uses: dict[str, list[tuple[Channel, Array, Modifier]]] = {}
    for channel in channels:
        for sample in channel.samples:
            for m in sample.modifiers:
                uses.setdefault(m.name, []).append((channel, sample.nominal, m))
    return {name: parameter_set(name, each) for name, each in uses.items()}


def parameter_set(name: str, uses: Sequence[tuple[Channel, Array, Modifier]]) -> ParameterSet:
    """Return the parameters of one name, which several modifiers may share."""
    kinds = sorted({m.kind for *_, m in uses})
    if len(kinds) > 1 and kinds != ["histosys", "normsys"]:
        raise DataError(
            f"parameter '{name}': modifiers that share it must be normsys or histosys, got {' and '.join(kinds)};"
            " use different names"
        )
    make = {"staterror": staterrors, "shapesys": shapesys, "shapefactor": shapefactors}.get(kinds[0])
    if make is not None:
        made, names = make(name, uses), uses[0][2].parameters
        if names and len(names) != len(made.inits):
            raise DataError(f"{uses[0][2].where}: channels must not share its parameters of bins")
        return replace(made, names=names)
    if kinds == ["lumi"]:
        nothing, bounds = np.empty(0), np.empty((0, 2))
        return ParameterSet(
            name, "lumi", nothing, bounds, np.zeros(1, np.bool_), auxdata=nothing, sigmas=nothing
        )
    if kinds == ["normfactor"]:
        return ParameterSet(name, "normfactor", np.ones(1), np.array([[0.0, 10.0]]), np.zeros(1, np.bool_))
    return ParameterSet(
        name=name,
        kind="alpha",
        inits=np.zeros(1),
        bounds=np.array([[-5.0, 5.0]]),
        fixed=np.zeros(1, np.bool_),
        auxdata=np.zeros(1),
        sigmas=np.ones(1),
    )


def per_bin(name: str, kind: str, low: float, fixed: Flags, **constraint: Any) -> ParameterSet:
    """Return one parameter for each bin, which multiplies it."""
    bounds = np.tile([low, 10.0], (len(fixed), 1))
    return ParameterSet(name, kind, np.ones(len(fixed)), bounds, np.asarray(fixed, np.bool_), **constraint)


def shapefactors(name: str, uses: Sequence[tuple[Channel, Array, Modifier]]) -> ParameterSet:
    """Return free parameters; channels share them bin by bin."""
    most = max(channel.size for channel, *_ in uses)
    places = {channel.name: 0 for channel, *_ in uses}
    return per_bin(name, "shapefactor", 0.0, np.zeros(most, np.bool_), places=places)


def shapesys(name: str, uses: Sequence[tuple[Channel, Array, Modifier]]) -> ParameterSet:
    """Return parameters with Poisson constraints, of the one sample that has them."""
    if len(uses) > 1:
        raise DataError(
            f"{uses[1][2].where}: shapesys must have a name of its own, but others have it as well"
        )
    ((channel, nominal, m),) = uses
    (errors,) = m.data
    known = (nominal > 0) & (errors > 0)
    with np.errstate(over="ignore"):
        sigmas = np.divide(errors, nominal, out=np.zeros(len(known)), where=known)
        check_factors(m.where, np.divide(nominal, errors, out=np.zeros(len(known)), where=known) ** 2, known)
    return with_errors(name, "shapesys", sigmas, m.constraint != "Gauss", {channel.name: 0})


def staterrors(name: str, uses: Sequence[tuple[Channel, Array, Modifier]]) -> ParameterSet:
    """Return parameters with the errors of all samples that have them, added in quadrature."""
    channels = list({channel.name: channel for channel, *_ in uses}.values())
    totals = {c.name: np.zeros(c.size) for c in channels}
    squares = {c.name: np.zeros(c.size) for c in channels}
    for channel, nominal, m in uses:
        totals[channel.name] += nominal
        squares[channel.name] += m.data[0] ** 2
    total, square = (np.concatenate([some[c.name] for c in channels]) for some in (totals, squares))
    with np.errstate(over="ignore"):
        sigmas = np.sqrt(square) / np.where(total > 0, total, np.inf)
    check_factors(uses[0][2].where, sigmas, sigmas > 0)
    places = dict(zip(totals, np.cumsum([0, *(c.size for c in channels)]).tolist(), strict=False))
    if len(kinds := {m.constraint for *_, m in uses}) > 1:
        raise DataError(
            f"{uses[0][2].where}: samples must have the same constraint, got {sorted(map(str, kinds))}"
        )
    return with_errors(name, "staterror", sigmas, kinds == {"Poisson"}, places)


def with_errors(
    name: str, kind: str, sigmas: Array, poisson: bool, places: Mapping[str, int]
) -> ParameterSet:
    """Return a parameter for each bin with a relative error, as a Gaussian or as a count; without an error it is fixed."""
    fixed = sigmas == 0
    if not poisson:
        ones = np.ones(len(sigmas))
        return per_bin(name, kind, LOWEST, fixed, auxdata=ones, sigmas=sigmas, places=places)
    factors = np.divide(1.0, sigmas**2, out=np.zeros(len(sigmas)), where=~fixed)
    return per_bin(name, kind, LOWEST, fixed, auxdata=factors, factors=factors, places=places)


def check_factors(where: str, factors: Array, known: Flags) -> None:
    """Refuse errors that are so small or so large that numbers cannot hold their squares."""
    if np.any(known & ~((factors > 1 / LARGEST) & (factors < LARGEST**2))):
        raise DataError(f"{where}: 'data' must be errors of the size of the contents, which they are not")


def configured(sets: Mapping[str, ParameterSet], config: Any) -> dict[str, ParameterSet]:
    """Change parameters as a measurement says, and put them one after the other; names that no modifier has do not matter."""
    known, seen, first = dict(sets), set[str](), 0
    parameters = config.get("parameters", ())
    if not isinstance(parameters, list | tuple):
        raise DataError(f"measurement: 'parameters' must be a list, got {parameters!r:.60}")
    for spec in parameters:
        name = text("measurement: parameter", spec, "name")
        if name in seen:
            raise DataError(f"measurement: parameter '{name}': is configured more than once")
        seen.add(name)
        if name in known:
            known[name] = changed(known[name], spec)
    for name, one in known.items():
        if one.kind == "lumi" and any(some is None or not len(some) for some in (one.auxdata, one.sigmas)):
            raise DataError(
                f"parameter '{name}': the measurement must configure auxdata and sigmas of the luminosity"
            )
        known[name] = replace(one, first=first)
        first += len(one.inits)
    if not first:
        raise DataError("workspace: has no modifier, so that there is no parameter")
    return known


def changed(one: ParameterSet, spec: Mapping[str, Any]) -> ParameterSet:
    """Return parameters with other starts, limits and constraints."""
    where, size = f"measurement: parameter '{one.name}'", len(one.fixed)
    if wrong := [key for key in spec if key not in (*CONFIGURABLE, "name")]:
        raise DataError(f"{where}: '{wrong[0]}' is not known; {suggest(wrong[0], CONFIGURABLE)}")
    changes: dict[str, Any] = {}
    for key in ("inits", "auxdata", "sigmas", "factors"):
        if key not in spec:
            continue
        if getattr(one, key) is None or (key == "sigmas" and one.kind == "alpha"):
            raise DataError(f"{where}: {one.kind} has no '{key}'; leave it out")
        changes[key] = numbers(where, spec, key)
        if len(changes[key]) != size:
            raise DataError(f"{where}: '{key}' must have {size} numbers, got {len(changes[key])}")
        if key in ("sigmas", "factors") and not np.all(changes[key] > 1 / LARGEST):
            raise DataError(f"{where}: '{key}' must be positive, got {changes[key].min():g}")
    if "bounds" in spec:
        pairs = spec["bounds"] if isinstance(spec["bounds"], list | tuple) else [spec["bounds"]]
        changes["bounds"] = np.array([limits(where, pair) for pair in pairs]).reshape(-1, 2)
        if len(pairs) != size:
            raise DataError(f"{where}: 'bounds' must have {size} pairs, got {len(pairs)}")
    if "fixed" in spec:
        flags = spec["fixed"] if isinstance(spec["fixed"], list | tuple) else [spec["fixed"]] * size
        if not all(isinstance(flag, bool) for flag in flags) or len(flags) != size:
            raise DataError(f"{where}: 'fixed' must be true or false, got {spec['fixed']!r:.60}")
        changes["fixed"] = np.array(flags)
    if one.kind == "lumi" and "auxdata" in changes and "sigmas" in changes:
        changes = {
            "inits": changes["auxdata"],
            "bounds": np.array([[0.0, 10 * changes["auxdata"][0]]]),
        } | changes
    return replace(one, **changes)


def limits(where: str, pair: Any) -> Array:
    """Return two numbers in ascending order."""
    ends = numbers(where, {"bounds": pair}, "bounds")
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise DataError(f"{where}: 'bounds' must be pairs of low and high, got {pair!r:.60}")
    return ends
