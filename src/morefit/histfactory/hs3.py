"""HistFactory models in files of the HS3 standard, which RooFit writes: translated, with their parameters, into workspaces as pyhf writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.histfactory.parameters import LOWEST
from morefit.histfactory.workspace import entry, listed, numbers, text
from morefit.text.suggest import suggest
from morefit.validate import as_number

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


THRESHOLD = 0.01  # relative errors of simulations below it do not count, if a channel has no other
CONSTRAINTS = ("Gauss", "Poisson")
PER_BIN = ("shapesys", "staterror", "shapefactor")
# the interpolations of RooFit that are those of pyhf; 4 and 5 are the same, and so is an old file that says nothing
NORMSYS_CODES = {None: "code4", 4: "code4", 5: "code4", 1: "code1"}
HISTOSYS_CODES = {None: "code4p", 4: "code4p"}
EXPECTED = "asimovData"  # what RooFit calls data that are expected, which it lists before those observed


def translated(
    content: Mapping[str, Any], analysis: str | None
) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Return the workspace of one analysis, by default the first of observed data, as pyhf would write it.

    The second are the interpolations of its kinds of modifiers.
    """
    picked = chosen_analysis(by_name(content, "analyses"), analysis)
    known = {key: by_name(content, key) for key in ("distributions", "data", "likelihoods")}
    optional = {
        key: by_name(content, key) if key in content else {} for key in ("domains", "parameter_points")
    }
    reader = Reader(known["distributions"], Constrained(parameter_values(optional["parameter_points"])))
    channels, observations = [], []
    for likelihood in likelihoods_of(picked, known["likelihoods"]):
        where = f"likelihood '{likelihood.get('name', '')}'"
        pairs = [strings(where, likelihood, *keys) for keys in (("distributions", "dist"), ("data", "obs"))]
        if len(pairs[0]) != len(pairs[1]):
            raise DataError(
                f"{where}: must have data for each distribution, got {len(pairs[1])} of {len(pairs[0])}"
            )
        reader.read_constraints(where, strings(where, likelihood, "aux_distributions", missing=()))
        for distribution, data in zip(*pairs, strict=True):
            name = distribution.removeprefix("model_")
            channels.append(
                reader.channel(name, entry_named("distribution", known["distributions"], distribution))
            )
            counts = numbers(f"data '{data}'", entry_named("data", known["data"], data), "contents")
            observations.append({"name": name, "data": counts.tolist()})
    pois = strings("analysis", picked, "parameters_of_interest", "pois", missing=("",))
    parameters = configurations(reader.constrained, limits_of(optional["domains"]))
    config = {"poi": pois[0] if pois else "", "parameters": list(parameters)}
    space = {
        "channels": channels,
        "observations": observations,
        "measurements": [{"name": picked["name"], "config": config}],
    }
    return space, {kind: reader.code(kind) for kind in ("normsys", "histosys")}


def by_name(content: Mapping[str, Any], key: str) -> dict[str, Mapping[str, Any]]:
    """Return entries by name, which are a list, or a mapping in older files."""
    entries = entry("workspace", content, key)
    if isinstance(entries, Mapping):
        entries = [{"name": name, **one} for name, one in entries.items() if isinstance(one, Mapping)]
    if not isinstance(entries, list | tuple):
        raise DataError(f"workspace: '{key}' must be a list, got {entries!r:.60}")
    return {text(key, one, "name"): one for one in entries}


def chosen_analysis(analyses: Mapping[str, Mapping[str, Any]], name: str | None) -> Mapping[str, Any]:
    """Return the analysis of a name, or the first that is not about expected data."""
    if not analyses:
        raise DataError("workspace: 'analyses' must not be empty")
    if name is None:
        name = next((one for one in analyses if EXPECTED not in one), next(iter(analyses)))
    return entry_named("analysis", analyses, name)


def entry_named(what: str, entries: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    if name not in entries:
        raise DataError(f"{what} '{name}': not in the workspace; {suggest(name, entries)}")
    return entries[name]


def strings(
    what: str, parent: Mapping[str, Any], *keys: str, missing: Sequence[str] | None = None
) -> list[str]:
    """Return the names that an entry lists under one of several keys; a single one need be no list."""
    key = next((key for key in keys if key in parent), None)
    if key is None:
        if missing is not None:
            return list(missing)
        raise DataError(f"{what}: needs '{keys[0]}', got {parent!r:.60}")
    names = [parent[key]] if isinstance(parent[key], str) else parent[key]
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{what}: '{key}' must be names, got {names!r:.60}")
    return list(names)


def likelihoods_of(analysis: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Go through the likelihoods of an analysis."""
    for name in strings(f"analysis '{analysis['name']}'", analysis, "likelihood", "likelihoods"):
        yield entry_named("likelihood", known, name)


@dataclass(eq=False)
class Reader:
    """Reads the channels of an analysis, and remembers the parameters and interpolations of their modifiers."""

    distributions: Mapping[str, Mapping[str, Any]]
    constrained: Constrained
    auxiliary: dict[str, str] = field(default_factory=dict)  # names of constraints, by parameter
    codes: dict[str, set[str]] = field(default_factory=dict)  # by the kind of modifiers

    def read_constraints(self, where: str, names: Sequence[str]) -> None:
        """Take distributions that constrain parameters without a modifier mentioning them."""
        for name in names:
            spec = entry_named("distribution", self.distributions, name)
            free = [one for one in (spec.get("x"), spec.get("mean")) if isinstance(one, str)]
            variable = [one for one in free if not self.constrained.values.get(one, {}).get("const")]
            if len(variable) != 1:
                raise DataError(f"{where}: '{name}' must constrain one parameter, got {variable}")
            self.auxiliary[variable[0]] = name

    def channel(self, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return a channel as pyhf would write it."""
        where, kind = f"channel '{name}'", text(f"channel '{name}'", spec, "type")
        if kind != "histfactory_dist":
            raise DataError(
                f"{where}: only distributions of the type 'histfactory_dist' are read, got {kind!r}"
            )
        errors = spec.get("statError", {})
        usual = errors.get("constraint") or "Poisson"
        samples = [
            self.sample(one, f"{where}: sample '{text(f'{where}: sample', one, 'name')}'", usual)
            for one in listed(where, spec, "samples")
        ]
        drop_small_errors(samples, float(errors.get("relThreshold", THRESHOLD)))
        return {"name": name, "samples": samples}

    def sample(self, spec: Mapping[str, Any], where: str, usual: str) -> dict[str, Any]:
        """Return a sample as pyhf would write it."""
        histogram = entry(where, spec, "data")
        contents = numbers(where, histogram, "contents")
        modifiers = [self.modifier(one, where, histogram, usual) for one in spec.get("modifiers", ())]
        return {"name": spec["name"], "data": contents.tolist(), "modifiers": modifiers}

    def modifier(self, spec: Mapping[str, Any], sample: str, histogram: Any, usual: str) -> dict[str, Any]:
        """Return a modifier as pyhf would write it, with the kind of its constraint and the names of its parameters."""
        kind, name = text(f"{sample}: modifier", spec, "type"), text(f"{sample}: modifier", spec, "name")
        where, size = f"{sample}: {kind} '{name}'", len(histogram["contents"])
        if kind in PER_BIN:
            return self.bins(where, spec, histogram, usual)
        parameter = spec.get("parameter", name)
        read = {"type": kind, "name": parameter, "data": spec.get("data")}
        constraint = spec.get("constraint_name", self.auxiliary.get(parameter))
        if kind == "normfactor" and (constraint or spec.get("constraint")):
            if not constraint:
                raise DataError(f"{where}: constraint {spec['constraint']!r} is not known")
            read["type"] = "lumi"  # a factor with a Gaussian constraint
            self.constrained.factors.add(parameter)
        if constraint:
            spec_there = entry_named("distribution", self.distributions, constraint)
            self.constrained.constrain(f"{where}: constraint '{constraint}'", spec_there, parameter)
        elif kind != "normfactor" and spec.get("constraint", "Gauss") != "Gauss":
            raise DataError(f"{where}: constraint {spec['constraint']!r} is not known")
        if kind in ("normsys", "histosys"):
            self.interpolate(where, spec, kind)
            if self.constrained.measured.get(parameter, (0.0, 1.0))[1] != 1:
                raise DataError(f"{where}: constraint '{constraint}' must have a sigma of 1")
        if kind == "histosys":
            ends = {end: entry(where, spec["data"], end) for end in ("hi", "lo")}
            read["data"] = {
                f"{end}_data": numbers(where, one, "contents", size).tolist() for end, one in ends.items()
            }
        return read

    def interpolate(self, where: str, spec: Mapping[str, Any], kind: str) -> None:
        """Remember how a variation is interpolated."""
        known: Mapping[Any, str] = NORMSYS_CODES if kind == "normsys" else HISTOSYS_CODES
        code = spec.get("interpolation")
        if not isinstance(code, int | None) or code not in known:
            raise DataError(f"{where}: interpolation {code!r:.60} is not read; only {list(known)[1:]} are")
        self.codes.setdefault(kind, set()).add(known[code])

    def code(self, kind: str) -> str | None:
        """Return the interpolation of all modifiers of a kind, None if there are none."""
        codes = sorted(self.codes.get(kind, ()))
        if len(codes) > 1:
            raise DataError(f"workspace: all modifiers {kind} must be interpolated alike, got {codes}")
        return codes[0] if codes else None

    def bins(self, where: str, spec: Mapping[str, Any], histogram: Any, usual: str) -> dict[str, Any]:
        """Return a modifier with a parameter for each bin."""
        kind, size = spec["type"], len(histogram["contents"])
        constraint = spec.get("constraint", spec.get("constraint_type"))
        read = {"type": kind, "name": spec.get("parameter", spec["name"]), "data": spec.get("data")}
        if kind != "shapefactor":
            read["constraint"] = constraint or (usual if kind == "staterror" else "Poisson")
            if read["constraint"] not in CONSTRAINTS:
                raise DataError(f"{where}: constraint {read['constraint']!r} is not known")
        if kind == "shapesys":  # errors are relative ones
            read["data"] = (
                numbers(where, spec["data"], "vals", size) * np.array(histogram["contents"])
            ).tolist()
        elif kind == "staterror":
            read["data"] = numbers(where, histogram, "errors", size).tolist()
        if "constraint_name" in spec:
            raise DataError(f"{where}: constraints of bins that are distributions of their own are not read")
        if names := strings(where, spec, "parameters", missing=()):
            read |= {"name": self.constrained.name_bins(where, names, size), "parameters": names}
            if kind == "shapesys" and not any(read["data"]):  # as RooFit writes free factors of bins
                read = {"type": "shapefactor", "name": read["name"], "data": None, "parameters": names}
            if read["type"] == "shapefactor":
                self.constrained.free.add(read["name"])
        return read


def drop_small_errors(samples: Sequence[Mapping[str, Any]], threshold: float) -> None:
    """Set the errors of simulations to zero in bins where all of them together are below a relative threshold."""
    used = [
        (s, m)
        for s in samples
        for m in s["modifiers"]
        if m["type"] == "staterror" and "parameters" not in m  # which the file says to be constant
    ]
    if not used:
        return
    totals = np.sum([s["data"] for s, _ in used], axis=0)
    small = np.sqrt(np.sum(np.square([m["data"] for _, m in used]), axis=0)) <= threshold * totals
    for _, m in used:
        m["data"] = np.where(small, 0.0, m["data"]).tolist()
