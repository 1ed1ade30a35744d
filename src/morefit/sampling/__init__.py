"""Draw events of a model: by quantiles, by components, by accept and reject under an envelope."""

from morefit.sampling.generate import generate

__all__ = ["generate"]
