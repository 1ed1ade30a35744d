"""Intervals for parameters: profiles, contours, the bootstrap, Feldman-Cousins and Neyman constructions."""

from morefit.intervals.belt import NeymanBelt
from morefit.intervals.bootstrap import Bootstrap, bootstrap
from morefit.intervals.contour import Contour, contour
from morefit.intervals.crossing import Region
from morefit.intervals.feldman import FeldmanCousins
from morefit.intervals.feldman_cousins_tables import feldman_cousins_gaussian, feldman_cousins_poisson
from morefit.intervals.neyman import feldman_cousins, neyman_belt
from morefit.intervals.profile import Profile, profile

__all__ = [
    "Bootstrap", "Contour", "FeldmanCousins", "NeymanBelt", "Profile", "Region", "bootstrap", "contour",
    "feldman_cousins", "feldman_cousins_gaussian", "feldman_cousins_poisson", "neyman_belt", "profile",
]  # fmt: skip
