"""Which systems are compared, and which packages each one's environment holds: a new peer is a row, and a worker."""

from __future__ import annotations

from dataclasses import dataclass

from peers.problem import PROBLEMS


@dataclass(frozen=True)
class Environment:
    """Requirements; ``source`` adds this repository's sources, ``libraries`` the environment's shared libraries."""

    requirements: tuple[str, ...]
    source: bool = False
    libraries: bool = False


@dataclass(frozen=True)
class Peer:
    """A line of the figures: what it is called, where it runs, and how many threads it can use."""

    label: str
    environment: str
    worker: str
    colour: str
    variant: str = ""
    models: tuple[str, ...] = tuple(PROBLEMS)
    threaded: bool = True
    ours: bool = False


ENVIRONMENTS = {
    "morefit": Environment(
        ("numpy==2.4.6", "scipy==1.17.1", "llvmlite==0.50.0", "iminuit==2.33.0", "rich==15.0.0"), source=True
    ),
    "numpy": Environment(("numpy==2.4.6", "iminuit==2.33.0")),
    # the last numba whose compiler knows Intel's vector mathematics (SVML), which is worth a factor in its loops
    "numba": Environment(
        ("numba==0.61.2", "numba-stats==1.14.0", "numpy==2.2.6", "scipy==1.17.1", "iminuit==2.33.0",
         "intel-cmplr-lib-rt==2025.3.1"),
        libraries=True,
    ),
    "jax": Environment(("jax==0.10.2", "numpy==2.4.6", "scipy==1.17.1", "iminuit==2.33.0")),
    "roofit": Environment(("ROOT==0.1a12", "numpy==2.4.6")),
    # zfit 0.28 imports keras in a way that later ones do not have
    "zfit": Environment(
        ("zfit==0.28.0", "tensorflow==2.20.0", "tf-keras==2.20.1", "keras==3.10.0", "numpy==2.4.6")
    ),
}  # fmt: skip
# NVIDIA's compiler, which needs no device
NVIDIA = Environment(
    tuple(f"nvidia-cuda-{tool}==13.4.92" for tool in ("nvrtc", "nvcc", "cuobjdump", "nvdisasm"))
)
DRAWING = Environment(("matplotlib==3.11.2",))  # for the figures

PEERS = {
    "morefit-batched": Peer("morefit, batched", "morefit", "with_morefit", "tab:blue", "batched", ours=True),
    "morefit-single": Peer(
        "morefit, one by one", "morefit", "with_morefit", "tab:purple", "single", ours=True
    ),
    "morefit-numeric": Peer(
        "morefit, one by one, numeric", "morefit", "with_morefit", "tab:cyan", "numeric", ours=True
    ),
    "morefit-minuit": Peer("morefit, Minuit", "morefit", "with_morefit", "navy", "minuit", ours=True),
    "numba": Peer("iminuit, numba by hand", "numba", "with_numba", "tab:olive", "loop"),
    "numba-stats": Peer("iminuit, numba-stats", "numba", "with_numba", "tab:brown", "library", ("mass",)),
    "jax": Peer("iminuit, JAX", "jax", "with_jax", "tab:orange"),
    "numpy": Peer("iminuit, numpy by hand", "numpy", "with_numpy", "tab:gray"),
    "roofit-cpu": Peer("RooFit, cpu", "roofit", "with_roofit", "tab:red", "cpu", threaded=False),
    "roofit-legacy": Peer("RooFit, legacy", "roofit", "with_roofit", "tab:pink", "legacy"),
    "zfit": Peer("zfit", "zfit", "with_zfit", "tab:green"),
}
