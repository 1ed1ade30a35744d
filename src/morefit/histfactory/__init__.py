"""``mf.histfactory``: likelihoods of HistFactory workspaces, in the JSON format of pyhf."""

from typing import TYPE_CHECKING

from morefit.histfactory.read import read
from morefit.likelihood.histfactory import HistFactoryLikelihood
from morefit.text.names import refuse_names

__all__ = ["HistFactoryLikelihood", "read"]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # where it would hide what is misspelt
    __getattr__ = refuse_names(__name__)
