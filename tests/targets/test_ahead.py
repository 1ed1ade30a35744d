"""Machine code that threads compile while Python goes on."""

import sys
import threading

import pytest

from morefit.errors import CompileError
from morefit.minimise import newton_program
from morefit.targets import ahead
from morefit.targets.cpu.abi import Code
from morefit.targets.cpu.compile import Pending


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(ahead, "available_cores", lambda: 2)


def code():
    return Code({}, {})


def test_python_goes_on_while_code_is_compiled():
    may_end, threads = threading.Event(), []

    def find():
        threads.append(threading.current_thread())
        assert may_end.wait(60)
        return code()

    pending = Pending(find, ahead=True)
    assert pending.code is None  # not waited for
    may_end.set()
    assert pending.wait() is pending.wait_visibly() is pending.code
    assert threads == [pending.thread]  # once, and not by this one


def test_an_error_is_that_of_whoever_needs_the_code():
    def find():
        raise CompileError("kernel: LLVM refused the text", "")

    pending = Pending(find, ahead=True)
    with pytest.raises(CompileError, match="LLVM refused the text"):
        pending.wait()


@pytest.mark.parametrize("reason", ["one core", "nothing to compile", "no threads left"])
def test_without_a_thread_code_is_compiled_when_it_is_needed(monkeypatch, reason):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    if reason == "one core":
        monkeypatch.setattr(ahead, "available_cores", lambda: 1)
    elif reason == "no threads left":
        monkeypatch.setattr(threading.Thread, "start", refuse)
    pending = Pending(code, ahead=reason != "nothing to compile")
    assert pending.thread is None
    assert pending.code is None
    assert pending.wait() is pending.code


@pytest.mark.parametrize("starts", [True, False])
def test_python_changes_threads_more_often_while_code_is_compiled(monkeypatch, starts):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    usual, seen, may_end = sys.getswitchinterval(), [], threading.Event()
    if not starts:
        monkeypatch.setattr(threading.Thread, "start", refuse)
    ahead.compile_ahead(lambda: seen.append(sys.getswitchinterval()) or may_end.wait(60))
    ahead.compile_ahead(lambda: None)
    may_end.set()
    ahead.wait_for_all()
    assert seen == [pytest.approx(ahead.SWITCH)] * starts
    assert ahead.SWITCH < usual == sys.getswitchinterval()


def test_a_fork_waits_for_all_threads():
    may_end = threading.Event()
    thread = ahead.compile_ahead(may_end.wait)
    threading.Timer(0.05, may_end.set).start()
    ahead.wait_for_all()
    assert not thread.is_alive()


def test_the_text_of_a_driver_is_written_before_its_thread_starts(monkeypatch):
    from morefit.kernel.fit_layout import FitLayout
    from morefit.targets.cpu import fit_driver

    done = []

    def note(what):
        done.append((what, threading.current_thread().name))

    monkeypatch.setattr(fit_driver, "available_cores", lambda: 2)
    monkeypatch.setattr(fit_driver, "is_compiled", lambda *identity: False)
    monkeypatch.setattr(fit_driver, "drive_text", lambda driver, layout: note("text"))
    monkeypatch.setattr(fit_driver, "build_object", lambda text, driver: note("code"))
    monkeypatch.setattr(fit_driver, "find_by_key", lambda identity, build, names: build())
    layout = FitLayout(5, 3)
    fit_driver.expect_driver.__wrapped__(newton_program.fit_driver(layout), layout)
    ahead.wait_for_all()
    assert done == [("text", threading.current_thread().name), ("code", "morefit compiler")]


def test_the_step_of_fits_on_a_device_is_built_once_and_before_it_is_needed(monkeypatch):
    pytest.importorskip("pyopencl")
    from morefit import OpenCL
    from morefit.kernel.fit_layout import FitLayout
    from morefit.minimise.newton_program import fit_driver
    from morefit.targets.opencl import programs
    from morefit.targets.opencl.programs import Programs

    built, built_by, from_source = [], [], Programs.from_source

    def watch(self, key, source):
        built.append(source)
        built_by.append(threading.current_thread().name)
        return from_source(self, key, source)

    monkeypatch.setattr(programs, "load", lambda key: None)
    monkeypatch.setattr(Programs, "from_source", watch)
    layout, backend = FitLayout(3, 2), OpenCL()  # of no other test
    backend.expect_fits(fit_driver(layout), layout, 1_000_000)
    backend.expect_fits(fit_driver(layout), layout, 1_000_000)
    ahead.wait_for_all()
    assert built_by == ["morefit compiler"]
    assert backend.open().programs.build(built[0]) is backend.open().programs.known[built[0]]
    assert len(built) == 1


def test_threads_that_begin_can_be_waited_for(monkeypatch):
    # they were listed before they were started, and a fork at that moment failed to wait for them
    unsure = []

    def begin(thread):
        unsure.append(thread in ahead.THREADS.running)
        start(thread)

    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", begin)
    thread = ahead.compile_ahead(lambda: None)
    assert thread is not None
    ahead.wait_for_all()
    assert unsure == [False]
    assert not thread.is_alive()
