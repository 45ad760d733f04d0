"""The one list of stream methods: the command line, the experiments and the tests read it."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpublish.core.catalog import Entry
from dpublish.core.settings import Setting, build, list_settings
from dpublish.errors import require_known

if TYPE_CHECKING:
    from dpublish.methods.streams.method import StreamMethod

_TASK = "streams"

STREAMS: Mapping[str, Entry] = {
    "dsat": Entry(
        location="dpublish.methods.streams.dsat:DSAT",
        task=_TASK,
        publishes="histograms of a finite stream when they are worth while, in a rhythm that it "
        "learns and early after a jump",
        prefer="the stream has an end, and users must be hidden in all of it",
    ),
    "dsat-w": Entry(
        location="dpublish.methods.streams.dsat_w:DSATw",
        task=_TASK,
        publishes="histograms of an endless stream when they are worth while",
        prefer="the stream never ends, and users must be hidden within any so many steps",
    ),
    "per-snapshot": Entry(
        location="dpublish.methods.streams.per_snapshot:PerSnapshot",
        task=_TASK,
        publishes="a fresh noisy histogram at every step",
        prefer="there are few steps, or you want a baseline",
    ),
    "fixed-sampling": Entry(
        location="dpublish.methods.streams.fixed_sampling:FixedSampling",
        task=_TASK,
        publishes="a fresh histogram at equal intervals",
        prefer="counts drift steadily and you know how fast",
    ),
    "dsft": Entry(
        location="dpublish.methods.streams.dsft:DSFT",
        task=_TASK,
        publishes="a fresh histogram when the counts have moved by a fixed amount",
        prefer="you know how much change matters",
    ),
    "bd": Entry(
        location="dpublish.methods.streams.bd:BD",
        task=_TASK,
        publishes="a fresh histogram when it is closer than the last, with half of what is left",
        prefer="you compare with the literature (BD)",
    ),
    "ba": Entry(
        location="dpublish.methods.streams.ba:BA",
        task=_TASK,
        publishes="a fresh histogram when it is closer than the last, with what skipped steps left",
        prefer="you compare with the literature (BA)",
    ),
}


def stream_class(name: str) -> "type[StreamMethod]":
    """Import the stream method called `name`."""
    require_known("method", name, STREAMS)
    module, _, attribute = STREAMS[name].location.partition(":")
    found: type[StreamMethod] = getattr(import_module(module), attribute)
    return found


def stream_settings(name: str) -> list[Setting]:
    """List the settings of the stream method called `name`."""
    return list_settings(stream_class(name))


def make_stream_method(name: str, settings: Mapping[str, Any]) -> "StreamMethod":
    """Build a stream method from settings, given as values or as text."""
    method: StreamMethod = build(stream_class(name), name, settings)
    return method
