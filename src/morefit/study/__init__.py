"""Run a study of many toys: in blocks, here or on workers, saved on the way and resumed where it stopped."""

from morefit.study.ledger import BrokenStudy
from morefit.study.run import toy_study

__all__ = ["BrokenStudy", "toy_study"]
