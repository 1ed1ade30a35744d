"""Records of a HistFactory workspace: channels, samples and modifiers, checked; errors say where a file is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.text.suggest import suggest
from morefit.validate import as_number

PER_BIN = ("shapefactor", "shapesys", "staterror")  # modifiers with a parameter for each bin
LARGEST = 1e75  # squares of quotients of such numbers are finite
KINDS = ("histosys", "lumi", "normfactor", "normsys", *PER_BIN)


def load(workspace: Any) -> Mapping[str, Any]:
    """Return the content of a workspace."""
    if isinstance(workspace, str | Path):
        content = str(workspace)
        try:
            if not content.lstrip().startswith("{"):
                content = Path(workspace).read_text(encoding="utf-8-sig")
            workspace = json.loads(content, object_pairs_hook=without_repetition)
        except DataError:
            raise
        except (json.JSONDecodeError, RecursionError) as error:
            raise DataError(f"workspace '{workspace!s:.60}': is no JSON, {error}") from None
        except (OSError, ValueError) as error:
            raise DataError(f"workspace '{workspace!s:.60}': cannot be read, {error}") from None
    if not isinstance(workspace, Mapping):
        raise DataError(f"workspace: must be an object with channels, got {type(workspace).__name__}")
    if "patches" in workspace and "channels" not in workspace:
        raise DataError(
            "workspace: is a set of patches; apply one to its workspace first, as pyhf.PatchSet does"
        )
    return workspace


def without_repetition(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a file; JSON allows a key twice, and readers would take one of them in silence."""
    known = dict(pairs)
    if len(known) < len(pairs):
        check_unique("workspace: keys of an object", [key for key, _ in pairs])
    return known


def entry(what: str, parent: Any, key: str) -> Any:
    """Return an entry that must be there."""
    if not isinstance(parent, Mapping) or key not in parent:
        model = (
            key in ("observations", "measurements") and isinstance(parent, Mapping) and "channels" in parent
        )
        advice = "; to its channels belong observations and measurements, as in pyhf.Workspace" * model
        raise DataError(f"{what}: needs '{key}', got {parent!r:.60}{advice}")
    return parent[key]


def text(what: str, parent: Any, key: str) -> str:
    name = entry(what, parent, key)
    if not isinstance(name, str):
        raise DataError(f"{what}: '{key}' must be text, got {name!r:.60}")
    return name


def listed(what: str, parent: Any, key: str) -> Sequence[Any]:
    """Return a list that must not be empty."""
    items = entry(what, parent, key)
    if not isinstance(items, list | tuple) or not items:
        raise DataError(f"{what}: '{key}' must be a list that is not empty, got {items!r:.60}")
    return items


def numbers(what: str, parent: Any, key: str, size: int | None = None) -> Array:
    """Return a list of finite numbers."""
    items = [as_number(item) for item in listed(what, parent, key)]
    values = np.array([np.nan if item is None else item for item in items])
    if not np.isfinite(values).all():
        wrong = parent[key][int(np.flatnonzero(~np.isfinite(values))[0])]
        raise DataError(f"{what}: '{key}' must be finite numbers, got {wrong!r:.60}")
    if np.any(np.abs(values) > LARGEST):
        raise DataError(
            f"{what}: '{key}' must be numbers up to {LARGEST:g}, got {values[np.argmax(np.abs(values))]:g}"
        )
    if size is not None and len(values) != size:
        raise DataError(f"{what}: '{key}' must have {size} numbers, one for each bin, got {len(values)}")
    return values


def check_unique(what: str, names: Sequence[str]) -> None:
    if repeated := {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ():
        raise DataError(f"{what} must have different names, got '{min(repeated):.60}' more than once")


def chosen_config(measurements: Sequence[Any], name: str | None) -> Any:
    """Return the configuration of a measurement."""
    names = [text("measurement", one, "name") for one in measurements]
    if name is None:
        name = names[0]
    if name not in names:
        raise DataError(f"measurement '{name}': not in the workspace; {suggest(name, names)}")
    config = entry(f"measurement '{name}'", measurements[names.index(name)], "config")
    if not isinstance(config, Mapping):
        raise DataError(f"measurement '{name}': 'config' must be an object, got {config!r:.60}")
    return config


@dataclass(frozen=True, eq=False)
class Modifier:
    """What changes a sample: ``data`` are two numbers, two histograms, one, or nothing."""

    kind: str
    name: str
    where: str  # for messages
    data: tuple[Array, ...]
    constraint: str | None = None  # of errors in bins, "Gauss" or "Poisson"; None for that of pyhf
    parameters: tuple[str, ...] = ()  # of bins; pyhf numbers them

    @classmethod
    def of(cls, spec: Any, sample: str, nominal: Array) -> Modifier:
        """Read a modifier of a sample."""
        name, kind = text(f"{sample}: modifier", spec, "name"), text(f"{sample}: modifier", spec, "type")
        where, size = f"{sample}: {kind:.60} '{name:.60}'", len(nominal)
        if kind not in KINDS:
            raise DataError(f"{where}: type is not known; {suggest(kind, KINDS)}")
        data: tuple[Array, ...] = ()
        if kind == "normsys":
            factors = entry(where, spec, "data")
            data = tuple(numbers(where, {key: [entry(where, factors, key)]}, key) for key in ("hi", "lo"))
            if not all(factor[0] > 1 / LARGEST for factor in data):
                raise DataError(f"{where}: 'hi' and 'lo' must be positive, got {factors!r:.60}")
        elif kind == "histosys":
            shapes = entry(where, spec, "data")
            data = tuple(numbers(where, shapes, key, size) for key in ("hi_data", "lo_data"))
        elif kind in ("shapesys", "staterror"):
            data = (numbers(where, spec, "data", size),)
            if np.any(data[0] < 0):
                raise DataError(f"{where}: 'data' must not be negative, got {data[0].min():g}")
        parameters = spec.get("parameters", ())
        if not isinstance(parameters, list | tuple) or not all(isinstance(p, str) for p in parameters):
            raise DataError(f"{where}: 'parameters' must be names, got {parameters!r:.60}")
        return cls(kind, name, where, data, constraint=spec.get("constraint"), parameters=tuple(parameters))


@dataclass(frozen=True, eq=False)
class Sample:
    """A histogram of a channel, and what changes it."""

    name: str
    nominal: Array
    modifiers: tuple[Modifier, ...]

    @classmethod
    def of(cls, spec: Any, channel: str) -> Sample:
        """Read a sample of a channel."""
        where = f"{channel}: sample '{text(f'{channel}: sample', spec, 'name'):.60}'"
        nominal, modifiers = numbers(where, spec, "data"), entry(where, spec, "modifiers")
        if not isinstance(modifiers, list | tuple):
            raise DataError(f"{where}: 'modifiers' must be a list, got {modifiers!r:.60}")
        each = tuple(Modifier.of(one, where, nominal) for one in modifiers)
        check_unique(f"{where}: modifiers of a kind", [f"{m.kind} {m.name}" for m in each])
        return cls(spec["name"], nominal, each)


@dataclass(frozen=True, eq=False)
class Channel:
    """Some bins, and the samples that make up what they expect."""

    name: str
    samples: tuple[Sample, ...]

    @classmethod
    def of(cls, spec: Any) -> Channel:
        """Read a channel."""
        where = f"channel '{text('channel', spec, 'name'):.60}'"
        samples = tuple(Sample.of(one, where) for one in listed(where, spec, "samples"))
        check_unique(f"{where}: samples", [s.name for s in samples])
        if len(sizes := {len(s.nominal) for s in samples}) > 1:
            raise DataError(f"{where}: samples must have the same number of bins, got {sorted(sizes)}")
        return cls(spec["name"], samples)

    @property
    def size(self) -> int:
        return len(self.samples[0].nominal)


def observed_counts(channel: Channel, observed: Mapping[str, Array]) -> Array:
    """Return what was counted in a channel."""
    counts = observed.get(channel.name)
    if counts is None:
        raise DataError(f"channel '{channel.name:.60}': has no observation")
    if len(counts) != channel.size or np.any(counts < 0):
        got = f"{len(counts)} numbers" if len(counts) != channel.size else f"{counts.min():g}"
        raise DataError(
            f"observation '{channel.name}': must have {channel.size} counts, none negative, got {got}"
        )
    return counts
