"""Spread toys over workers: ``python examples/cluster_toys.py --executor process --workers 4``.

``process`` are processes of this machine and ``dask`` a cluster of dask.distributed on it; on a batch system replace
LocalCluster by a cluster of dask-jobqueue. ``mpi`` needs a launcher:
``mpiexec -n 5 python -m mpi4py.futures examples/cluster_toys.py --executor mpi``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import numpy as np

import morefit as mf

CHECKED = 10  # toys that are fitted here once more


def make_model() -> mf.Pdf:
    m = mf.Observable("m", 5.0, 7.0)
    signal = mf.Gaussian(m, mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13))
    background = mf.Exponential(m, mf.Parameter("alpha", -1.0, -10.0, 10.0))
    return mf.Sum([signal, background], fractions=[mf.Parameter("fsig", 0.3, 0.0, 1.0)])


@contextmanager
def executor_of(kind: str, workers: int) -> Iterator[Any]:
    """Start workers, and end them afterwards."""
    if kind == "process":
        # drivers of GPUs do not survive a fork; a spawned process starts anew
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            yield pool
    elif kind == "dask":
        from distributed import Client, LocalCluster

        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            client.wait_for_workers(workers)  # toys are cut into blocks for the workers that are there
            yield client
    else:
        from mpi4py.futures import MPIPoolExecutor

        with MPIPoolExecutor() as pool:
            yield pool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executor", choices=("process", "dask", "mpi"), default="process")
    parser.add_argument(
        "--workers", type=int, default=2, help="to start; mpiexec decides for mpi (default: %(default)s)"
    )
    parser.add_argument("--events", type=int, default=1_000, help="of each toy (default: %(default)s)")
    parser.add_argument("--toys", type=int, default=1_000, help="to fit (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the toys (default: %(default)s)")
    parser.add_argument("--save", help="file to keep finished toys in; run again to go on, or for more toys")
    options = parser.parse_args()

    model = make_model()
    with executor_of(options.executor, options.workers) as executor:
        toys = mf.toy_study(
            model, toys=options.toys, events=options.events, seed=options.seed, executor=executor,
            save=options.save,
        )  # fmt: skip
    print(toys)
    few = min(CHECKED, options.toys)
    here = mf.toy_study(model, toys=few, events=options.events, seed=options.seed)
    same = np.array_equal(here.values, toys.values[:few])
    print(f"\ntoys 0 to {few - 1} fitted here: {'the same bits' if same else 'OTHER BITS'}")


if __name__ == "__main__":
    main()  # workers import this file, and must not start workers of their own
