"""Sums over the events of one part of a likelihood in whole fits, with the numerical integrals that they need: their phases."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from morefit.kernel.ir import Kernel
from morefit.targets.opencl.combine import Combine
from morefit.targets.opencl.dialect import Dialect, indented, number_text
from morefit.targets.opencl.fit_shape import (
    RECORDS,
    ROWS,
    FitShape,
    PartShape,
    Phase,
    Runs,
    SumShape,
    record_line,
)
from morefit.targets.opencl.pairs import PairSum
from morefit.targets.opencl.program import PREFIX
from morefit.targets.opencl.source import KernelSource
from morefit.targets.opencl.sums import (
    Outputs,
    int_table,
    outputs_of,
    pairs_of,
    read_scalars,
    scalar_lines,
    words_of,
)


class SumText:
    """Writes the phases of sums at the trial point: those of each step, or squared scores once a fit has ended."""

    def __init__(
        self,
        shape: FitShape,
        number: int,
        part: PartShape,
        own: SumShape,
        load: Mapping[str, str],
        d: Dialect,
        *,
        ends: bool = False,
    ) -> None:
        self.shape, self.number, self.own, self.load, self.d, self.ends = shape, number, own, load, d, ends
        self.part = part
        self.label = f"{number}{'_scores' * ends}"
        self.kernel = own.kernel
        self.pairs = PairSum(own.kernel.pairs, shape.group, d) if own.kernel.pairs else None
        self.source = KernelSource(own.kernel, shape.group, d, f"u{self.label}_")
        self.integral_sources = [
            KernelSource(one.kernel, shape.group, d, f"v{self.label}_{i}_")
            for i, one in enumerate(own.integrals)
        ]

    @property
    def kernels(self) -> list[Kernel]:
        return [self.kernel, *(one.kernel for one in self.own.integrals)]

    @property
    def phases(self) -> list[Phase]:
        """All phases, in order."""
        phases = []
        for i, source in enumerate(self.integral_sources):
            phases += [self.prepare(source, f"{self.label}_{i}", 0), self.integrate(i)]
        prepare = self.prepare(self.source, self.label, len(self.own.integrals))
        return [*phases, prepare, self.sums(), self.combine()]

    # what depends on parameters alone

    @cached_property
    def integral_places(self) -> list[str]:
        """Where each integral of a toy is."""
        n = self.label
        return [
            f"integrals{n}_{i}[index * {one.kernel.outputs} + {k}]"
            for i, one in enumerate(self.own.integrals)
            for k in range(one.bodies)
        ]

    def parameter(self, k: int) -> str:
        """Return where the value of a parameter is: in the trial point, measured, an integral, or fixed."""
        part, n, pitch = self.part, self.number, self.shape.pitch
        if k in part.floating:  # parts that are alike differ in where theirs are
            return f"fit[{self.shape.layout.record.first('trial') * pitch} + {pitch} * places{n}[{part.floating.index(k)}]]"
        first, last = part.measured
        if first <= k < last:
            return f"own_measured[{k - first}]"
        return f"point[{k}]" if k < part.parameters else self.integral_places[k - part.parameters]

    def prepare(self, source: KernelSource, label: str, known_integrals: int) -> Phase:
        """Compute the scalars of a kernel at the trial point, one work item per toy."""
        m, n, kernel, part = "{m}", self.number, source.kernel, self.part
        memory, (first, last) = self.d.memory, part.measured
        return Phase(
            name=f"prepare{label}",
            runs=Runs.ITEMS,
            begins=self.ends,
            arguments=[
                RECORDS, ROWS, f"{m}const double *parameters{n}", f"{m}const double *measured{n}", f"{m}const int *places{n}",
                *(f"{m}const double *integrals{self.label}_{i}" for i in range(known_integrals)),
                f"{m}double *scalars{label}", *source.table_arguments(),
            ],
            lines=[
                record_line(self.shape, self.d),
                # compilers take long if each number is found from the beginning of those of all toys
                f"{memory}const double *point = parameters{n} + (long)rows[index] * {part.parameters};",
                f"{memory}const double *own_measured = measured{n} + (long)index * {last - first};",
                f"{memory}double *made = scalars{label} + (long)index * {len(kernel.per_call.results)};",
                *scalar_lines(kernel, self.parameter, "made[{}]", source.table_names()),
            ],
        )  # fmt: skip

    def scalar_reads(self, source: KernelSource, label: str) -> list[str]:
        """Read the scalars that the loop over events or nodes needs."""
        place = f"scalars{label}[index * {len(source.kernel.per_call.results)} + {{}}]"
        return read_scalars(source.kernel, source.names, place, self.d)

    def integrate(self, i: int) -> Phase:
        """Compute numerical integrals of a toy at the trial point, and what tells how accurate they are."""
        m, kernel = "{m}", self.own.integrals[i].kernel
        label, source = f"{self.label}_{i}", self.integral_sources[i]
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
            begins=self.ends,
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
        n, m = self.label, "{m}"
        return [
            argument
            for i in range(len(self.own.integrals))
            for argument in (
                f"{m}double *integrals{n}_{i}", f"{m}double *limits{n}_{i}", f"{m}double *edges{n}_{i}",
                f"const int boxes{n}_{i}",
            )
        ]  # fmt: skip

    def check_lines(self) -> list[str]:
        """Count the integrals whose boxes do not resolve the integrand."""
        n, place = self.label, self.shape.number(self.shape.layout.record.first("new_unresolved"))
        return [
            f"if ({PREFIX}is_unresolved(integrals{n}_{i} + index * {one.kernel.outputs} + {one.bodies}, limits{n}_{i},"
            f" edges{n}_{i}, {one.peaks}, {one.axes}, boxes{n}_{i})) {place} += 1.0;"
            for i, one in enumerate(self.own.integrals)
        ]

    def sums(self) -> Phase:
        """Sum over the events of a block at the trial point."""
        n, m, kernel, label = self.number, "{m}", self.kernel, self.label
        names = zip(kernel.columns, self.own.columns, strict=True)
        columns = [f"const double {self.source.names.known[c]} = {self.load[name]};" for c, name in names]
        return Phase(
            name=f"sums{label}",
            runs=Runs.BLOCKS,
            part=n,
            begins=self.ends,
            arguments=[
                f"{m}const double *events{n}", f"const long room{n}", f"{m}const double *scalars{label}",
                f"{m}double *partials{label}",
                *self.source.table_arguments(),
            ],
            lines=[
                f"{self.d.memory}double *partial = partials{label} + (long)block.place * {words_of(kernel)};",
                *self.scalar_reads(self.source, label),
                *self.source.block_sums(columns, "partial"),
            ],
        )  # fmt: skip

    def combine(self) -> Phase:
        """Add the blocks of a toy in their order, with compensation; only for toys of more than one block."""
        n, m, label, words = self.number, "{m}", self.label, max(words_of(self.kernel), 1)
        return Phase(
            name=f"combine{label}",
            runs=Runs.GROUPS,
            part=n,
            begins=self.ends,
            many_blocks=True,
            arguments=[
                f"{m}const int *first_block{n}",
                f"{m}const double *partials{label}",
                f"{m}double *totals{label}",
            ],
            lines=[
                f"{self.d.memory}double *high = totals{label} + (long)index * {2 * words}, *low = high + {words};",
                f"const int first = first_block{n}[index], last = first_block{n}[index + 1];",
                *Combine(self.kernel, self.shape.group, self.d).add_blocks(
                    words, f"partials{label}", "first", "last"
                ),
            ],
        )

    def add_arguments(self) -> list[str]:
        n, checks = self.label, [] if self.ends else self.check_arguments()
        return [f"{{m}}const double *totals{n}", f"{{m}}const double *scalars{n}", *checks]

    def add_lines(self) -> list[str]:
        """Add the outputs to the sums of the fit; log likelihoods come in, their negative is minimised."""
        n, words, outputs = self.label, max(words_of(self.kernel), 1), self.outputs
        places, bad = self.output_places(), self.kernel.outputs
        lines = [
            *outputs.before,
            *(
                f"{self.shape.number(places[k])} {'+' if k == bad else self.sign}= {text};"
                for k, text in outputs.expressions.items()
                if k < len(places)
            ),
            *([] if self.ends else self.check_lines()),
        ]
        head = [
            f"const int count = sizes[index * {len(self.shape.parts)} + {self.number}];",
            f"{self.d.memory}const double *high = totals{n} + (long)index * {2 * words}, *low = high + {words};",
        ]
        if self.shape.wide:
            lines = ["if (item == 0) {", *indented(lines), "}"]
        return ["{", *indented([*head, *lines, *self.word_lines()]), "}"]

    @cached_property
    def outputs(self) -> Outputs:
        """How the words of a toy become outputs."""
        return outputs_of(self.kernel, self.scalar, "count")

    @property
    def scalar(self) -> str:
        """Where number {} of the scalars of a toy is."""
        return f"scalars{self.label}[index * {len(self.kernel.per_call.results)} + {{}}]"

    def output_places(self) -> list[int]:
        """Return where each output is added in the record of the fit."""
        record, places = self.shape.layout.record, self.part.places
        n, hessian = self.shape.layout.count, record.first("new_hessian")
        rows = [
            hessian + max(places[i], places[j]) * n + min(places[i], places[j])
            for i in range(len(places))
            for j in range(i + 1)
        ]
        if self.ends:  # which densities are bad is known
            return rows
        slopes = [record.first("new_gradient") + place for place in places]
        return [record.first("new_value"), *slopes, *rows, record.first("bad")]

    @property
    def sign(self) -> str:
        return "+" if self.ends else "-"

    def place_tables(self) -> list[str]:
        """Return where each word is added in the record of the fit, as a table of the text; -1: it is something else."""
        places = [place * self.shape.pitch for place in self.output_places()]
        words, pairs = self.outputs.words, self.pairs.pairs.output if self.pairs else 0
        words += [-1] * (words_of(self.kernel) - pairs_of(self.kernel) - len(words))
        words += range(pairs, pairs + pairs_of(self.kernel))
        table = int_table(f"word_places{self.label}", [places[k] if k >= 0 else -1 for k in words])
        return [table, *self.outputs.tables(self.label, places)]

    def word_lines(self) -> list[str]:
        """Add the outputs that are one word each, and sums of pairs with the sign the kernel asks for."""
        place, word, count = f"word_places{self.label}[k]", self.outputs.word("k"), len(self.outputs.words)
        line = f"if ({place} >= 0) fit[{place}] {self.sign}= {word};"
        lines = [self.shape.each(0, count, line), *self.shape.wait(self.d)]
        if self.outputs.scaled:
            line = self.outputs.scaled_line(self.label, self.scalar, "fit", self.sign)
            lines += [self.shape.each(0, len(self.outputs.scaled), line), *self.shape.wait(self.d)]
        if self.pairs is None:
            return lines
        last, sign = words_of(self.kernel), number_text(self.pairs.pairs.sign)
        line = f"fit[{place}] {self.sign}= {sign} * {word};"
        return [*lines, self.shape.each(last - pairs_of(self.kernel), last, line), *self.shape.wait(self.d)]
