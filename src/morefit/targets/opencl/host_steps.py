"""Steps of whole fits that the host takes, with the sums of the device, which needs a second or two to have machine code for its own.

Both ways give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.targets.base import Steps, WholeFit
from morefit.targets.cache import key_of, load, source_version, store
from morefit.targets.opencl.fit_shape import TILE, Phase, StepShape
from morefit.targets.opencl.fit_steps import StepSource

if TYPE_CHECKING:
    from morefit.targets.opencl.device import Device
    from morefit.targets.opencl.fit_space import FitSpace, JoinedToys, Place

EVALUATIONS = 20.0  # of a fit, about
BUILD = 1.5  # seconds that a device takes to have machine code for steps
FIND = 0.1  # if it had that before, in this or another process: their text is written, and the driver finds the code on disk


def host_takes_steps(device: Device, source: StepSource, toys: int) -> bool:
    """Return whether the host takes the steps of some toys: until that takes as long as the device to have code for steps."""
    seconds = seconds_with(device, source, toys)
    if device.info.kind == "CPU" or seconds >= BUILD:  # of a CPU, the host is the device
        return False
    return seconds < FIND or load(step_key(device, source)) is None


def step_key(device: Device, source: StepSource) -> str:
    """Return the key of an entry on disk that says that a device had code for steps."""
    main, shape = source.driver.main, source.shape
    own = (main.__module__, main.__name__, repr(shape.layout), str(shape.wide))
    return key_of("opencl steps", source_version(), *own, *device.programs.identity)


@lru_cache(maxsize=32)
def build_steps(device: Device, source: StepSource) -> None:
    """Have machine code for steps; the device takes them from now on, in this process and sooner in others."""
    device.host_seconds[source] = inf
    device.programs.build(source.text)
    if device.info.kind != "CPU":
        store(step_key(device, source), b"built")


def seconds_with(device: Device, source: StepSource, toys: int) -> float:
    """Return about how long the host will have taken for steps, with those of some more toys."""
    step = 1e-6 + 5e-9 * float(source.shape.layout.count) ** 3
    return float(device.host_seconds.get(source, 0.0) + toys * EVALUATIONS * step)


class RecordBuffer:
    """The records of toys on a device, of which some fields are read or written for all toys at once."""

    def __init__(self, device: Device, buffer: Any, shape: StepShape, toys: int) -> None:
        self.device, self.buffer, self.toys, self.record_size = device, buffer, toys, shape.record_size
        self.side_by_side = 1 if shape.wide else TILE

    def stretch(self, first: int, last: int) -> tuple[Array, dict[str, Any]]:
        """Return an array for some numbers of all records, and where these are on the device."""
        rows, width = -(-self.toys // self.side_by_side), 8 * self.side_by_side
        numbers = np.empty((rows, last - first, self.side_by_side))
        place = {
            "buffer_origin": (first * width, 0, 0),
            "host_origin": (0, 0, 0),
            "region": ((last - first) * width, rows, 1),
            "buffer_pitches": (self.record_size * width, 0),
            "host_pitches": ((last - first) * width, 0),
        }
        return numbers, place

    def read(self, first: int, last: int) -> Array:
        """Wait for what was started, and return some numbers of each record, (toys, last - first)."""
        numbers, place = self.stretch(first, last)
        with self.device.watched("running a kernel"):
            self.device.cl.enqueue_copy(self.device.queue, numbers, self.buffer, **place)
        return np.swapaxes(numbers, 1, 2).reshape(-1, last - first)[: self.toys]

    def write(self, first: int, values: Array) -> None:
        """Write some numbers of each record, (toys, numbers)."""
        numbers, place = self.stretch(first, first + values.shape[1])
        padded = np.zeros((len(numbers) * self.side_by_side, values.shape[1]))
        padded[: self.toys] = values
        numbers[:] = np.swapaxes(padded.reshape(len(numbers), self.side_by_side, -1), 1, 2)
        with self.device.watched("copying to it"):
            sent = self.device.cl.enqueue_copy(
                self.device.queue, self.buffer, numbers, is_blocking=False, **place
            )
        self.device.on_their_way.append(sent)


class HostSteps:
    """Takes the steps of the toys of a space until all have ended."""

    def __init__(self, space: FitSpace, job: WholeFit, toys: JoinedToys, place: Place) -> None:
        assert job.begin_steps is not None
        self.space, self.layout = space, job.layout
        device, source = space.device, space.source.driver
        device.host_seconds[source] = seconds_with(device, source, space.count)
        self.records = RecordBuffer(device, space.own["records"], space.source.shape, space.count)
        first = toys.records[toys.rows[place]]
        for part in range(len(job.parts)):
            self.count_failures(first, part)
        self.steps: Steps = job.begin_steps(first)
        self.active: Integers = np.arange(space.count)
        self.trials = np.zeros((space.count, self.layout.count))
        self.ended = np.empty((space.count, self.layout.state_size))

    def count_failures(self, records: Array, part: int) -> None:
        """Take over what was counted while events were drawn; count anew next time."""
        counts, buffer = np.empty((len(records), 2), np.int32), self.space.own[f"report{part}"]
        self.space.device.read(buffer, counts)
        self.space.device.clear(buffer, counts.nbytes)
        for k, field in enumerate(("above", "abandoned")):
            records[:, self.layout.record.first(field) + part] = counts[:, k]

    def run(self) -> None:
        """Take steps until all toys have ended, and correct the errors of weighted ones."""
        record, source = self.layout.record, self.space.source
        first, last = record.first("new_value"), record.first("bad") + 1
        self.mark_running()
        while len(self.active):
            sums = self.at_trials(source.trial_sums, first, last)
            self.steps.states[:, first:last] = sums[self.active]
            self.steps.advance()
            ended = ~self.steps.running
            if ended.any():
                self.ended[self.active[ended]] = self.steps.take(ended)
                self.active = self.active[~ended]
                self.mark_running()
        if source.score_sums:
            self.correct_errors()

    def mark_running(self) -> None:
        running = np.zeros(self.space.count, np.int32)
        running[self.active] = 1
        self.space.device.overwrite(self.space.own["running"], running)

    def at_trials(self, phases: Sequence[Phase], first: int, last: int) -> Array:
        """Return some numbers of the record of each toy, after these phases at its trial point."""
        self.trials[self.active] = self.steps.columns("trial")
        self.records.write(self.layout.record.first("trial"), self.trials)
        self.space.run_all(phases)
        return self.records.read(first, last)

    def correct_errors(self) -> None:
        """Correct the errors of weighted fits, from the squared scores where they ended."""
        place = self.layout.record.slice("new_hessian")
        self.active, self.steps.states = np.arange(self.space.count), self.ended
        self.steps.columns("trial")[:] = self.steps.columns("x")
        scores = self.at_trials(self.space.source.score_sums, place.start, place.stop)
        self.steps.columns("new_hessian")[:] = scores
        self.steps.correct()
