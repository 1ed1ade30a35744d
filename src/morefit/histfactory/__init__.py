"""``mf.histfactory``: likelihoods of HistFactory workspaces, in the JSON format of pyhf."""

from morefit.histfactory.read import read
from morefit.likelihood.histfactory import HistFactoryLikelihood

__all__ = ["HistFactoryLikelihood", "read"]


def __dir__() -> list[str]:
    return __all__
