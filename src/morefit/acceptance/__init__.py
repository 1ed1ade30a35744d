"""Acceptances for ``mf.Efficiency``: expansions and tables made from simulation with their errors, accepted samples."""

from morefit.acceptance.from_simulation import from_sample, simulation
from morefit.acceptance.sampled import SampledExpansion, SampledTable
from morefit.model.acceptance import Expansion, Simulation

__all__ = ["Expansion", "SampledExpansion", "SampledTable", "Simulation", "from_sample", "simulation"]


def __dir__() -> list[str]:
    return __all__
