"""Add the partial results of a set's blocks in a fixed order, and turn them into its outputs."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.kernel.ir import BIAS, COUNT, LN2_HIGH, LN2_LOW, SCALED, Added, Kernel, Reduce
from morefit.targets.cpu.abi import argument
from morefit.targets.cpu.loop import Block
from morefit.targets.cpu.writer import Vector, Writer, number_text

LOOPED = 128  # outputs, and terms added to them, from which on they are not written one by one
SCALED_IN_LOOP = 32  # the same of sums that are scaled, which take more lines each


def combine_text(kernel: Kernel, block: Block) -> tuple[str, list[Writer]]:
    """Write ``combine``: for each set a compensated sum of every word, then the outputs."""
    head, finish = Writer(Vector(1), "h"), Writer(Vector(1), "t")
    sets, first = argument(head, "sets"), argument(head, "first_task", "ptr")
    partials, out = argument(head, "partials", "ptr"), argument(head, "out", "ptr")
    outputs = Outputs(kernel, block, finish, out)
    outputs.write()
    v = block.wide
    # the last vector reads on into the next block, where nothing is used
    room = max(-(-block.words // v.width), 1) * v.width
    text = "\n".join([
        *outer_table(kernel, block), *outputs.tables,
        "define void @combine(ptr noalias %args) {", "entry:", *head.lines,
        f"  %high = alloca [{room} x double], align 64",
        f"  %low = alloca [{room} x double], align 64",
        "  br label %sets",
        "sets:",
        "  %set = phi i64 [ 0, %entry ], [ %set1, %finish_end ]",
        f"  %pf = getelementptr i64, ptr {first}, i64 %set", "  %from = load i64, ptr %pf",
        "  %set1 = add i64 %set, 1",
        f"  %pt = getelementptr i64, ptr {first}, i64 %set1", "  %to = load i64, ptr %pt",
        f"  call void @llvm.memset.p0.i64(ptr align 64 %high, i8 0, i64 {8 * room}, i1 false)",
        f"  call void @llvm.memset.p0.i64(ptr align 64 %low, i8 0, i64 {8 * room}, i1 false)",
        "  %some = icmp slt i64 %from, %to",
        "  br i1 %some, label %tasks, label %finish",
        *add_blocks(v, block.words, partials),
        "finish:", *finish.lines, "  br label %finish_end",
        "finish_end:",
        f"  %again = icmp slt i64 %set1, {sets}",
        "  br i1 %again, label %sets, label %done",
        "done:", "  ret void", "}",
    ])  # fmt: skip
    head.intrinsics["@llvm.memset.p0.i64"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
    return text, [head]


def add_blocks(v: Vector, words: int, partials: str) -> list[str]:
    """Add block after block with compensation, by vectors of words, into ``high`` and ``low``."""
    return [
        "tasks:",
        "  %task = phi i64 [ %from, %sets ], [ %task1, %task_done ]",
        f"  %row = mul i64 %task, {words}",
        "  br label %words",
        "words:",
        "  %word = phi i64 [ 0, %tasks ], [ %word1, %words ]",
        "  %index = add i64 %row, %word",
        f"  %pp = getelementptr double, ptr {partials}, i64 %index",
        "  %ph = getelementptr double, ptr %high, i64 %word", "  %pl = getelementptr double, ptr %low, i64 %word",
        f"  %x = load {v.type}, ptr %pp, align 8",
        f"  %s = load {v.type}, ptr %ph, align 8", f"  %c = load {v.type}, ptr %pl, align 8",
        f"  %s1 = fadd {v.type} %s, %x", f"  %p1 = fsub {v.type} %s1, %s", f"  %p2 = fsub {v.type} %s1, %p1",
        f"  %e1 = fsub {v.type} %s, %p2", f"  %e2 = fsub {v.type} %x, %p1", f"  %e = fadd {v.type} %e1, %e2",
        f"  %c1 = fadd {v.type} %c, %e",
        f"  store {v.type} %s1, ptr %ph, align 8", f"  store {v.type} %c1, ptr %pl, align 8",
        f"  %word1 = add i64 %word, {v.width}", f"  %left = icmp slt i64 %word1, {words}",
        "  br i1 %left, label %words, label %task_done",
        "task_done:",
        "  %task1 = add i64 %task, 1", "  %more = icmp slt i64 %task1, %to",
        "  br i1 %more, label %tasks, label %finish",
    ]  # fmt: skip


def outer_table(kernel: Kernel, block: Block) -> list[str]:
    """Write where each word of the pair sums goes; unwanted ones go to the output that counts bad blocks, as zero."""
    if not block.rank or not kernel.pairs:
        return []
    outputs = [kernel.pairs.output + p if p >= 0 else -1 for p in block.rank.outputs()]
    return [f"@places = internal constant [{len(outputs)} x i64] [{', '.join(f'i64 {p}' for p in outputs)}]"]


class Outputs:
    """Writes how the words of a set become its outputs; the last output counts the blocks with bad densities."""

    def __init__(self, kernel: Kernel, block: Block, writer: Writer, out: str) -> None:
        self.kernel, self.block, self.w = kernel, block, writer
        row = self.w.let(f"mul i64 %set, {kernel.outputs + 1}")
        self.row = self.w.let(f"getelementptr double, ptr {out}, i64 {row}")
        self.events = self.count_events()
        self.tables: list[str] = []  # of numbers that loops read
        self.label = "finish"  # of the block that is being written

    def write(self) -> None:
        bad, count = "0.0", self.events
        totals: dict[int, str] = {}
        sums: dict[int, str] = {}
        looped = len(self.kernel.sums.scaled) >= SCALED_IN_LOOP
        for k, result in enumerate(self.kernel.sums.results):
            word = self.block.sums.first_word(k)
            if result.output == SCALED and looped:
                continue
            if result.reduce is Reduce.LOG:
                term = self.logarithm(word)
                bad = self.w.let(f"fadd double {bad}, {self.word('high', word + 2)}")
            elif result.reduce is Reduce.EXACT:
                low = self.add(
                    self.word("low", word), self.add(self.word("high", word + 1), self.word("low", word + 1))
                )
                term = self.add(self.word("high", word), low)
            else:
                term = self.add(self.word("high", word), self.word("low", word))
            sums[k] = term
            if result.output == COUNT:
                count = term
            if result.output in (COUNT, SCALED):
                continue
            totals[result.output] = self.add(totals[result.output], term) if result.output in totals else term
        per_call = [(self.kernel.sums.per_set, ""), (self.kernel.sums.per_count, count)]
        for added, factor in per_call:
            for one in added if len(added) < LOOPED else ():
                term = self.scalar(one.result)
                term = self.w.let(f"fmul double {factor}, {term}") if factor else term
                known = totals.get(one.output)
                totals[one.output] = term if known is None else self.add(known, term)
        for scaled in () if looped else self.kernel.sums.scaled:
            term = self.w.let(f"fmul double {sums[scaled.row]}, {self.scalar(scaled.result)}")
            known = totals.get(scaled.output)
            totals[scaled.output] = term if known is None else self.add(known, term)
        if self.kernel.outputs >= LOOPED:
            size = 8 * self.kernel.outputs
            self.w.lines.append(
                f"  call void @llvm.memset.p0.i64(ptr {self.row}, i8 0, i64 {size}, i1 false)"
            )
        for output in range(self.kernel.outputs):
            if output in totals or self.kernel.outputs < LOOPED:
                self.store(output, totals.get(output, "0.0"))
        counted = totals.get(self.kernel.outputs)  # a careful kernel counts bad events itself
        self.store(self.kernel.outputs, self.add(bad, counted) if counted else bad)
        for (added, factor), name in zip(per_call, ("per_set", "per_count"), strict=True):
            if len(added) >= LOOPED:
                self.add_scalars(added, factor, name)
        if looped:
            scaled_sums = self.kernel.sums.scaled
            words = [self.block.sums.first_word(one.row) for one in scaled_sums]
            self.add_scalars([Added(s.result, s.output) for s in scaled_sums], "", "scaled", words)
        if self.block.rank:
            self.add_pairs()

    def count_events(self) -> str:
        starts, stops = argument(self.w, "starts", "ptr"), argument(self.w, "stops", "ptr")
        at = self.w.let(f"mul i64 %set, {argument(self.w, 'bounds_step')}")
        low = self.w.let(f"load i64, ptr {self.w.let(f'getelementptr i64, ptr {starts}, i64 {at}')}")
        high = self.w.let(f"load i64, ptr {self.w.let(f'getelementptr i64, ptr {stops}, i64 {at}')}")
        return self.w.let(f"sitofp i64 {self.w.let(f'sub i64 {high}, {low}')} to double")

    def word(self, which: str, index: int) -> str:
        return self.w.let(
            f"load double, ptr {self.w.let(f'getelementptr double, ptr %{which}, i64 {index}')}"
        )

    def add(self, a: str, b: str) -> str:
        return self.w.let(f"fadd double {a}, {b}")

    def scalar(self, index: int) -> str:
        scalars, padded = argument(self.w, "scalars", "ptr"), argument(self.w, "padded")
        place = self.w.let(f"add i64 {self.w.let(f'mul i64 {padded}, {index}')}, %set")
        return self.w.let(
            f"load double, ptr {self.w.let(f'getelementptr double, ptr {scalars}, i64 {place}')}"
        )

    def store(self, output: int, number: str) -> None:
        address = self.w.let(f"getelementptr double, ptr {self.row}, i64 {output}")
        self.w.lines.append(f"  store double {number}, ptr {address}")

    def logarithm(self, word: int) -> str:
        """Return log(mantissas) + exponent * log(2), the product in two exact parts."""
        bias = self.w.let(f"fmul double {self.events}, {number_text(BIAS, 64)}")
        power = self.w.let(f"fsub double {self.word('high', word + 1)}, {bias}")
        big = self.w.let(f"fmul double {power}, {number_text(LN2_HIGH, 64)}")
        small = self.w.let(f"fmul double {power}, {number_text(LN2_LOW, 64)}")
        logs = self.word("high", word)
        total = self.add(big, logs)  # and what this addition loses, by Knuth's two-sum
        part = self.w.let(f"fsub double {total}, {big}")
        rest = self.w.let(f"fsub double {total}, {part}")
        lost = self.add(self.w.let(f"fsub double {big}, {rest}"), self.w.let(f"fsub double {logs}, {part}"))
        return self.add(total, self.add(self.add(lost, small), self.word("low", word)))

    def add_scalars(self, added: Sequence[Added], factor: str, name: str, words: Sequence[int] = ()) -> None:
        """Add results of the per-call stage, times a factor or the sum in a word each, to outputs in a loop: LLVM takes long for thousands of lines."""
        padded = argument(self.w, "padded")
        scalars = argument(self.w, "scalars", "ptr")
        tables = {"from": [a.result for a in added], "to": [a.output for a in added], "word": words}
        for what, numbers in tables.items():
            if numbers:
                cells = ", ".join(f"i64 {number}" for number in numbers)
                self.tables.append(f"@{name}_{what} = internal constant [{len(added)} x i64] [{cells}]")
        times = [f"  %{name}_t = fmul double {factor}, %{name}_s"] if factor else []
        if words:
            times = [
                f"  %{name}_pw = getelementptr i64, ptr @{name}_word, i64 %{name}_k", f"  %{name}_w = load i64, ptr %{name}_pw",
                f"  %{name}_ph = getelementptr double, ptr %high, i64 %{name}_w", f"  %{name}_h = load double, ptr %{name}_ph",
                f"  %{name}_pl = getelementptr double, ptr %low, i64 %{name}_w", f"  %{name}_l = load double, ptr %{name}_pl",
                f"  %{name}_v = fadd double %{name}_h, %{name}_l", f"  %{name}_t = fmul double %{name}_v, %{name}_s",
            ]  # fmt: skip
        self.w.lines += [
            f"  br label %{name}",
            f"{name}:",
            f"  %{name}_k = phi i64 [ 0, %{self.label} ], [ %{name}_k1, %{name} ]",
            f"  %{name}_pf = getelementptr i64, ptr @{name}_from, i64 %{name}_k",
            f"  %{name}_f = load i64, ptr %{name}_pf",
            f"  %{name}_m = mul i64 {padded}, %{name}_f", f"  %{name}_i = add i64 %{name}_m, %set",
            f"  %{name}_ps = getelementptr double, ptr {scalars}, i64 %{name}_i",
            f"  %{name}_s = load double, ptr %{name}_ps", *times,
            f"  %{name}_pt = getelementptr i64, ptr @{name}_to, i64 %{name}_k",
            f"  %{name}_to = load i64, ptr %{name}_pt",
            f"  %{name}_po = getelementptr double, ptr {self.row}, i64 %{name}_to",
            f"  %{name}_o = load double, ptr %{name}_po",
            f"  %{name}_n = fadd double %{name}_o, %{name}_{'t' if times else 's'}",
            f"  store double %{name}_n, ptr %{name}_po",
            f"  %{name}_k1 = add i64 %{name}_k, 1", f"  %{name}_more = icmp slt i64 %{name}_k1, {len(added)}",
            f"  br i1 %{name}_more, label %{name}, label %{name}_end",
            f"{name}_end:",
        ]  # fmt: skip
        self.label = f"{name}_end"

    def add_pairs(self) -> None:
        """Add the pair sums to their outputs, with the sign the kernel asks for."""
        assert self.block.rank is not None and self.kernel.pairs is not None
        sign, first = number_text(self.kernel.pairs.sign, 64), self.block.sums.words
        self.w.lines += [
            "  br label %pairs",
            "pairs:",
            f"  %q = phi i64 [ 0, %{self.label} ], [ %q1, %pair_done ]",
            "  %pw = getelementptr i64, ptr @places, i64 %q", "  %place = load i64, ptr %pw",
            "  %wanted = icmp sge i64 %place, 0",
            "  br i1 %wanted, label %pair, label %pair_done",
            "pair:",
            f"  %qw = add i64 %q, {first}",
            "  %qh = getelementptr double, ptr %high, i64 %qw", "  %vh = load double, ptr %qh",
            "  %ql = getelementptr double, ptr %low, i64 %qw", "  %vl = load double, ptr %ql",
            "  %v = fadd double %vh, %vl", f"  %vs = fmul double %v, {sign}",
            f"  %po = getelementptr double, ptr {self.row}, i64 %place", "  %o = load double, ptr %po",
            "  %on = fadd double %o, %vs", "  store double %on, ptr %po",
            "  br label %pair_done",
            "pair_done:",
            "  %q1 = add i64 %q, 1", f"  %qm = icmp slt i64 %q1, {self.block.rank.words}",
            "  br i1 %qm, label %pairs, label %pairs_end",
            "pairs_end:",
        ]  # fmt: skip
