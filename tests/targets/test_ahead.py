"""Machine code that threads compile while Python goes on."""

import threading

import pytest

from morefit.errors import CompileError
from morefit.targets.cpu import compile as ahead
from morefit.targets.cpu.abi import Code


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(ahead, "available_cores", lambda: 2)


def code():
    return Code(None, {}, {})


def test_python_goes_on_while_code_is_compiled():
    may_end, threads = threading.Event(), []

    def find():
        threads.append(threading.current_thread())
        assert may_end.wait(60)
        return code()

    pending = ahead.Pending(find, ahead=True)
    assert pending.code is None  # not waited for
    may_end.set()
    assert pending.wait() is pending.wait_visibly() is pending.code
    assert threads == [pending.thread]  # once, and not by this one


def test_an_error_is_that_of_whoever_needs_the_code():
    def find():
        raise CompileError("kernel: LLVM refused the text", "")

    pending = ahead.Pending(find, ahead=True)
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
    pending = ahead.Pending(code, ahead=reason != "nothing to compile")
    assert pending.thread is None
    assert pending.code is None
    assert pending.wait() is pending.code


def test_a_fork_waits_for_all_threads():
    may_end = threading.Event()
    thread = ahead.compile_ahead(may_end.wait)
    threading.Timer(0.05, may_end.set).start()
    ahead.wait_for_all()
    assert not thread.is_alive()
