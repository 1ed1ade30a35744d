"""Run a kernel that is built: buffers and arguments made once, events on the device or sent to it in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array
from morefit.errors import BackendError
from morefit.kernel.ir import Store
from morefit.targets.base import Buffer, Drawn, Events, HostColumn
from morefit.targets.opencl.columns import CPU_BLOCK, DeviceColumn, Piece, cut_pieces, list_blocks
from morefit.targets.opencl.device import set_arguments
from morefit.targets.opencl.source import block_multiple, can_evaluate, functions_of
from morefit.targets.opencl.sums import words_of

if TYPE_CHECKING:
    from morefit.targets.opencl.run import OpenCLProgram

MAX_SPARE = 1 << 25  # bytes; larger workspaces are freed after each call
ALONE = 16  # events an item may take where one group does a whole set
PARTS = 4  # of the memory for columns, one is used for what is sent in pieces


class OpenCLLaunch:
    """A program bound to columns. Any number of threads may call it at once."""

    def __init__(
        self,
        program: OpenCLProgram,
        columns: tuple[DeviceColumn | HostColumn, ...],
        events: Events,
        steps: tuple[int, ...],
    ) -> None:
        self.kernel, self.program, self.group = program.kernel, program, program.group
        self.columns, self.events, self.steps = columns, events, steps
        self.open, self.memory = program.backend.open, program.backend.memory
        self.each = program.backend.events_per_item  # events of an item, if the user sets it
        self.device = self.open()
        if any(isinstance(c, DeviceColumn) and c.device is not self.device for c in columns):
            raise BackendError(
                "backend 'opencl': a column lies on another device; upload it with the same backend"
            )
        self.tables = [self.device.send(table.array) for table in self.kernel.tables]
        self.starts = self.device.send(events.starts.astype(np.int64))
        self.sizes = self.device.send((events.stops - events.starts).astype(np.int64))
        self.free: dict[int, list[SumSpace | EvaluateSpace | StoreSpace]] = {}

    @property
    def sent(self) -> bool:
        """Whether some columns are with the host, to be sent in pieces."""
        return any(isinstance(c, HostColumn) for c in self.columns)

    def space(self, sets: int) -> SumSpace | EvaluateSpace | StoreSpace:
        """Choose how to run it for a number of sets."""
        if isinstance(self.kernel.frame, Store):
            return StoreSpace(self, sets)
        alone = is_alone(self.program, int(self.events.sizes(sets).max(initial=0)))
        return EvaluateSpace(self, sets) if alone and not self.sent else SumSpace(self, sets)

    def __call__(self, parameters: Array) -> Array:
        """Evaluate at parameters of shape (sets, parameters)."""
        sets = len(parameters)
        if not sets:
            return np.empty(self.kernel.shape(0, self.events.count))
        self.open()  # refuses to go on in a forked child
        spare = self.free.setdefault(sets, [])
        try:
            space = spare.pop()
        except IndexError:
            space = self.space(sets)
        out = space.launch(np.array(parameters, np.float64, order="C"))
        if len(spare) < 4 and space.size < MAX_SPARE:
            spare.append(space)
        if len(self.free) > 8:
            self.free.clear()
        return out

    def store(self) -> tuple[Buffer, ...]:
        """Compute the columns of a kernel without parameters, and keep them on the device if there is room."""
        count, outputs = self.events.count, self.kernel.outputs
        if self.sent or not self.device.room_for(8 * count * outputs, self.memory):
            return tuple(HostColumn(row) for row in self(np.empty((1, 0)))[0])
        space = StoreSpace(self, 1)
        space.start(np.empty((1, 0)))
        space.run_pieces()
        kind = np.dtype(np.float64)
        rows = tuple(DeviceColumn(self.device, space.out, count, kind, k * count) for k in range(outputs))
        for row in rows:
            self.device.hold(row, 8 * count)
        return rows


def is_alone(program: OpenCLProgram, events: int) -> bool:
    """Return whether one group sums over all of so many events."""
    on_gpu = program.backend.open().info.kind != "CPU"
    return can_evaluate(program.kernel) and events <= (ALONE * program.group if on_gpu else CPU_BLOCK)


def needed_functions(program: OpenCLProgram, events: int) -> tuple[str, ...]:
    """Return the functions that so many events need."""
    return ("evaluate",) if is_alone(program, events) else functions_of(program.kernel)


class LaunchSpace:
    """Buffers and kernels of one launch, with their arguments set; made once for a number of sets."""

    function = ""

    def __init__(self, launch: OpenCLLaunch, sets: int) -> None:
        events = launch.events
        assert events.shared or len(events.starts) == sets
        self.device, self.sets, self.kernel, self.group = launch.device, sets, launch.kernel, launch.group
        self.columns, self.steps, self.tables = launch.columns, launch.steps, launch.tables
        self.starts, self.sizes, self.step = launch.starts, launch.sizes, np.int32(not events.shared)
        self.count = events.count
        self.size = 0
        self.waiting: tuple[Any, Any] | None = None  # the last parameters, on their way
        self.memory = launch.memory
        self.parameters = self.room(sets, len(self.kernel.parameters))
        self.kernels = launch.program.kernels(self, self.functions)
        self.prepare_to_run(launch)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that it runs."""
        return functions_of(self.kernel)

    def prepare_to_run(self, launch: OpenCLLaunch) -> None:
        """Make buffers and set arguments."""
        blocks, first = list_blocks(
            launch.events,
            self.sets,
            kind=self.device.info.kind,
            group=self.group,
            multiple=block_multiple(self.kernel, self.group),
            each=launch.each,
        )
        self.pieces = tuple(cut_pieces(blocks, self.max_events())) if self.in_pieces() else ()
        self.tasks, self.first = len(blocks), first
        self.blocks = self.device.send(blocks)
        self.scalars = self.room(self.sets, len(self.kernel.per_call.results))
        if "prepare" in self.kernels:
            prepared = (np.int32(self.sets), self.parameters, self.scalars, *self.tables)
            set_arguments(self.kernels["prepare"], *prepared)
        self.finish_arguments()
        if not self.pieces:
            self.set_loop(Piece(0, self.tasks, 0, self.count))

    def finish_arguments(self) -> None:
        """Make the buffers for results."""

    def others(self, piece: Piece) -> tuple[Any, ...]:
        """Return the arguments of the loop that are its own."""
        return ()

    def in_pieces(self) -> bool:
        return any(isinstance(c, HostColumn) for c in self.columns)

    def bytes_per_event(self) -> int:
        """Return what an event of a piece needs on the device."""
        sizes = [
            c.numbers.itemsize * (self.sets if step else 1)
            for c, step in zip(self.columns, self.steps, strict=True)
            if isinstance(c, HostColumn)
        ]
        return sum(sizes)

    def max_events(self) -> int:
        """Return how many events may be sent at a time."""
        device, each = self.device, max(self.bytes_per_event(), 1)
        room = device.info.memory if self.memory is None else self.memory
        return max(min(room // PARTS, int(device.device.max_mem_alloc_size)) // each, 1)

    def room(self, *shape: int) -> Any:
        """Make room for doubles."""
        size = 8 * int(np.prod(shape, dtype=np.int64))
        self.size += size
        return self.device.allocate(size)

    def column_arguments(self, piece: Piece) -> list[Any]:
        """Return the arguments for all columns; the events of a piece are sent where the device has not got them."""
        arguments: list[Any] = []
        for column, step in zip(self.columns, self.steps, strict=True):
            if isinstance(column, DeviceColumn):
                arguments += [column.buffer, np.int64(column.first), np.int64(step)]
            else:
                rows = column.numbers.reshape(-1, step) if step else column.numbers[None]
                part = np.ascontiguousarray(rows[:, piece.low : piece.high])
                arguments += [
                    self.device.send(part),
                    np.int64(-piece.low),
                    np.int64(part.shape[1] if step else 0),
                ]
        return arguments

    def set_loop(self, piece: Piece) -> None:
        self.arguments = set_arguments(
            self.kernels[self.function], self.scalars, self.blocks, np.int32(piece.first), *self.others(piece),
            *self.column_arguments(piece), *self.tables,
        )  # fmt: skip

    def start(self, parameters: Array) -> None:
        """Send the parameters, and compute the scalars of each set."""
        if self.kernel.parameters:
            self.waiting = parameters, self.device.write(self.parameters, parameters, wait=False)
        if "prepare" in self.kernels:
            self.device.run(self.kernels["prepare"], -(-self.sets // self.group) * self.group, self.group)

    def run_pieces(self) -> None:
        """Go through the events."""
        loop = self.kernels[self.function]
        if not self.pieces and self.tasks:
            self.device.run(loop, self.tasks * self.group, self.group)
        for piece in self.pieces:
            self.set_loop(piece)
            self.device.run(loop, (piece.last - piece.first) * self.group, self.group)
            self.take(piece)

    def take(self, piece: Piece) -> None:
        """Wait for a piece, so that its room can be used for the next."""
        self.device.finish()


class SumSpace(LaunchSpace):
    """Sums: one small array comes back."""

    function = "sums"

    def finish_arguments(self) -> None:
        words = words_of(self.kernel)
        self.partials = self.room(self.tasks, words)
        self.totals = self.room(self.sets, 2 * words)
        self.out = self.room(self.sets, self.kernel.outputs + 1)
        first = self.device.send(self.first.astype(np.int32))
        self.combined = set_arguments(
            self.kernels["combine"], first, self.partials, self.totals, self.scalars, self.sizes, self.step,
            self.out,
        )  # fmt: skip

    def others(self, piece: Piece) -> tuple[Any, ...]:
        return (self.partials,)

    def launch(self, parameters: Array) -> Array:
        self.start(parameters)
        self.run_pieces()
        self.device.run(self.kernels["combine"], self.sets * self.group, self.group)
        out = np.empty((self.sets, self.kernel.outputs + 1))
        self.device.read(self.out, out)
        return out


class EvaluateSpace(LaunchSpace):
    """Sums over few events: one work-group per set does everything in one launch; one set alone is an argument."""

    function = "evaluate"

    @property
    def functions(self) -> tuple[str, ...]:
        return (self.function,)

    def prepare_to_run(self, launch: OpenCLLaunch) -> None:
        self.out = self.room(self.sets, self.kernel.outputs + 1)
        self.any_parameters = bool(self.kernel.parameters)
        self.run_it = self.kernels["evaluate"]
        parameters = (np.zeros(len(self.kernel.parameters)), self.parameters) if self.any_parameters else ()
        self.arguments = set_arguments(
            self.run_it, *parameters, np.int32(self.sets), self.starts, self.sizes, self.step, self.out, *self.column_arguments(Piece(0, 0, 0, 0)),
            *self.tables,
        )  # fmt: skip

    def launch(self, parameters: Array) -> Array:
        if self.any_parameters and self.sets == 1:
            self.run_it.set_arg(0, parameters)
        elif self.any_parameters:
            self.waiting = parameters, self.device.write(self.parameters, parameters, wait=False)
        self.device.run(self.run_it, self.sets * self.group, self.group)
        out = np.empty((self.sets, self.kernel.outputs + 1))
        self.device.read(self.out, out)
        return out


class StoreSpace(LaunchSpace):
    """Values of every event."""

    function = "store"

    def finish_arguments(self) -> None:
        longest = max((p.high - p.low for p in self.pieces), default=self.count)
        self.step_out = longest
        self.out = self.room(self.sets, self.kernel.outputs, longest)

    def in_pieces(self) -> bool:
        size = 8 * self.sets * self.kernel.outputs * self.count
        return super().in_pieces() or not self.device.room_for(size, self.memory)

    def bytes_per_event(self) -> int:
        return super().bytes_per_event() + 8 * self.sets * self.kernel.outputs

    def others(self, piece: Piece) -> tuple[Any, ...]:
        return (self.out, np.int64(-piece.low), np.int64(self.step_out))

    def launch(self, parameters: Array) -> Array:
        self.values = np.empty((self.sets, self.kernel.outputs, self.count))
        self.start(parameters)
        self.run_pieces()
        if not self.pieces:
            self.device.read(self.out, self.values)
        return self.values

    def take(self, piece: Piece) -> None:
        part = np.empty((self.sets, self.kernel.outputs, self.step_out))
        self.device.read(self.out, part)
        self.values[..., piece.low : piece.high] = part[..., : piece.high - piece.low]


class SampleSpace(LaunchSpace):
    """Events that are drawn; used once, its buffers are what is returned."""

    function = "sample"

    def __init__(
        self, launch: OpenCLLaunch, sets: int, numbers: tuple[float, ...], seed: int, first_toy: int
    ) -> None:
        self.numbers = (np.array(numbers),) if numbers else ()
        self.seed, self.toy = np.uint64(seed), np.uint64(first_toy)
        super().__init__(launch, sets)

    def finish_arguments(self) -> None:
        self.report = np.zeros(2, np.int32)
        self.report_buffer = self.device.send(self.report)
        longest = max((p.high - p.low for p in self.pieces), default=self.count)
        self.rows = [self.room(longest) for _ in range(self.kernel.outputs)]

    def in_pieces(self) -> bool:
        size = 8 * self.count
        return not self.device.room_for(size * self.kernel.outputs, self.memory)

    def bytes_per_event(self) -> int:
        return 8 * self.kernel.outputs

    def others(self, piece: Piece) -> tuple[Any, ...]:
        return (self.seed, self.toy, self.report_buffer, np.int64(-piece.low), *self.numbers, *self.rows)

    def draw(self, parameters: Array) -> Drawn:
        self.columns_drawn = np.empty((self.kernel.outputs, self.count if self.pieces else 0))
        self.start(parameters)
        self.run_pieces()
        self.device.read(self.report_buffer, self.report)
        kind = np.dtype(np.float64)
        columns: tuple[Buffer, ...] = tuple(HostColumn(row) for row in self.columns_drawn)
        if not self.pieces:
            columns = tuple(DeviceColumn.of(self.device, row, self.count, kind) for row in self.rows)
        return Drawn(columns, int(self.report[0]), int(self.report[1]))

    def take(self, piece: Piece) -> None:
        for row, numbers in zip(self.rows, self.columns_drawn, strict=True):
            self.device.read(row, numbers[piece.low : piece.high])
