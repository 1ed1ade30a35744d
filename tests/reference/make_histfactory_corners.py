"""Make histfactory_corners.json: the numbers of pyhf for small workspaces with unusual combinations of modifiers.

python tests/reference/make_histfactory_corners.py [NAME ...]        # with pyhf, jax and numpy, not morefit
"""

from __future__ import annotations

import json
from pathlib import Path
from sys import argv

import jax
import numpy as np
import pyhf
from make_histfactory import Polished

MU, LUMI = ({"name": n, "type": t, "data": None} for n, t in (("mu", "normfactor"), ("lumi", "lumi")))


def free(name: str, kind: str = "normfactor") -> dict:
    return {"name": name, "type": kind, "data": None}


def norm(name: str, hi: float = 1.1, lo: float = 0.92) -> dict:
    return {"name": name, "type": "normsys", "data": {"hi": hi, "lo": lo}}


def shape(name: str, hi: list, lo: list) -> dict:
    return {"name": name, "type": "histosys", "data": {"hi_data": hi, "lo_data": lo}}


def errors(name: str, data: list, kind: str = "staterror") -> dict:
    return {"name": name, "type": kind, "data": data}


def space(channels: dict, observed: dict, *parameters: dict, poi: str = "mu") -> dict:
    """Return a workspace: samples of channels are (contents, modifiers)."""
    return {
        "channels": [
            {
                "name": name,
                "samples": [
                    {"name": f"s{k}", "data": data, "modifiers": list(modifiers)}
                    for k, (data, *modifiers) in enumerate(samples)
                ],
            }
            for name, samples in channels.items()
        ],
        "observations": [{"name": name, "data": data} for name, data in observed.items()],
        "measurements": [{"name": "m", "config": {"poi": poi, "parameters": list(parameters)}}],
        "version": "1.0.0",
    }


def sys(name: str, data: list) -> dict:
    return errors(name, data, "shapesys")


CORNERS = {
    "staterror over several samples, bins without contents": space(
        {"a": [([2.0, 0, 3, 1], MU), ([10.0, 0, 8, 0], errors("stat", [1.0, 0, 2, 0])),
               ([5.0, 0, 4, 0], errors("stat", [0.5, 0, 0, 0.5])), ([3.0, 6, 2, 2],)]},
        {"a": [20.0, 5, 16, 4]}),
    "shapesys without errors or contents": space(
        {"a": [([2.0, 3, 4], MU), ([10.0, 0, 8], sys("sh", [0.0, 1, 2])), ([1.0, 2, 3],)]}, {"a": [15.0, 4, 17]}),
    "lumi configured": space(
        {"a": [([5.0, 3], MU, LUMI), ([20.0, 30], LUMI, norm("n"))]}, {"a": [24.0, 36]},
        {"name": "lumi", "auxdata": [1.1], "sigmas": [0.05], "inits": [1.05], "bounds": [[0.5, 2.0]]}),
    "normsys fixed away from zero": space(
        {"a": [([5.0, 3], MU, norm("x", 1.3, 0.8)), ([20.0, 30], norm("n"), norm("x"))]}, {"a": [24.0, 36]},
        {"name": "x", "fixed": True, "inits": [0.7]}),
    "histosys down to negative contents": space(
        {"a": [([5.0, 3], MU), ([2.0, 30], shape("h", [-1.0, 33], [6.0, 27])), ([10.0, 10],)]}, {"a": [16.0, 45]}),
    "one name for norms and shapes of channels": space(
        {"b": [([5.0, 3], MU, norm("n")),
               ([20.0, 30], norm("n", 1.2, 0.9), shape("n", [22.0, 33], [19.0, 28]), errors("stb", [1.0, 2]))],
         "a": [([1.0], MU), ([50.0], shape("n", [55.0], [47.0]), norm("q"), errors("sta", [3.0]))]},
        {"a": [53.0], "b": [24.0, 36]}),
    "shapefactor of two channels": space(
        {"cr": [([100.0, 80, 60], free("f", "shapefactor"), norm("t", 1.05, 0.96))],
         "sr": [([5.0, 8, 3], MU), ([20.0, 15, 12], free("f", "shapefactor"))]},
        {"cr": [104.0, 77, 66], "sr": [27.0, 24, 15]}),
    "many modifiers of one sample": space(
        {"a": [([5.0, 8], MU, free("k"), norm("n"), LUMI, sys("sh", [1.0, 1]),
                shape("h", [5.5, 8.2], [4.7, 7.7])), ([40.0, 30], free("k"), LUMI)]},
        {"a": [48.0, 36]},
        {"name": "lumi", "auxdata": [1.0], "sigmas": [0.02], "inits": [1.0], "bounds": [[0.0, 10.0]]},
        {"name": "k", "bounds": [[0.1, 3.0]], "inits": [0.9]}),
    "counts that are not whole": space({"a": [([1.0, 2], MU), ([5.5, 7.2], norm("n"))]}, {"a": [6.7, 9.1]}),
    "large counts": space(
        {"a": [([1e4, 2e4], MU), ([5.5e7, 7.2e7], norm("n", 1.001, 0.999))]}, {"a": [5.501e7, 7.203e7]}),
    "strong norms": space(
        {"a": [([10.0, 20], MU, norm("n", 3.0, 0.2)), ([50.0, 70], norm("m", 2.0, 0.5))]}, {"a": [120.0, 180]}),
    "norms to one side": space({"a": [([10.0, 20], MU), ([50.0, 70], norm("m", 1.2, 1.1))]}, {"a": [70.0, 95]}),
    "shapesys configured": space(
        {"a": [([10.0, 20], MU), ([50.0, 70], sys("sh", [5.0, 6]))]}, {"a": [70.0, 95]},
        {"name": "sh", "auxdata": [90.0, 120], "factors": [100.0, 110], "bounds": [[0.2, 3.0], [0.3, 4.0]]}),
    "staterror configured": space(
        {"a": [([10.0, 20], MU), ([50.0, 70], errors("st", [5.0, 6]))]}, {"a": [70.0, 95]},
        {"name": "st", "inits": [1.1, 0.9], "sigmas": [0.2, 0.3]}),
    "negative contents": space(
        {"a": [([5.0, 6], MU), ([9.0, -1], norm("n", 1.3, 0.8)), ([3.0, 5],)]}, {"a": [22.0, 14]}),
    "a signal at its limit": space(
        {"a": [([10.0, 20], MU), ([50.0, 70], norm("m"), sys("x", [3.0, 4]))]}, {"a": [40.0, 51]}),
    "channels out of order": space(
        {"z": [([5.0], MU), ([9.0], norm("n1"))], "Z": [([19.0], norm("n2"))], "1": [([29.0], norm("n1"))]},
        {"1": [30.0], "z": [12.0], "Z": [22.0]}),
}  # fmt: skip


def numbers(content: dict) -> dict:
    """Return what pyhf computes for a workspace."""
    workspace = pyhf.Workspace(content)
    model = workspace.model()
    data, start, fixed = workspace.data(model), model.config.suggested_init(), model.config.suggested_fixed()
    away = [p if fixed[k] else p + 0.1 * np.sin(1 + k) for k, p in enumerate(start)]
    best, lowest = pyhf.infer.mle.fit(data, model, return_fitted_val=True)
    observed, expected = pyhf.infer.hypotest(1.0, data, model, test_stat="qtilde", return_expected_set=True)
    names = model.config.par_names
    return {
        "workspace": content,
        "away": dict(zip(names, map(float, away), strict=True)),
        "best": dict(zip(names, map(float, best), strict=True)),
        "expected": np.asarray(model.expected_actualdata(np.array(away))).tolist(),
        "rise": float(pyhf.infer.mle.twice_nll(away, data, model)[0]) - float(lowest),
        "cls": [float(observed), [float(e) for e in expected]],
    }


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    pyhf.set_backend("jax", Polished(tolerance=1e-12))
    path = Path(__file__).parent / "histfactory_corners.json"
    table = json.loads(path.read_text()) if path.exists() else {}
    for name in argv[1:] or CORNERS:
        table[name] = numbers(CORNERS[name])
        path.write_text(json.dumps(table, indent=1) + "\n")
        print(name, flush=True)
