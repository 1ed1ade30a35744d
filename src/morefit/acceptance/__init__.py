"""Acceptances for ``mf.Efficiency``: expansions and tables made from simulation with their errors, accepted samples."""

from typing import TYPE_CHECKING

from morefit.acceptance.from_simulation import from_sample, simulation
from morefit.acceptance.sampled import SampledExpansion, SampledTable
from morefit.model.acceptance import Expansion, Simulation
from morefit.text.names import refuse_names

__all__ = ["Expansion", "SampledExpansion", "SampledTable", "Simulation", "from_sample", "simulation"]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # where it would hide what is misspelt
    __getattr__ = refuse_names(__name__)
