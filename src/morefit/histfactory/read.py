"""``mf.histfactory.read``: the likelihood of a HistFactory workspace; nothing in it is executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from morefit.arrays import Array
from morefit.errors import DataError, OptionError
from morefit.expr import ZERO
from morefit.histfactory.hs3 import translated
from morefit.histfactory.parameters import ParameterSet, configured, parameter_sets
from morefit.histfactory.workspace import (
    Channel,
    check_unique,
    chosen_config,
    listed,
    load,
    numbers,
    observed_counts,
    text,
)
from morefit.likelihood.expected_counts import ExpectedCounts
from morefit.likelihood.histfactory import HistFactoryLikelihood, HistFactoryModel
from morefit.likelihood.table import COUNT
from morefit.resources import check_memory
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences
from morefit.text.suggest import suggest

CODES = {"normsys": ("code4", "code1"), "histosys": ("code4p", "code0")}


@in_sentences
def read(
    workspace: Mapping[str, Any] | str | Path,
    measurement: str | None = None,
    *,
    normsys: Literal["code4", "code1"] | None = None,
    histosys: Literal["code4p", "code0"] | None = None,
    backend: str | Backend = "cpu",
) -> HistFactoryLikelihood:
    """Return the likelihood of a HistFactory workspace: a file of JSON as pyhf or RooFit (HS3) writes it, or its content.

    Parameters
    ----------
    measurement : its name, in HS3 that of an analysis; by default the first, in HS3 the first that is not of Asimov data.
    normsys, histosys : how to interpolate between variations: by polynomials between -1 and 1 ("code4", "code4p"), or with a
        kink at 0 ("code1", "code0"); by default as a file of HS3 has it, else by polynomials.

    Parameters have the names of pyhf, such as ``mu`` and ``staterror_SR[0]``, with ``_`` for spaces; channels are sorted by name.
    """
    content = load(workspace)
    own: Mapping[str, str | None] = {}
    if "distributions" in content and "channels" not in content:  # a file of the HS3 standard
        content, own = translated(content, measurement)
        measurement = None
    smooth = {}
    for name, code in (("normsys", normsys), ("histosys", histosys)):
        chosen = code or own.get(name) or CODES[name][0]
        if chosen not in CODES[name]:
            choices = ", ".join(map(repr, CODES[name]))
            raise OptionError(f"histfactory: {name} must be one of {choices}, got {code!r}")
        smooth[name] = chosen == CODES[name][0]
    config = chosen_config(listed("workspace", content, "measurements"), measurement)
    channels = sorted(map(Channel.of, listed("workspace", content, "channels")), key=lambda c: c.name)
    check_unique("workspace: channels", [c.name for c in channels])
    observations = listed("workspace", content, "observations")
    seen = [text("observation", one, "name") for one in observations]
    check_unique("workspace: observations", seen)
    observed = {
        name: numbers(f"observation '{name}'", one, "data")
        for name, one in zip(seen, observations, strict=True)
    }
    counts = [observed_counts(c, observed) for c in channels]
    sets = configured(parameter_sets(channels), config)
    parameters = tuple(p for one in sets.values() for p in one.parameters())
    names = [p.name for p in parameters]
    check_unique("workspace: parameters", names)
    poi = text("measurement: config", config, "poi").replace(" ", "_")
    if poi and poi not in names:
        raise DataError(f"measurement: poi '{poi}' is no parameter; {suggest(poi, names)}")
    model = HistFactoryModel(
        formula=ZERO,
        table=(COUNT,),
        expected=ZERO,
        all_parameters=parameters,
        channels={c.name: tuple(s.name for s in c.samples) for c in channels},
        poi=poi,
        counts=arrays_of(channels, sets, smooth["normsys"], smooth["histosys"]),
    )
    constraints = tuple(c for one in sets.values() for c in one.constraints())
    return HistFactoryLikelihood.of(model, np.concatenate(counts), constraints, backend)


def arrays_of(
    channels: Sequence[Channel], sets: Mapping[str, ParameterSet], smooth_norms: bool, smooth_shapes: bool
) -> ExpectedCounts:
    """Return the arrays that expected counts are computed from."""
    used = [
        (c, s, m)
        for c, channel in enumerate(channels)
        for s, sample in enumerate(channel.samples)
        for m in sample.modifiers
    ]
    ends = np.cumsum([0, *(c.size for c in channels)])
    bins, most = int(ends[-1]), max(len(c.samples) for c in channels)
    norms, shapes, factors = (
        {name: k for k, name in enumerate(dict.fromkeys(m.name for *_, m in used if m.kind in kinds))}
        for kinds in (("normsys",), ("histosys",), ("normfactor", "lumi"))
    )
    check_memory("workspace: histograms of all variations", 64.0 * bins * most * (1 + len(shapes)))
    nominal, logs = np.zeros((bins, most)), np.zeros((2, len(norms), len(channels) * most))
    shifts = np.zeros((2, len(shapes), bins, most))
    multiplied = np.zeros((len(factors), len(channels) * most), np.bool_)
    groups: dict[tuple[int, int], Array] = {}
    for c, channel in enumerate(channels):
        for s, sample in enumerate(channel.samples):
            nominal[ends[c] : ends[c + 1], s] = sample.nominal
    for c, s, m in used:
        own, cell = slice(ends[c], ends[c + 1]), c * most + s
        if m.kind == "normsys":
            logs[:, norms[m.name], cell] = [np.log(factor[0]) for factor in m.data]
        elif m.kind == "histosys":
            up, down = m.data[0] - nominal[own, s], nominal[own, s] - m.data[1]
            shifts[:, shapes[m.name], own, s] = (up + down) / 2, (up - down) / 16
        elif m.kind in ("normfactor", "lumi"):
            multiplied[factors[m.name], cell] = True
        else:
            add_groups(groups, sets[m.name].place(channels[c].name), own, s, most)
    keys = sorted(groups)
    return ExpectedCounts(
        parameters=sum(len(one.inits) for one in sets.values()),
        channels=tuple(slice(low, high) for low, high in pairwise(ends.tolist())),
        nominal=nominal,
        factors=np.array([sets[name].first for name in factors], np.int64),
        factor_samples=multiplied,
        norms=np.array([sets[name].first for name in norms], np.int64),
        norm_logs=logs,
        shapes=np.array([sets[name].first for name in shapes], np.int64),
        shape_shifts=shifts,
        group_parameters=np.array([p for p, _ in keys], np.int64),
        group_bins=np.array([b for _, b in keys], np.int64),
        group_samples=np.array([groups[key] for key in keys], np.bool_).reshape(-1, most),
        smooth_norms=smooth_norms,
        smooth_shapes=smooth_shapes,
    )


def add_groups(groups: dict[tuple[int, int], Array], first: int, bins: slice, sample: int, most: int) -> None:
    """Let parameters from ``first`` on multiply one sample in some bins, one parameter for each."""
    for k, b in enumerate(range(bins.start, bins.stop)):
        groups.setdefault((first + k, b), np.zeros(most, np.bool_))[sample] = True
