"""Fit, draw toys, plot, and write and read files, with whatever versions of other packages are installed."""

from __future__ import annotations

import platform
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import hist
import numpy as np

import morefit as mf

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from pocl_processor import name_processor

PACKAGES = (
    "numpy", "scipy", "llvmlite", "iminuit", "rich", "matplotlib", "mplhep", "awkward", "hist", "pyarrow",
    "uproot", "distributed", "pyopencl",
)  # fmt: skip


def mass_model() -> mf.Pdf:
    m = mf.Observable("m", 5.0, 7.0, label="$m$ [GeV]")
    peak = mf.Gaussian(m, mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13))
    slope = mf.Exponential(m, mf.Parameter("alpha", -1.0, -10.0, 10.0))
    return mf.Sum([peak, slope], fractions=[mf.Parameter("fsig", 0.3, 0.0, 1.0)])


def check_fits(model: mf.Pdf, data: mf.Dataset, folder: Path) -> mf.FitResult:
    """Fit with each minimiser and strategy, with MINOS, and write the result."""
    result = mf.fit(model, data, minos=True)
    others = [mf.fit(model, data, strategy=1), mf.fit(model, data, minimiser="newton")]
    for other in (result, *others):
        assert other.valid, other
        np.testing.assert_allclose(other.values["mu"], result.values["mu"], atol=1e-5)
    result.to_json(folder / "fit.json")
    assert mf.FitResult.from_json(folder / "fit.json").values == result.values
    return result


def check_toys(model: mf.Pdf, folder: Path) -> mf.ToyResults:
    """Fit toys here, on workers, and resumed from a file."""
    options = {"toys": 60, "events": 400, "seed": 1, "progress": False}
    toys = mf.toy_study(model, save=folder / "toys.npz", **options)
    assert np.mean(toys.valid) > 0.9
    with ThreadPoolExecutor(2) as pool:
        np.testing.assert_array_equal(mf.toy_study(model, executor=pool, **options).values, toys.values)
    np.testing.assert_array_equal(
        mf.toy_study(model, save=folder / "toys.npz", **options).values, toys.values
    )
    return toys


def check_dask(model: mf.Pdf, toys: mf.ToyResults) -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        found = mf.toy_study(model, toys=60, events=400, seed=1, progress=False, executor=client)
    np.testing.assert_array_equal(found.values, toys.values)


def check_opencl(model: mf.Pdf, data: mf.Dataset, result: mf.FitResult) -> None:
    """Fit on a device, where this machine has one."""
    if not any(device.double for device in mf.devices()):
        print("no OpenCL device: not fitted there")
        return
    name_processor()
    np.testing.assert_allclose(mf.fit(model, data, backend="opencl").nll, result.nll, rtol=1e-12)


def check_files(model: mf.Pdf, data: mf.Dataset, folder: Path) -> None:
    """Write and read every kind of file, and a histogram."""
    for name in ("data.root", "data.parquet", "data.csv", "data.npz"):
        data.write(folder / name)
        back = mf.read(folder / name, model.observables, progress=False)
        np.testing.assert_array_equal(back["m"], data["m"])
    counts = data.to_hist(model.observables, bins=20)
    assert isinstance(counts, hist.Hist) and counts.sum() == len(data)


def check_plots(
    model: mf.Pdf, data: mf.Dataset, result: mf.FitResult, toys: mf.ToyResults, folder: Path
) -> None:
    for style in (None, "LHCb2"):
        plots = {
            "fit": mf.plot(model, data, "m", values=result, style=style),
            "pulls": mf.plots.pulls(toys, "mu", style=style),
            "correlation": mf.plots.correlation(result, style=style),
        }
        for name, plot in plots.items():
            plot.figure.savefig(folder / f"{name}.pdf")


def main() -> None:
    print(
        f"python {platform.python_version()}",
        *(f"{name} {metadata.version(name)}" for name in PACKAGES),
        sep=", ",
    )
    model = mass_model()
    data = mf.generate(model, 2000, seed=1)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.filterwarnings("error", module="morefit")
        folder = Path(name)
        result = check_fits(model, data, folder)
        toys = check_toys(model, folder)
        check_dask(model, toys)
        check_opencl(model, data, result)
        check_files(model, data, folder)
        check_plots(model, data, result, toys, folder)
    print("fit, toys, files and plots work")


if __name__ == "__main__":
    main()
