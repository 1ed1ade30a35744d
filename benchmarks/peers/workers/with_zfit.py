"""zfit: built-in densities for the mass, a density of our own with its integral for the angles."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("ZFIT_DISABLE_TF_WARNINGS", "1")

import numpy as np  # zfit reads the environment when imported
import tensorflow as tf
import zfit
from zfit import z

from peers.problem import KSTARMUMU
from peers.system import Columns, Found, System, Task, one_by_one


class KstarMuMu(zfit.pdf.ZPDF):
    """The angular density; its integral over all angles is 1."""

    _N_OBS = 3
    _PARAMS = KSTARMUMU.names

    @zfit.supports()
    def _unnormalized_pdf(self, x: Any, params: Any) -> Any:
        ctl, ctk, phi = x[0], x[1], x[2]
        FL, S3, S4, S5, AFB, S7, S8, S9 = (params[n] for n in KSTARMUMU.names)
        sk2, sl2 = 1 - ctk * ctk, 1 - ctl * ctl
        sl = tf.sqrt(sl2)
        s2k, s2l, c2l = 2 * ctk * tf.sqrt(sk2), 2 * ctl * sl, 2 * ctl * ctl - 1
        c, s = tf.cos(phi), tf.sin(phi)
        c2, s2 = 2 * c * c - 1, 2 * s * c
        total = (
            (1 - FL) * sk2 * (0.75 + 0.25 * c2l) + FL * ctk * ctk * (1 - c2l) + sk2 * sl2 * (S3 * c2 + S9 * s2)
            + s2k * s2l * (S4 * c + S8 * s) + s2k * sl * (S5 * c + S7 * s) + 4 / 3 * AFB * sk2 * ctl
        )  # fmt: skip
        return 9 / (32 * np.pi) * total


def whole(limits: Any, params: Any, model: Any) -> Any:
    return z.constant(1.0)


KstarMuMu.register_analytic_integral(
    whole,
    limits=zfit.Space(
        axes=(0, 1, 2),
        lower=[low for low, _ in KSTARMUMU.observables.values()],
        upper=[high for _, high in KSTARMUMU.observables.values()],
    ),
)


def mass_pdf(space: Any, free: dict[str, Any]) -> Any:
    signal = zfit.pdf.Gauss(mu=free["mu"], sigma=free["sigma"], obs=space)
    background = zfit.pdf.Exponential(lam=free["alpha"], obs=space)
    return zfit.pdf.SumPDF([signal, background], fracs=[free["fsig"]])


def kstar_pdf(space: Any, free: dict[str, Any]) -> Any:
    return KstarMuMu(obs=space, **free)


PDFS = {"mass": mass_pdf, "kstarmumu": kstar_pdf}


def make(task: Task) -> System:
    """Resample one sampler for each toy, as zfit's documents recommend: its loss is traced once for each size."""
    zfit.run.set_n_cpu(task.threads, strict=False)
    problem = task.problem
    spaces = [zfit.Space(n, limits=limits) for n, limits in problem.observables.items()]
    space = spaces[0] if len(spaces) == 1 else zfit.dimension.combine_spaces(*spaces)
    free = {
        p.name: zfit.Parameter(p.name, p.truth, p.low, p.high, step_size=p.step) for p in problem.parameters
    }
    pdf, order = PDFS[task.model](space, free), list(free.values())
    zfit.settings.set_seed(1)  # once: a new seed would make it trace everything anew
    losses: dict[int, tuple[Any, Any]] = {}

    def draw(events: int, seed: int) -> Any:
        zfit.param.set_values(order, problem.truth)
        if events not in losses:
            sampler = pdf.create_sampler(events)
            losses[events] = sampler, zfit.loss.UnbinnedNLL(pdf, sampler)
        sampler, loss = losses[events]
        sampler.resample()
        return loss

    def fit(loss: Any, edm: float) -> Found:
        zfit.param.set_values(order, problem.truth)
        minimiser = zfit.minimize.Minuit(tol=edm, mode=task.strategy)
        found = minimiser.minimize(loss, order)
        errors = found.hesse(order, method="minuit_hesse")
        values = [float(found.params[p]["value"]) for p in order]
        return Found(values, [float(errors[p]["error"]) for p in order], bool(found.valid))

    def take(columns: Columns) -> Any:
        rows = np.stack([columns[n] for n in problem.observables], axis=1)
        return zfit.loss.UnbinnedNLL(pdf, zfit.Data.from_numpy(obs=space, array=rows))

    return one_by_one(draw, fit, take, task.edm)
