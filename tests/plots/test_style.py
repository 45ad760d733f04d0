"""Threads that draw at the same time do not get into each other's style."""

from threading import Event, Thread

import matplotlib as mpl
import pytest

from dpublish.plots.style import drawing

SECONDS = 10


def style():
    return {name: mpl.rcParams[name] for name in ("svg.fonttype", "font.size", "axes.spines.top")}


def test_one_thread_draws_at_a_time_and_the_style_is_put_back():
    before = style()
    entered, leave = Event(), Event()
    pictures = []

    def other():
        with drawing((2, 2)) as drawn:
            entered.set()
            leave.wait(SECONDS)
            pictures.append(drawn.svg())

    thread = Thread(target=other)
    with drawing((2, 2)) as drawn:
        thread.start()
        assert not entered.wait(0.3)
        with drawing((2, 2)) as within:  # a page that draws a chart within a chart does not wait
            pictures.append(within.svg())
        pictures.append(drawn.svg())
    assert entered.wait(SECONDS)
    leave.set()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert len(set(pictures)) == 1
    assert style() == before


def test_a_drawing_that_fails_lets_others_draw():
    with pytest.raises(ZeroDivisionError), drawing((2, 2)):
        1 / 0  # noqa: B018 - the fault is what is tested
    done = Event()

    def other():
        with drawing((2, 2)):
            done.set()

    thread = Thread(target=other, daemon=True)
    thread.start()
    assert done.wait(SECONDS)
    thread.join(SECONDS)
