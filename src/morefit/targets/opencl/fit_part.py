"""What one part of a likelihood adds to the text of whole fits: a phase that draws its events, and those that sum over them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from morefit.kernel.ir import Kernel
from morefit.targets.opencl.dialect import Dialect, Names, body_lines, indented
from morefit.targets.opencl.fit_phase import Phase, Runs
from morefit.targets.opencl.fit_shape import ROWS, FitShape
from morefit.targets.opencl.fit_sums import SumText
from morefit.targets.opencl.sample import STREAMS_BEFORE
from morefit.targets.opencl.source import KernelSource
from morefit.targets.opencl.sums import plain_loop


class PartText:
    """Writes what one part of a likelihood adds to whole fits."""

    def __init__(self, shape: FitShape, number: int, d: Dialect) -> None:
        self.shape, self.number, self.d = shape, number, d
        self.part = part = shape.parts[number]
        self.deriving = KernelSource(part.derive, shape.group, d, f"d{number}_") if part.derive else None
        self.sampling: KernelSource | None = None
        if part.sampler:
            self.sampling = KernelSource(
                part.sampler.kernel, shape.group, d, f"t{number}_",
                numbers=len(part.sampler.numbers), suffix=f"_{number}", rows=True,
            )  # fmt: skip
        self.sums = SumText(shape, number, part.sums, self.load, d)
        self.scores = SumText(shape, number, part.scores, self.load, d, ends=True) if part.scores else None

    @property
    def kernels(self) -> list[Kernel]:
        part = self.part
        drawn = [part.sampler.kernel] if part.sampler else []
        derive = [part.derive] if part.derive else []
        return [*drawn, *derive, *self.sum_kernels]

    @property
    def sum_kernels(self) -> list[Kernel]:
        """The kernels of sums over events and nodes."""
        return [kernel for text in self.texts for kernel in text.kernels]

    @property
    def texts(self) -> list[SumText]:
        """Sums of each step, and those at the end."""
        return [self.sums] if self.scores is None else [self.sums, self.scores]

    # drawing

    @cached_property
    def load(self) -> Mapping[str, str]:
        """Return where each column of event k of a block is."""
        n = self.number
        return {
            name: f"events{n}[block.begin + {place} * room{n} + k]"
            for place, name in enumerate(self.part.columns)
        }

    def draw(self) -> Phase:
        """Draw the events or copy those there are, compute what depends on them alone, and count failures."""
        observables, n, m = self.part.observables, self.number, "{m}"
        stores = [f"{self.load[name]} = x{k};" for k, name in enumerate(observables)]
        memory = [f"{m}double *events{n}", f"const long room{n}"]
        derive = self.deriving.table_arguments() if self.deriving else []
        if self.sampling is None:
            given = [f"{m}const double *given{n}_{k}" for k in range(len(observables))]
            taken = [
                f"const double x{k} = given{n}_{k}[starts{n}[index] + block.event + k];"
                for k in range(len(observables))
            ]
            arguments = [*memory, f"{m}const long *starts{n}", *given, *derive]
            lines = plain_loop([*taken, *stores, *self.derive_lines()])
        else:
            drawing, word = self.sampling.drawing, self.d.word
            report = (f"report{n} + 2 * index", f"report{n} + 2 * index + 1")
            arguments = [
                *memory, ROWS, f"{m}const int *toys", f"const {word} seed{n}", f"const {word} first_toy{n}", f"{m}int *report{n}",
                *drawing.number_arguments(), *self.sampling.table_arguments(), *derive,
            ]  # fmt: skip
            lines = [
                *(drawing.room() if drawing.rounds else []),
                "const int row = rows[index];",
                f"const {word} seed = seed{n}, toy = first_toy{n} + toys[index];",
                *drawing.lines("block.event + k", [*stores, *self.derive_lines()], report, STREAMS_BEFORE),
            ]
        return Phase(name=f"draw{n}", runs=Runs.BLOCKS, arguments=arguments, lines=lines, part=n, begins=True)

    def derive_lines(self) -> list[str]:
        """Compute the event-only columns of an event."""
        part = self.part
        if part.derive is None or self.deriving is None:
            return []
        names, place = Names(known=self.deriving.table_names()), part.observables.index
        reads = [f"const double {names.add(n, 'c')} = x{place(n)};" for n in part.derive.columns]
        lines = body_lines(part.derive.per_event, names, "double")
        pairs = zip(part.derived, part.derive.per_event.results, strict=True)
        stores = [f"{self.load[name]} = {names.atom(a)};" for name, a in pairs]
        return ["{", *indented([*reads, *lines, *stores]), "}"]
