"""Intervals for parameters: profiles, contours, the bootstrap, Feldman-Cousins and Neyman constructions."""

from morefit.intervals.bootstrap import Bootstrap, bootstrap
from morefit.intervals.contour import Contour, contour
from morefit.intervals.feldman_cousins import FeldmanCousins, feldman_cousins
from morefit.intervals.feldman_cousins_tables import feldman_cousins_gaussian, feldman_cousins_poisson
from morefit.intervals.interval import Interval
from morefit.intervals.neyman import NeymanBelt, neyman_belt
from morefit.intervals.profile import Profile, profile

__all__ = [
    "Bootstrap", "Contour", "FeldmanCousins", "Interval", "NeymanBelt", "Profile", "bootstrap", "contour",
    "feldman_cousins", "feldman_cousins_gaussian", "feldman_cousins_poisson", "neyman_belt", "profile",
]  # fmt: skip
