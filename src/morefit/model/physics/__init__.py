"""Densities of particular physics processes."""

from morefit.model.physics.kstarmumu import KstarMuMu

__all__ = ["KstarMuMu"]
