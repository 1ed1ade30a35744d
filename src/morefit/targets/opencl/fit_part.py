"""What one part of a likelihood adds to the text of whole fits: phases that draw its events, integrate and sum."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from morefit.kernel.ir import Kernel
from morefit.targets.opencl.combine import Combine
from morefit.targets.opencl.dialect import Dialect, Names, body_lines, indented, number_text
from morefit.targets.opencl.fit_phase import TILE, Phase, Runs
from morefit.targets.opencl.fit_shape import RECORDS, ROWS, FitShape, record_line
from morefit.targets.opencl.pairs import PairSum
from morefit.targets.opencl.program import PREFIX
from morefit.targets.opencl.sample import STREAMS_BEFORE
from morefit.targets.opencl.source import KernelSource
from morefit.targets.opencl.sums import (
    outputs_of,
    pairs_of,
    plain_loop,
    read_scalars,
    scalar_lines,
    words_of,
)


class PartText:
    """Writes what one part of a likelihood adds to whole fits."""

    def __init__(self, shape: FitShape, number: int, d: Dialect) -> None:
        self.shape, self.number, self.d = shape, number, d
        self.part = part = shape.parts[number]
        self.pairs = PairSum(part.sums.pairs, shape.group, d) if part.sums.pairs else None
        self.source = KernelSource(part.sums, shape.group, d, f"u{number}_")
        self.deriving = KernelSource(part.derive, shape.group, d, f"d{number}_") if part.derive else None
        self.sampling: KernelSource | None = None
        if part.sampler:
            self.sampling = KernelSource(
                part.sampler.kernel, shape.group, d, f"t{number}_",
                numbers=len(part.sampler.numbers), suffix=f"_{number}", rows=True,
            )  # fmt: skip

        self.integral_sources = [
            KernelSource(one.kernel, shape.group, d, f"v{number}_{i}_")
            for i, one in enumerate(part.integrals)
        ]

    @property
    def kernels(self) -> list[Kernel]:
        part = self.part
        drawn = [part.sampler.kernel] if part.sampler else []
        derive = [part.derive] if part.derive else []
        return [*drawn, *derive, part.sums, *(i.kernel for i in part.integrals)]

    # drawing

    @property
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

    # what depends on parameters alone

    @cached_property
    def integral_places(self) -> list[str]:
        """Where each integral of a toy is."""
        n = self.number
        return [
            f"integrals{n}_{i}[index * {one.kernel.outputs} + {k}]"
            for i, one in enumerate(self.part.integrals)
            for k in range(one.bodies)
        ]

    def parameter(self, k: int) -> str:
        """Return where the value of a parameter is: in the trial point, measured, an integral, or fixed."""
        part, n = self.part, self.number
        place = dict(zip(part.floating, part.places, strict=True)).get(k)
        if place is not None:
            return self.shape.number(self.shape.layout.record.first("trial") + place)
        first, last = part.measured
        if first <= k < last:
            return f"measured{n}[index * {last - first} + {k - first}]"
        return (
            f"parameters{n}[row * {part.parameters} + {k}]"
            if k < part.parameters
            else self.integral_places[k - part.parameters]
        )

    def prepare(self, source: KernelSource, label: str, known_integrals: int) -> Phase:
        """Compute the scalars of a kernel at the trial point, one work item per toy."""
        m, n, kernel = "{m}", self.number, source.kernel
        count = len(kernel.per_call.results)
        store = f"scalars{label}[index * {count} + {{}}]"
        return Phase(
            name=f"prepare{label}",
            runs=Runs.ITEMS,
            arguments=[
                RECORDS, ROWS, f"{m}const double *parameters{n}", f"{m}const double *measured{n}",
                *(f"{m}const double *integrals{n}_{i}" for i in range(known_integrals)),
                f"{m}double *scalars{label}", *source.table_arguments(),
            ],
            lines=[
                record_line(self.shape, self.d),
                "const int row = rows[index];",
                *scalar_lines(kernel, self.parameter, store, source.table_names()),
            ],
        )  # fmt: skip

    def scalar_reads(self, source: KernelSource, label: str) -> list[str]:
        """Read the scalars that the loop over events or nodes needs."""
        place = f"scalars{label}[index * {len(source.kernel.per_call.results)} + {{}}]"
        return read_scalars(source.kernel, source.names, place, self.d)

    def integrate(self, i: int) -> Phase:
        """Compute numerical integrals of a toy at the trial point, and what tells how accurate they are."""
        n, m, kernel = self.number, "{m}", self.part.integrals[i].kernel
        label, source = f"{n}_{i}", self.integral_sources[i]
        known = source.names.known
        columns = [f"const double {known[c]} = node{label}_{k}[k];" for k, c in enumerate(kernel.columns)]
        scalar = f"scalars{label}[index * {len(kernel.per_call.results)} + {{}}]"
        outputs = outputs_of(kernel, scalar, "count", low=False)
        stores = [
            f"integrals{label}[index * {kernel.outputs} + {k}] = {' + '.join(terms) or '0.0'};"
            for k, terms in outputs.terms.items()
            if k < kernel.outputs
        ]
        return Phase(
            name=f"integrate{label}",
            runs=Runs.GROUPS,
            arguments=[
                f"{m}const double *scalars{label}", f"{m}double *integrals{label}", f"const int nodes{label}",
                *(f"{m}const double *node{label}_{k}" for k in range(len(kernel.columns))),
                *source.table_arguments(),
            ],
            lines=[
                f"{self.d.shared}double high[{max(words_of(kernel), 1)}];",
                f"const int count = nodes{label};",
                *self.scalar_reads(source, label),
                *source.block_sums(columns, "high"),
                "if (item == 0) {", *indented([*outputs.before, *stores]), "}",
            ],
        )  # fmt: skip

    def check_arguments(self) -> list[str]:
        """Declare what tells how accurate the integrals are."""
        n, m = self.number, "{m}"
        return [
            argument
            for i in range(len(self.part.integrals))
            for argument in (
                f"{m}double *integrals{n}_{i}", f"{m}double *limits{n}_{i}", f"{m}double *edges{n}_{i}",
                f"const int boxes{n}_{i}",
            )
        ]  # fmt: skip

    def check_lines(self) -> list[str]:
        """Count the integrals whose boxes do not resolve the integrand."""
        n, place = self.number, self.shape.number(self.shape.layout.record.first("new_unresolved"))
        return [
            f"if ({PREFIX}is_unresolved(integrals{n}_{i} + index * {one.kernel.outputs} + {one.bodies}, limits{n}_{i},"
            f" edges{n}_{i}, {one.peaks}, {one.axes}, boxes{n}_{i})) {place} += 1.0;"
            for i, one in enumerate(self.part.integrals)
        ]

    # sums

    def sums(self) -> Phase:
        """Sum over the events of a block at the trial point."""
        n, m, kernel, known = self.number, "{m}", self.part.sums, self.source.names.known
        columns = [f"const double {known[c]} = {self.load[c]};" for c in kernel.columns]
        return Phase(
            name=f"sums{n}",
            runs=Runs.BLOCKS,
            part=n,
            arguments=[
                f"{m}const double *events{n}", f"const long room{n}", f"{m}const double *scalars{n}", f"{m}double *partials{n}",
                *self.source.table_arguments(),
            ],
            lines=[
                f"{self.d.memory}double *partial = partials{n} + (long)block.place * {words_of(kernel)};",
                *self.scalar_reads(self.source, f"{n}"),
                *self.source.block_sums(columns, "partial"),
            ],
        )  # fmt: skip

    def combine(self) -> Phase:
        """Add the blocks of a toy in their order, with compensation; only for toys of more than one block."""
        n, m, words = self.number, "{m}", max(words_of(self.part.sums), 1)
        return Phase(
            name=f"combine{n}",
            runs=Runs.GROUPS,
            part=n,
            many_blocks=True,
            arguments=[
                f"{m}const int *first_block{n}",
                f"{m}const double *partials{n}",
                f"{m}double *totals{n}",
            ],
            lines=[
                f"{self.d.memory}double *high = totals{n} + (long)index * {2 * words}, *low = high + {words};",
                f"const int first = first_block{n}[index], last = first_block{n}[index + 1];",
                *Combine(self.part.sums, self.shape.group, self.d).add_blocks(
                    words, f"partials{n}", "first", "last"
                ),
            ],
        )

    def add_arguments(self) -> list[str]:
        n = self.number
        return [f"{{m}}const double *totals{n}", f"{{m}}const double *scalars{n}", *self.check_arguments()]

    def add_lines(self) -> list[str]:
        """Add the outputs to the sums of the fit; log likelihoods come in, their negative is minimised."""
        kernel, n, d = self.part.sums, self.number, self.d
        words, scalar = max(words_of(kernel), 1), f"scalars{n}[index * {len(kernel.per_call.results)} + {{}}]"
        outputs = outputs_of(kernel, scalar, "count")
        places, bad = self.output_places(), kernel.outputs
        lines = [
            *outputs.before,
            *(
                f"{self.shape.number(places[k])} {'+' if k == bad else '-'}= {' + '.join(terms)};"
                for k, terms in outputs.terms.items()
                if terms
            ),
            *self.check_lines(),
        ]
        head = [
            f"const int count = sizes[index * {len(self.shape.parts)} + {n}];",
            f"{d.memory}const double *high = totals{n} + (long)index * {2 * words}, *low = high + {words};",
        ]
        if self.shape.wide:
            lines = ["if (item == 0) {", *indented(lines), "}", d.wait_memory]
        return ["{", *indented([*head, *lines, *self.pair_lines()]), "}"]

    def output_places(self) -> list[int]:
        """Return where each output is added in the record of the fit."""
        record, places = self.shape.layout.record, self.part.places
        n, hessian = self.shape.layout.count, record.first("new_hessian")
        rows = [
            hessian + max(places[i], places[j]) * n + min(places[i], places[j])
            for i in range(len(places))
            for j in range(i + 1)
        ]
        slopes = [record.first("new_gradient") + place for place in places]
        return [record.first("new_value"), *slopes, *rows, record.first("bad")]

    def place_table(self) -> list[str]:
        """Return where the sums of pairs are added, as a table of the text."""
        if self.pairs is None:
            return []
        first = self.pairs.pairs.output
        places = ", ".join(str(p) for p in self.output_places()[first : first + pairs_of(self.part.sums)])
        return [f"__constant int pair_places{self.number}[] = {{{places}}};"]

    def pair_lines(self) -> list[str]:
        """Add the sums of pairs, with the sign the kernel asks for."""
        if self.pairs is None:
            return []
        count = pairs_of(self.part.sums)
        first = words_of(self.part.sums) - count
        value = f"{number_text(self.pairs.pairs.sign)} * (high[{first} + k] + low[{first} + k])"
        first_pair, step, wait = ("item", TILE, [self.d.wait_memory]) if self.shape.wide else ("0", 1, [])
        return [
            f"for (int k = {first_pair}; k < {count}; k += {step})",
            f"    fit[pair_places{self.number}[k] * {self.shape.pitch}] -= {value};",
            *wait,
        ]
