"""The stages of a whole fit on one thread, in the language of drivers: draw the events of a toy, and sum over them.

A thread has a table of whole numbers (``JOB``), one for each part of the likelihood (``PART``), and one for each
numerical integral of a part (``INTEGRAL``): sizes, and addresses of functions and memory.
"""

from __future__ import annotations

from morefit.arrays import Integers
from morefit.kernel.fit_layout import Fit
from morefit.kernel.program import Kind, Stage, integers_at, vector_at
from morefit.kernel.resolved import is_unresolved
from morefit.random.xoshiro import BLOCK

# the words of a thread
(COUNTER, TOYS, TOY, RESULTS, WIDTH, RECORD, FIRST_RECORD, RECORD_SIZE, PARTS, FIRST_PART) = range(10)
# the words of a part: functions and their tables,
(
    SIZES,  # events of this part in each toy, ...
    SIZES_STEP,  # ... from toy to toy
    DRAW, DRAW_ARGS, DRAW_REPORT,
    DERIVE, DERIVE_ARGS,  # 0 where there is nothing to derive
    PREPARE, SUM_BLOCK, COMBINE, SUM_ARGS,
    COUNT,  # where the tables of the sums find the number of events, ...
    LAST_TASK,  # ... and one past the last block
    PARAMETERS, LANES,  # of the sums: double[parameter][lanes]
    FLOATING, PLACES, FLOATING_COUNT,  # which have derivatives, and which parameter of the fit each is, or -1
    MEASURED, MEASURED_FIRST, MEASURED_COUNT,  # what constraints measured in each toy, and its place
    OUTPUTS,  # what combine writes
    INTEGRALS, FIRST_INTEGRAL,
) = range(24)  # fmt: skip
# the words of an integral
(
    NODE_PREPARE, NODE_BLOCK, NODE_COMBINE, NODE_ARGS, NODES,
    NODE_OUTPUTS, BODIES,  # integrals, followed by what tells how accurate they are
    TARGET,  # the place of the results among the parameters of the sums
    CONTRAST_LIMIT,  # double[1 + places]: bounds of the contrast, and of the coarseness at each place
    PEAKS, AXES, BOXES,
    BOX_EDGES,  # double[box][axis][2]
) = range(13)  # fmt: skip

call_table = Stage("call_table")  # function, its table
call_block = Stage("call_block")  # function, its table, set, first event, one past the last, block
take_toy = Stage("take_toy", Kind.INT)  # address of a counter: returns its number, and counts on
copy_numbers = Stage("copy_numbers")  # from an address, to an address, how many
fit_toy = Stage("fit_toy")
begin_fit = Stage("begin_fit")
advance = Stage("advance")
correct_errors = Stage("correct_errors")


def drive(job: Integers) -> None:
    """Fit toys until none is left."""
    toy = take_toy(job[COUNTER])
    while toy < job[TOYS]:
        job[TOY] = toy
        copy_numbers(job[FIRST_RECORD], job[RECORD], job[RECORD_SIZE])
        fit_toy(job, vector_at(job[RECORD]))
        copy_numbers(job[RECORD], job[RESULTS] + 8 * toy * job[WIDTH], job[WIDTH])
        toy = take_toy(job[COUNTER])


# the words of steps of many fits, one after the other
(FITS, STATES, STATE_SIZE, SCRATCH) = range(4)


def load_state(job: Integers, k: int) -> None:
    """Copy the state of a fit to where a step works on it."""
    copy_numbers(job[STATES] + 8 * k * job[STATE_SIZE], job[SCRATCH], job[STATE_SIZE])


def store_state(job: Integers, k: int) -> None:
    """Copy the state of a fit back."""
    copy_numbers(job[SCRATCH], job[STATES] + 8 * k * job[STATE_SIZE], job[STATE_SIZE])


def begin_all(job: Integers) -> None:
    """Begin fits whose states are in a row."""
    for k in range(job[FITS]):
        load_state(job, k)
        begin_fit(vector_at(job[SCRATCH]))
        store_state(job, k)


def advance_all(job: Integers) -> None:
    """Take a step of each fit whose state is in a row, after the sums at its trial point."""
    for k in range(job[FITS]):
        load_state(job, k)
        advance(vector_at(job[SCRATCH]))
        store_state(job, k)


def correct_all(job: Integers) -> None:
    """Correct the errors of each fit whose state is in a row, after its squared scores."""
    for k in range(job[FITS]):
        load_state(job, k)
        correct_errors(vector_at(job[SCRATCH]))
        store_state(job, k)


def draw(job: Integers, fit: Fit) -> None:
    """Draw the events of all parts, compute what depends on them alone, and take over what constraints measured."""
    for k in range(job[PARTS]):
        part = integers_at(job[FIRST_PART + k])
        sizes = integers_at(part[SIZES])
        size = sizes[job[TOY] * part[SIZES_STEP]]
        blocks = (size + BLOCK - 1) // BLOCK
        count = integers_at(part[COUNT])
        last = integers_at(part[LAST_TASK])
        count[0] = size
        last[0] = blocks
        for block in range(blocks):
            begin = block * BLOCK
            call_block(part[DRAW], part[DRAW_ARGS], job[TOY], begin, min(begin + BLOCK, size), block)
        report = vector_at(part[DRAW_REPORT])
        for block in range(blocks):
            fit.above[k] += report[2 * block]
            fit.abandoned[k] += report[2 * block + 1]
        if part[DERIVE] != 0:
            for block in range(blocks):
                begin = block * BLOCK
                call_block(part[DERIVE], part[DERIVE_ARGS], 0, begin, min(begin + BLOCK, size), block)
        if part[MEASURED] != 0:
            parameters = vector_at(part[PARAMETERS])
            measured = vector_at(part[MEASURED])
            for i in range(part[MEASURED_COUNT]):
                place = (part[MEASURED_FIRST] + i) * part[LANES]
                parameters[place] = measured[job[TOY] * part[MEASURED_COUNT] + i]


def sums(job: Integers, fit: Fit) -> None:
    """Sum over the events of all parts at the trial point."""
    n = len(fit.x)
    fit.new_value = 0.0
    fit.bad = 0.0
    fit.new_unresolved = 0.0
    for i in range(n):
        fit.new_gradient[i] = 0.0
        for j in range(i + 1):
            fit.new_hessian[i * n + j] = 0.0
    for k in range(job[PARTS]):
        part = integers_at(job[FIRST_PART + k])
        sum_part(part, fit)
        add_part(part, fit)


def scores(job: Integers, fit: Fit) -> None:
    """Sum the squared scores over the events of all parts at the trial point."""
    n = len(fit.x)
    for i in range(n):
        for j in range(i + 1):
            fit.new_hessian[i * n + j] = 0.0
    for k in range(job[PARTS]):
        part = integers_at(job[FIRST_PART + job[PARTS] + k])
        sum_part(part, fit)
        add_scores(part, fit)


def sum_part(part: Integers, fit: Fit) -> None:
    """Sum over the events of one part at the trial point, or over the bins of a model of counts, which needs one call."""
    floating = integers_at(part[FLOATING])
    places = integers_at(part[PLACES])
    parameters = vector_at(part[PARAMETERS])
    for i in range(part[FLOATING_COUNT]):
        if places[i] >= 0:
            parameters[floating[i] * part[LANES]] = fit.trial[places[i]]
    for i in range(part[INTEGRALS]):
        integrate(part, integers_at(part[FIRST_INTEGRAL + i]), fit)
    count = integers_at(part[COUNT])
    last = integers_at(part[LAST_TASK])
    call_table(part[PREPARE], part[SUM_ARGS])
    if part[SUM_BLOCK] == 0:
        return
    for block in range(last[0]):
        begin = block * BLOCK
        call_block(part[SUM_BLOCK], part[SUM_ARGS], 0, begin, min(begin + BLOCK, count[0]), block)
    call_table(part[COMBINE], part[SUM_ARGS])


def add_part(part: Integers, fit: Fit) -> None:
    """Add the sums of one part to those of the fit; log likelihoods come in, their negative is minimised."""
    n = len(fit.x)
    out = vector_at(part[OUTPUTS])
    places = integers_at(part[PLACES])
    own = part[FLOATING_COUNT]
    fit.new_value -= out[0]
    at = 1 + own
    for i in range(own):
        if places[i] >= 0:
            fit.new_gradient[places[i]] -= out[1 + i]
        for j in range(i + 1):
            row = max(places[i], places[j])
            column = min(places[i], places[j])
            if column >= 0:
                fit.new_hessian[row * n + column] -= out[at]
            at += 1
    fit.bad += out[at]


def add_scores(part: Integers, fit: Fit) -> None:
    """Add the squared scores of one part to those of the fit."""
    n = len(fit.x)
    out = vector_at(part[OUTPUTS])
    places = integers_at(part[PLACES])
    at = 0
    for i in range(part[FLOATING_COUNT]):
        for j in range(i + 1):
            row = max(places[i], places[j])
            column = min(places[i], places[j])
            if column >= 0:
                fit.new_hessian[row * n + column] += out[at]
            at += 1


def integrate(part: Integers, integral: Integers, fit: Fit) -> None:
    """Compute numerical integrals at the trial point, and check how well their boxes resolve the integrand."""
    call_table(integral[NODE_PREPARE], integral[NODE_ARGS])
    blocks = (integral[NODES] + BLOCK - 1) // BLOCK
    for block in range(blocks):
        begin = block * BLOCK
        end = min(begin + BLOCK, integral[NODES])
        call_block(integral[NODE_BLOCK], integral[NODE_ARGS], 0, begin, end, block)
    call_table(integral[NODE_COMBINE], integral[NODE_ARGS])
    out = vector_at(integral[NODE_OUTPUTS])
    parameters = vector_at(part[PARAMETERS])
    bodies = integral[BODIES]
    for i in range(bodies):
        parameters[(integral[TARGET] + i) * part[LANES]] = out[i]
    limits = vector_at(integral[CONTRAST_LIMIT])
    check = vector_at(integral[NODE_OUTPUTS] + 8 * bodies)
    edges = vector_at(integral[BOX_EDGES])
    if is_unresolved(check, limits, edges, integral[PEAKS], integral[AXES], integral[BOXES]):
        fit.new_unresolved += 1.0
