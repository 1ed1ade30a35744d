"""Progress and messages where there is no terminal, or none any more."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import morefit as mf
from morefit.text.progress import Bar, tell
from morefit.toys.study import toy_study


class Gone(io.StringIO):
    """A terminal that was closed."""

    def isatty(self):
        return True

    def write(self, text):
        raise OSError(5, "Input/output error")


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


STREAMS = {"none": lambda: None, "closed": closed, "gone": Gone}


@pytest.fixture(params=STREAMS)
def no_terminal(request, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("morefit.text.progress.SECONDS_UNSHOWN", 0.0)
    monkeypatch.setattr(sys, "stderr", STREAMS[request.param]())


def gaussian():
    return mf.Gaussian(mf.Observable("x", -5.0, 5.0), mf.Parameter("mu", 0.0, -3.0, 3.0), 1.0)


def test_a_study_needs_no_terminal(no_terminal):
    """This used to end in AttributeError where sys.stderr is None, as in programs without a console."""
    assert len(toy_study(gaussian(), toys=4, events=30, seed=1, block=1)) == 4


def test_an_interrupted_study_needs_no_terminal(no_terminal):
    calls = []

    def stop(dataset, values):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return 0.0

    assert len(toy_study(gaussian(), toys=4, events=30, seed=1, block=1, statistic=stop)) == 2


def test_a_bar_and_a_message_need_no_terminal(no_terminal):
    tell("nobody reads this")
    with Bar("work", 2, True, unit="steps") as bar:
        for done in range(3):
            bar.done(done)


def test_messages_go_to_standard_error(capsys):
    tell("something to know")
    assert capsys.readouterr() == ("", "something to know\n")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_one_bar_is_shown_at_a_time(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("morefit.text.progress.SECONDS_UNSHOWN", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Bar("job", 3, shown=True) as job:
        job.done(1)
        with Bar("compiling", 2, shown=True) as inner:
            inner.done(1)
            assert job.progress is not None
            assert inner.progress is None
    with Bar("compiling", 2, shown=True) as later:
        later.done(1)
        assert later.progress is not None


def test_a_bar_appears_during_a_long_step(monkeypatch):
    """This used to wait for the end of the step, which for machine code may be all of the time."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("morefit.text.progress.SECONDS_UNSHOWN", 0.05)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Bar("compiling", 2, shown=True) as bar:
        bar.done(1, "compiling: compile")
        assert bar.progress is None
        bar.alarm.join()
        assert bar.progress is not None
    with Bar("compiling", 2, shown=True) as short:
        pass
    short.alarm.join()
    assert short.progress is None


def test_a_long_compilation_shows_its_passes(monkeypatch):
    shown = []
    monkeypatch.setenv("MOREFIT_CACHE_DIR", "")
    monkeypatch.setattr(Bar, "done", lambda bar, count, what=None: shown.append(what))
    x, mu = mf.Observable("x", -5.0, 5.0), mf.Parameter("mean_of_this_test", 0.0, -3.0, 3.0)
    mf.Likelihood(mf.Gaussian(x, mu, 1.0), {"x": [0.123]}).gradient([0.0])
    assert [shown[0], shown[-1]] == ["compiling: derive", "compiling: compile"]


def test_integrals_that_take_long_show_a_bar(monkeypatch):
    """Integrals of resonances in a plane took seconds before anything was compiled, and nothing was to be seen."""
    shown = []
    original = Bar.__init__

    def noted(bar, what, *arguments, **options):
        shown.append(what)
        original(bar, what, *arguments, **options)

    monkeypatch.setattr(Bar, "__init__", noted)
    x, width = mf.Observable("x", -5.0, 5.0), mf.Parameter("width_of_this_test", 0.5, 0.1, 3.0)
    density = mf.Density(np.exp(-(((x - 0.2) / width) ** 4)), [x])
    mf.fit(density, {"x": np.linspace(-0.6, 1.0, 30)})
    assert shown[0] == "integrating the density"
    assert {"boxes of integrals", "compiling", "compiling: machine code"} <= set(shown)


@pytest.mark.parametrize("minimiser", ["auto", "minuit"])
def test_a_fit_that_takes_long_shows_what_it_has_done(monkeypatch, minimiser):
    """A fit of many minutes showed nothing."""
    terminal, shown = Terminal(), []
    original = Bar.show
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("morefit.text.progress.SECONDS_UNSHOWN", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("morefit.minimise.path.fit_at_once", lambda *_: None)
    monkeypatch.setattr(Bar, "show", lambda bar: (shown.append(bar.what), original(bar)))
    model, data = gaussian(), {"x": np.linspace(-2.0, 3.0, 30)}
    result = mf.fit(model, data, minimiser=minimiser)
    assert "fitting: " in terminal.getvalue()
    fits = [what for what in shown if what.startswith("fitting: ")]
    assert fits[-1] == f"fitting: {sum(result.calls.values())} evaluations, nll {result.nll:.2f}"
    shown.clear()
    mf.fit(model, data, minimiser=minimiser, progress=False)
    assert not any(what.startswith("fitting: ") for what in shown)


def test_an_interrupted_fit_leaves_no_bar(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("morefit.text.progress.SECONDS_UNSHOWN", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("morefit.minimise.path.fit_at_once", lambda *_: None)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("morefit.minimise.path.check_minimum", interrupt)
    with pytest.raises(KeyboardInterrupt):
        mf.fit(gaussian(), {"x": np.linspace(-2.0, 3.0, 30)})
    with Bar("later", 2, shown=True) as later:
        later.done(1)
        assert later.progress is not None
