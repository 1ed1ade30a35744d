"""What one part of a likelihood adds to the text of a whole fit: its events, its integrals and its sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from morefit.kernel import Kernel
from morefit.targets.opencl.dialect import Dialect, Names, body_lines, indented, number_text
from morefit.targets.opencl.fit_shape import FitShape
from morefit.targets.opencl.pairs import PairSum
from morefit.targets.opencl.program import PREFIX
from morefit.targets.opencl.source import KernelSource
from morefit.targets.opencl.sums import (
    GroupSum,
    max_words,
    outputs_of,
    pairs_of,
    plain_loop,
    words_of,
)


class PartText:
    """Writes what one part of a likelihood adds to a whole fit."""

    def __init__(self, shape: FitShape, number: int, d: Dialect) -> None:
        self.shape, self.number, self.d = shape, number, d
        self.part = part = shape.parts[number]
        self.group_sum = GroupSum(part.sums, shape.group, d)
        self.pairs = PairSum(part.sums.pairs, shape.group, d) if part.sums.pairs else None
        self.source = KernelSource(part.sums, shape.group, d, f"u{number}_")
        self.deriving = KernelSource(part.derive, shape.group, d, f"d{number}_") if part.derive else None
        self.integrals = [
            KernelSource(one.kernel, shape.group, d, f"i{number}_{k}_")
            for k, one in enumerate(part.integrals)
        ]
        self.sampling: KernelSource | None = None
        if part.sampler:
            numbers = len(part.sampler.numbers)
            self.sampling = KernelSource(
                part.sampler.kernel, shape.group, d, f"t{number}_", numbers, f"_{number}"
            )

    @property
    def kernels(self) -> list[Kernel]:
        part = self.part
        drawn = [part.sampler.kernel] if part.sampler else []
        return [
            *drawn,
            *([part.derive] if part.derive else []),
            part.sums,
            *(i.kernel for i in part.integrals),
        ]

    @property
    def words(self) -> int:
        """How many numbers ``high`` must hold."""
        return max(self.group_sum.words, *(words_of(i.kernel) for i in self.part.integrals), 1)

    @property
    def scalars(self) -> int:
        return max(
            len(k.per_call.results) for k in (self.part.sums, *(i.kernel for i in self.part.integrals))
        )

    @property
    def scratch(self) -> int:
        """How many numbers the sums over items and the products of pairs share."""
        limit = max_words(self.shape.group) * self.shape.group
        trees = min(limit, self.words * self.shape.group)
        return max(trees, self.pairs.room if self.pairs else 0)

    # arguments

    def draw_arguments(self) -> list[str]:
        m, d, n = self.d.memory, self.d, self.number
        derive = self.deriving.table_arguments() if self.deriving else []
        if self.sampling is None:
            columns = [f"{m}const double *given{n}_{k}" for k in range(len(self.part.observables))]
            return [f"{m}const long *starts{n}", *columns, *derive]
        others = (*self.sampling.drawing.number_arguments(), *self.sampling.table_arguments())
        return [f"const {d.word} seed{n}, const {d.word} first_toy{n}", *others, *derive]

    def sum_arguments(self) -> list[str]:
        m, n = self.d.memory, self.number
        integrals = [
            argument
            for i, source in enumerate(self.integrals)
            for argument in (
                f"const int nodes{n}_{i}, {m}double *limits{n}_{i}, {m}double *edges{n}_{i}, const int boxes{n}_{i}",
                *(f"{m}const double *node{n}_{i}_{k}" for k in range(len(source.kernel.columns))),
                *source.table_arguments(),
            )
        ]
        return [
            f"{m}const double *parameters{n}, {m}const double *measured{n}",
            *self.source.table_arguments(),
            *integrals,
        ]

    # drawing

    @property
    def load(self) -> Mapping[str, str]:
        """Return where each column of event k of a group is."""
        return {name: f"events[{place} * room + k]" for place, name in enumerate(self.part.columns)}

    def draw_lines(self, event: str, report: tuple[str, str], streams_before: str = "0") -> list[str]:
        """Draw the events or copy those there are, compute what depends on them alone, and report failures."""
        observables, n = self.part.observables, self.number
        stores = [f"{self.load[name]} = x{k};" for k, name in enumerate(observables)]
        if self.sampling is None:
            taken = [
                f"const double x{k} = given{n}_{k}[starts{n}[index] + {event}];"
                for k in range(len(observables))
            ]
            return plain_loop([*taken, *stores, *self.derive_lines()])
        head = [f"const {self.d.word} seed = seed{n}, toy = first_toy{n} + toys[index];"]
        return [
            *head,
            *self.sampling.drawing.lines(event, [*stores, *self.derive_lines()], report, streams_before),
        ]

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

    # sums

    def parameter(self, k: int) -> str:
        """Return where the value of a parameter is: in the trial point, measured, an integral, or fixed."""
        part, n = self.part, self.number
        place = dict(zip(part.floating, part.places, strict=True)).get(k)
        if place is not None:
            return f"fit[{self.shape.layout.record.first('trial')} + {place}]"
        first, last = part.measured
        if first <= k < last:
            return f"measured{n}[index * {last - first} + {k - first}]"
        return f"parameters{n}[{k}]" if k < part.parameters else f"integrals[{k - part.parameters}]"

    def load_lines(self) -> list[str]:
        known = self.source.names.known
        return [f"const double {known[n]} = {self.load[n]};" for n in self.part.sums.columns]

    def integral_lines(self, wait: str) -> list[str]:
        """Compute the numerical integrals at the trial point, and check how well their boxes resolve the integrand."""
        lines, first, n = [], 0, self.number
        record = self.shape.layout.record
        for i, (integral, source) in enumerate(zip(self.part.integrals, self.integrals, strict=True)):
            kernel, bodies = integral.kernel, integral.bodies
            group = GroupSum(kernel, self.shape.group, self.d)
            known = source.names.known
            columns = [f"const double {known[c]} = node{n}_{i}_{k}[k];" for k, c in enumerate(kernel.columns)]
            outputs = outputs_of(kernel, "scalars[{}]", "count", low=False)
            check = f"check, limits{n}_{i}, edges{n}_{i}, {integral.peaks}, {integral.axes}, boxes{n}_{i}"
            outs = [
                f"{f'integrals[{first + k}]' if k < bodies else f'check[{k - bodies}]'} = {' + '.join(terms) or '0.0'};"
                for k, terms in outputs.terms.items()
                if k < kernel.outputs
            ]
            lines += [
                "{",
                *indented([
                    f"const int count = nodes{n}_{i};",
                    *group.prepare(self.parameter, source.table_names()),
                    *group.sum_up(source.names, columns),
                    "if (item == 0) {",
                    *indented([
                        *outputs.before,
                        *outs,
                        f"if ({PREFIX}is_unresolved({check})) fit[{record.first('new_unresolved')}] += 1.0;",
                    ]),
                    "}",
                    wait,
                ]),
                "}",
            ]  # fmt: skip
            first += bodies
        return lines

    @property
    def checks(self) -> int:
        """How many numbers tell how accurate the integrals are."""
        return max((i.kernel.outputs - i.bodies for i in self.part.integrals), default=1)

    @property
    def bodies(self) -> int:
        return max(sum(i.bodies for i in self.part.integrals), 1)

    def prepare_lines(self) -> list[str]:
        """Compute the per-call scalars of the sums at the trial point."""
        return self.group_sum.prepare(self.parameter, self.source.table_names())

    def sum_lines(self, wait: str) -> list[str]:
        """Sum over the events at the trial point, and add the sums to those of the fit."""
        pairs, names = self.pairs, self.source.names
        loop: Callable[[Sequence[str]], list[str]] | None = None
        if pairs is not None:
            products = pairs

            def loop(inside: Sequence[str]) -> list[str]:
                return products.loop(inside, names)

        begin = [f"{self.d.shared}double *factors = scratch;", *pairs.begin()] if pairs else []
        first = words_of(self.part.sums) - pairs_of(self.part.sums)
        leave = [*pairs.leave(f"high + {first}"), self.d.wait] if pairs else []
        return [
            *self.integral_lines(wait),
            *self.prepare_lines(),
            *begin,
            *self.group_sum.sum_up(names, self.load_lines(), loop),
            *leave,
            "if (item == 0) {",
            *indented(self.add_lines(low=False)),
            "}",
            wait,
            *self.pair_lines("high[{0}]", wait),
        ]

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

    def add_lines(self, *, low: bool) -> list[str]:
        """Add the outputs to the sums of the fit; log likelihoods come in, their negative is minimised."""
        outputs = outputs_of(self.part.sums, "scalars[{}]", "count", low=low)
        places, bad = self.output_places(), self.part.sums.outputs
        return outputs.before + [
            f"fit[{places[k]}] {'+' if k == bad else '-'}= {' + '.join(terms)};"
            for k, terms in outputs.terms.items()
            if terms
        ]

    def place_table(self) -> list[str]:
        """Return where the sums of pairs are added, as a table of the text."""
        if self.pairs is None:
            return []
        first = self.pairs.pairs.output
        places = ", ".join(str(p) for p in self.output_places()[first : first + pairs_of(self.part.sums)])
        return [f"__constant int pair_places{self.number}[] = {{{places}}};"]

    def pair_lines(self, word: str, wait: str) -> list[str]:
        """Add the sums of pairs, with the sign the kernel asks for."""
        if self.pairs is None:
            return []
        count = pairs_of(self.part.sums)
        first = words_of(self.part.sums) - count
        value = f"{number_text(self.pairs.pairs.sign)} * {word.format(f'{first} + k')}"
        return [
            f"for (int k = item; k < {count}; k += GROUP) fit[pair_places{self.number}[k]] -= {value};",
            wait,
        ]
