"""Run a study of many toys: in blocks, here or on workers, saved on the way and resumed where it stopped."""

from morefit.study.given import fit_many
from morefit.study.ledger import BrokenStudy
from morefit.study.run import toy_study

__all__ = ["BrokenStudy", "fit_many", "toy_study"]
