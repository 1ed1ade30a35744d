"""Threads that help with compiled work: all of it is done once, by whoever comes, and nobody stays behind."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from morefit.targets.cpu.compile import find_code
from morefit.targets.cpu.threads import LINE, PAUSE, POOL, WORKERS, Pool, Workers, give_way, pool_text

# table: where the next task is counted, how many there are, where to count what was done, and how often one was here
TAKE = """
define void @take(ptr %table) {
entry:
  %pn = getelementptr i64, ptr %table, i64 1
  %pd = getelementptr i64, ptr %table, i64 2
  %ph = getelementptr i64, ptr %table, i64 3
  %next = load ptr, ptr %table
  %tasks = load i64, ptr %pn
  %done = load ptr, ptr %pd
  %here = load ptr, ptr %ph
  %came = atomicrmw add ptr %here, i64 1 seq_cst
  br label %again
again:
  %task = atomicrmw add ptr %next, i64 1 seq_cst
  %any = icmp slt i64 %task, %tasks
  br i1 %any, label %do, label %leave
do:
  %place = getelementptr i64, ptr %done, i64 %task
  %old = atomicrmw add ptr %place, i64 1 seq_cst
  br label %again
leave:
  ret void
}
"""


class Job:
    """Tasks that each are to be done once."""

    def __init__(self, tasks):
        self.next, self.here = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.done = np.zeros(tasks, np.int64)
        where = [self.next.ctypes.data, tasks, self.done.ctypes.data, self.here.ctypes.data]
        self.table = np.array(where, np.int64)
        self.code = find_code(TAKE, ["take"])

    def run(self, workers, threads):
        workers.run(self.code, "take", [int(self.table.ctypes.data)] * threads)


def word(pool, name):
    return int(pool.words[POOL.index(name) * LINE])


def wait_until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited for too long"
        time.sleep(0.001)


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_every_task_is_done_once(threads):
    workers = Workers()
    for tasks in (0, 1, 5, 10_000):
        for _ in range(20):
            job = Job(tasks)
            job.run(workers, threads)
            assert (job.done == 1).all()
            assert 1 <= job.here[0] <= threads
            if threads > 1:
                assert word(workers.pool, "inside") == 0
                assert word(workers.pool, "busy") == 0
    assert (workers.pool is None) == (threads == 1)


def test_many_callers_at_once_do_all_their_work():
    workers, wrong = Workers(), []

    def call():
        for _ in range(200):
            job = Job(300)
            job.run(workers, 4)
            if not (job.done == 1).all():
                wrong.append(job)

    callers = [threading.Thread(target=call) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong
    assert workers.pool.count == 3


def test_a_caller_works_alone_while_another_leads():
    workers = Workers()
    Job(1).run(workers, 2)
    workers.pool.put("busy", 1)
    job = Job(50)
    job.run(workers, 8)
    assert (job.done == 1).all()
    assert job.here[0] == 1
    assert word(workers.pool, "busy") == 1  # the other still leads
    workers.pool.put("busy", 0)


def test_others_come_to_help():
    workers, most = Workers(), 0
    end = time.monotonic() + 20.0
    while most < 2:
        job = Job(200_000)
        job.run(workers, 2)
        most = max(most, int(job.here[0]))
        assert time.monotonic() < end, "nobody ever came"


def test_threads_sleep_when_there_is_no_work():
    workers = Workers()
    Job(1000).run(workers, 4)
    wait_until(lambda: word(workers.pool, "awake") == 0 and workers.pool.bell.empty())
    job = Job(1000)
    job.run(workers, 4)  # and wake up again
    assert (job.done == 1).all()


def test_the_patience_of_a_thread_is_in_rests_of_this_machine():
    pool = Pool()
    begin = time.perf_counter()
    pool.code.functions["idle"](pool.address)
    assert 1e-6 < time.perf_counter() - begin < 5.0
    assert word(pool, "patience") >= 1


def test_threads_can_rest_without_giving_way():
    pool = Pool()
    assert give_way() > 0
    pool.put("give_way", 0)
    pool.code.functions["idle"](pool.address)


@pytest.mark.parametrize("machine", PAUSE)
def test_the_text_is_good_for_every_kind_of_machine(machine):
    llvm.parse_assembly(pool_text(machine)).verify()


def test_a_process_ends_while_threads_look_for_work():
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from test_workers import Job
from morefit.targets.cpu.threads import Workers
workers = Workers()
for _ in range(5):
    Job(2000).run(workers, 8)
"""
    for _ in range(5):
        subprocess.run([sys.executable, "-c", program, str(Path(__file__).parent)], check=True, timeout=60)


def test_there_is_one_pool_in_a_process():
    Job(10).run(WORKERS, 2)
    pool = WORKERS.pool
    Job(10).run(WORKERS, 2)
    assert WORKERS.pool is pool
