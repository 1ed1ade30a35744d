"""Densities of particular physics processes."""

from morefit.physics.kstarmumu import KstarMuMu

__all__ = ["KstarMuMu"]
