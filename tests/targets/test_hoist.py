"""What is the same for all events leaves the loop."""

import llvmlite.binding as llvm

from morefit.targets.cpu.codegen import hoist

TEXT = """define void @other(ptr %p) {
entry:
  br label %loop
loop:
  ret void
}
define void @block(ptr %args, double %y) {
entry:
  %a = fadd double %y, 1.0
  br label %chunk
chunk:
  %from = phi i64 [ 0, %entry ]
  br label %loop
loop:                                             ; preds = %chunk, %loop
  %i = phi i64 [ %from, %chunk ], [ %next, %loop ]
  %same = fmul double %a, %y
  %root = call double @llvm.sqrt.f64(double %same)
  %called = call double @sin(double %same)
  %x = load double, ptr %args
  %sum = fadd double %x, %root
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, 9
  br i1 %again, label %loop, label %done
done:
  ret void
}"""


def test_lines_of_known_numbers_leave_the_loop_and_no_others():
    before, after = TEXT.split("\n"), hoist(TEXT).split("\n")
    assert sorted(before) == sorted(after)
    entry = after[after.index("  %a = fadd double %y, 1.0") + 1 : after.index("  br label %chunk")]
    assert entry == ["  %same = fmul double %a, %y", "  %root = call double @llvm.sqrt.f64(double %same)"]


def test_a_text_without_a_loop_stays():
    text = "define void @block(ptr %args) {\nentry:\n  br label %done\ndone:\n  ret void\n}"
    assert hoist(text) == text


def test_values_that_llvm_numbered_need_not_be_in_order_afterwards():
    """LLVM refused the text of a loop in which it had made values of its own."""
    text = """define void @block(ptr %args, double %y) {
entry:
  br label %loop
loop:
  %0 = load double, ptr %args
  %1 = fmul double %y, %y
  %2 = fadd double %0, %1
  store double %2, ptr %args
  br label %loop
}"""
    llvm.parse_assembly(hoist(text)).verify()
