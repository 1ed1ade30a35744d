"""Intervals, limits and tests: profiles, contours, the bootstrap, constructions with toys, discoveries, goodness of fit."""

from typing import TYPE_CHECKING

from morefit.intervals.asimov import asimov
from morefit.intervals.bootstrap import Bootstrap, bootstrap
from morefit.intervals.contour import Contour, contour
from morefit.intervals.discovery import Discovery, discovery
from morefit.intervals.feldman_cousins import FeldmanCousins, feldman_cousins
from morefit.intervals.feldman_cousins_tables import feldman_cousins_gaussian, feldman_cousins_poisson
from morefit.intervals.goodness_of_fit import GoodnessOfFit, goodness_of_fit
from morefit.intervals.impacts import Impacts, impacts
from morefit.intervals.interval import Interval
from morefit.intervals.likelihood_ratio import LikelihoodRatio, likelihood_ratio
from morefit.intervals.limit_methods import UpperLimit
from morefit.intervals.look_elsewhere import LookElsewhere, look_elsewhere
from morefit.intervals.neyman import NeymanBelt, neyman_belt
from morefit.intervals.profile import Profile, profile
from morefit.intervals.upper_limit import upper_limit
from morefit.text.names import refuse_names

__all__ = [
    "Bootstrap", "Contour", "Discovery", "FeldmanCousins", "GoodnessOfFit", "Impacts", "Interval", "LikelihoodRatio", "LookElsewhere", "NeymanBelt",
    "Profile", "UpperLimit", "asimov", "bootstrap", "contour", "discovery", "feldman_cousins", "feldman_cousins_gaussian",
    "feldman_cousins_poisson", "goodness_of_fit", "impacts", "likelihood_ratio", "look_elsewhere", "neyman_belt", "profile", "upper_limit",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # where it would hide what is misspelt
    __getattr__ = refuse_names(__name__)
