"""The whole of a study: what is asked for, what is missing, and the blocks collected as they are finished."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import closing
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from morefit.errors import BackendError, OptionError
from morefit.jobs.executors import DaskClient, choose_place
from morefit.likelihood import Term
from morefit.model import Pdf
from morefit.targets import Backend
from morefit.text.progress import Bar, tell
from morefit.toys.arguments import complete, pick_seed, starts, template_of, toy_sizes, whole, without_events
from morefit.toys.blocks import Pace, Parts, work
from morefit.toys.ledger import Study
from morefit.toys.results import ToyResults
from morefit.toys.saved import keeps_file, read_study
from morefit.toys.task import Statistic, Task


@keeps_file
def toy_study(
    model: Pdf | Term,
    *,
    toys: int,
    events: int | Sequence[int] | NDArray[Any] | None = None,
    truth: Any = None,
    fit_model: Pdf | Term | None = None,
    constraints: Sequence[Any] | Any = (),
    fluctuate: bool = True,
    start: Any = None,
    seed: int | None = None,
    statistic: Statistic | None = None,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
    block: int | None = None,
) -> ToyResults:
    """Draw toys of a model or a likelihood and fit each; none is left out, and the same seed gives the same bits.

    Parameters
    ----------
    events : of every toy, or one number for each; None draws Poisson numbers around what an extended model expects,
        and else takes as many as a likelihood has.
    truth : true values by name, or the result of a fit; start values of the parameters where it says nothing.
    constraints : for a model, independent measurements; a likelihood has its own. Each toy draws what they measure
        anew around the truth, unless ``fluctuate`` is False.
    fit_model : another model or likelihood to fit. It starts at the truth where it has the same parameters; what it holds fixed
        stays where it says.
    statistic : called for each toy with its dataset and its fitted values; returns a number, or numbers by name.
    executor : a concurrent.futures.Executor or a dask.distributed.Client; its workers use one thread each, unless
        a backend is given.
    save : a file to keep finished toys in. The same call resumes a study that was stopped, with the same bits;
        asking for more toys extends it. Ctrl-C returns what is finished.
    block : toys that are worked on together; results do not depend on it.
    """
    toys, drawn = whole("toys", toys, 1), template_of("toy study", model, constraints)
    truth = complete(drawn, truth, "truth")
    if not (statistic is None or callable(statistic)):
        raise OptionError(
            f"toy study: the statistic must be a function of a dataset and fitted values, got {statistic!r}"
        )
    fitted = drawn if fit_model is None else template_of("toy study", fit_model, constraints)
    begin = starts(fitted, truth, start, keep_fixed=fit_model is not None)
    target = None if save is None else Path(save)
    found = None if target is None or not target.exists() else read_study(target)
    chosen = pick_seed(seed, found)
    sizes = toy_sizes(drawn, truth, toys, events, chosen)
    place = choose_place(backend, executor, int(sizes.sum()))
    task = Task(
        drawn=without_events(drawn),
        fitted=without_events(fitted),
        truth=truth,
        start=begin,
        seed=chosen,
        backend=place,
        statistic=statistic,
        fluctuate=fluctuate,
    )
    task.ensemble()  # complains here, not on a worker
    study = Study(task, sizes, target)
    if target is not None:
        study.facts  # noqa: B018  so does this
    if found is not None:
        study.resume(found)
    pace = study.pace(executor) if block is None else Pace(whole("block", block, 1), True)
    return run(study, work(task, study.blocks(pace), study.sizes, executor, pace), progress)


def run(study: Study, parts: Parts, progress: bool) -> ToyResults:
    """Collect finished blocks until all are done, the user has seen enough or something breaks."""
    before, begin = study.done, time.monotonic()
    try:
        with closing(parts), Bar("toys", len(study.sizes), progress, unit="toys") as bar:
            for part in parts:
                study.add(part)
                speed = (study.done - before) / max(time.monotonic() - begin, 1e-9)
                bar.done(study.done, f"{speed:,.0f} toys/s")
    except KeyboardInterrupt:
        if not study.parts:
            raise
        study.keep()
        tell(study.interrupted())
    except BrokenExecutor as error:
        study.keep()
        raise study.broken(f"the workers are gone ({error})") from error
    except BackendError as error:
        if not study.parts:
            raise
        study.keep()
        raise study.broken(str(error)) from error
    finally:
        study.keep()
    return study.longest()
