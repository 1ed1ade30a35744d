"""Fit one model to many weighted datasets together: Newton steps in batches, sandwich errors, the rest one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from morefit.arrays import Array, Integers
from morefit.data import Dataset
from morefit.errors import FitError
from morefit.likelihood.unbinned import Evaluation, Likelihood, triangle, unpack
from morefit.minimise.covariance import sandwich, without_held
from morefit.minimise.fit import REFUSED
from morefit.minimise.fit import fit as fit_one
from morefit.minimise.newton import Minima, minimise
from morefit.model import Pdf
from morefit.targets import Backend, Events
from morefit.toys.ensemble import FAILED, GOAL, MINUIT, NEWTON, UNDETERMINED, Fitted, fill


class WeightedFits:
    """A fit for each dataset; the events of all lie behind each other, those without weights count once."""

    def __init__(
        self, model: Pdf, datasets: Sequence[Dataset], start: Mapping[str, float], backend: Backend
    ) -> None:
        self.model, self.datasets, self.start, self.backend = model, datasets, start, backend
        columns = {o.name: np.concatenate([d[o.name] for d in datasets]) for o in model.observables}
        weights = [np.ones(len(d)) if d.weights is None else d.weights for d in datasets]
        self.likelihood = Likelihood(model, columns, weights=np.concatenate(weights), backend=backend)
        self.names = [p.name for p in self.likelihood.parameters]
        if not self.names:
            raise FitError("fit_many: the model has no floating parameter; free one")
        self.events = Events.slices([len(d) for d in datasets])
        self.base = np.array([start[p.name] for p in self.likelihood.all_parameters])
        self.places = [k for k, p in enumerate(self.likelihood.all_parameters) if not p.fixed]

    def fit(self) -> Fitted:
        """Fit all by Newton's method, and by Minuit what does not converge."""
        limits = np.array([(p.low, p.high) for p in self.likelihood.parameters])
        begin = np.tile(self.base[self.places], (len(self.datasets), 1))
        found = minimise(self.evaluate, begin, limits, GOAL)
        how = np.where(found.valid, NEWTON, FAILED).astype(np.uint8)
        result = Fitted(found.x, self.errors(found), found.nll, found.edm, found.valid.copy(), how)
        for k in np.flatnonzero(~found.valid):
            self.by_minuit(int(k), result)
        return result

    def sums(self, which: Integers, x: Array, *, fisher: bool) -> Array:
        """Sum over the events of some datasets, each at its own floating parameters."""
        part = Events(self.events.starts[which], self.events.stops[which], False)
        full = np.tile(self.base, (len(which), 1))
        full[:, self.places] = x
        compiled = self.likelihood.compile(0 if fisher else 2, fisher=fisher)
        return compiled.bind(
            self.likelihood.columns, part, self.likelihood.data.weights, self.likelihood.boxes
        )(full)

    def evaluate(self, which: Integers, x: Array) -> Evaluation:
        return unpack(self.sums(which, x, fisher=False), len(self.names), 2)

    def errors(self, found: Minima) -> Array:
        """Return the errors of all fits: from the sandwich where events have weights, else naive."""
        everyone = np.arange(len(self.datasets))
        scores = triangle(self.sums(everyone, found.x, fisher=True)[:, :-1], len(self.names))
        inverse, own = without_held(found.covariance, self.evaluate(everyone, found.x).hessian)
        weighted = np.array([d.weights is not None for d in self.datasets])[:, None, None]
        covariance = np.where(weighted, own + sandwich(inverse, scores), found.covariance)
        variances = np.diagonal(covariance, axis1=1, axis2=2)
        return np.sqrt(np.where(variances >= 0, variances, np.nan))

    def by_minuit(self, k: int, result: Fitted) -> None:
        """Hand one dataset to Minuit; what fails for good stays marked so."""
        start = {n: self.start[n] for n in self.names}
        fixed = {p.name: self.start[p.name] for p in self.likelihood.all_parameters if p.fixed}
        try:
            found = fit_one(
                self.model, self.datasets[k], start=start, fixed=fixed, strategy=1, backend=self.backend
            )
        except REFUSED:
            return
        how = MINUIT if found.valid else UNDETERMINED if found.undetermined else FAILED
        values, errors = ([m[n] for n in self.names] for m in (found.values, found.errors))
        fill(result, k, values, errors, found.nll, found.edm, how)
