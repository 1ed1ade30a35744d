"""HistFactory models in files of the HS3 standard, which RooFit writes: translated into workspaces as pyhf writes them.

Of the standard, distributions of the type ``histfactory_dist`` are read, with the data, domains and start values of one
analysis. (HEP Statistics Serialization Standard, https://github.com/hep-statistics-serialization-standard)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from morefit.errors import DataError
from morefit.histfactory.workspace import entry, listed, numbers, text
from morefit.text.suggest import suggest

THRESHOLD = 0.01  # relative errors of simulations below it do not count, if a channel has no other
CONSTRAINTS = ("Gauss", "Poisson")
CONSTRAINED = ("normsys", "histosys", "shapesys", "staterror")


def is_hs3(content: Mapping[str, Any]) -> bool:
    """Return whether a file is one of the standard rather than one of pyhf."""
    return "distributions" in content and "channels" not in content


def translated(content: Mapping[str, Any], analysis: str | None) -> dict[str, Any]:
    """Return the workspace of one analysis, by default the first, as pyhf would write it."""
    picked = chosen_entry("analysis", content, "analyses", analysis)
    known = {key: by_name(content, key) for key in ("distributions", "data", "likelihoods")}
    channels, observations = [], []
    for likelihood in likelihoods_of(picked, known["likelihoods"]):
        where = f"likelihood '{likelihood.get('name', '')}'"
        pairs = [strings(where, likelihood, *keys) for keys in (("distributions", "dist"), ("data", "obs"))]
        if len(pairs[0]) != len(pairs[1]):
            raise DataError(
                f"{where}: must have data for each distribution, got {len(pairs[1])} of {len(pairs[0])}"
            )
        for distribution, data in zip(*pairs, strict=True):
            name = distribution.removeprefix("model_")
            channels.append(
                channel_of(name, entry_named("distribution", known["distributions"], distribution))
            )
            counts = numbers(f"data '{data}'", entry_named("data", known["data"], data), "contents")
            observations.append({"name": name, "data": counts.tolist()})
    pois = strings("analysis", picked, "parameters_of_interest", "pois", missing=("",))
    config = {"poi": pois[0] if pois else "", "parameters": list(configurations(content))}
    return {
        "channels": channels,
        "observations": observations,
        "measurements": [{"name": picked["name"], "config": config}],
    }


def by_name(content: Mapping[str, Any], key: str) -> dict[str, Mapping[str, Any]]:
    """Return entries by name, which are a list, or a mapping in older files."""
    entries = entry("workspace", content, key)
    if isinstance(entries, Mapping):
        entries = [{"name": name, **one} for name, one in entries.items() if isinstance(one, Mapping)]
    if not isinstance(entries, list | tuple):
        raise DataError(f"workspace: '{key}' must be a list, got {entries!r:.60}")
    return {text(key, one, "name"): one for one in entries}


def chosen_entry(what: str, content: Mapping[str, Any], key: str, name: str | None) -> Mapping[str, Any]:
    """Return the entry of a name, or the first."""
    entries = by_name(content, key)
    if not entries:
        raise DataError(f"workspace: '{key}' must not be empty")
    return entry_named(what, entries, next(iter(entries)) if name is None else name)


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
    """Go through the likelihoods of an analysis; those with constraints of their own are refused."""
    for name in strings(f"analysis '{analysis['name']}'", analysis, "likelihood", "likelihoods"):
        likelihood = entry_named("likelihood", known, name)
        if likelihood.get("aux_distributions"):
            raise DataError(
                f"likelihood '{name}': 'aux_distributions' are not read; only constraints of modifiers are"
            )
        yield likelihood


def channel_of(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a channel as pyhf would write it."""
    where, kind = f"channel '{name}'", text(f"channel '{name}'", spec, "type")
    if kind != "histfactory_dist":
        raise DataError(f"{where}: only distributions of the type 'histfactory_dist' are read, got {kind!r}")
    errors = spec.get("statError", {})
    samples = [
        sample_of(one, f"{where}: sample '{text(f'{where}: sample', one, 'name')}'", errors.get("constraint"))
        for one in listed(where, spec, "samples")
    ]
    drop_small_errors(samples, float(errors.get("relThreshold", THRESHOLD)))
    return {"name": name, "samples": samples}


def sample_of(spec: Mapping[str, Any], where: str, constraint: str | None) -> dict[str, Any]:
    """Return a sample as pyhf would write it."""
    histogram = entry(where, spec, "data")
    contents = numbers(where, histogram, "contents")
    modifiers = [
        modifier_of(one, where, histogram, constraint or "Poisson") for one in spec.get("modifiers", ())
    ]
    return {"name": spec["name"], "data": contents.tolist(), "modifiers": modifiers}


def modifier_of(spec: Mapping[str, Any], sample: str, histogram: Any, constraint: str) -> dict[str, Any]:
    """Return a modifier as pyhf would write it, and the kind of its constraint."""
    kind, name = text(f"{sample}: modifier", spec, "type"), text(f"{sample}: modifier", spec, "name")
    where, size = f"{sample}: {kind} '{name}'", len(histogram["contents"])
    read = {"type": kind, "name": spec.get("parameter", name), "data": spec.get("data")}
    if "constraint_name" in spec or (kind not in CONSTRAINED and spec.get("constraint")):
        raise DataError(f"{where}: constraints that are distributions of their own are not read")
    if kind in CONSTRAINED:
        usual = constraint if kind == "staterror" else "Poisson" if kind == "shapesys" else "Gauss"
        read["constraint"] = spec.get("constraint", usual)
        if read["constraint"] not in (CONSTRAINTS if kind in ("staterror", "shapesys") else CONSTRAINTS[:1]):
            raise DataError(f"{where}: constraint {read['constraint']!r} is not known")
    if kind == "histosys":
        ends = {end: entry(where, spec["data"], end) for end in ("hi", "lo")}
        read["data"] = {
            f"{end}_data": numbers(where, one, "contents", size).tolist() for end, one in ends.items()
        }
    elif kind == "shapesys":  # errors are relative ones
        read["data"] = (numbers(where, spec["data"], "vals", size) * np.array(histogram["contents"])).tolist()
    elif kind == "staterror":
        read["data"] = numbers(where, histogram, "errors", size).tolist()
    return read


def drop_small_errors(samples: Sequence[Mapping[str, Any]], threshold: float) -> None:
    """Set the errors of simulations to zero in bins where all of them together are below a relative threshold."""
    used = [(s, m) for s in samples for m in s["modifiers"] if m["type"] == "staterror"]
    if not used:
        return
    totals = np.sum([s["data"] for s, _ in used], axis=0)
    small = np.sqrt(np.sum(np.square([m["data"] for _, m in used]), axis=0)) <= threshold * totals
    for _, m in used:
        m["data"] = np.where(small, 0.0, m["data"]).tolist()


def configurations(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Go through the limits and start values of parameters, as a measurement of pyhf would configure them."""
    known: dict[str, dict[str, Any]] = {}
    for domain in by_name(content, "domains").values() if "domains" in content else ():
        for one in domain.get("axes", domain.get("variables", ())):
            name = text("domain", one, "name")
            known.setdefault(name, {})["bounds"] = [[entry("domain", one, end) for end in ("min", "max")]]
    points = by_name(content, "parameter_points") if "parameter_points" in content else {}
    values = points.get("default_values", next(iter(points.values()), {}))
    listed_values = values.get("parameters") or [
        {"name": name, **one} for name, one in values.items() if isinstance(one, Mapping)
    ]
    for one in listed_values:
        name = text("parameter_points", one, "name")
        if one.get("const") and name.startswith("gamma_"):
            raise DataError(f"parameter '{name}': is constant, which is not read of parameters of bins")
        known.setdefault(name, {}).update(
            {"inits": [entry("parameter_points", one, "value")], "fixed": bool(one.get("const", False))}
        )
    return ({"name": name, **one} for name, one in known.items())
