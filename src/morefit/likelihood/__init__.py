"""Likelihoods: what is minimised, for one dataset, several, and constraints."""

from morefit.likelihood.unbinned import Likelihood, gaussian_constraint

__all__ = ["Likelihood", "gaussian_constraint"]
