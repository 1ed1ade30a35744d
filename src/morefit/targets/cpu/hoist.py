"""Move what is the same for all events out of the loop over them: parts of inlined functions with a fixed argument.

LLVM has a pass for it, which llvmlite does not offer; what is moved there after optimisation depends on registers.
"""

from __future__ import annotations

import re

NAME = re.compile(r"%[\w.]+")
ASSIGNMENT = re.compile(r"  (%[\w.]+) = (?!phi|load|alloca|[us]div|[us]rem)(.*)")
OTHER_CALL = re.compile(r"call (?!.*@llvm\.)")
NUMBERED = re.compile(r"(?<=%)(?=\d)|^(?=\d+:)")  # places of names that LLVM counted, which must be in order
LOOPS = ("functions_first:", "loop:")  # the first that there is has the functions


def hoist(text: str) -> str:
    """Move lines of the loop of ``block`` whose operands are known before it to the end of its entry.

    They are those of the first block of the loop, which always runs, and compute numbers only.
    """
    lines = text.split("\n")
    begin = next(k for k, line in enumerate(lines) if line.startswith("define void @block("))
    end = next(k for k in range(begin, len(lines)) if lines[k] == "}")
    lines[begin:end] = [NUMBERED.sub("counted", line) for line in lines[begin:end]]
    leave = next(k for k in range(begin, end) if lines[k].startswith("  br "))
    starts = [k for label in LOOPS for k in range(begin, end) if lines[k].startswith(label)]
    if not starts:
        return text
    loop = starts[0]
    stop = next(k for k in range(loop, end) if lines[k].startswith("  br "))
    known = set(NAME.findall(lines[begin]))
    known.update(line.split()[0] for line in lines[begin:leave] if line.startswith("  %"))
    moved, rest = [], []
    for line in lines[loop + 1 : stop]:
        match = ASSIGNMENT.match(line)
        if match and not OTHER_CALL.search(line) and known.issuperset(NAME.findall(match[2])):
            known.add(match[1])
            moved.append(line)
        else:
            rest.append(line)
    return "\n".join([*lines[:leave], *moved, *lines[leave : loop + 1], *rest, *lines[stop:]])
