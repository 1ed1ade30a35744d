"""Steps of many fits between evaluations that someone else makes: the program of whole fits, one call per step."""

from __future__ import annotations

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.kernel.fit_layout import FitLayout
from morefit.kernel.program import Driver
from morefit.targets.cpu.fit_driver import driver_code
from morefit.targets.cpu.memory import Code


class Steps:
    """The states of fits, which a step changes in place."""

    def __init__(self, driver: Driver, layout: FitLayout, records: Array) -> None:
        self.layout = layout
        self.code: Code = driver_code(driver, layout)
        self.states = np.ascontiguousarray(records[:, : layout.state_size])
        self.scratch = np.zeros(layout.size)
        self.run("begin_all")

    def run(self, name: str) -> None:
        words = (len(self.states), self.states.ctypes.data, self.layout.state_size, self.scratch.ctypes.data)
        table = np.array(words, np.int64)
        self.code.functions[name](int(table.ctypes.data))

    def column(self, name: str) -> Array:
        return self.states[:, self.layout.record.first(name)]

    def columns(self, name: str) -> Array:
        return self.states[:, self.layout.record.slice(name)]

    @property
    def running(self) -> Flags:
        return np.asarray(self.column("running") > 0)

    def take(self, chosen: Flags) -> Array:
        """Remove some fits; return their states."""
        gone = self.states[chosen]
        self.states = np.ascontiguousarray(self.states[~chosen])
        return gone

    def advance(self, value: Array, gradient: Array, hessian: Array, bad: Integers) -> None:
        """Take a step of each fit after the evaluation of its trial point."""
        self.column("new_value")[:] = value
        self.columns("new_gradient")[:] = gradient
        self.columns("new_hessian")[:] = hessian.reshape(len(hessian), -1)
        self.column("bad")[:] = bad
        self.run("advance_all")
