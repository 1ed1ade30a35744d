"""Intervals for parameters: profiles, contours, the bootstrap, Feldman-Cousins and Neyman constructions."""

from morefit.intervals.bootstrap import Bootstrap, bootstrap
from morefit.intervals.classic import feldman_cousins_gaussian, feldman_cousins_poisson
from morefit.intervals.contour import Contour, contour
from morefit.intervals.crossing import Region
from morefit.intervals.neyman import FeldmanCousins, feldman_cousins
from morefit.intervals.profile import Profile, profile

__all__ = [
    "Bootstrap", "Contour", "FeldmanCousins", "Profile", "Region", "bootstrap", "contour",
    "feldman_cousins", "feldman_cousins_gaussian", "feldman_cousins_poisson", "profile",
]  # fmt: skip
